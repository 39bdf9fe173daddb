"""What /proc says of processes that may end at any moment.

Anyone who looks through all processes sees those of other tests, too, which end between one look and the next: so every
test looks here (`tests/unit/test_processes_are_listed_in_one_place.py`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["command_lines", "open_files", "proc_file", "process_ids"]


def proc_file(pid: int | str, name: str) -> bytes:
    """A file of a process; empty: it has ended, or is none that we may look into."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM, errno.EINVAL):
            raise
        return b""  # EINVAL is what mountinfo says of a process that is about to end


def open_files(pid: int | str) -> list[str]:
    """Where the descriptors of a process lead; none: it has ended, or is none that we may look into."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def process_ids() -> Iterator[int]:
    """Everybody who is there; some are not by the time they are looked at."""
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())


def command_lines() -> Iterator[tuple[int, bytes]]:
    """Process id and command line of everybody who is there; its words end in NUL."""
    return ((pid, proc_file(pid, "cmdline")) for pid in process_ids())
