"""What a schedd that becomes the pool's account leaves to its helper.

Theory: the helper starts one program, the shadow host, as people's accounts (or for root's jobs as nobody), opens files
as these accounts, gives them folders below SPOOL and removes what they have there, and ends their processes.
"""

from __future__ import annotations

import os
import sys

from condor_actors.config import Config
from condor_actors.daemons.schedd.job_accounts import nobody_of
from condor_actors.daemons.schedd.shadow_processes import HOST_ID_VARIABLE, HOST_PROGRAM, HOST_WORDS
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.run.before_drop import MOST_UID

__all__ = ["before_drop"]


def before_drop(config: Config, account: PoolAccount) -> list[str]:
    """The policy of the helper."""
    nobody = nobody_of(config, account.uid)
    policy = ["--orders", "open,signal,give,remove,program", "--folder", os.path.realpath(config.path("SPOOL")),
              "--users", str(config.integer("MIN_USER_UID")), str(MOST_UID)]
    if nobody is not None:
        policy += ["--account", str(nobody.uid), str(nobody.gid)]
    host = [sys.executable, "-P", *HOST_WORDS, str(config.path("RUN") / "schedd.sock"), "--as-owner"]
    return [*policy, "--program", HOST_PROGRAM, "account", HOST_ID_VARIABLE, *host, ";"]
