"""The end of root in a daemon: from the drop on, nothing in its process gets those rights again.

Theory: a daemon that root starts reads its configuration, hands the pool's folders over and becomes the pool's account:
all four user ids, all groups, no capability, no way to new privileges, no dump of its memory.  Where that cannot be, it
says why in its log and stays what it is: no account to become, or software and folders that the account cannot reach.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence

from condor_actors.config import Config
from condor_actors.machine.privilege.helper import start_helper
from condor_actors.machine.privilege.ownership import give_to_pool, pool_folders
from condor_actors.machine.privilege.pool_account import PoolAccount, out_of_reach, pool_account
from condor_actors.machine.supervisor import fork_server

__all__ = ["drop_root"]

PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 4, 38


def drop_root(config: Config, prepare: Callable[[PoolAccount], Sequence[str]] | None = None) -> str:
    """Become the pool's account; nothing to do for a process that is not root.

    Args:
        config: of the daemon.
        prepare: does what only root can do beforehand, and returns the policy of the helper that stays root; None:
            there is nothing to do, and no helper.

    Returns:
        What became of it in a sentence, a warning when root is kept; empty: this was not root.

    Raises:
        ConfigError: CONDOR_IDS names no account.
        OSError: the kernel refuses; the process must not go on.
    """
    if os.geteuid() != 0:
        return ""
    account = pool_account(config)
    if account is None:
        return "WARNING: it stays root: there is no user condor, and CONDOR_IDS names no other account"
    blocked = out_of_reach(account, pool_folders(config))
    if blocked:
        return f"WARNING: it stays root: the pool's account, {account.name}, has no search permission on {blocked}"
    given = give_to_pool(config, account)
    fork_server.end()  # it is root
    if prepare is not None:
        start_helper(["--pool", str(account.uid), str(account.gid), *prepare(account)])
    become(account)
    took = f"; {given} files and folders of root's are its own now" if given else ""
    return f"root is dropped for good: this is {account.name} (uid {account.uid}, gid {account.gid}){took}"


def become(account: PoolAccount) -> None:
    """Take the account on for good.

    Raises:
        OSError: something of root is left.
    """
    os.setgroups([account.gid])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_NO_NEW_PRIVS, 1), (PR_SET_DUMPABLE, 0)):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({option}) is refused")
    if os.getresuid() != (account.uid,) * 3 or os.getresgid() != (account.gid,) * 3:
        raise PermissionError("root's identity is still there")
    try:
        os.setuid(0)
    except PermissionError:
        os.environ.update({"HOME": account.home, "USER": account.name, "LOGNAME": account.name})
        return
    raise PermissionError("the way back to root is open")
