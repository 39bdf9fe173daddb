"""The section about files of a standard-universe job: none travel, all stay at home."""

from __future__ import annotations

import posixpath

from condor_actors.submit.build_context import BuildContext
from condor_actors.submit.errors import SubmitError

__all__ = ["standard_files_stay"]

_LISTS = ("transfer_input_files", "transfer_output_files", "transfer_output_remaps", "should_transfer_files",
          "when_to_transfer_output")
_INTERPRETERS = ("python", "perl", "ruby", "node", "java", "php", "lua", "tclsh", "bash", "R", "octave")
"""They can do everything; what their programs do is not to be seen in them."""

_PROGRAMS = ("/bin", "/lib", "/lib64", "/opt", "/sbin", "/usr")
"""Below these the native shadow lets every job read: see native/shadow/confine.c."""
_READABLE = "/usr, /bin, /lib, /opt, /etc"

ROOM_KIB = 64 << 10
"""Room on the execute machine's disk for the runtime and a checkpoint on its way, beside the program's size."""


def standard_files_stay(context: BuildContext) -> None:
    """WantRemoteSyscalls, WantCheckpoint, ShouldTransferFiles, DiskUsage.

    Raises:
        SubmitError: the job is to be spooled, or wants what this universe does not have.
    """
    for name in _LISTS:
        if context.text(name) is not None:
            context.warn(f"{name} has no effect in the standard universe: the job uses its files where they are.")
    if context.spool:
        raise SubmitError("a standard universe job cannot be spooled: its files stay where they are")
    _job_root(context)
    _preflight(context)
    context.set("ShouldTransferFiles", "NO")
    context.set("WantRemoteSyscalls", True)
    context.set("WantCheckpoint", True)
    for name in ("TransferIn", "TransferOut", "TransferErr"):
        context.set(name, False)
    context.set("TransferInputSizeMB", 0)
    context.set("DiskUsage", ROOM_KIB + (context.get("ExecutableSize") or 0))


def _job_root(context: BuildContext) -> None:
    """JobRoot: of home, the job uses what lies below, and reads what every program needs."""
    given = context.text("job_root", "JobRoot")
    if given is None:
        return
    root = posixpath.normpath(context.absolute(given))
    if "$$(" not in root and not context.world.files.is_folder(root):
        raise SubmitError(f"No such directory: {root}", command="job_root",
                          remedy="make it, or mend the path (a relative one begins at initialdir)")
    executable = str(context.get("Cmd") or "")
    for name, path, programs in (("initialdir", context.iwd, ()), ("executable", executable, _PROGRAMS)):
        if path.startswith("/") and "$$(" not in path + root and not any(
                posixpath.commonpath((path, place)) == place for place in (root, *programs)):
            raise SubmitError(f"{name}: {path} does not lie below job_root = {root}", command="job_root",
                              remedy=f"put it there, or take another root; {_READABLE} can be read in any case")
    context.set("JobRoot", root)


def _preflight(context: BuildContext) -> None:
    """What can be said of the program beforehand."""
    path = str(context.get("Cmd") or "")
    if "$$(" in path or not path.startswith("/") or context.world.files.access_problem(path, "r"):
        return
    runs, summary, remarks = context.world.files.preflight(path)
    if not runs:
        raise SubmitError(f"{path} {summary}, so universe = standard is not for it; try universe = vanilla")
    if remarks and not path.rsplit("/", 1)[-1].startswith(_INTERPRETERS):
        context.warn(f"{path} {summary}: {'; '.join(remarks)}")
