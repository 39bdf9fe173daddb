"""condor_hold: put jobs on hold."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_hold``."""
    return run("condor_hold", JobAction.HOLD, (Flag("subcode", 1, 1),))


if __name__ == "__main__":
    sys.exit(main())
