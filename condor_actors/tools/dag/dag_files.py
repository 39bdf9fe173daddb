"""The names of the files around a DAG, all of them made of the name of its first file."""

from __future__ import annotations

import errno
import os
import stat

import attrs

from condor_actors.dag.rescue import rescue_name
from condor_actors.tools.dag.dag_flags import DagOptions
from condor_actors.written_text import read_written

__all__ = ["DagFiles", "is_ours", "named_state", "open_own", "read_text"]


def read_text(path: str) -> str:
    """A file's text; bytes that are no text are kept."""
    return read_written(path).replace("\r\n", "\n")


def open_own(path: str, flags: int) -> int:
    """Open a file that a run writes for itself; its descriptor.

    The folder may be one where others can write: what they put there is none of the run's.

    Args:
        flags: besides those that make it and follow no link.

    Raises:
        OSError: it is a link, no regular file, or another user's; or cannot be opened.
    """
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if facts.st_uid not in (os.geteuid(), 0):
            raise OSError(errno.EPERM, f"it belongs to the user id {facts.st_uid}, and is no file of this run", path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def named_state(options: DagOptions, files: DagFiles) -> str:
    """The file that -RescueFile or -load_save names; empty: neither is given."""
    name = options.texts.get("load_save", "")
    if name and "/" not in name:
        return os.path.join(os.path.dirname(files.primary), "save_files", name)
    return name or options.texts.get("rescuefile", "")


def is_ours(path: str) -> bool:
    """Whether a file is there, and is one that a run of this user has written."""
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_uid in (os.geteuid(), 0)


@attrs.frozen
class DagFiles:
    """The files of one DAG.

    Args:
        primary: the first DAG file, as given.
        several: whether there are more DAG files.
        out_folder: where dagman.out goes; empty: beside the others.
    """

    primary: str
    several: bool = False
    out_folder: str = ""

    @property
    def submit_file(self) -> str:
        """The description of the DAG's own job."""
        return self.primary + ".condor.sub"

    @property
    def out(self) -> str:
        """What happens, for people."""
        name = self.primary + ".dagman.out"
        return f"{self.out_folder}/{os.path.basename(name)}" if self.out_folder else name

    @property
    def lib_out(self) -> str:
        """Standard output of the DAG's own job."""
        return self.primary + ".lib.out"

    @property
    def lib_err(self) -> str:
        """Its standard error."""
        return self.primary + ".lib.err"

    @property
    def log(self) -> str:
        """The event log of the DAG's own job."""
        return self.primary + ".dagman.log"

    @property
    def lock(self) -> str:
        """What only one run of the DAG holds at a time."""
        return self.primary + ".lock"

    @property
    def journal(self) -> str:
        """The events of a run, from which it begins again after a crash."""
        return self.primary + ".dagman.journal"

    @property
    def nodes_log(self) -> str:
        """The event log of the nodes' jobs, where DAGMAN_DEFAULT_NODE_LOG does not say otherwise."""
        return self.primary + ".nodes.log"

    @property
    def metrics(self) -> str:
        """Figures of a run that has ended."""
        return self.primary + ".metrics"

    @property
    def halt(self) -> str:
        """While it is there, nothing new is begun."""
        return self.primary + ".halt"

    def rescue(self, number: int) -> str:
        """A rescue file."""
        return rescue_name(self.primary, number, several=self.several)

    def rescue_number(self, path: str) -> int:
        """The number of a rescue file of this DAG; 0: it is none."""
        beginning, _, digits = path.rpartition(".rescue")
        if len(digits) != 3 or not (digits.isascii() and digits.isdecimal()) or not beginning:
            return 0
        own = self.rescue(int(digits))
        return int(digits) if os.path.abspath(own) == os.path.abspath(path) else 0

    def beside(self) -> list[str]:
        """The names of all files in its folder, as its own name is written."""
        folder = os.path.dirname(self.primary)
        return [os.path.join(folder, name) for name in os.listdir(folder or ".")]
