"""The section about files: what travels, when, and how much it is."""

from __future__ import annotations

from condor_actors.messages.codes import Universe
from condor_actors.messages.references.urls import is_url, local_path, travels_as_url
from condor_actors.submit.build_context import BuildContext, listed, unquoted
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import NULL_FILE, check_file, files_are_checked
from condor_actors.submit.resources import quantity
from condor_actors.submit.standard import standard_files_stay
from condor_actors.submit.urls import check_urls

SHOULD = {"yes": "YES", "true": "YES", "always": "YES", "no": "NO", "false": "NO", "never": "NO",
          "if_needed": "IF_NEEDED", "automatic": "IF_NEEDED"}  # fmt: skip
_TRAVELLING = (("output_directory", "OutputDirectory"), ("manifest", "ManifestDesired"),
               ("manifest_dir", "ManifestDir"), ("starter_log", "JobStarterLog"))
"""Commands that have a job's files transferred."""
_UNSPOOLED = (*_TRAVELLING, ("preserve_relative_paths", "PreserveRelativePaths"))
WHEN = {"on_exit": "ON_EXIT", "on_exit_or_evict": "ON_EXIT_OR_EVICT", "on_success": "ON_SUCCESS",
        "always": "ON_EXIT_OR_EVICT", "never": "NEVER"}  # fmt: skip


def transfer(context: BuildContext) -> None:
    """ShouldTransferFiles, WhenToTransferOutput, TransferInput, TransferOutput, TransferOutputRemaps, DiskUsage …"""
    if context.universe == Universe.STANDARD:
        standard_files_stay(context)
        return
    inputs_text = context.text("transfer_input_files", "TransferInputFiles", "TransferInput")
    outputs_text = context.text("transfer_output_files", "TransferOutputFiles", "TransferOutput")
    sends = inputs_text is not None or context.text("public_input_files", "PublicInputFiles") is not None
    should, when = _policy(context, sends, outputs_text is not None)
    context.set("ShouldTransferFiles", should)
    if should != "NO":
        context.set("WhenToTransferOutput", when)
    if should != "YES" and context.get("FileSystemDomain") is None:
        domain = context.setting("FILESYSTEM_DOMAIN")
        if domain is not None:
            context.set("FileSystemDomain", domain)
    inputs = listed(unquoted(inputs_text)) if inputs_text is not None else []
    public = context.text("public_input_files", "PublicInputFiles")  # where no web server publishes them, they are sent
    inputs += [name for name in listed(unquoted(public or "")) if name not in inputs]
    container = context.get("ContainerImage")
    if container is not None and context.get("TransferContainer") is not False and should != "NO":
        container = container.rstrip("/")
        if container not in (each.rstrip("/") for each in inputs):
            inputs.append(container)
    for tool in ("ToolDaemonCmd", "ToolDaemonInput"):
        name = context.get(tool)
        if name is not None and name not in inputs:
            inputs.append(name)
    _check_inputs(context, inputs)
    _sizes(context, inputs)
    if should == "NO":
        check_urls(context)
        if context.text("transfer_executable") is not None and context.boolean("transfer_executable"):
            raise SubmitError(
                "transfer_executable is True but should_transfer_files is NO, so the executable cannot travel; "
                "use should_transfer_files = YES or IF_NEEDED, or drop transfer_executable"
            )
        return
    if inputs:
        context.set("TransferInput", ",".join(inputs))
    if outputs_text is not None:
        context.set("TransferOutput", ",".join(listed(unquoted(outputs_text))))
    _remaps(context)
    check_urls(context)


def _policy(context: BuildContext, inputs: bool, outputs: bool) -> tuple[str, str]:
    """Whether and when, from what was said and what follows from it."""
    said = context.text("should_transfer_files", "ShouldTransferFiles")
    preset = None if said else context.setting("SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES")
    should = SHOULD.get((said or preset or "IF_NEEDED").lower())
    if should is None:
        if said is not None:
            raise SubmitError(
                f"invalid value ({said}) for ShouldTransferFiles.  "
                "Please either specify YES, NO, or IF_NEEDED and try again."
            )
        should = "IF_NEEDED"
    travelling = [command for command, attribute in _TRAVELLING
                  if context.get(attribute) not in (None, False, "")]
    if travelling and should == "NO":
        raise SubmitError(f"{travelling[0]} concerns files that are transferred, but should_transfer_files is NO",
                          command=travelling[0], remedy="drop one of the two")
    unspooled = [command for command, attribute in _UNSPOOLED if context.get(attribute) not in (None, False, "")]
    if unspooled and context.spool:
        raise SubmitError(f"{unspooled[0]} has no effect on files that are spooled", command=unspooled[0],
                          remedy="submit without -spool or -remote, or drop it")
    if travelling and not said:
        should = "YES"
    if should == "NO" and (inputs or outputs):
        names = [
            name for name, given in (("transfer_input_files", inputs), ("transfer_output_files", outputs)) if given
        ]
        raise SubmitError(
            f'you specified files you want transferred via "{" and ".join(names)}", '
            "but you disabled should_transfer_files."
        )
    moment = context.text("when_to_transfer_output", "WhenToTransferOutput")
    when = WHEN.get((moment or "ON_EXIT").lower())
    if when is None:
        raise SubmitError(
            f"invalid value ({moment}) for WhenToTransferOutput.  Please either specify ON_EXIT, ON_EXIT_OR_EVICT "
            "or ON_SUCCESS and try again."
        )
    if moment is None and should == "NO":
        return should, "NEVER"
    if (should == "NO") != (when == "NEVER"):
        raise SubmitError(
            f"WhenToTransferOutput specified as {when} yet ShouldTransferFiles defined as {should}.  "
            "Please remove this contradiction from your submit file and try again."
        )
    if when == "ON_EXIT_OR_EVICT" and should == "IF_NEEDED":
        if said is not None:
            raise SubmitError(
                '"when_to_transfer_output = ON_EXIT_OR_EVICT" and "should_transfer_files = IF_NEEDED" are '
                "incompatible: "
                "the job could not know which of its files are current.  Please use ON_EXIT or YES."
            )
        should = "YES"
    return should, when


def _check_inputs(context: BuildContext, inputs: list[str]) -> None:
    if inputs and files_are_checked(context):
        for name in inputs:
            check_file(context, name, "r", "transfer_input_files")


def _sizes(context: BuildContext, inputs: list[str]) -> None:
    """DiskUsage and TransferInputSizeMB: executable, inputs and standard input together."""
    given = context.text("disk_usage", "DiskUsage")
    if given is not None:
        amount = quantity(given, 1024)
        if amount is None or amount < 1:
            raise SubmitError(f"'{given}' is not valid for disk_usage. It must be >= 1")
        context.set("DiskUsage", amount)
        return
    paths = [context.absolute(local_path(name)) for name in inputs if not travels_as_url(name) and "$$(" not in name]
    stdin = context.get("In")
    if stdin not in (None, NULL_FILE) and context.get("TransferIn") is not False and not travels_as_url(stdin):
        paths.append(context.absolute(local_path(stdin)))
    total_kib = (context.get("ExecutableSize") or 0) + sum(context.world.files.size_kib(path) for path in paths)
    context.set("TransferInputSizeMB", (total_kib + 1023) // 1024)
    context.set("DiskUsage", total_kib)


def escaped_path(path: str) -> str:
    """A path as the value of a remap."""
    return "".join("\\" + letter if letter in ";=\\" else letter for letter in path)


def _remaps(context: BuildContext) -> None:
    """TransferOutputRemaps; for a spooled job standard files with a folder in their name are remapped too."""
    remaps = []
    if context.spool:
        names: dict[str, str] = {}
        for attribute, stand_in, streams in (
            ("Out", "_condor_stdout", "StreamOut"),
            ("Err", "_condor_stderr", "StreamErr"),
        ):
            path = context.get(attribute)
            if path in (None, NULL_FILE) or "/" not in path or context.get(streams) is True or is_url(path):
                continue
            stand_in = names.setdefault(path, stand_in)
            context.set(attribute, stand_in)
            remaps.append(f"{stand_in}={escaped_path(path)}")
    for path in dict.fromkeys(context.get(each) for each in ("ToolDaemonOutput", "ToolDaemonError")):
        name = (path or "").rpartition("/")[2]
        if name not in ("", path) and path != NULL_FILE:
            remaps.append(f"{name}={escaped_path(path)}")
    given = context.text("transfer_output_remaps", "TransferOutputRemaps")
    if given is not None:
        for part in unquoted(given).split(";") if "\\" not in given else ():
            if part.strip() and "=" not in part:
                raise SubmitError(f"transfer_output_remaps: '{part.strip()}' has no =",
                                  command="transfer_output_remaps",
                                  remedy='say "NAME = PLACE; NAME = PLACE", in quotation marks')
        remaps.append(unquoted(given))
    if remaps:
        context.set("TransferOutputRemaps", ";".join(remaps))
