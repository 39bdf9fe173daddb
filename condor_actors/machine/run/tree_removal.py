"""Removes a directory tree that someone else filled and may still be changing.

Theory: nothing below the tree's root is named by a path.  One directory is open at a time; what is in it is removed by
its plain name, a directory is entered without following links, and the way back is ``..``, which must be the directory
one came from.  So a link that is put in the place of a directory meanwhile leads nowhere, and no depth is too much.
"""

from __future__ import annotations

import contextlib
import os

import attrs

__all__ = ["remove_tree"]

OPENING = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
REACHING = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@attrs.define
class _Level:
    """A directory on the way down: which it is, the full directories in it that were entered, and those to be."""

    identity: tuple[int, int]
    entered: set[str] = attrs.field(factory=set)
    waiting: list[str] = attrs.field(factory=list)

    def next(self, here: int) -> str | None:
        """The next directory to enter; what needs no entering is removed."""
        if not self.waiting:
            self.waiting = [name for name in _clear(here) if name not in self.entered]
            self.entered.update(self.waiting)
        return self.waiting.pop() if self.waiting else None


def remove_tree(path: str) -> bool:
    """Remove a directory, whatever modes those below it have, or a file; links are never followed.

    Returns:
        Whether it is gone.
    """
    try:
        here = _open(path)
    except OSError:  # a file; or another user's folder, which goes when it is empty
        for remove in (os.unlink, os.rmdir):
            with contextlib.suppress(OSError):
                remove(path)
        return not os.path.lexists(path)
    _empty(here)
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.lexists(path)


def _open(name: str, folder: int | None = None) -> int:
    """Open a directory with all rights of its owner, if they can be had."""
    try:
        opened = os.open(name, OPENING, dir_fd=folder)
    except PermissionError:
        reached = os.open(name, REACHING, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{reached}", 0o700)
        finally:
            os.close(reached)
        return os.open(name, OPENING, dir_fd=folder)
    with contextlib.suppress(OSError):
        if os.fstat(opened).st_mode & 0o700 != 0o700:
            os.fchmod(opened, 0o700)
    return opened


def _identity(folder: int) -> tuple[int, int]:
    facts = os.fstat(folder)
    return facts.st_dev, facts.st_ino


def _empty(here: int) -> None:
    """Remove what is in an open directory, which is closed; what resists stays."""
    way = [_Level(_identity(here))]
    try:
        while True:
            name = way[-1].next(here)
            if name is not None:
                with contextlib.suppress(OSError):
                    below = _open(name, here)
                    os.close(here)
                    here = below
                    way.append(_Level(_identity(here)))
                continue
            way.pop()
            if not way:
                return
            above = os.open("..", OPENING, dir_fd=here)
            os.close(here)
            here = above
            if _identity(here) != way[-1].identity:
                return  # someone has moved it
    except OSError:
        return
    finally:
        os.close(here)


def _clear(here: int) -> list[str]:
    """Remove files and empty directories; the directories that are full."""
    with os.scandir(here) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    full = []
    for name, is_directory in entries:
        try:
            if is_directory:
                os.rmdir(name, dir_fd=here)
            else:
                os.unlink(name, dir_fd=here)
        except OSError:
            if is_directory:
                full.append(name)
    return full
