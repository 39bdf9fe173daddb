"""Accounts: whom a job runs as, and acting for a moment with somebody's rights.

Theory: what lies in a sandbox is the job's and may be a trap (a link to a file that only root may read), so a starter
with root's rights opens, lists and removes files there *as the job's user*.  The effective ids belong to the whole
process; acting as a user must not span a return to the reactor.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Iterator
from functools import lru_cache

import attrs

__all__ = ["Account", "NoAccount", "account_of_uid", "acting_as", "may_change_user", "named_account"]


class NoAccount(LookupError):
    """There is no such user on this machine."""


@attrs.frozen
class Account:
    """A user of this machine."""

    name: str
    uid: int
    gid: int
    home: str
    groups: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def named_account(name: str) -> Account:
    """The account ``name``.

    Raises:
        NoAccount: there is none.
    """
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise NoAccount(f"there is no user {name!r} on this machine") from None
    groups = tuple(sorted(os.getgrouplist(name, found.pw_gid)))
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir, groups)


def account_of_uid(uid: int) -> Account:
    """The account with this number; one without a name gets its number as its name."""
    try:
        return named_account(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return Account(str(uid), uid, os.getgid(), "/")


def may_change_user() -> bool:
    """Whether this process can become somebody else."""
    return os.geteuid() == 0


@contextlib.contextmanager
def acting_as(account: Account) -> Iterator[None]:
    """Use the rights of ``account`` within the block; nothing changes for a process that is not root."""
    if os.geteuid() != 0 or account.uid == 0:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    os.setgroups(account.groups or (account.gid,))
    os.setegid(account.gid)
    os.seteuid(account.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)
