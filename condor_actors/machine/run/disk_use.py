"""The disk space that a run uses: of what is in its scratch directory, and of files that its processes have deleted and
keep open, which no folder shows.

Theory: blocks count and not sizes, and each file once, whatever names it has, with a KiB at least.  A tree is walked by
open folders, for the job may be changing it: those near its top stay open, and from further down the way back is "..",
which has to be the folder one came from.  So no depth is too much; where one is moved meanwhile, the walk goes on
further up.

``/proc/PID/fd`` leads to each open file, and the text of such a link to a deleted one ends in " (deleted)".
Only files on the file system of the run's scratch directory count, by the device of the mount that they were opened
on: memory files (``/dev/shm``, memfd) are memory, and a file system of the job's own making is never asked, for it
might not answer.  Each file counts once, however many descriptors lead to it, and only if it is the job's own.

Where root's rights are a helper's, ``native/root/measure.c`` and ``native/root/deleted.c`` look instead.

Source: proc(5), proc_pid_fd, proc_pid_fdinfo, proc_pid_mountinfo.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Collection

import attrs

__all__ = ["deleted_kib", "tree_kib"]

DELETED = " (deleted)"
MOST_OPEN = 100_000
"""So many descriptors of a run are looked at; a job that has more of them is not kept waiting for the rest."""
LEAST_BLOCKS = 2
"""What an empty file counts for: a file system has so many files and no more."""
MOST_HELD = 64
"""So many folders on the way down are kept open."""
OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.define
class _Level:
    """A folder on the way down: open unless -1, which it is, and the folders in it that are still to be entered."""

    folder: int
    identity: tuple[int, int]
    waiting: list[str]


class _Tree:
    """One walk; ``blocks``: what was found, ``closed``: folders that were not to be read."""

    def __init__(self) -> None:
        self.blocks = 0
        self.closed = 0
        self._several: set[tuple[int, int]] = set()
        self._way: list[_Level] = []

    def walk(self, path: str) -> None:
        """Look at all that is in a folder."""
        try:
            self._open(path, None)
            while self._way:
                level = self._way[-1]
                if level.waiting:
                    self._open(level.waiting.pop(), level.folder)
                else:
                    self._leave()
        finally:
            for level in self._way:
                if level.folder >= 0:
                    os.close(level.folder)

    def _open(self, name: str, above: int | None) -> None:
        try:
            folder = os.open(name, OPENING, dir_fd=above)
        except OSError as error:
            self.closed += isinstance(error, PermissionError)
            return
        level = _Level(folder, (0, 0), [])
        self._way.append(level)
        try:
            facts = os.fstat(folder)
            level.identity = facts.st_dev, facts.st_ino
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._look_at(entry, level)
        except OSError as error:
            self.closed += isinstance(error, PermissionError)
        if len(self._way) > MOST_HELD + 1:
            os.close(self._way[-2].folder)
            self._way[-2].folder = -1

    def _look_at(self, entry: os.DirEntry[str], level: _Level) -> None:
        try:
            facts = entry.stat(follow_symlinks=False)
        except PermissionError:
            self.closed += 1
            return
        except OSError:
            return
        if stat.S_ISDIR(facts.st_mode):
            level.waiting.append(entry.name)
        elif facts.st_nlink > 1:
            if (facts.st_dev, facts.st_ino) in self._several:
                return
            self._several.add((facts.st_dev, facts.st_ino))
        self.blocks += max(LEAST_BLOCKS, facts.st_blocks)

    def _leave(self) -> None:
        left = self._way.pop()
        above = self._way[-1] if self._way else None
        if above is not None and above.folder < 0:
            with contextlib.suppress(OSError):
                above.folder = os.open("..", OPENING, dir_fd=left.folder)
                facts = os.fstat(above.folder)
                if (facts.st_dev, facts.st_ino) != above.identity:
                    os.close(above.folder)
                    above.folder = -1
        os.close(left.folder)
        while self._way and self._way[-1].folder < 0:
            self._way.pop()


def tree_kib(path: str) -> tuple[int, int]:
    """The disk space of what is in a folder, in KiB, and how many folders in it this process may not read."""
    tree = _Tree()
    tree.walk(path)
    return tree.blocks // 2, tree.closed


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
