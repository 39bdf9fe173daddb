"""Whose the pool's folders are: the one place where that is decided.

Theory: what the daemons themselves write (logs, sockets, databases, keys) is the pool's account's.  A daemon that
begins as root gives these folders away before it drops root, and with them what an earlier version, which stayed root,
has left there.  Only what is root's changes its owner, by a descriptor and without following links: users' own folders
in the spool stay theirs, and a file with a second name stays root's, since that name may be anywhere.  Daemons begin as
root again and again, and the account may own folders above these: a way to one of them over a link that anybody but
root could have laid is refused.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from condor_actors.config import Config
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.own_files import open_guarded

__all__ = ["TOO_WIDE", "give_files", "give_to_pool", "make_own", "pool_folders"]

FOLDERS = ("LOG", "RUN", "SPOOL", "EXECUTE", "PERSISTENT_CONFIG_DIR")
KEYS = ("POOL_CA", "POOL_CA_KEY", "HOST_CERTIFICATE", "HOST_KEY", "POOL_TOKENS", "SEC_TOKEN_POOL_SIGNING_KEY_FILE",
        "CREDD_KEY_FILE")
TOO_WIDE = frozenset(map(Path, ("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run",
                                "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/log", "/var/run",
                                "/var/spool", "/var/tmp")))
"""Never given away, nor kept from jobs, whatever the configuration says."""


def pool_folders(config: Config) -> tuple[Path, ...]:
    """The folders whose owner the pool's account is, each absolute and only once; those of keys last."""
    found = [Path(text) for name in FOLDERS if (text := config.text(name))]
    found += [path.parent for name in KEYS if (path := _key(config, name)) is not None]
    return tuple(dict.fromkeys(folder for folder in found if folder.is_absolute() and folder not in TOO_WIDE))


def _key(config: Config, name: str) -> Path | None:
    text = config.text(name)
    return Path(text) if text else None


def give_to_pool(config: Config, account: PoolAccount) -> int:
    """Make the folders of the daemons, as root, and give what is root's in them to the pool's account; how much it was.

    Raises:
        OSError: a folder cannot be made or given.
    """
    for name in ("LOG", "RUN", "SPOOL"):
        os.close(open_guarded(config.path(name), make=True))
    return sum(_give(folder, account) for folder in pool_folders(config))


def make_own(folder: Path, account: PoolAccount) -> str:
    """Make a folder of the pool's account as root, with those above it, which stay root's; returns its real path.

    Raises:
        OSError: it cannot be made, or is another account's.
    """
    opened = open_guarded(folder, make=True)
    try:
        owner = os.fstat(opened).st_uid
        if owner == 0 and folder not in TOO_WIDE:
            os.fchown(opened, account.uid, account.gid)
        return os.readlink(f"/proc/self/fd/{opened}")
    finally:
        os.close(opened)


def _give(folder: Path, account: PoolAccount) -> int:
    """Give a folder and all in it that is root's; how much that was."""
    try:
        opened = open_guarded(folder)
    except (FileNotFoundError, NotADirectoryError):
        return 0
    try:
        given = _give_inside(opened, account)
        if os.fstat(opened).st_uid == 0:
            os.fchown(opened, account.uid, account.gid)
            given += 1
        return given
    finally:
        os.close(opened)


def _give_inside(folder: int, account: PoolAccount) -> int:
    given = 0
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            given += _give_one(folder, name, account)
    return given


def _mount_of(opened: int) -> str:
    """Which mount something open lies on; device numbers do not tell (files of an overlay may have others)."""
    with open(f"/proc/self/fdinfo/{opened}") as lines:
        return next(line for line in lines if line.startswith("mnt_id:"))


def _give_one(folder: int, name: str, account: PoolAccount) -> int:
    given = 0
    thing = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        facts = os.fstat(thing)
        directory = stat.S_ISDIR(facts.st_mode)
        if _mount_of(thing) != _mount_of(folder):
            return 0
        if directory:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                if os.path.samestat(os.fstat(below), facts):
                    given = _give_inside(below, account)
            finally:
                os.close(below)
        if facts.st_uid == 0 and (directory or facts.st_nlink == 1):
            os.chown(f"/proc/self/fd/{thing}", account.uid, account.gid)
            given += 1
        return given
    finally:
        os.close(thing)


def give_files(paths: Iterable[Path], account: PoolAccount) -> None:
    """Give single files or folders that a tool of root's has just made."""
    for path in paths:
        if path.exists():
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
