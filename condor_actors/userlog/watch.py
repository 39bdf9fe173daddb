"""A file that grows, read as it grows; the kernel says when there is more (inotify), nobody polls."""

from __future__ import annotations

import ctypes
import os
import select
import time

_IN_MODIFY = 0x2
_IN_MOVE_SELF = 0x800
_IN_CREATE = 0x100
_IN_MOVED_TO = 0x80
_IN_NONBLOCK = os.O_NONBLOCK
_FALLBACK_S = 0.5


class GrowingFile:
    """Reads what is appended to a file; a context manager.

    Args:
        path: the file; it must exist.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115 (closed by close)
        self._notify = _inotify(path)

    def __enter__(self) -> GrowingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and the watch."""
        self._file.close()
        if self._notify >= 0:
            os.close(self._notify)
            self._notify = -1

    def read(self) -> bytes:
        """What was appended since the last read; begins again when the file was made shorter or replaced."""
        data = self._file.read()
        if data:
            return data
        try:
            there = os.stat(self._path)
        except OSError:
            return b""
        here = os.fstat(self._file.fileno())
        if there.st_ino != here.st_ino or there.st_dev != here.st_dev:
            self._file.close()
            self._file = open(self._path, "rb")  # noqa: SIM115
            return self._file.read()
        if here.st_size < self._file.tell():
            self._file.seek(0)
            return self._file.read()
        return b""

    def wait(self, deadline_s: float | None) -> bool:
        """Wait until the file may have grown.

        Args:
            deadline_s: of the monotonic clock; None: no limit.

        Returns:
            False when the deadline has passed.
        """
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            return False
        if self._notify < 0:
            select.select([], [], [], _FALLBACK_S if left_s is None else min(left_s, _FALLBACK_S))
            return True
        ready, _, _ = select.select([self._notify], [], [], left_s)
        if ready:
            os.read(self._notify, 65536)
        return True


def _inotify(path: str) -> int:
    """A descriptor that becomes readable when the file or its entry in the folder changes; -1: there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        descriptor: int = libc.inotify_init1(_IN_NONBLOCK)
        watch = libc.inotify_add_watch
    except AttributeError:
        return -1
    if descriptor < 0:
        return -1
    folder = os.path.dirname(os.path.abspath(path))
    watched = [
        watch(descriptor, os.fsencode(path), ctypes.c_uint32(_IN_MODIFY | _IN_MOVE_SELF)),
        watch(descriptor, os.fsencode(folder), ctypes.c_uint32(_IN_CREATE | _IN_MOVED_TO)),
    ]
    if min(watched) < 0:
        os.close(descriptor)
        return -1
    return descriptor
