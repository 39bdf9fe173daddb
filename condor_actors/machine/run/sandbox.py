"""The scratch directory of a run: made, filled, looked at, and removed without a trace.

Theory: a sandbox is ``dir_<pid>_<n>`` below EXECUTE (pid: the starter host's), mode 700, the job's user's.  What was
there before the job is remembered by name, time and size, so that "everything new or changed" is one listing.  All that
is done in it after the job began is done with the job's rights (:mod:`users`).

Where root's rights are a helper's, a sandbox is the pool's own until the job begins and again when its last process has
ended: in between it is lent to the job's account, and looked into by orders to the helper.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence

from condor_actors.machine.privilege.helper import RootHelper, process_helper
from condor_actors.machine.run.confinement import reachable
from condor_actors.machine.run.disk_use import deleted_kib, tree_kib
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.machine.run.users import Account, acting_as, open_as
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.beneath import NO_LINKS, LeadsOut, open_beneath
from condor_actors.transfer.blob_store import BlobStore
from condor_actors.transfer.layout import lay_out
from condor_actors.transfer.manifest import INLINE_LIMIT_BYTES, ManifestBuilder, check_path

__all__ = ["PLUGIN_FILES", "UNPACKED", "WRAPPER_FAILURE", "Sandbox", "remove_leftover"]

PRIVATE = ".condor_private"
UNPACKED = ".condor_image"
"""Where an image is unpacked by the job's account, in a sandbox that is not lent to it yet."""
WRAPPER_FAILURE = ".job_wrapper_failure"
"""Where a wrapper (USER_JOB_WRAPPER) writes why it has not started the job."""
PLUGIN_FILES = (".condor_plugin.in", ".condor_plugin.out", ".condor_plugin.said")
"""What a transfer plugin reads, its results, and its standard output and error."""
OWN_FILES = frozenset({
    ".job.ad", ".machine.ad", "_condor_stdin", "condor_exec.exe", ".condor_creds", "_condor_stdout", "_condor_stderr",
    ".docker_sock", ".condor_shell", ".chirp.config", ".starter.log", WRAPPER_FAILURE, *PLUGIN_FILES,
})
STREAM_FILES = ("_condor_stdout", "_condor_stderr")


class Sandbox:
    """One scratch directory.

    Attributes:
        path: absolute.
        account: whose it is; None: this process's user.
        lent: the account has it now, and this process can look into it by its helper only.
    """

    def __init__(self, path: str, account: Account | None) -> None:
        self.path = path
        self.account = account
        self.lent = False
        self._before: dict[str, tuple[int, int]] = {}
        self._places: dict[str, str] = {}
        self._places_made = False

    def _me(self) -> Account:
        return self.account or Account("", os.geteuid(), os.getegid(), "/")

    def fill(self, entries: Sequence[FileEntry], store: BlobStore | None, job_ad: bytes, machine_ad: bytes) -> None:
        """Lay the inputs out and write the two ads.

        Raises:
            BadManifest, BlobError, OSError: see ``lay_out``.
        """
        if store is None or all(entry.inline is not None or entry.kind != "file" for entry in entries):
            with acting_as(self._me()):
                lay_out(entries, self.path, store)
                self._write_ads(job_ad, machine_ad)
        else:
            self._shut()
            lay_out(entries, self.path, store)
            self._give(entries)
            with acting_as(self._me()):
                self._write_ads(job_ad, machine_ad)

    def _shut(self) -> None:
        """Nobody gets in while root names files here: another process of the account could put links in their way.

        Raises:
            OSError: someone was quicker.
        """
        if self.account is not None and os.geteuid() == 0:
            os.chown(self.path, 0, -1)
            os.chmod(self.path, 0o700)
            if os.listdir(self.path):
                raise OSError(errno.ENOTEMPTY, "another user's files are in it", self.path)

    @property
    def lends_at_once(self) -> bool:
        """Whether no other process has to be asked to :meth:`lend` it."""
        return process_helper() is None

    def lend(self) -> None:
        """The job begins: where this process is the pool's account, its folder becomes the job's.

        Raises:
            OSError: the helper refuses.
        """
        helper = process_helper()
        if helper is not None and self.account is not None and not self.lent:
            with opened_folder(self.path) as folder:
                self.lent = True
                helper.give(self.account.uid, folder)

    def show(self) -> None:
        """Let the job's account pass through to what it is to execute, where the folder stays this process's.

        Raises:
            OSError: its mode cannot be changed.
        """
        if process_helper() is not None:
            os.chmod(self.path, 0o711)

    def take_back(self) -> None:
        """No process of the job is left: what it has written becomes the pool's again.

        A file that cannot be taken is missed when it is looked at.

        Raises:
            OSError: the helper cannot take it.
        """
        helper = process_helper()
        if helper is not None and self.account is not None and self.lent:
            with opened_folder(self.path) as folder:
                try:
                    helper.take(self.account.uid, folder)
                except OSError:
                    if os.fstat(folder).st_uid != os.geteuid():
                        raise
                self.lent = False

    def _write_ads(self, job_ad: bytes, machine_ad: bytes) -> None:
        for name, data in ((".job.ad", job_ad), (".machine.ad", machine_ad)):
            descriptor = os.open(f"{self.path}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with open(descriptor, "wb") as file:  # a file writes all of it, or fails
                file.write(data)

    def leave_secret(self, name: str, data: bytes) -> None:
        """Put a file there that the job alone can read, before the folder is the job's.

        Raises:
            OSError: no space, or a folder of that name came with the inputs.
        """
        self._leave(name, data, 0o400)

    def leave_log(self, name: str, data: bytes) -> None:
        """Put a file there when the job is over, in the place of whatever it has put there; a folder stays."""
        with contextlib.suppress(OSError):
            self._leave(name, data, 0o644)

    def _leave(self, name: str, data: bytes, mode: int) -> None:
        path = f"{self.path}/{name}"
        with acting_as(self._me()):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with open(descriptor, "wb") as file:
                file.write(data)

    def private(self, folders: Iterable[str], needed: Collection[str]) -> tuple[tuple[str, str], ...]:
        """Make folders of the run's own that are to take the place of the machine's.

        Args:
            folders: those of the machine; what is none, or would hide something ``needed``, is left out.
            needed: paths that the run must see as they are.

        Returns:
            (its own folder, the machine's).

        Raises:
            OSError: one cannot be made.
        """
        if self._places_made:  # by now the job may have put links in their places
            return tuple((own, target) for target, own in self._places.items())
        self._places_made = True
        binds, targets = {}, reachable(list(folders), needed)
        with acting_as(self._me()):
            for target in targets:
                own = f"{self.path}/{PRIVATE}_{target.strip('/').replace('/', '_')}"
                os.mkdir(own)  # never one that came with the input files: a link would lead elsewhere
                os.chmod(own, 0o1777)
                binds[target] = own
        self._places = binds
        return tuple((own, target) for target, own in binds.items())

    def _give(self, entries: Sequence[FileEntry]) -> None:
        if self.account is None or os.geteuid() != 0:
            return
        for entry in entries:
            if not entry.url:
                target = os.path.join(self.path, entry.path)
                while len(target) > len(self.path):
                    os.chown(target, self.account.uid, self.account.gid, follow_symlinks=False)
                    target = os.path.dirname(target)
        os.chown(self.path, self.account.uid, self.account.gid)

    def remember(self, but: Collection[str] = ()) -> None:
        """Note what is there before the job begins, ``but`` what an earlier run has made: that is the job's own
        work."""
        self._before = {name: facts for name, facts in self._listing(self.path) if name not in but}

    def _listing(self, folder: str) -> list[tuple[str, tuple[int, int]]]:
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                facts = entry.stat(follow_symlinks=False)
                size = -1 if stat.S_ISDIR(facts.st_mode) else facts.st_size
                found.append((entry.name, (facts.st_mtime_ns, size)))
        return found

    def rights(self) -> contextlib.AbstractContextManager[None]:
        """The job's rights, for a moment."""
        return acting_as(self._me())

    def open_output(self, path: str, go_on: bool = False) -> int:
        """Open a file the program writes to, made or emptied, or with ``go_on`` as it is; relative paths are in the
        sandbox.  A pipe must have its reader.

        Raises:
            OSError: with the file's name.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if go_on else os.O_TRUNC)
        return open_as(self._me(), os.path.join(self.path, path), flags, 0o644)

    def make_file(self, path: str, mode: int) -> int:
        """Open a fresh file in a sandbox that the job has not seen yet.

        Raises:
            OSError: with the file's name.
        """
        with acting_as(self._me()):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(os.path.join(self.path, path), flags, 0o600)
            with contextlib.suppress(PermissionError):
                os.fchmod(descriptor, mode)
            return descriptor

    def clear_files(self, names: Iterable[str]) -> None:
        """Remove files at the top that are there no longer for the job to see.

        Raises:
            OSError: one is a folder now, or cannot be removed.
        """
        with acting_as(self._me()):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.path}/{name}")

    def first_other(self, promised: Iterable[tuple[str, str]]) -> str:
        """The first of these files that is not what its digest says; empty: none.

        Args:
            promised: (path, SHA-256) of each.

        Raises:
            OSError: one cannot be read.
        """
        for path, digest in promised:
            with open(self.open_own(os.path.join(self.path, path)), "rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != digest:
                    return path
        return ""

    def open_input(self, path: str) -> int:
        """Open a file the program reads.

        Raises:
            OSError: with the file's name.
        """
        return open_as(self._me(), os.path.join(self.path, path), os.O_RDONLY)

    def gather(self, named: Sequence[str] | None, streamed: Iterable[str] = (), *, complete: bool = True,
               inline_limit_bytes: int | None = None, light: bool = False,
               keeps_paths: bool = False, besides: Collection[str] = ()) -> ManifestBuilder:
        """What goes home: named files, or everything at the top that is new or changed; and the program's output.

        Args:
            named: TransferOutput; None: everything new or changed (directories only when they are named).
            streamed: standard files that went home already.
            complete: named files that are not there are ``missing`` in what is returned.
            inline_limit_bytes: files over this do not ride inline.
            light: raise ``HeavyManifest`` when there is much to read.
            keeps_paths: named files keep the folders of their names.
            besides: names at the top that go home too, if they are there.

        Raises:
            OSError: something cannot be read.
        """
        limit = INLINE_LIMIT_BYTES if inline_limit_bytes is None else inline_limit_bytes
        builder = ManifestBuilder(inline_limit_bytes=limit, light=light, opener=self._open)
        skip, come = set(streamed), {os.path.normpath(name) for name in named or ()}
        with acting_as(self._me()):
            for name in STREAM_FILES:
                if name not in skip and self._is_file(name):
                    builder.add(f"{self.path}/{name}", name)
            if named is None:
                for name, facts in sorted(self._listing(self.path)):
                    if name not in OWN_FILES and facts[1] >= 0 and self._before.get(name) != facts:
                        self._add(builder, name)
                        come.add(name)
            else:
                missing = tuple(name for name in named if not self._add_named(builder, name, keeps_paths))
                builder.missing = missing if complete else ()
            for name in besides:
                with contextlib.suppress(LeadsOut):
                    if name not in come:
                        self._add_named(builder, name, keeps_paths=False)
        return builder

    def _is_file(self, name: str) -> bool:
        try:
            return stat.S_ISREG(os.lstat(f"{self.path}/{name}").st_mode)
        except FileNotFoundError:
            return False

    def _add(self, builder: ManifestBuilder, name: str) -> None:
        """Add a file at the top; a link that leads out, and what is no file, are left."""
        try:
            descriptor = self._open(f"{self.path}/{name}")
        except (FileNotFoundError, LeadsOut):
            return
        kind = os.fstat(descriptor).st_mode
        os.close(descriptor)
        if stat.S_ISREG(kind):
            builder.add(f"{self.path}/{name}", name)

    def _add_named(self, builder: ManifestBuilder, name: str, keeps_paths: bool) -> bool:
        source = self._place(name)
        try:
            os.close(self._open(source))
        except (FileNotFoundError, NotADirectoryError):
            return False
        if keeps_paths and not name.startswith("/"):
            builder.add(source, check_path(os.path.normpath(name)))
        elif name.endswith("/"):
            builder.add_tree(source)
        else:
            builder.add(source, check_path(os.path.basename(name)))
        return True

    def _place(self, name: str) -> str:
        """Where a file is that the job knows by this name: some of its folders are only its own."""
        path = os.path.join(self.path, name)
        for target, own in self._places.items():
            if f"{path}/".startswith(f"{target}/"):
                return own + path[len(target):]
        return path

    def _open(self, path: str) -> int:
        """Open what is in the sandbox, and nothing else, for reading, with the rights that are in force.

        Raises:
            LeadsOut: it is not in there, or leads out.
            OSError: see ``open_beneath``.
        """
        helper = process_helper() if self.lent else None
        with opened_folder(self.path) as folder:
            if helper is not None and self.account is not None:
                return self._open_lent(helper, self.account.uid, folder, self._below(path))
            try:
                return open_beneath(folder, self._below(path))
            except LeadsOut:  # an absolute link may lead back
                return open_beneath(folder, self._below(os.path.realpath(path)), NO_LINKS)

    @staticmethod
    def _open_lent(helper: RootHelper, uid: int, folder: int, path: str) -> int:
        try:
            return helper.open(uid, path, os.O_RDONLY, folder=folder)
        except OSError as error:
            if error.errno in (errno.EXDEV, errno.ELOOP):
                raise LeadsOut(error.errno, "it leads out of its directory", path) from None
            raise

    def _below(self, path: str) -> str:
        if path.rstrip("/") == self.path:
            return "."
        if not path.startswith(f"{self.path}/"):
            raise LeadsOut(errno.EXDEV, "it is not in the job's scratch directory", path)
        return path[len(self.path) + 1:]

    def open_own(self, path: str) -> int:
        """Open a file that was gathered, with the job's rights; by now it may be another one.

        Raises:
            OSError: it is gone, or leads out.
        """
        with acting_as(self._me()):
            return self._open(path)

    def size_kib(self, pids: Collection[int] = ()) -> int:
        """Disk space in use, following nothing: of what is there, and of what ``pids`` have deleted and keep open."""
        helper = process_helper() if self.lent else None
        if helper is not None and self.account is not None:
            with opened_folder(self.path) as folder:
                return helper.measure(self.account.uid, folder, pids)
        deleted = deleted_kib(pids, self.path, self._me().uid) if pids else 0
        with acting_as(self._me()):
            there, closed = tree_kib(self.path)
        if closed and self.account is not None and os.geteuid() == 0:  # its account has closed them to itself
            there = max(there, tree_kib(self.path)[0])
        return deleted + there

    def read(self, path: str, offset: int, max_bytes: int) -> tuple[int, bytes, int]:
        """(offset, bytes, size) of a file in the sandbox; ``offset`` -1: its end.

        Raises:
            ValueError: the path leads out.
            OSError: it cannot be read.
        """
        with acting_as(self._me()):
            try:
                descriptor = self._open(self._place(path))
            except LeadsOut:
                raise ValueError(f"{path} is not in the job's scratch directory") from None
            try:
                facts = os.fstat(descriptor)
                if not stat.S_ISREG(facts.st_mode):
                    raise ValueError(f"{path} is not a plain file")
                start = max(0, facts.st_size - max_bytes) if offset < 0 else offset
                return start, os.pread(descriptor, max_bytes, start), facts.st_size
            finally:
                os.close(descriptor)

    def remove(self) -> bool:
        """Remove everything; False when something resists."""
        helper = process_helper() if self.lent else None
        if helper is not None and self.account is not None:
            with contextlib.suppress(OSError), opened_folder(self.path) as folder:
                helper.remove(self.account.uid, folder)
        _remove_unpacked(self.path)
        return remove_tree(self.path)


def remove_leftover(path: str) -> bool:
    """Remove a sandbox that an earlier process has left, whosever it is now; whether it is gone."""
    helper = process_helper()
    if helper is not None:
        with contextlib.suppress(OSError), opened_folder(path) as folder:
            owner = os.fstat(folder).st_uid
            if owner != os.geteuid():
                helper.remove(owner, folder)
    _remove_unpacked(path)
    return remove_tree(path)


def _remove_unpacked(path: str) -> None:
    """Remove what accounts have unpacked in a sandbox that is the pool's, and had no time to hand over."""
    helper = process_helper()
    if helper is None:
        return
    with contextlib.suppress(OSError), opened_folder(os.path.join(path, UNPACKED)) as folder:
        found = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            owners = {entry.stat(follow_symlinks=False).st_uid for entry in os.scandir(found)}
            for owner in owners - {os.geteuid()}:
                helper.remove(owner, found)
        finally:
            os.close(found)


@contextlib.contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """A folder as a place, with any permissions; no link.

    Raises:
        OSError: it is not there.
    """
    folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)
