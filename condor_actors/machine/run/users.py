"""Accounts: which account a job runs as, and acting for a moment with an account's rights.

Theory: what lies in a sandbox is the job's and may be a trap (a link to a file that only root may read), so a starter
with root's rights opens and lists files there *as the job's user*.  To the kernel the ids are each thread's own; only
the C library spreads a change to all threads.  The calls are made directly here, so that other threads keep their
rights.  Acting as a user must not span a return to the reactor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import attrs

from condor_actors import accounts
from condor_actors.machine.privilege.helper import process_helper
from condor_actors.numerals import numeral

KEEP = -1
NUMBERS = {"x86_64": (116, 117, 119), "aarch64": (159, 147, 149)}
SET_GROUPS, SET_USERS, SET_GROUP_IDS = NUMBERS.get(platform.machine(), (0, 0, 0))

__all__ = ["Account", "NoAccount", "account_of_uid", "acting_as", "may_change_user", "named_account", "open_as",
           "with_group"]


class NoAccount(LookupError):
    """There is no such user on this machine."""


@attrs.frozen
class Account:
    """A user of this machine; ``primary``: which of its groups its programs begin with (0: its own).

    ``is_owners``: a job has it as the account of its own owner, and not as one that a slot has for everybody's.
    """

    name: str
    uid: int
    gid: int
    home: str
    groups: tuple[int, ...] = ()
    primary: int = 0
    is_owners: bool = False


def named_account(name: str) -> Account:
    """The account ``name``.

    Raises:
        NoAccount: there is none.
        NotYet: the user database has not said so far.
    """
    found = accounts.named(name)
    if found is None:
        raise NoAccount(f"there is no user {name!r} on this machine")
    return Account(found.name, found.uid, found.gid, found.home, accounts.groups_of(found))


def with_group(account: Account, name: str) -> Account:
    """The account with a group of its own choice: a name, or a number.

    Raises:
        LookupError: it is in no such group.
        NotYet: the user database has not said so far.
    """
    number = numeral(name)
    gid = accounts.group_named(name) if number is None else number
    if not gid or (gid != account.gid and gid not in account.groups):
        raise LookupError(f"{account.name} is in no group {name[:80]!r} on this machine")
    return attrs.evolve(account, primary=gid)


def account_of_uid(uid: int) -> Account:
    """The account with this number; one without a name gets its number as its name."""
    found = accounts.numbered(uid)
    return named_account(found.name) if found is not None else Account(str(uid), uid, os.getgid(), "/")


def may_change_user() -> bool:
    """Whether jobs can run as another user: this process can become one, or its helper can."""
    return os.geteuid() == 0 or process_helper() is not None


def open_as(account: Account, path: str, flags: int, mode: int = 0) -> int:
    """Open a path with the rights of ``account``, without waiting for anyone; reading and writing wait as usual.

    Raises:
        OSError: with the file's name.
    """
    helper = process_helper()
    if helper is None:
        with acting_as(account):
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK, mode)
    else:
        descriptor = helper.open(account.uid, path, flags, mode=mode)
    os.set_blocking(descriptor, True)
    return descriptor


@contextlib.contextmanager
def acting_as(account: Account) -> Iterator[None]:
    """Use the rights of ``account`` within the block; nothing changes for a process that is not root."""
    if os.geteuid() != 0 or account.uid == 0:
        yield
        return
    back = _own_ids()
    try:
        _become(account.uid, account.gid, account.groups or (account.gid,))
        yield
    finally:
        _become(*back)


@lru_cache(maxsize=1)
def _own_ids() -> tuple[int, int, tuple[int, ...]]:
    """Root's user, group and groups, which stay this process's for its life."""
    return 0, os.getegid(), tuple(os.getgroups())


@lru_cache(maxsize=64)
def _steps(uid: int, gid: int, groups: tuple[int, ...]) -> tuple[tuple[Any, ...], ...]:
    """The calls in their order: groups and group while this is root still, or already again."""
    steps = ((SET_GROUPS, len(groups), (ctypes.c_uint * len(groups))(*groups)), (SET_GROUP_IDS, KEEP, gid, KEEP),
             (SET_USERS, KEEP, uid, KEEP))
    return steps if uid else steps[::-1]


def _become(uid: int, gid: int, groups: tuple[int, ...]) -> None:
    """Change the effective ids of this thread alone (of the process where the numbers of the calls are not known)."""
    if not SET_USERS:
        if uid:
            os.setgroups(groups)
            os.setegid(gid)
            os.seteuid(uid)
        else:
            os.seteuid(uid)
            os.setegid(gid)
            os.setgroups(groups)
        return
    for step in _steps(uid, gid, groups):
        if _syscall(*step) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot act as user {uid}: {os.strerror(number)}")


_syscall = ctypes.PyDLL(None, use_errno=True).syscall  # calls that never wait, so no other thread is let in
_syscall.restype = ctypes.c_long
