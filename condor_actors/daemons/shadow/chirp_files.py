"""The files that a run uses at home by chirp: opened, read, written and named below its folders only.

Theory: every path is turned into an open descriptor first (``O_PATH``), and the kernel is asked where that is; only
what lies below one of the run's folders is used, and by that descriptor, so nothing changes between the check and the
use. Links are followed as long as they stay below. A run makes links only that point below whatever is done to them
later: to a path without ``..``, and never to a folder that has a link out in it. Links of the owner's that lead out
stay where they are, and so do folders with one: under another name, that of an output or an input of the job, they
would be followed by the owner's own processes. Links with ``..``, which stay below where they are, are not moved to
where they would not. Of what is not below nothing is said, not even whether it is there. What is no plain file or
folder is not opened, and nothing below ``/proc``, ``/sys`` and ``/dev`` is anybody's file. All of this runs in a
worker, with the rights of the job's owner.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from condor_actors.actors.workers import touching
from condor_actors.cores.chirp_protocol import PIECE_BYTES, ChirpError, code_of
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.messages.run import ChirpCall, ChirpResult

__all__ = ["ChirpFiles"]

MOST_OPEN = 64
MOST_LOOKED_AT = 100_000
"""Entries of a folder that is moved, or that a link is made to."""
MOST_LISTING_BYTES = 256 * 1024
NOT_FILES = ("/proc", "/sys", "/dev")
QUIETLY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
LOOKING = os.O_PATH | os.O_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


class ChirpFiles:
    """The files of one run.

    Args:
        iwd: where relative paths begin.
        folders: below which everything is.
        as_root: nothing changes its owner.
    """

    def __init__(self, iwd: str, folders: Sequence[str], *, as_root: bool = False) -> None:
        self._iwd = iwd
        self._folders = tuple(folders)
        self._as_root = as_root
        self._open: dict[int, int] = {}
        self._real: tuple[str, ...] | None = None

    def do(self, call: ChirpCall) -> ChirpResult:
        """In a worker: do what was asked.

        Raises:
            NoAnswer: another worker is stuck in that folder.
        """
        try:
            touching(os.path.join(self._iwd, call.path))
            return _DO[call.verb](self, call)
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:
                raise
            return ChirpResult(value=code_of(error.errno))
        except (ValueError, OverflowError, RecursionError):
            return ChirpResult(value=ChirpError.INVALID_REQUEST)

    def close_all(self) -> None:
        """The run is over."""
        for descriptor in self._open.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._open.clear()

    # ---- paths

    def _check(self, descriptor: int, path: str) -> str:
        """Where an open descriptor is.

        Raises:
            PermissionError: not below the run's folders.
        """
        return self._check_place(os.readlink(_by(descriptor)), path)

    def _check_place(self, real: str, path: str) -> str:
        if not self._above(real) or any(_below(real, place) for place in NOT_FILES):
            raise PermissionError(errno.EACCES, "not below the job's folders", path)
        return real

    def _above(self, real: str) -> list[str]:
        """Those of the run's folders that a place is below."""
        if self._real is None:  # once: what a run does below them moves none of them elsewhere
            self._real = tuple(os.path.realpath(folder) for folder in self._folders)
        return [folder for folder in self._real if _below(real, folder)]

    def _check_move(self, folder: int, name: str, new_folder: int, new_name: str, path: str) -> None:
        """No link that leads out gets another name, nor does a folder with one; and none that leads upwards gets nearer
        to the end of the run's folders.

        Raises:
            PermissionError: it would.
        """
        old, new = (os.readlink(_by(each)) for each in (folder, new_folder))
        is_nearer = self._depth(new) < self._depth(old)
        for link, target in _links(f"{_by(folder)}/{name}"):
            places = [os.path.dirname(os.path.normpath(f"{top}/{link}")) for top in (f"{old}/{name}",
                                                                                    f"{new}/{new_name}")]
            if (is_nearer and ".." in target.split("/")) or not all(
                    self._above(os.path.realpath(os.path.join(place, target))) for place in places):
                raise PermissionError(errno.EACCES, "a link in it leads, or could lead, out of the job's folders", path)

    def _check_target(self, folder: int, target: str) -> None:
        """A link leads to what is below, with all that is in it.

        Raises:
            PermissionError: it would not.
        """
        refused = PermissionError(errno.EACCES, "it could lead out of the job's folders", target)
        if ".." in target.split("/"):
            raise refused
        leads_to = os.path.realpath(os.path.join(os.readlink(_by(folder)), target))
        if not self._above(leads_to) or (os.path.isdir(leads_to) and not all(
                self._above(os.path.realpath(f"{leads_to}/{link}")) for link, _ in _links(leads_to))):
            raise refused

    def _depth(self, real: str) -> int:
        return min(len(real[len(folder.rstrip("/")):].split("/")) for folder in self._above(real))

    def _look(self, path: str, flags: int) -> int:
        """Open for looking; why that fails is said only of what would be below the run's folders."""
        try:
            return os.open(path, flags)
        except OSError:
            self._check_place(os.path.realpath(path), path)
            raise

    @contextlib.contextmanager
    def _at(self, path: str) -> Iterator[int]:
        """What a path leads to, for looking."""
        descriptor = self._look(os.path.join(self._iwd, path), LOOKING)
        try:
            self._check(descriptor, path)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _named(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder that a name is in, and the name, which need not be there.

        Raises:
            OSError: it names no entry of a folder.
        """
        folder, name = os.path.split(os.path.join(self._iwd, path).rstrip("/"))
        if name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "no name", path)
        descriptor = self._look(folder or "/", LOOKING | os.O_DIRECTORY)
        try:
            self._check(descriptor, path)
            yield descriptor, name
        finally:
            os.close(descriptor)

    def _open_file(self, path: str, flags: int, mode: int) -> int:
        """Open a plain file, or make one."""
        try:
            with self._at(path) as found:
                facts = os.fstat(found)
                if stat.S_ISDIR(facts.st_mode):
                    raise IsADirectoryError(errno.EISDIR, "a directory", path)
                if flags & os.O_CREAT and flags & os.O_EXCL:
                    raise FileExistsError(errno.EEXIST, "it exists", path)
                if not stat.S_ISREG(facts.st_mode):
                    raise PermissionError(errno.EACCES, "no plain file", path)
                return os.open(_by(found), flags & ~(os.O_CREAT | os.O_EXCL) | QUIETLY)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
        with self._named(path) as (folder, name):
            return os.open(name, flags | os.O_EXCL | os.O_NOFOLLOW | QUIETLY, mode & 0o777, dir_fd=folder)

    def _file(self, call: ChirpCall) -> int:
        """An open file by its handle; another shadow's is opened again."""
        handle = call.numbers[0]
        found = self._open.get(handle)
        if found is None:
            flags = _flags(call.other) & ~(os.O_CREAT | os.O_TRUNC | os.O_EXCL)
            found = self._keep(handle, self._open_file(call.path, flags, 0))
        return found

    def _keep(self, handle: int, descriptor: int) -> int:
        old = self._open.pop(handle, None)
        if old is not None:
            os.close(old)
        self._open[handle] = descriptor
        return descriptor

    # ---- what is done

    def _do_open(self, call: ChirpCall) -> ChirpResult:
        handle, mode = call.numbers
        if len(self._open) >= MOST_OPEN:
            return ChirpResult(value=ChirpError.TOO_MANY_OPEN)
        descriptor = self._keep(handle, self._open_file(call.path, _flags(call.other), mode))
        return ChirpResult(value=0, data=_facts(os.fstat(descriptor)))

    def _do_close(self, call: ChirpCall) -> ChirpResult:
        descriptor = self._open.pop(call.numbers[0], None)
        if descriptor is not None:
            os.close(descriptor)
        return ChirpResult(value=0)

    def _do_read(self, call: ChirpCall) -> ChirpResult:
        _, offset, length = call.numbers
        descriptor = self._file(call)
        data = os.pread(descriptor, min(max(length, 0), PIECE_BYTES), offset)
        return ChirpResult(value=max(len(data), os.fstat(descriptor).st_size - offset), data=data)

    def _do_write(self, call: ChirpCall) -> ChirpResult:
        offset, descriptor, data = call.numbers[1], self._file(call), memoryview(call.data)
        done = 0
        while done < len(data):
            done += os.write(descriptor, data[done:]) if offset < 0 else os.pwrite(
                descriptor, data[done:], offset + done)
        return ChirpResult(value=done)

    def _do_fsync(self, call: ChirpCall) -> ChirpResult:
        os.fsync(self._file(call))
        return ChirpResult(value=0)

    def _do_fstat(self, call: ChirpCall) -> ChirpResult:
        facts = os.fstat(self._file(call))
        return ChirpResult(value=facts.st_size, data=_facts(facts))

    def _do_fstatfs(self, call: ChirpCall) -> ChirpResult:
        return ChirpResult(value=0, data=_space(self._file(call)))

    def _do_fchown(self, call: ChirpCall) -> ChirpResult:
        self._may_chown()
        os.fchown(self._file(call), call.numbers[1], call.numbers[2])
        return ChirpResult(value=0)

    def _do_fchmod(self, call: ChirpCall) -> ChirpResult:
        os.fchmod(self._file(call), call.numbers[1] & 0o777)
        return ChirpResult(value=0)

    def _do_ftruncate(self, call: ChirpCall) -> ChirpResult:
        os.ftruncate(self._file(call), call.numbers[1])
        return ChirpResult(value=0)

    def _do_unlink(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        return ChirpResult(value=0)

    def _do_rmdir(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name):
            os.rmdir(name, dir_fd=folder)
        return ChirpResult(value=0)

    def _do_rmall(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name):
            if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=folder)
            elif not remove_tree(f"{_by(folder)}/{name}"):
                raise PermissionError(errno.EACCES, "not all of it can be removed", call.path)
        return ChirpResult(value=0)

    def _do_mkdir(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name):
            os.mkdir(name, call.numbers[0] & 0o777, dir_fd=folder)
        return ChirpResult(value=0)

    def _do_rename(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name), self._named(call.other) as (new_folder, new_name):
            self._check_move(folder, name, new_folder, new_name, call.path)
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder)
        return ChirpResult(value=0)

    def _do_link(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name), self._named(call.other) as (new_folder, new_name):
            self._check_move(folder, name, new_folder, new_name, call.path)
            os.link(name, new_name, src_dir_fd=folder, dst_dir_fd=new_folder, follow_symlinks=False)
        return ChirpResult(value=0)

    def _do_symlink(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.other) as (folder, name):
            self._check_target(folder, call.path)
            os.symlink(call.path, name, dir_fd=folder)
        return ChirpResult(value=0)

    def _do_readlink(self, call: ChirpCall) -> ChirpResult:
        with self._named(call.path) as (folder, name):
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        return ChirpResult(value=len(data), data=data)

    def _do_getdir(self, call: ChirpCall) -> ChirpResult:
        return self._list(call.path, lambda folder, name: b"")

    def _do_getlongdir(self, call: ChirpCall) -> ChirpResult:
        return self._list(call.path, lambda folder, name: _facts(os.stat(name, dir_fd=folder, follow_symlinks=False)))

    def _list(self, path: str, more: Callable[[int, str], bytes]) -> ChirpResult:
        with self._at(path) as found:
            folder = os.open(_by(found), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        lines, size = [], 0
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    lines.append(os.fsencode(entry.name) + b"\n" + more(folder, entry.name))
                    size += len(lines[-1])
                    if size > MOST_LISTING_BYTES:
                        return ChirpResult(value=ChirpError.TOO_BIG)
        finally:
            os.close(folder)
        data = b"".join(sorted(lines)) + b"\n"
        return ChirpResult(value=len(data), data=data)

    def _do_stat(self, call: ChirpCall) -> ChirpResult:
        with self._at(call.path) as found:
            return ChirpResult(value=0, data=_facts(os.fstat(found)))

    def _do_lstat(self, call: ChirpCall) -> ChirpResult:
        try:
            with self._named(call.path) as (folder, name):
                return ChirpResult(value=0, data=_facts(os.stat(name, dir_fd=folder, follow_symlinks=False)))
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EACCES):
                raise
            return self._do_stat(call)  # a folder of the run's itself

    def _do_statfs(self, call: ChirpCall) -> ChirpResult:
        with self._at(call.path) as found:
            return ChirpResult(value=0, data=_space(found))

    def _do_access(self, call: ChirpCall) -> ChirpResult:
        with self._at(call.path) as found:
            if not os.access(_by(found), call.numbers[0] & 7, effective_ids=True):
                raise PermissionError(errno.EACCES, "not allowed", call.path)
        return ChirpResult(value=0)

    def _do_chmod(self, call: ChirpCall) -> ChirpResult:
        with self._at(call.path) as found:
            os.chmod(_by(found), call.numbers[0] & 0o777)
        return ChirpResult(value=0)

    def _do_chown(self, call: ChirpCall) -> ChirpResult:
        self._may_chown()
        with self._at(call.path) as found:
            os.chown(_by(found), *call.numbers)
        return ChirpResult(value=0)

    def _do_lchown(self, call: ChirpCall) -> ChirpResult:
        self._may_chown()
        with self._named(call.path) as (folder, name):
            os.chown(name, *call.numbers, dir_fd=folder, follow_symlinks=False)
        return ChirpResult(value=0)

    def _may_chown(self) -> None:
        if self._as_root:
            raise PermissionError(errno.EPERM, "no job of root's gives files away")

    def _do_truncate(self, call: ChirpCall) -> ChirpResult:
        descriptor = self._open_file(call.path, os.O_WRONLY, 0)
        try:
            os.ftruncate(descriptor, call.numbers[0])
        finally:
            os.close(descriptor)
        return ChirpResult(value=0)

    def _do_utime(self, call: ChirpCall) -> ChirpResult:
        with self._at(call.path) as found:
            os.utime(_by(found), (float(call.numbers[0]), float(call.numbers[1])))
        return ChirpResult(value=0)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _links(top: str) -> Iterator[tuple[str, str]]:
    """The links that something is, or has in it: their paths below it, and what is in them.

    Raises:
        PermissionError: it has too much in it to be looked at.
    """
    waiting, left = [""], MOST_LOOKED_AT
    while waiting:
        below = waiting.pop()
        path = f"{top}/{below}" if below else top
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            yield below, os.readlink(path)
        if stat.S_ISDIR(mode):
            with os.scandir(path) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise PermissionError(errno.EACCES, "too much is in it to look for links", top)
                    if entry.is_symlink() or entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{below}/{entry.name}" if below else entry.name)


def _by(descriptor: int) -> str:
    """A name for what is open, which leads nowhere else."""
    return f"/proc/self/fd/{descriptor}"


def _flags(letters: str) -> int:
    """Those of ``open``, from chirp's letters."""
    flags = (os.O_RDWR if "r" in letters else os.O_WRONLY) if "w" in letters else os.O_RDONLY
    for letter, flag in (("c", os.O_CREAT), ("t", os.O_TRUNC), ("x", os.O_EXCL), ("a", os.O_APPEND)):
        flags |= flag if letter in letters else 0
    return flags if "w" in letters else flags & ~os.O_TRUNC


def _facts(facts: os.stat_result) -> bytes:
    """A line as ``stat`` and the like answer it."""
    return b" ".join(b"%d" % number for number in (
        facts.st_dev, facts.st_ino, facts.st_mode, facts.st_nlink, facts.st_uid, facts.st_gid, facts.st_rdev,
        facts.st_size, facts.st_blksize, facts.st_blocks, int(facts.st_atime), int(facts.st_mtime),
        int(facts.st_ctime))) + b"\n"


def _space(descriptor: int) -> bytes:
    """A line as ``statfs`` answers it."""
    facts = os.statvfs(descriptor)
    kind = (ctypes.c_long * 64)()  # the kernel's structure begins with the type of the file system
    if _libc.fstatfs(descriptor, ctypes.byref(kind)) != 0:
        kind[0] = 0
    return b" ".join(b"%d" % number for number in (
        kind[0], facts.f_bsize, facts.f_blocks, facts.f_bfree, facts.f_bavail, facts.f_files, facts.f_ffree)) + b"\n"


_DO: Mapping[str, Callable[[ChirpFiles, ChirpCall], ChirpResult]] = {
    "open": ChirpFiles._do_open, "close": ChirpFiles._do_close, "read": ChirpFiles._do_read,
    "write": ChirpFiles._do_write, "fsync": ChirpFiles._do_fsync, "fstat": ChirpFiles._do_fstat,
    "fstatfs": ChirpFiles._do_fstatfs, "fchown": ChirpFiles._do_fchown, "fchmod": ChirpFiles._do_fchmod,
    "ftruncate": ChirpFiles._do_ftruncate, "unlink": ChirpFiles._do_unlink, "rmdir": ChirpFiles._do_rmdir,
    "rmall": ChirpFiles._do_rmall, "mkdir": ChirpFiles._do_mkdir, "rename": ChirpFiles._do_rename,
    "link": ChirpFiles._do_link, "symlink": ChirpFiles._do_symlink, "readlink": ChirpFiles._do_readlink,
    "getdir": ChirpFiles._do_getdir, "getlongdir": ChirpFiles._do_getlongdir, "stat": ChirpFiles._do_stat,
    "lstat": ChirpFiles._do_lstat, "statfs": ChirpFiles._do_statfs, "access": ChirpFiles._do_access,
    "chmod": ChirpFiles._do_chmod, "chown": ChirpFiles._do_chown, "lchown": ChirpFiles._do_lchown,
    "truncate": ChirpFiles._do_truncate, "utime": ChirpFiles._do_utime,
}
