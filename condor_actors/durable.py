"""What it takes for a file that takes another's place to be there after a power cut.

Theory: a file is replaced by writing a new one beside it, syncing that, and renaming it.  The content is on the disk
then, the name is not: it belongs to the folder, which has to be synced as well before anybody is told.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterable
from pathlib import Path

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["append_whole", "fresh_name", "naming", "open_beside", "sync_file_systems", "sync_folder", "write_at",
           "write_whole"]

NOT_TO_BE_SYNCED = (errno.EACCES, errno.EINVAL, errno.EOPNOTSUPP)
"""A folder that may not be read, or whose file system knows no such sync: the kernel writes it in its own time."""

MOST_AT_ONCE = 1000
"""Writers of one place at the same time."""


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of writing to an open file, which do not say which file that is, say that it is this one.

    Raises:
        OSError: as the block, with a name.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = os.fspath(path)
        raise


def open_beside(target: str, tag: str) -> tuple[BinaryIO, str]:
    """A hidden, empty file beside ``target`` that nothing else writes, and its path.

    Its lock says that it is in use: rename or remove it before it is closed.  What an interrupted process left under
    such a name is taken over.

    Args:
        target: the file whose place it is to take.
        tag: becomes part of its name.

    Raises:
        OSError: it cannot be made.
    """
    directory, name = os.path.split(target)
    for number in range(MOST_AT_ONCE):
        path = os.path.join(directory, f".{name[:200]}.{tag}.{number}.part")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        stream = os.fdopen(descriptor, "r+b", buffering=0)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):
                os.ftruncate(descriptor, 0)
                return stream, path
        except (BlockingIOError, FileNotFoundError):
            pass  # it is in use, or was renamed meanwhile
        except BaseException:
            stream.close()
            raise
        stream.close()
    raise OSError(errno.EBUSY, f"{MOST_AT_ONCE} writers are at it already")


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk.

    Args:
        path: the folder; empty: the working directory.

    Raises:
        OSError: the disk fails.
    """
    try:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NOT_TO_BE_SYNCED:
            raise


def fresh_name(name: str) -> str:
    """A hidden name beside a file for what is to take its place, that no other thread of this machine has."""
    return f".{name}.{threading.get_native_id()}"


def write_whole(path: Path, data: bytes, mode: int = 0o644, *, owner_of: Path | None = None) -> None:
    """Replace a file at once and durably; its owner stays who it was.

    Args:
        path: the file; its folder is made.
        data: what it is to hold.
        mode: of the file.
        owner_of: root gives the file to the owner of this one.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(fresh_name(path.name))
    fresh.unlink(missing_ok=True)  # never written to: in a folder of another account it may be a link
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        os.fchmod(descriptor, mode)
        if os.getuid() == 0:
            _keep_owner(owner_of or path, descriptor)
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(data)
        os.fsync(descriptor)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def _keep_owner(path: Path, descriptor: int) -> None:
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(facts.st_mode):
        os.fchown(descriptor, facts.st_uid, facts.st_gid)


def sync_file_systems(folders: Iterable[str]) -> None:
    """Wait until all that was written to the file systems of these folders is on their disks, and to no other.

    Raises:
        OSError: a disk fails, or a folder is not there.
    """
    library = ctypes.CDLL(None, use_errno=True)
    done: set[int] = set()
    for folder in folders:
        descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            device = os.fstat(descriptor).st_dev
            if device not in done and library.syncfs(descriptor):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), folder)
            done.add(device)
        finally:
            os.close(descriptor)


def write_at(file: int, data: bytes, offset: int) -> None:
    """Write all of it: the last write that finds room may find it for a part, and the next one says so.

    Raises:
        OSError: there is no room for the rest.
    """
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def append_whole(file: int, data: bytes, *, sync: bool = True) -> None:
    """Append to a file, and sync; where that fails, the file is as long as before, so that no half line is left.

    Args:
        file: its descriptor.
        data: what to add.
        sync: whether to wait for the disk.

    Raises:
        OSError: nothing was appended.
    """
    size = os.fstat(file).st_size
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view):]
        if sync:
            os.fdatasync(file)
    except OSError:
        os.ftruncate(file, size)
        raise
