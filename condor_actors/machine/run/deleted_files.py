"""The disk space of files that a run's processes have deleted and keep open: no folder shows it.

Theory: ``/proc/PID/fd`` leads to each open file, and the text of such a link to a deleted one ends in " (deleted)".
Only files on the file system of the run's scratch directory count, by the device of the mount that they were opened
on: memory files (``/dev/shm``, memfd) are memory, and a file system of the job's own making is never asked, for it
might not answer.  Each file counts once, however many descriptors lead to it, and only if it is the job's own.

Where root's rights are a helper's, ``native/root/deleted.c`` looks instead.

Source: proc(5), proc_pid_fd, proc_pid_fdinfo, proc_pid_mountinfo.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection

__all__ = ["deleted_kib"]

DELETED = " (deleted)"
MOST_OPEN = 100_000
"""So many descriptors of a run are looked at; a job that has more of them is not kept waiting for the rest."""


def deleted_kib(pids: Collection[int], folder: str, uid: int) -> int:
    """The disk space of deleted files that processes keep open; blocks.

    Args:
        pids: of the processes; what has ended meanwhile, or may not be looked into, is left out.
        folder: on whose file system.
        uid: whose files.

    Returns:
        KiB.
    """
    mounts = _mounts_of("self")  # the launcher's descriptors, standard output among them, were opened on ours
    wanted = _mount_device_of(folder, mounts)
    found: dict[tuple[int, int], int] = {}
    left = MOST_OPEN
    for pid in pids if wanted else ():
        with contextlib.suppress(OSError):
            left -= _look_into(pid, mounts, wanted, uid, left, found)
    return sum(found.values()) // 2


def _look_into(pid: int, mounts: dict[str, str], wanted: str, uid: int, most: int,
               found: dict[tuple[int, int], int]) -> int:
    """Add the files of one process to ``found`` (device and inode to blocks); how many descriptors were looked at."""
    names = os.listdir(f"/proc/{pid}/fd")[:most]
    theirs: dict[str, str] | None = None
    for name in names:
        link = f"/proc/{pid}/fd/{name}"
        with contextlib.suppress(OSError):
            if not os.readlink(link).endswith(DELETED):
                continue
            if theirs is None:
                theirs = {**mounts, **_mounts_of(str(pid))}
            _look_at(link, theirs, wanted, uid, found)
    return len(names)


def _look_at(link: str, mounts: dict[str, str], wanted: str, uid: int, found: dict[tuple[int, int], int]) -> None:
    """Add one file: held as a place, it stays the same file, whatever the process does to its descriptor."""
    held = os.open(link, os.O_PATH | os.O_CLOEXEC)
    try:
        if mounts.get(_mount_of("self", str(held))) == wanted:
            facts = os.fstat(held)
            if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 0 and facts.st_uid == uid:
                found[facts.st_dev, facts.st_ino] = facts.st_blocks
    finally:
        os.close(held)


def _mount_of(pid: str, descriptor: str) -> str:
    """The number of the mount on which a file was opened; empty: it is not said."""
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii", errors="replace") as stream:
        return next((line.split()[1] for line in stream if line.startswith("mnt_id:")), "")


def _mounts_of(pid: str) -> dict[str, str]:
    """A process's mounts: number to device."""
    with open(f"/proc/{pid}/mountinfo", encoding="ascii", errors="replace") as stream:
        return {words[0]: words[2] for words in map(str.split, stream) if len(words) > 2}


def _mount_device_of(folder: str, mounts: dict[str, str]) -> str:
    """The device of the mount that a folder is on, as mounts have it; empty: it is not known."""
    try:
        opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return mounts.get(_mount_of("self", str(opened)), "")
        finally:
            os.close(opened)
    except OSError:
        return ""
