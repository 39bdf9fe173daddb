"""The section about files of a standard-universe job: none travel, all stay at home."""

from __future__ import annotations

from condor_actors.submit.errors import SubmitError
from condor_actors.submit.sheet import Sheet

__all__ = ["standard_files_stay"]

_LISTS = ("transfer_input_files", "transfer_output_files", "transfer_output_remaps", "should_transfer_files",
          "when_to_transfer_output")
_INTERPRETERS = ("python", "perl", "ruby", "node", "java", "php", "lua", "tclsh", "bash", "R", "octave")
"""They can do everything; what their programs do is not to be seen in them."""

ROOM_KIB = 64 << 10
"""Room on the execute machine's disk for the runtime and a checkpoint on its way, beside the program's size."""


def standard_files_stay(sheet: Sheet) -> None:
    """WantRemoteSyscalls, WantCheckpoint, ShouldTransferFiles, DiskUsage.

    :raises SubmitError: the job is to be spooled, or wants what this universe does not have.
    """
    for name in _LISTS:
        if sheet.text(name) is not None:
            sheet.warn(f"{name} has no effect in the standard universe: the job uses its files where they are.")
    if sheet.spool:
        raise SubmitError("a standard universe job cannot be spooled: its files stay where they are")
    if sheet.text("job_root", "JobRoot") is not None:
        raise SubmitError("job_root: a confined view of home is not there yet; without it the job sees what you see")
    _preflight(sheet)
    sheet.set("ShouldTransferFiles", "NO")
    sheet.set("WantRemoteSyscalls", True)
    sheet.set("WantCheckpoint", True)
    for name in ("TransferIn", "TransferOut", "TransferErr"):
        sheet.set(name, False)
    sheet.set("TransferInputSizeMB", 0)
    sheet.set("DiskUsage", ROOM_KIB + (sheet.get("ExecutableSize") or 0))


def _preflight(sheet: Sheet) -> None:
    """What can be said of the program beforehand."""
    path = str(sheet.get("Cmd") or "")
    if "$$(" in path or not path.startswith("/") or sheet.world.files.access_problem(path, "r"):
        return
    runs, summary, remarks = sheet.world.files.preflight(path)
    if not runs:
        raise SubmitError(f"{path} {summary}, so universe = standard is not for it; try universe = vanilla")
    if remarks and not path.rsplit("/", 1)[-1].startswith(_INTERPRETERS):
        sheet.warn(f"{path} {summary}: {'; '.join(remarks)}")
