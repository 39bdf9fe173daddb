"""Files that root writes or trusts in folders of other accounts, safe from links and replaced names.

Theory: the folders of logs, sockets and records are the pool's account's, and the master and the administrator's
commands go on as root.  An attacker who has taken over a daemon may put anything under any name there at any moment: a
link to a file of root's, a second name of one, a pipe.  So a name is used below an open folder; what is to take
another's place is made anew under a name that was not there; what is to be appended to is a plain file with one name,
or is put out of the way; and what root believes is root's.  In folders of root's own, where nobody else writes, a link
is the administrator's and is followed, as it is for every other account.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from condor_actors.durable import fresh_name, sync_folder

__all__ = ["is_shared", "open_guarded", "open_own", "read_own", "replace_own", "stranger_in"]

MOST_STEPS = 200
TRIES = 10
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def is_shared(facts: os.stat_result, uid: int = 0) -> bool:
    """Whether anybody but an account (and root) may change what is in a folder."""
    return facts.st_uid not in (uid, 0) or bool(facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def stranger_in(folder: Path) -> str:
    """Why another user can choose what is in a folder, or put another one in its place; empty: none can.

    Args:
        folder: absolute; looked at with all links on its way, wherever they lead.
    """
    own = (0, os.geteuid())
    for place in dict.fromkeys(each for top in (folder, folder.resolve()) for each in (top, *top.parents)):
        try:
            facts = place.lstat()
            if stat.S_ISLNK(facts.st_mode) and facts.st_uid in own:
                facts = place.stat()
        except OSError:
            continue  # it is made, or cannot be
        if facts.st_uid not in own:
            return f"{place} belongs to the user id {facts.st_uid}, who can change what is there"
        is_it = place.resolve() == folder.resolve()
        others = facts.st_mode & (0o022 if is_it else 0o002)
        if others and (is_it or not facts.st_mode & stat.S_ISVTX):
            return f"others can write to {place} (mode {stat.S_IMODE(facts.st_mode):o}; chmod go-w it)"
    return ""


def open_guarded(path: Path, *, make: bool = False) -> int:
    """Open a folder as root, over no link but root's own.

    Args:
        path: absolute.
        make: make what is missing of it, as root's.

    Raises:
        PermissionError: there is a link on the way that another account could have laid.
        OSError: it is not there, or is no folder.
    """
    parts = [part for part in reversed(os.path.normpath(path).split("/")) if part]
    at = os.open("/", FOLDER)
    for _ in range(MOST_STEPS):
        if not parts:
            return at
        above, name = at, parts.pop()
        try:
            at = _step(above, name, parts, make=make)
        except PermissionError as error:
            raise PermissionError(error.errno, f"root does not go there: {error.strerror}", str(path)) from None
        finally:
            os.close(above)
    os.close(at)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _step(above: int, name: str, parts: list[str], *, make: bool) -> int:
    """One folder further; over a link its words are put before the others."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o755, dir_fd=above)
    try:
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        target = os.readlink(name, dir_fd=above) if _is_link(above, name) else ""
        if not target:
            raise
    folder, link = os.fstat(above), os.stat(name, dir_fd=above, follow_symlinks=False)
    shared = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX
    if folder.st_uid or link.st_uid or shared:
        raise PermissionError(errno.EPERM, f"the link {name} on the way could be another account's")
    parts += [part for part in reversed(target.split("/")) if part not in ("", ".")]
    return os.open("/" if target.startswith("/") else ".", FOLDER, dir_fd=above)


def _is_link(folder: int, name: str) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


@contextlib.contextmanager
def _above(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, bool]]:
    """The open folder of a file, its name there, and whether root has to be wary of what it finds there."""
    folder, name = os.path.split(os.path.abspath(path))
    descriptor = open_guarded(Path(folder)) if os.geteuid() == 0 else os.open(folder, os.O_PATH | FOLDER)
    try:
        yield descriptor, name, os.geteuid() == 0 and is_shared(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def open_own(path: str | os.PathLike[str], flags: int, mode: int = 0o644) -> int:
    """Open, or make, a file to be written: a descriptor.

    What another user has put in its place is removed and created again; content of a plain file stays.

    Args:
        path: of the file.
        flags: of ``open``.
        mode: of a new one.

    Raises:
        PermissionError: another user redirects it, again and again.
        OSError: it cannot be opened.
    """
    with _above(path) as (folder, name, wary):
        if not wary:
            return os.open(name, flags | os.O_CLOEXEC, mode, dir_fd=folder)
        for _ in range(TRIES):
            found = _open_plain(name, flags, mode, folder)
            if found is not None:
                return found
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    raise PermissionError(errno.EPERM, "another user redirects root from there", os.fspath(path))


def _open_plain(name: str, flags: int, mode: int, folder: int) -> int | None:
    """A plain file with one name; None: something else has it."""
    wary = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, wary, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a pipe or a socket
            return None
        raise
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        os.close(descriptor)
        return None
    if flags & os.O_TRUNC:
        os.ftruncate(descriptor, 0)
    return descriptor


def replace_own(path: str | os.PathLike[str], data: bytes, mode: int = 0o644, *, sync: bool = False) -> None:
    """Put a small file in a place at once: who reads it has the old content or the new.

    Args:
        path: the place.
        data: the content.
        mode: of the file, but for the umask.
        sync: wait until it is on the disk.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    with _above(path) as (folder, name, _):
        fresh = fresh_name(name)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, mode, dir_fd=folder)
        try:
            with open(descriptor, "wb") as stream:
                stream.write(data)
                if sync:
                    stream.flush()
                    os.fsync(descriptor)
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            if sync:
                sync_folder(f"/proc/self/fd/{folder}")
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=folder)
            raise


def read_own(path: str | os.PathLike[str], *, last: int = 0, roots: bool = False) -> bytes:
    """What a file has; of none, and of what root does not read there, nothing.

    Args:
        path: of the file.
        last: no more than so many bytes of its end; 0: all.
        roots: as root, believe only what is root's.

    Raises:
        OSError: the disk fails.
    """
    try:
        with _above(path) as (folder, name, wary):
            link = os.O_NOFOLLOW if wary or (roots and os.geteuid() == 0) else 0
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | link, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EPERM, errno.EACCES, errno.ENXIO):
            return b""
        raise
    with open(descriptor, "rb") as stream:
        facts = os.fstat(descriptor)
        foreign = (wary and facts.st_nlink != 1) or (roots and os.geteuid() == 0 and facts.st_uid != 0)
        if not stat.S_ISREG(facts.st_mode) or foreign:
            return b""
        stream.seek(max(facts.st_size - last, 0) if last else 0)
        return stream.read(last or -1)
