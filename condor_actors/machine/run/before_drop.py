"""What a starter host does as root before it becomes the pool's account, and what it leaves to its helper.

Theory: whatever the machine has to be asked as root is asked now: which namespaces jobs can have, where sandboxes are,
which control groups are ours.  The groups are left to the pool's account as cgroups(7) delegates them.  The policy of
the helper names the accounts of slots; people's accounts are in it only where jobs may run as their owners.
"""

from __future__ import annotations

import os
import re
import stat

from condor_actors.config import Config
from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.privilege.ownership import make_own
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.run.cgroups import Cgroups
from condor_actors.machine.run.run_host import RunHost
from condor_actors.machine.run.sandbox_root import SandboxRoot, places_of_sandboxes
from condor_actors.machine.run.users import Account, NoAccount, named_account

__all__ = ["BeforeDrop", "group_base"]

MOST_UID = 4_294_967_293
SLOT_USER = re.compile(r"(.*\.)?SLOT[0-9_]+_USER", re.IGNORECASE)


def group_base(config: Config, sandboxes: str) -> str:
    """Each EXECUTE has groups of its own, so that several startds of a machine do not meet."""
    return f"{config.needed_text('BASE_CGROUP')}/{sandboxes.strip('/').replace('/', '_')}"


class BeforeDrop:
    """Call it as root, once.

    Attributes:
        host: what the starter host asks from then on; None: root was not there, or is kept.
    """

    def __init__(self) -> None:
        self.host: RunHost | None = None

    def __call__(self, config: Config, account: PoolAccount) -> list[str]:
        """Prepare the machine; the policy of the helper.

        Raises:
            OSError: something cannot be made or given.
        """
        execute = make_own(config.path("EXECUTE"), account)
        jobs = job_accounts(config, account)
        root = SandboxRoot(execute, jobs[0], account)
        host = self.host = RunHost(root)
        _ = host.standard_isolation, host.mount_isolation, host.confinement(())
        groups = Cgroups.find(group_base(config, root.path)) if config.boolean("USE_CGROUPS") else None
        if groups is None:
            host.kill_marked(f"{root.path}:")
        else:
            groups.give(account.uid, account.gid)
        policy = ["--orders", "start,open,signal,give,take,remove,measure", "--launcher", _launcher(config)]
        for parent in groups.parents.values() if groups is not None else ():
            policy += ["--group", parent]
        for place in (execute, places_of_sandboxes(execute)[1]):
            policy += ["--folder", place]
        for job in jobs:
            policy += ["--account", str(job.uid), str(job.gid)]
        if config.boolean("STARTER_ALLOW_RUNAS_OWNER"):
            policy += ["--users", str(config.integer("MIN_USER_UID")), str(MOST_UID)]
        return policy


def _launcher(config: Config) -> str:
    """The installed launcher, or JOB_LAUNCHER, which nobody but root may change.

    Raises:
        PermissionError: another user could.
    """
    path = os.path.realpath(config.text("JOB_LAUNCHER") or launcher_path())
    facts = os.stat(path)
    if facts.st_uid != 0 or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{path} can be changed by others than root")
    return path


def job_accounts(config: Config, pool: PoolAccount) -> list[Account]:
    """The accounts of jobs that the configuration names, that of NOBODY_USER first.

    Raises:
        PermissionError: one of them is root's or the pool's own.
        OSError: there is no such account.
    """
    texts = [config.needed_text("NOBODY_USER")]
    texts += [text for name in config.names_like("SLOT") if SLOT_USER.fullmatch(name) and (text := config.text(name))]
    found = []
    for name in dict.fromkeys(texts):
        try:
            account = named_account(name)
        except NoAccount as error:
            raise OSError(str(error)) from None
        if account.uid in (0, pool.uid):
            raise PermissionError(f"jobs cannot run as {name}, which is root or the pool's own account")
        found.append(account)
    return found
