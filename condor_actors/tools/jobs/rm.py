"""condor_rm: remove jobs from the queue."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_rm``."""
    return run("condor_rm", JobAction.REMOVE, (Flag("forcex", 1),))


if __name__ == "__main__":
    sys.exit(main())
