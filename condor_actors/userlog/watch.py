"""A file that grows, read as it grows; the kernel says when there is more (inotify), nobody polls."""

from __future__ import annotations

import errno
import os
import stat
import time

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import BinaryIO

    from inotify_simple import INotify

FALLBACK_S = 0.5
"""Where the kernel has no watch to give, the file is looked at this often."""
LONGEST_WAIT_S = 86_400.0
"""The kernel counts the milliseconds of a wait in 31 bits: a longer one is done in parts."""


class GrowingFile:
    """Reads what is appended to a file; a context manager.

    Args:
        path: the file; it must exist.
        is_watched: False: the kernel is asked when `wait` is called first, which then returns at once.

    Raises:
        OSError: it cannot be opened, or is no file: what a device or a FIFO says has no end.
    """

    def __init__(self, path: str, *, is_watched: bool = True) -> None:
        self._path = path
        self._file = _opened(path)
        self._notify = _watch(path) if is_watched else None
        self._is_watched = is_watched

    def __enter__(self) -> GrowingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and the watch."""
        self._file.close()
        if self._notify is not None:
            self._notify.close()
            self._notify = None

    def read(self) -> bytes:
        """What was appended since the last read; begins again when the file was made shorter or replaced."""
        data = self._more()
        if data:
            return data
        try:
            there = os.stat(self._path)
        except OSError:
            return b""
        here = os.fstat(self._file.fileno())
        if there.st_ino != here.st_ino or there.st_dev != here.st_dev:
            if self._notify is not None:  # it watches the file that was there; watched first, then read
                _watch_file(self._notify, self._path)
            self._file.close()
            self._file = _opened(self._path)
            return self._more()
        if here.st_size < self._file.tell():
            self._file.seek(0)
            return self._more()
        return b""

    def _more(self) -> bytes:
        try:
            return self._file.read()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from None

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
        if not self._is_watched:
            self._notify, self._is_watched = _watch(self._path), True
            return True  # it may have grown before
        if self._notify is None:
            time.sleep(FALLBACK_S if left_s is None else min(left_s, FALLBACK_S))
            return True
        self._notify.read(timeout=None if left_s is None else min(left_s, LONGEST_WAIT_S) * 1000.0)
        return True

    def fileno(self) -> int | None:
        """A descriptor that is readable when the file may have grown; None where the kernel has no watch to give."""
        return None if self._notify is None else self._notify.fileno()

    def forget(self) -> None:
        """Take what the kernel has told so far; who waits for the descriptor calls it before `read`."""
        if self._notify is not None:
            self._notify.read(timeout=0)


def _opened(path: str) -> BinaryIO:
    """The file; one that is no file would keep its reader until something writes to it, or feed it without end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(kind) and os.path.realpath(path) != os.devnull:
        os.close(descriptor)
        if stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        what = "a FIFO" if stat.S_ISFIFO(kind) else "a device"
        raise OSError(errno.EINVAL, f"it is {what}, and an event log is a file", path)
    return open(descriptor, "rb")


def _watch(path: str) -> INotify | None:
    """Tells when the file or its entry in the folder changes; None where the kernel has no watch to give."""
    from inotify_simple import INotify, flags  # with ctypes and all that it loads

    try:
        notify = INotify()
    except OSError:
        return None
    try:
        notify.add_watch(path, flags.MODIFY | flags.MOVE_SELF)
        notify.add_watch(os.path.dirname(os.path.abspath(path)), flags.CREATE | flags.MOVED_TO)
    except OSError:
        notify.close()
        return None
    return notify


def _watch_file(notify: INotify, path: str) -> None:
    """The same for a file that has taken its place."""
    from inotify_simple import flags

    try:
        notify.add_watch(path, flags.MODIFY | flags.MOVE_SELF)
    except OSError:
        return
