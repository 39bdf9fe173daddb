"""Sections about the program: universe, folder, executable, arguments, environment, standard files, signals."""

from __future__ import annotations

import signal

from condor_actors.cores.argument_quoting import join_raw
from condor_actors.submit.build_context import UNIVERSE_IDS, BuildContext, is_url
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import NULL_FILE, check_executable, check_file, files_are_checked
from condor_actors.submit.quoting import (
    imported,
    join_environment,
    parse_arguments,
    parse_environment,
    split_raw,
    unquote,
)


def universe(sheet: BuildContext) -> None:
    """JobUniverse, and WantDocker or WantContainer."""
    name = (sheet.text("universe", "JobUniverse") or sheet.setting("DEFAULT_UNIVERSE") or "vanilla").lower()
    if name.isdigit():
        name = next((word for word, number in UNIVERSE_IDS.items() if str(number) == name), name)
    if name not in UNIVERSE_IDS:
        raise SubmitError(
            f"I don't know about the '{name}' universe; expected one of {', '.join(sorted(UNIVERSE_IDS))}."
        )
    sheet.universe = UNIVERSE_IDS[name]
    sheet.topping = name if name in ("docker", "container") else ""
    image, docker_image = (
        sheet.text("container_image", "ContainerImage"),
        sheet.text("docker_image", "DockerImage"),
    )
    if sheet.universe == 5 and not sheet.topping and (image or docker_image):
        sheet.topping = "container" if image else "docker"
    if sheet.topping and not image and not docker_image:
        raise SubmitError(f"{name} universe needs a {name}_image")
    sheet.set("JobUniverse", sheet.universe)
    if sheet.topping == "docker":
        sheet.set("WantDocker", True)
        sheet.set("DockerImage", docker_image or image)
    elif sheet.topping:
        _container(sheet, image or docker_image or "")


def _container(sheet: BuildContext, image: str) -> None:
    sheet.set("WantContainer", True)
    if image.startswith("docker:"):
        sheet.set("WantDockerImage", True)
    elif image.endswith(".sif"):
        sheet.set("WantSIF", True)
    else:
        sheet.set("WantSandboxImage", True)
    sheet.set("ContainerImage", image)


def folder(sheet: BuildContext) -> None:
    """Iwd."""
    given = sheet.text("initialdir", "initial_dir", "job_iwd", "iwd")
    if given is None:
        path = sheet.world.cwd
    else:
        path = given if given.startswith("/") else f"{sheet.world.cwd.rstrip('/')}/{given}"
        if "$$(" not in path and not sheet.world.files.is_folder(path):
            raise SubmitError(f"No such directory: {path}", command="initialdir",
                              remedy="make it, or mend the path (a relative one begins at the folder you submit from)")
    if len(path) > 1:
        path = path.rstrip("/")
    sheet.iwd = path
    sheet.set("Iwd", path)


def executable(sheet: BuildContext) -> None:
    """Cmd, TransferExecutable, ExecutableSize."""
    name = sheet.text("executable", "cmd")
    shell = sheet.text("shell")
    if shell is not None and not sheet.interactive:
        if name is not None:
            raise SubmitError("a description has either a shell command or an executable, not both")
        sheet.set("Cmd", "/bin/sh")
        sheet.set("TransferExecutable", False)
        return
    if sheet.interactive and name is None:
        name = "/bin/sleep"
    if name is None:
        if sheet.topping:
            sheet.set("Cmd", "")
            sheet.set("TransferExecutable", False)
            return
        raise SubmitError("No 'executable' parameter was provided")
    name = name.strip('"')
    transfer = sheet.text("transfer_executable", "TransferExecutable")
    moved = transfer is None or sheet.truth("transfer_executable", transfer)
    if not moved:
        sheet.set("TransferExecutable", False)
        sheet.set("Cmd", name)
        return
    if transfer is not None:
        sheet.set("TransferExecutable", True)
    if is_url(name) or sheet.universe == 9:
        sheet.set("Cmd", name)
        return
    path = _executable_path(sheet, name)
    sheet.set("Cmd", path)
    if "$$(" not in path:
        check_executable(sheet, path)


def _executable_path(sheet: BuildContext, name: str) -> str:
    """Relative to the caller's folder, as HTCondor has it; to the job's initial folder if it is only there."""
    if name.startswith("/"):
        return name
    path = f"{sheet.world.cwd.rstrip('/')}/{name}"
    files = sheet.world.files
    if (
        sheet.iwd != sheet.world.cwd
        and files.access_problem(path, "r")
        and not files.access_problem(sheet.absolute(name), "r")
    ):
        return sheet.absolute(name)
    return path


def size(sheet: BuildContext) -> None:
    """ExecutableSize, ImageSize (KiB)."""
    command = sheet.get("Cmd")
    moved = sheet.get("TransferExecutable") is not False or str(command).startswith("/")
    kib = sheet.world.files.size_kib(command) if command and moved and not is_url(command) else 0
    sheet.set("ExecutableSize", kib)
    given = sheet.text("image_size", "ImageSize")
    if given is None:
        sheet.set("ImageSize", kib)
        return
    from condor_actors.submit.resources import quantity

    image_kib = quantity(given, 1024)
    if image_kib is None or image_kib < 1:
        raise SubmitError(f"'{given}' is not valid for Image Size: expected a size of at least 1 KiB, such as 4MB")
    sheet.set("ImageSize", image_kib)


def arguments(sheet: BuildContext) -> None:
    """Args (old syntax) or Arguments (new syntax)."""
    shell = sheet.text("shell")
    if shell is not None and not sheet.interactive:
        sheet.set("Arguments", join_raw(["-c", shell]))
        return
    if sheet.interactive and sheet.text("executable", "cmd") is None:
        sheet.set("Args", "180")
        return
    old, new = sheet.text("arguments", "args"), sheet.text("arguments2")
    if old is not None and new is not None and not sheet.boolean("allow_arguments_v1"):
        raise SubmitError("both 'arguments' and 'arguments2' are given; that needs allow_arguments_v1=true")
    try:
        if new is not None:
            sheet.set("Arguments", join_raw(split_raw(unquote(new) or "")))
        elif old is not None:
            sheet.set(*parse_arguments(old))
        else:
            sheet.set("Arguments", "")
    except SubmitError as error:
        raise SubmitError(f"{error.problem}\nThe full arguments you specified were: {new or old}") from None


def environment(sheet: BuildContext) -> None:
    """Environment."""
    variables: dict[str, str] = {}
    taken = sheet.text("getenv", "get_env")
    if taken is not None:
        variables.update(imported(taken, sheet.world.environ))
    given = sheet.text("environment2") or sheet.text("environment", "env")
    if given is not None:
        try:
            variables.update(parse_environment(given))
        except SubmitError as error:
            raise SubmitError(f"{error.problem}\nThe environment you specified was: '{given}'") from None
    sheet.set("Environment", join_environment(variables))


_STANDARD_FILES = (
    # attribute, commands, transfer attribute, its command, stream attribute, its command
    ("In", ("input", "stdin"), "TransferIn", "transfer_input", "StreamIn", "stream_input"),
    ("Out", ("output", "stdout"), "TransferOut", "transfer_output", "StreamOut", "stream_output"),
    ("Err", ("error", "stderr"), "TransferErr", "transfer_error", "StreamErr", "stream_error"),
)


def standard_files(sheet: BuildContext) -> None:
    """In, Out, Err with their Transfer… and Stream… attributes."""
    for attribute, commands, moves, moves_command, streams, streams_command in _STANDARD_FILES:
        path = sheet.text(*commands, attribute)
        moved = sheet.boolean(moves_command, moves, default=True)
        if path is None or path == NULL_FILE:
            sheet.set(attribute, NULL_FILE)
            sheet.set(moves, False)
            continue
        path = path.strip('"')
        if moved and files_are_checked(sheet):
            check_file(sheet, path, "r" if attribute == "In" else "w", commands[0])
        sheet.set(attribute, path)
        if moved:
            sheet.set(streams, sheet.boolean(streams_command, streams))
        else:
            sheet.set(moves, False)


def signals(sheet: BuildContext) -> None:
    """KillSig, RemoveKillSig, HoldKillSig, KillSigTimeout."""
    for command, attribute in (
        ("kill_sig", "KillSig"), ("remove_kill_sig", "RemoveKillSig"), ("hold_kill_sig", "HoldKillSig"),
    ):  # fmt: skip
        given = sheet.text(command, attribute)
        if given is not None:
            sheet.set(attribute, signal_name(given))
        elif attribute == "KillSig" and sheet.universe in (7, 11, 12):
            sheet.set(attribute, "SIGTERM")
    timeout = sheet.integer("kill_sig_timeout", "KillSigTimeout")
    if timeout is not None:
        sheet.set("KillSigTimeout", timeout)


def signal_name(given: str) -> str:
    """The name of a signal given by name or number.

    Raises:
        SubmitError: there is no such signal.
    """
    word = given.upper()
    try:
        found = (
            signal.Signals(int(word))
            if word.isdigit()
            else signal.Signals[word if word.startswith("SIG") else "SIG" + word]
        )
    except (ValueError, KeyError):
        raise SubmitError(f"invalid signal {given}") from None
    return found.name
