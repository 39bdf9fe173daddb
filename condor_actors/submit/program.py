"""Sections about the program: universe, folder, executable, arguments, environment, standard files, signals."""

from __future__ import annotations

import posixpath

from condor_actors.cores.argument_quoting import join_raw
from condor_actors.cores.registry_logins import LOGIN_FILE, BadLogins, login_files, login_for
from condor_actors.cores.submit_commands import universe_objection
from condor_actors.messages.codes import Universe
from condor_actors.messages.references.image_reference import OF_APPTAINER, SCHEME, BadReference, ImageReference
from condor_actors.messages.references.urls import is_url
from condor_actors.submit.build_context import UNIVERSE_IDS, BuildContext
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

SEND_LOGIN = "docker_send_credentials"
BY_NAME = "say docker_image = [HOST[:PORT]/]NAME[:TAG]"


def universe(context: BuildContext) -> None:
    """JobUniverse, and WantDocker or WantContainer."""

    name = (context.text("universe", "JobUniverse") or context.needed("DEFAULT_UNIVERSE")).lower()
    if name.isdecimal():
        name = next((word for word, number in UNIVERSE_IDS.items() if str(number) == name), name)
    if name not in UNIVERSE_IDS:
        run = [word for word, number in UNIVERSE_IDS.items()
               if universe_objection(number) is None]
        import difflib

        meant = difflib.get_close_matches(name, run, 1)
        hint = f"; did you mean {meant[0]}?" if meant else f"; expected one of {', '.join(sorted(run))}."
        raise SubmitError(f"I don't know about the '{name}' universe{hint}", command="universe")
    context.universe = UNIVERSE_IDS[name]
    context.topping = name if name in ("docker", "container") else ""
    image, docker_image = (
        context.text("container_image", "ContainerImage"),
        context.text("docker_image", "DockerImage"),
    )
    if context.universe == Universe.VANILLA and not context.topping and (image or docker_image):
        context.topping = "container" if image else "docker"
    if context.topping and not image and not docker_image:
        raise SubmitError(f"{name} universe needs a {name}_image")
    context.set("JobUniverse", context.universe)
    if context.topping == "docker":
        if not docker_image:
            raise SubmitError("the docker universe needs a docker_image", command="universe", remedy=BY_NAME)
        _named(_of_docker(docker_image), "docker_image")
        _network(context)
        _target(context)
        _login(context, _of_docker(docker_image))
        context.set("WantDocker", True)
        context.set("DockerImage", docker_image)
    elif context.topping:
        _container(context, image or _of_docker(docker_image or ""))


def _of_docker(name: str) -> str:
    return name if name.startswith(SCHEME) else f"{SCHEME}{name}"


def _named(image: str, command: str) -> None:
    """Refuse what is no name of an image in a registry."""
    if "$$(" not in image:
        try:
            ImageReference.read(image)
        except BadReference as error:
            raise SubmitError(str(error), command=command,
                              remedy="write docker://[HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]") from None


def _network(context: BuildContext) -> None:
    policy = context.text("docker_pull_policy", "DockerPullPolicy")
    if policy is not None and policy.lower() != "always":
        raise SubmitError(f"docker_pull_policy = {policy[:100]} is not always", command="docker_pull_policy",
                          remedy="leave it out: an image is fetched where the machine does not have it")
    network = (context.text("docker_network_type", "DockerNetworkType") or "host").lower()
    if network not in ("host", "none"):
        raise SubmitError(f"docker_network_type = {network} is neither host nor none", command="docker_network_type",
                          remedy="a job in an image has the machine's network (host), or none")


def _login(context: BuildContext, image: str) -> None:
    """Find the file that has the user's login for the image's registry."""
    if not context.boolean(SEND_LOGIN, "DockerSendCredentials") or "$$(" in image:
        return
    if not image.startswith((SCHEME, OF_APPTAINER)):
        raise SubmitError(f"{SEND_LOGIN} is about an image of a registry, and {image[:200]} is none",
                          command=SEND_LOGIN)
    if context.spool:
        raise SubmitError(f"{SEND_LOGIN}: the login stays on this machine, and the job's files are spooled on another",
                          command=SEND_LOGIN, remedy="submit without -spool or -remote, on that machine")
    reference, files = ImageReference.read(image), []
    for path in login_files(context.world.environ):
        if context.world.files.access_problem(path, "r"):
            continue
        files.append(path)
        try:
            found = login_for(context.world.files.read_text(path).encode(), reference)
        except (BadLogins, OSError, ValueError) as error:
            raise SubmitError(f"{SEND_LOGIN}: {path}: {error}", command=SEND_LOGIN) from None
        if found is not None:
            context.set(LOGIN_FILE, path)
            return
    raise SubmitError(f"{SEND_LOGIN}: there is no login for {reference.registry} in "
                      f"{', '.join(files) or 'any file of docker login or podman login'}", command=SEND_LOGIN,
                      remedy=f"docker login {reference.registry}, or podman login {reference.registry}")


def _target(context: BuildContext) -> None:
    target = context.text("container_target_dir", "ContainerTargetDir")
    if target is not None and (not target.startswith("/") or posixpath.normpath(target) != target or target == "/"):
        raise SubmitError(f"container_target_dir = {target} is no absolute path of a folder",
                          command="container_target_dir")


def _container(context: BuildContext, image: str) -> None:
    named = image.startswith((SCHEME, OF_APPTAINER))
    if ("://" in image or image.startswith(("docker:", "oras:"))) and not named:
        raise SubmitError(f"{image[:200]} is neither a path nor the name of an image in a registry",
                          command="container_image",
                          remedy="write docker://[HOST[:PORT]/]NAME[:TAG], or name a tar file or a folder")
    if named:
        _named(image, "container_image")
    if not image.rstrip("/"):
        raise SubmitError("the machine's own root directory is no image", command="container_image")
    _network(context)
    _target(context)
    _login(context, image)
    context.set("WantContainer", True)
    is_sif = image.endswith(".sif") or image.startswith(OF_APPTAINER)
    is_other = not named and not is_sif
    for wanted, holds in (("WantDockerImage", named), ("WantSIF", is_sif), ("WantSandboxImage", is_other)):
        if holds:
            context.set(wanted, True)
    context.set("ContainerImage", image)
    travels = context.boolean("transfer_container", "TransferContainer", default=not named)
    context.set("TransferContainer", travels and not named)  # the execute machine fetches it


def folder(context: BuildContext) -> None:
    """Iwd."""
    given = context.text("initialdir", "initial_dir", "job_iwd", "iwd")
    if given is None:
        path = context.world.cwd
    else:
        path = given if given.startswith("/") else f"{context.world.cwd.rstrip('/')}/{given}"
        if "$$(" not in path and not context.world.files.is_folder(path):
            raise SubmitError(f"No such directory: {path}", command="initialdir",
                              remedy="make it, or mend the path (a relative one begins at the folder you submit from)")
    if len(path) > 1:
        path = path.rstrip("/")
    context.iwd = path
    context.set("Iwd", path)


def executable(context: BuildContext) -> None:
    """Cmd, TransferExecutable, ExecutableSize."""
    name = context.text("executable", "cmd")
    shell = context.text("shell")
    if shell is not None and not context.interactive:
        if name is not None:
            raise SubmitError("a description has either a shell command or an executable, not both")
        context.set("Cmd", "/bin/sh")
        context.set("TransferExecutable", False)
        return
    if context.interactive and name is None:
        name = "/bin/sleep"
    if name is None:
        raise SubmitError("No 'executable' parameter was provided")
    name = name.strip('"')
    transfer = context.text("transfer_executable", "TransferExecutable")
    moved = transfer is None or context.truth("transfer_executable", transfer)
    if not moved:
        context.set("TransferExecutable", False)
        context.set("Cmd", name)
        return
    if transfer is not None:
        context.set("TransferExecutable", True)
    if is_url(name):
        context.set("Cmd", name)
        return
    path = _executable_path(context, name)
    context.set("Cmd", path)
    if "$$(" not in path:
        check_executable(context, path)


def _executable_path(context: BuildContext, name: str) -> str:
    """Relative to the caller's folder, as HTCondor has it; to the job's initial folder if it is only there."""
    if name.startswith("/"):
        return name
    path = f"{context.world.cwd.rstrip('/')}/{name}"
    files = context.world.files
    if (
        context.iwd != context.world.cwd
        and files.access_problem(path, "r")
        and not files.access_problem(context.absolute(name), "r")
    ):
        return context.absolute(name)
    return path


def size(context: BuildContext) -> None:
    """ExecutableSize, ImageSize (KiB)."""
    command = context.get("Cmd")
    moved = context.get("TransferExecutable") is not False or str(command).startswith("/")
    kib = context.world.files.size_kib(command) if command and moved and not is_url(command) else 0
    context.set("ExecutableSize", kib)
    given = context.text("image_size", "ImageSize")
    if given is None:
        context.set("ImageSize", kib)
        return
    from condor_actors.submit.resources import quantity

    image_kib = quantity(given, 1024)
    if image_kib is None or image_kib < 1:
        raise SubmitError(f"'{given}' is not valid for Image Size: expected a size of at least 1 KiB, such as 4MB")
    context.set("ImageSize", image_kib)


def arguments(context: BuildContext) -> None:
    """Args (old syntax) or Arguments (new syntax)."""
    shell = context.text("shell")
    if shell is not None and not context.interactive:
        context.set("Arguments", join_raw(["-c", shell]))
        return
    if context.interactive and context.text("executable", "cmd") is None:
        context.set("Args", "180")
        return
    old, new = context.text("arguments", "args"), context.text("arguments2")
    if old is not None and new is not None and not context.boolean("allow_arguments_v1"):
        raise SubmitError("both 'arguments' and 'arguments2' are given; that needs allow_arguments_v1=true")
    try:
        if new is not None:
            context.set("Arguments", join_raw(split_raw(unquote(new) or "")))
        elif old is not None:
            context.set(*parse_arguments(old))
        else:
            context.set("Arguments", "")
    except SubmitError as error:
        raise SubmitError(f"{error.problem}\nThe full arguments you specified were: {new or old}") from None


def environment(context: BuildContext) -> None:
    """Environment."""
    variables: dict[str, str] = {}
    taken = context.text("getenv", "get_env")
    if taken is not None:
        variables.update(imported(taken, context.world.environ))
    given = context.text("environment2") or context.text("environment", "env")
    if given is not None:
        try:
            variables.update(parse_environment(given))
        except SubmitError as error:
            raise SubmitError(f"{error.problem}\nThe environment you specified was: '{given}'") from None
    context.set("Environment", join_environment(variables))


_STANDARD_FILES = (
    # attribute, commands, transfer attribute, its command, stream attribute, its command
    ("In", ("input", "stdin"), "TransferIn", "transfer_input", "StreamIn", "stream_input"),
    ("Out", ("output", "stdout"), "TransferOut", "transfer_output", "StreamOut", "stream_output"),
    ("Err", ("error", "stderr"), "TransferErr", "transfer_error", "StreamErr", "stream_error"),
)


def standard_files(context: BuildContext) -> None:
    """In, Out, Err with their Transfer… and Stream… attributes."""
    for attribute, commands, moves, moves_command, streams, streams_command in _STANDARD_FILES:
        path = context.text(*commands, attribute)
        moved = context.boolean(moves_command, moves, default=True)
        if path is None or path == NULL_FILE:
            context.set(attribute, NULL_FILE)
            context.set(moves, False)
            continue
        path = path.strip('"')
        if moved and files_are_checked(context):
            check_file(context, path, "r" if attribute == "In" else "w", commands[0])
        context.set(attribute, path)
        if moved:
            context.set(streams, context.boolean(streams_command, streams))
        else:
            context.set(moves, False)


def signals(context: BuildContext) -> None:
    """KillSig, RemoveKillSig, HoldKillSig, KillSigTimeout."""
    for command, attribute in (
        ("kill_sig", "KillSig"), ("remove_kill_sig", "RemoveKillSig"), ("hold_kill_sig", "HoldKillSig"),
    ):  # fmt: skip
        given = context.text(command, attribute)
        if given is not None:
            context.set(attribute, signal_name(given))
        elif attribute == "KillSig" and context.universe in (Universe.SCHEDULER, Universe.PARALLEL, Universe.LOCAL):
            context.set(attribute, "SIGTERM")
    timeout = context.integer("kill_sig_timeout", "KillSigTimeout")
    if timeout is not None:
        context.set("KillSigTimeout", timeout)


def signal_name(given: str) -> str:
    """The name of a signal given by name or number.

    Raises:
        SubmitError: there is no such signal.
    """

    import signal

    word = given.upper()
    try:
        found = (
            signal.Signals(int(word))
            if word.isdecimal()
            else signal.Signals[word if word.startswith("SIG") else "SIG" + word]
        )
    except (ValueError, KeyError):
        raise SubmitError(f"invalid signal {given}") from None
    return found.name
