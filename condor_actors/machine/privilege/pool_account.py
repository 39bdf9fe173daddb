"""The pool's account: as whom daemons run that root has started.

It is that of CONDOR_IDS, else the user ``condor``.  It owns the pool's own files and keys, is nobody's login, and no
job ever runs as it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import attrs

from condor_actors import accounts
from condor_actors.config import Config

__all__ = ["PoolAccount", "out_of_reach", "pool_account", "pool_uid"]

DEFAULT_NAME = "condor"


@attrs.frozen
class PoolAccount:
    """An account by its numbers, and where its home is; it needs no name."""

    uid: int
    gid: int
    name: str
    home: str = "/"


def pool_account(config: Config) -> PoolAccount | None:
    """The account of CONDOR_IDS, else ``condor``; None: this machine has neither.

    Raises:
        ConfigError: CONDOR_IDS is no uid.gid, or root's.
    """
    ids = (config.text("CONDOR_IDS") or "").strip()
    if not ids:
        found = accounts.named(DEFAULT_NAME)
        return PoolAccount(found.uid, found.gid, found.name, found.home) if found is not None else None
    match = re.fullmatch(r"(\d+)\.(\d+)", ids)
    if match is None or "0" in (match[1].lstrip("0") or "0", match[2].lstrip("0") or "0"):
        raise config.unusable("CONDOR_IDS", f"CONDOR_IDS = {ids} names no account that daemons could have",
                              "uid.gid, neither of them root's")
    uid, gid = int(match[1]), int(match[2])
    known = accounts.numbered(uid)
    if known is None:
        return PoolAccount(uid, gid, f"uid {uid}")
    return PoolAccount(uid, gid, known.name, known.home)


def pool_uid(config: Config) -> int:
    """Whose processes the pool's daemons are on this machine: this process's user, or where that is root the pool's
    account."""
    try:
        account = pool_account(config) if os.geteuid() == 0 else None
    except accounts.NotYet:  # this process's own user has no fewer rights
        account = None
    return account.uid if account is not None else os.geteuid()


def out_of_reach(account: PoolAccount, folders: Iterable[Path]) -> str:
    """The first folder that keeps the account from one of ``folders`` or from this software; empty: none does."""
    software = (Path(sys.executable).resolve().parent, Path(os.__file__).resolve().parent,
                Path(__file__).resolve().parents[2])
    for folder in (*folders, *software):
        for above in reversed((folder, *folder.parents)):
            try:
                facts = above.stat()
            except FileNotFoundError:
                break
            bit = 0o100 if facts.st_uid == account.uid else 0o010 if facts.st_gid == account.gid else 0o001
            if not facts.st_mode & bit:
                return str(above)
    return ""
