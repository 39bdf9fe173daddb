"""Files that only their owner may read: keys and tokens."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from condor_actors.durable import fresh_name, sync_folder

__all__ = ["NotPrivate", "read_private", "write_private"]


class NotPrivate(OSError):
    """A file of secrets that others could read or have written."""


def read_private(path: Path, owners: Collection[int], limit: int = 64 * 1024) -> bytes:
    """The bytes of a small regular file that belongs to one of ``owners`` and is closed to everybody else.

    Raises:
        NotPrivate: it is none of these, with what to do.
        OSError: it cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise NotPrivate(0, "it is no regular file", str(path))
        if facts.st_uid not in owners:
            raise NotPrivate(0, f"it belongs to uid {facts.st_uid}, who is none of those it is read for", str(path))
        if facts.st_mode & 0o077:
            raise NotPrivate(0, f"others may read or write it (mode {facts.st_mode & 0o777:04o}); chmod 600 it",
                             str(path))
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise NotPrivate(0, f"it is longer than {limit} bytes", str(path))
    return data


def write_private(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Write a file that only we may read, whole.

    Args:
        path: where; its folder is made, closed to others.
        data: what.
        replace: whether there may be one.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    fresh = path.with_name(fresh_name(path.name))
    fresh.unlink(missing_ok=True)  # of a process that was killed
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
        if replace:
            fresh.replace(path)
        else:
            os.link(fresh, path)
        sync_folder(path.parent)
    finally:
        fresh.unlink(missing_ok=True)
