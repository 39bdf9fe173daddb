"""The section about files: what travels, when, and how much it is."""

from __future__ import annotations

from condor_actors.submit.build_context import BuildContext, is_url, listed, unquoted
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import NULL_FILE, check_file, files_are_checked
from condor_actors.submit.resources import quantity
from condor_actors.submit.standard import standard_files_stay

SHOULD = {"yes": "YES", "true": "YES", "always": "YES", "no": "NO", "false": "NO", "never": "NO",
          "if_needed": "IF_NEEDED", "automatic": "IF_NEEDED"}  # fmt: skip
WHEN = {"on_exit": "ON_EXIT", "on_exit_or_evict": "ON_EXIT_OR_EVICT", "on_success": "ON_SUCCESS",
        "always": "ON_EXIT_OR_EVICT", "never": "NEVER"}  # fmt: skip


def transfer(sheet: BuildContext) -> None:
    """ShouldTransferFiles, WhenToTransferOutput, TransferInput, TransferOutput, TransferOutputRemaps, DiskUsage …"""
    if sheet.universe == 1:
        standard_files_stay(sheet)
        return
    inputs_text = sheet.text("transfer_input_files", "TransferInputFiles", "TransferInput")
    outputs_text = sheet.text("transfer_output_files", "TransferOutputFiles", "TransferOutput")
    should, when = _policy(sheet, inputs_text is not None, outputs_text is not None)
    sheet.set("ShouldTransferFiles", should)
    if should != "NO":
        sheet.set("WhenToTransferOutput", when)
    if should != "YES" and sheet.get("FileSystemDomain") is None:
        domain = sheet.setting("FILESYSTEM_DOMAIN")
        if domain is not None:
            sheet.set("FileSystemDomain", domain)
    inputs = listed(unquoted(inputs_text)) if inputs_text is not None else []
    container = sheet.get("ContainerImage")
    if container is not None and not is_url(container) and not container.startswith("/") and container not in inputs:
        inputs.append(container)
    for tool in ("ToolDaemonCmd", "ToolDaemonInput"):
        name = sheet.get(tool)
        if name is not None and name not in inputs:
            inputs.append(name)
    _check_inputs(sheet, inputs)
    _sizes(sheet, inputs)
    if should == "NO":
        if sheet.text("transfer_executable") is not None and sheet.boolean("transfer_executable"):
            raise SubmitError(
                "transfer_executable is True but should_transfer_files is NO, so the executable cannot travel; "
                "use should_transfer_files = YES or IF_NEEDED, or drop transfer_executable"
            )
        return
    if inputs:
        sheet.set("TransferInput", ",".join(inputs))
    public = sheet.text("public_input_files", "PublicInputFiles")
    if public is not None:
        sheet.set("PublicInputFiles", ",".join(listed(public)))
    if outputs_text is not None:
        sheet.set("TransferOutput", ",".join(listed(unquoted(outputs_text))))
    _remaps(sheet)


def _policy(sheet: BuildContext, inputs: bool, outputs: bool) -> tuple[str, str]:
    """Whether and when, from what was said and what follows from it."""
    said = sheet.text("should_transfer_files", "ShouldTransferFiles")
    preset = None if said else sheet.setting("SUBMIT_DEFAULT_SHOULD_TRANSFER_FILES")
    should = SHOULD.get((said or preset or "IF_NEEDED").lower())
    if should is None:
        if said is not None:
            raise SubmitError(
                f"invalid value ({said}) for ShouldTransferFiles.  "
                "Please either specify YES, NO, or IF_NEEDED and try again."
            )
        should = "IF_NEEDED"
    if should == "NO" and (inputs or outputs):
        names = [
            name for name, given in (("transfer_input_files", inputs), ("transfer_output_files", outputs)) if given
        ]
        raise SubmitError(
            f'you specified files you want transferred via "{" and ".join(names)}", '
            "but you disabled should_transfer_files."
        )
    moment = sheet.text("when_to_transfer_output", "WhenToTransferOutput")
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


def _check_inputs(sheet: BuildContext, inputs: list[str]) -> None:
    if inputs and files_are_checked(sheet):
        for name in inputs:
            check_file(sheet, name, "r", "transfer_input_files")


def _sizes(sheet: BuildContext, inputs: list[str]) -> None:
    """DiskUsage and TransferInputSizeMB: executable, inputs and standard input together."""
    given = sheet.text("disk_usage", "DiskUsage")
    if given is not None:
        amount = quantity(given, 1024)
        if amount is None or amount < 1:
            raise SubmitError(f"'{given}' is not valid for disk_usage. It must be >= 1")
        sheet.set("DiskUsage", amount)
        return
    paths = [sheet.absolute(name) for name in inputs if not is_url(name) and "$$(" not in name]
    stdin = sheet.get("In")
    if stdin not in (None, NULL_FILE) and sheet.get("TransferIn") is not False and not is_url(stdin):
        paths.append(sheet.absolute(stdin))
    total_kib = (sheet.get("ExecutableSize") or 0) + sum(sheet.world.files.size_kib(path) for path in paths)
    sheet.set("TransferInputSizeMB", (total_kib + 1023) // 1024)
    sheet.set("DiskUsage", total_kib)


def _remaps(sheet: BuildContext) -> None:
    """TransferOutputRemaps; for a spooled job standard files with a folder in their name are remapped too."""
    remaps = []
    if sheet.spool:
        names: dict[str, str] = {}
        for attribute, stand_in, streams in (
            ("Out", "_condor_stdout", "StreamOut"),
            ("Err", "_condor_stderr", "StreamErr"),
        ):
            path = sheet.get(attribute)
            if path in (None, NULL_FILE) or "/" not in path or sheet.get(streams) is True or is_url(path):
                continue
            stand_in = names.setdefault(path, stand_in)
            escaped = "".join("\\" + letter if letter in ";=\\" else letter for letter in path)
            sheet.set(attribute, stand_in)
            remaps.append(f"{stand_in}={escaped}")
    given = sheet.text("transfer_output_remaps", "TransferOutputRemaps")
    if given is not None:
        remaps.append(unquoted(given))
    if remaps:
        sheet.set("TransferOutputRemaps", ";".join(remaps))
