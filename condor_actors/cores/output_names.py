"""Which files a job brings home: those that it names, and without names what it makes beside its inputs.

Theory: what a machine sends is a claim.  The job's ad says what was to come, so nothing else is written into the folder
of a user, least of all into ``~/.ssh``; the starter of an honest machine reads the same ad.
"""

from __future__ import annotations

import posixpath

from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import STARTER_LOG, STDERR, STDOUT

__all__ = ["SENT", "OutputNames"]

SENT = frozenset({"condor_exec.exe", "_condor_stdin"})
"""The program and its input, as they are called in a sandbox: they do not come back as something else."""
ALWAYS = frozenset({STDOUT, STDERR, STARTER_LOG})

TOOLS = ("ToolDaemonOutput", "ToolDaemonError")
"""What the tool daemon of the job writes."""


class OutputNames:
    """The outputs of one job.

    Args:
        job: its ad.

    Attributes:
        are_open: whether files have names that the job does not say: of those that it makes, or of a whole folder.
    """

    def __init__(self, job: ClassAd) -> None:
        said, keeps = job.evaluate("TransferOutput"), job.get_bool("PreserveRelativePaths")
        self._is_named = isinstance(said, str)
        self._names = {_at_home(name.strip(), keeps) for name in str(said).split(",") if name.strip()}
        self.are_open = not self._is_named or "" in self._names
        tools = (posixpath.basename(job.get_str(each)) for each in TOOLS) if job.get_str("ToolDaemonCmd") else ()
        self._tools = {name for name in tools if name not in ("", ".", "..")}
        self._lists = job.get_str("ManifestDir") or (
            f"{job.get_int('ClusterId')}_{job.get_int('ProcId')}_manifest" if job.get_bool("ManifestDesired") else "")

    def have(self, path: str) -> bool:
        """Whether a path in the sandbox, in its plain form, may be one of them."""
        if path in ALWAYS or path in self._tools or (self._lists and path.partition("/")[0] == self._lists):
            return True
        if self.are_open:
            return path not in SENT and (self._is_named or "/" not in path)
        return any(path == name or path.startswith(f"{name}/") or name.startswith(f"{path}/") for name in self._names)

    def is_above(self, path: str) -> bool:
        """Whether a path is that of a folder on the way to an output, and no output itself."""
        return (not self.are_open and path not in self._names and path not in ALWAYS | self._tools
                and any(name.startswith(f"{path}/") for name in self._names))

    def root_of(self, path: str) -> str:
        """The output that a path is, or lies in; empty: the job says none of these names, only that there are some."""
        if path in ALWAYS or path in self._tools:
            return path
        said = [self._lists, *self._names]
        found = next((name for name in said if name and (path == name or path.startswith(f"{name}/"))), "")
        return found or ("" if self.are_open else path)

    def hide(self, path: str) -> bool:
        """Whether it has a name that the job does not say, with a dot before it: none that is to come into the home
        directory itself, where to write such a file is to run programs as its owner."""
        return self.are_open and path.startswith(".") and path != STARTER_LOG


def _at_home(name: str, keeps: bool) -> str:
    """What a named output is called at home; empty: all of a folder, under its own names."""
    if keeps and not name.startswith("/"):
        path = posixpath.normpath(name)
        return "" if path == "." else path
    return posixpath.basename(name)
