"""Opens files of others: what is opened is what was checked, and nothing on the way leads elsewhere.

Theory: a path that another user can change while we look is given to the kernel once, with how it may be resolved
(``openat2``): below a directory that is open already, and never through the links of ``/proc``.  What comes back is a
descriptor; its kind is looked at there, not by its name.  Nothing is waited for: a pipe that was put in the place of a
file is opened without its other end, and refused.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat

__all__ = ["BENEATH", "NO_LINKS", "LeadsOut", "needs_regular", "open_at_once", "open_beneath", "place_beneath"]

OPENAT2 = 437
NO_MAGIC, NO_LINKS, BENEATH = 0x02, 0x04, 0x08
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class LeadsOut(OSError):
    """A path or link that leads out of its directory."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


def open_beneath(folder: int, path: str, resolve: int = BENEATH) -> int:
    """Open a file or directory below an open directory, for reading.

    Args:
        resolve: BENEATH: links are followed as long as they stay below; NO_LINKS: none is.

    Raises:
        LeadsOut: it is not below, or a link is in the way.
        OSError: not there, not allowed; names ``path``.
    """
    how = _How(READING, 0, BENEATH | NO_MAGIC | resolve)
    found = _syscall(OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if found >= 0:
        return int(found)
    number = ctypes.get_errno()
    if number == errno.ENOSYS:
        return _step_by_step(folder, path)
    raise _error(number, path)


def _error(number: int, path: str) -> OSError:
    if number in (errno.EXDEV, errno.ELOOP):
        return LeadsOut(number, "it leads out of its directory", path)
    return OSError(number, os.strerror(number), path)


def _step_by_step(folder: int, path: str) -> int:
    """For kernels before 5.6: one component after the other, and no links at all."""
    here = os.dup(folder)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if path.startswith("/") or ".." in names:
        os.close(here)
        raise _error(errno.EXDEV, path)
    try:
        for name in names or ["."]:
            below = os.open(name, READING | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
    except OSError as error:
        os.close(here)
        raise _error(error.errno or 0, path) from None
    return here


def place_beneath(root: str, place: str, *, follow: bool = True) -> str:
    """Where a file below a folder really is: by its folders' own names, and a link at its end is not followed.

    Args:
        root: the folder.
        place: a path below it, which need not be there.
        follow: that the folder is a link itself is its owner's affair; else it may be none.

    Raises:
        LeadsOut: a link on the way leads out of the folder.
    """
    real = os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))
    if not real.startswith(f"{os.path.realpath(root).rstrip('/')}/") or (not follow and os.path.islink(root)):
        raise LeadsOut(errno.ELOOP, "it leads out of its directory", place)
    return real


def open_at_once(path: str) -> int:
    """Open a file or directory of the account we act as, by any path, without waiting.

    Raises:
        OSError: it cannot be opened.
    """
    return os.open(path, READING)


def needs_regular(descriptor: int, path: str) -> os.stat_result:
    """The facts of a plain file.

    Raises:
        OSError: it is something else.
    """
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "not a plain file", path)
    return facts
