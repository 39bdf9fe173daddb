"""condor_vacate_job: make jobs leave their machines and run elsewhere."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_vacate_job``."""
    return run("condor_vacate_job", JobAction.VACATE, (Flag("fast", 1),))


if __name__ == "__main__":
    sys.exit(main())
