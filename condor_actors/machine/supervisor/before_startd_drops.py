"""What a startd does as root before it becomes the pool's account, and what it leaves to its helper.

Theory: a startd runs nobody's programs; it starts the starter host, which does.  Of root's rights it needs three things
later: a starter host that begins as root, the end of one that has not got rid of that yet, and to be told when a user
uses a terminal or an input device.  The helper's list names that one program and those devices.
"""

from __future__ import annotations

from condor_actors.config import Config
from condor_actors.machine.containers.probe import containers_work
from condor_actors.machine.privilege.ownership import make_own
from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.run.confinement import confinement_here
from condor_actors.machine.supervisor.starter_process import PORT, PROGRAM, starter_command

__all__ = ["before_startd_drops"]

DEVICES = (("/dev/pts/", "reads"), ("/dev/tty", "reads"), ("/dev/input/event", "events"))
"""Each with a number behind it: what counts as its use."""


def before_startd_drops(config: Config, account: PoolAccount) -> list[str]:
    """Prepare the machine as root; the policy of the helper.

    Raises:
        OSError: EXECUTE cannot be made.
    """
    make_own(config.path("EXECUTE"), account)
    confinement_here(())  # what works here is found out now
    containers_work()
    policy = ["--orders", "program,signal,watch"]
    policy += ["--program", PROGRAM, "root", PORT, *starter_command(config.path("RUN")), ";"]
    for start, way in DEVICES:
        policy += ["--device", start, way]
    return policy
