"""How a shadow host becomes its owner's process, for good."""

from __future__ import annotations

import errno
import os

import attrs

from condor_actors import accounts
from condor_actors.machine.privilege.secret_memory import keep_private

__all__ = ["become_user", "home_environment"]


def home_environment() -> dict[str, str]:
    """What a program of the user's finds in its environment here."""
    names = ("HOME", "LOGNAME", "USER", "PATH", "SHELL", "LANG", "CONDOR_CONFIG", "TZ")
    return {name: os.environ[name] for name in names if name in os.environ}


def become_user(name: str, uid: int, gid: int) -> None:
    """Make this process the user's for good; nothing to do when it is already.

    Raises:
        OSError: this process may not, or there is no such user.
        NotYet: the user database has not said so far what groups the user is in.
    """
    if os.getuid() == uid and os.geteuid() == uid:
        return
    entry = accounts.numbered(uid)
    if entry is None:
        raise OSError(errno.ESRCH, f"there is no user {uid} on this machine")
    groups, home = accounts.groups_of(attrs.evolve(entry, name=name, gid=gid)), entry.home
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    keep_private()  # the user's other processes are kept away, whatever fs.suid_dumpable says
    os.umask(0o022)
    os.environ.update({"USER": name, "LOGNAME": name, "HOME": home})
