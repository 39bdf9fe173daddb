"""How what lies in the spool is reached: with one's own rights, or by orders to the helper that has root's.

Theory: a job's folder in the spool has two lives where root is dropped.  While its input arrives it is the pool's, and
nobody else enters it.  When the input is complete it is given to the job's owner: from then on the schedd, which is
another account, sees into it only by orders that are carried out as the owner.  Whose it is says the folder itself.

All of this may wait for a file system that a user has put there: it is called on workers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Protocol

from condor_actors.actors.workers import touching
from condor_actors.daemons.schedd.job_accounts import JobAccounts, User, user_ids
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.machine.run.users import Account, NoAccount, acting_as, named_account
from condor_actors.transfer.manifest import check_path

__all__ = ["JobFolder", "OrderedFolders", "OwnFolders", "SpoolFolders"]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
Found = tuple[str, int, int]
"""A file below a job's folder: its path, its size in bytes, its mode."""


class JobFolder(Protocol):
    """An open folder of a job."""

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of a plain file in it; no link is followed, no pipe waited for.

        Raises:
            OSError: there is none, or it is something else.
            BadManifest: the path leads elsewhere.
        """

    def files(self) -> list[Found]:
        """The plain files in it."""

    def close(self) -> None:
        """Let it go."""


class SpoolFolders(Protocol):
    """Makes, gives, opens and removes folders of the spool.  Each method raises OSError."""

    def make_kept(self, folder: Path, owner: str) -> None:
        """Make a folder that an owner's shadow host keeps things in, unless it is there."""

    def open_job(self, path: Path, owner: str) -> JobFolder:
        """Open the folder of a job; where there is none, make it."""

    def hand_over(self, path: Path, owner: str) -> None:
        """The input of a job is complete: its folder is its owner's from now on."""

    def remove(self, path: Path) -> None:
        """Remove a folder of the spool, whatever its owner."""

    def remove_kept(self, folder: Path, name: str) -> None:
        """Remove an entry of a folder that :meth:`make_kept` has made."""


def _plain(descriptor: int, path: str) -> int:
    """Of a file that has one name only: another may be anywhere, and the folder is the user's."""
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
        os.close(descriptor)
        raise OSError(errno.EPERM, "not a plain file with one name", path)
    return descriptor


# ---- with one's own rights


class _OwnFolder:
    """Each access has the rights of the account, which may be root's to take on."""

    def __init__(self, descriptor: int, account: Account | None) -> None:
        self._descriptor = descriptor
        self._account = account

    def _acting(self) -> contextlib.AbstractContextManager[None]:
        return acting_as(self._account) if self._account is not None else contextlib.nullcontext()

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """As the protocol says."""
        parts = check_path(path).split("/")
        with self._acting():
            directory = os.dup(self._descriptor)
            try:
                for part in parts[:-1]:
                    if flags & os.O_CREAT:
                        with contextlib.suppress(FileExistsError):
                            os.mkdir(part, 0o755, dir_fd=directory)
                    below = os.open(part, FOLDER, dir_fd=directory)
                    os.close(directory)
                    directory = below
                found = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=directory)
            finally:
                os.close(directory)
        return _plain(found, path)

    def files(self) -> list[Found]:
        """As the protocol says."""
        found = []
        with self._acting():
            for here, folders, names, directory in os.fwalk(".", dir_fd=self._descriptor):
                folders.sort()
                for name in sorted(names):
                    facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1:
                        found.append((os.path.normpath(os.path.join(here, name)), facts.st_size, facts.st_mode & 0o777))
        return found

    def close(self) -> None:
        """As the protocol says."""
        os.close(self._descriptor)


class OwnFolders:
    """For a schedd that is root, or whose pool is one user's."""

    def make_kept(self, folder: Path, owner: str) -> None:
        """As the protocol says."""
        user = user_ids(owner)
        folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0 and user is not None:
            self._give(folder, user)

    @staticmethod
    def _give(folder: Path, user: User) -> None:
        folder.chmod(0o700 if user.uid else 0o711)  # root's jobs are nobody's
        os.chown(folder, user.uid, user.gid)

    def open_job(self, path: Path, owner: str) -> JobFolder:
        """As the protocol says."""
        try:
            account = named_account(owner)
        except NoAccount as error:
            raise OSError(errno.ESRCH, str(error), owner) from None
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(0o700)
            user = user_ids(owner)
            if os.getuid() == 0 and user is not None:
                self._give(path, user)
        return _OwnFolder(os.open(path, FOLDER), account)

    def hand_over(self, path: Path, owner: str) -> None:
        """As the protocol says: it is his from the beginning."""
        self.open_job(path, owner).close()

    def remove(self, path: Path) -> None:
        """As the protocol says."""
        remove_tree(str(path))

    def remove_kept(self, folder: Path, name: str) -> None:
        """As the protocol says."""
        remove_tree(str(folder / name))


# ---- by orders


def _is_ours(folder: Path) -> bool:
    """Whether a folder is the pool's still; where its owner has mounted something, nobody else may look."""
    try:
        return folder.lstat().st_uid == os.getuid()
    except PermissionError:
        return False


class _OrderedFolder:
    """A folder that is its owner's: what is in it is looked at as the owner, and nothing is put there."""

    def __init__(self, accounts: JobAccounts, descriptor: int, uid: int, path: Path) -> None:
        self._helper = accounts.helper
        self._descriptor = descriptor
        self._uid = uid
        self._path = path

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        """As the protocol says."""
        if flags & os.O_CREAT:
            raise OSError(errno.EEXIST, "its input is complete, and the folder is its owner's", path)
        touching(str(self._path))
        return _plain(self._helper.open(self._uid, check_path(path), flags | os.O_NOFOLLOW, folder=self._descriptor,
                                        links=False), path)

    def files(self) -> list[Found]:
        """As the protocol says; one that not even its owner may read has no size."""
        found, waiting = [], [""]
        while waiting:
            here = waiting.pop()
            for name, is_folder in self._entries(here):
                path = f"{here}/{name}" if here else name
                touching(str(self._path))
                if is_folder:
                    waiting.append(path)
                    continue
                try:
                    descriptor = self.open(path, os.O_RDONLY)
                except PermissionError as error:
                    if error.errno == errno.EACCES:
                        found.append((path, 0, 0))
                    continue
                except FileNotFoundError:
                    continue
                facts = os.fstat(descriptor)
                os.close(descriptor)
                found.append((path, facts.st_size, facts.st_mode & 0o777))
        return sorted(found)

    def _entries(self, here: str) -> list[tuple[str, bool]]:
        """Files and folders of a folder below, and which they are."""
        opened = self._helper.open(self._uid, here or ".", FOLDER, folder=self._descriptor, links=False)
        try:
            with os.scandir(opened) as entries:
                return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries
                        if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)]
        finally:
            os.close(opened)

    def close(self) -> None:
        """As the protocol says."""
        os.close(self._descriptor)


class OrderedFolders:
    """For a schedd that has dropped root."""

    def __init__(self, accounts: JobAccounts) -> None:
        self._accounts = accounts

    def _user(self, owner: str) -> User:
        user = self._accounts.find(owner)
        if user is None:
            raise OSError(errno.ESRCH, f"there is no user {owner!r} on this machine", owner)
        return user

    def _give(self, folder: Path, user: User) -> None:
        opened = os.open(folder, FOLDER)
        try:
            os.fchmod(opened, 0o700)
            self._accounts.helper.give(user.uid, opened)
        finally:
            os.close(opened)

    def make_kept(self, folder: Path, owner: str) -> None:
        """As the protocol says."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
        if _is_ours(folder):
            self._give(folder, self._user(owner))

    def open_job(self, path: Path, owner: str) -> JobFolder:
        """As the protocol says."""
        touching(str(path))
        user = self._user(owner)
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(0o700)
        if not _is_ours(path):
            return _OrderedFolder(self._accounts, self._accounts.helper.open(user.uid, str(path), FOLDER), user.uid,
                                  path)
        opened = os.open(path, FOLDER)
        if os.fstat(opened).st_uid == os.getuid():
            return _OwnFolder(opened, None)
        os.close(opened)
        raise OSError(errno.EBUSY, "its folder is being given to its owner", str(path))

    def hand_over(self, path: Path, owner: str) -> None:
        """As the protocol says."""
        self.open_job(path, owner).close()
        if _is_ours(path):
            self._give(path, self._user(owner))

    def remove(self, path: Path) -> None:
        """As the protocol says."""
        touching(str(path))
        try:
            uid = path.lstat().st_uid
        except FileNotFoundError:
            return
        if uid != os.getuid():
            opened = self._accounts.helper.open(uid, str(path), FOLDER)
            try:
                self._accounts.helper.remove(uid, opened)
            finally:
                os.close(opened)
        remove_tree(str(path))

    def remove_kept(self, folder: Path, name: str) -> None:
        """As the protocol says."""
        touching(str(folder))
        try:
            uid = folder.lstat().st_uid
        except FileNotFoundError:
            return
        opened = self._accounts.helper.open(uid, str(folder), FOLDER)
        try:
            self._accounts.helper.remove(uid, opened, name)
        finally:
            os.close(opened)
