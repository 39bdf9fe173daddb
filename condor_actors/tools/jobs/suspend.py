"""condor_suspend: suspend running jobs where they are."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_suspend``."""
    return run("condor_suspend", JobAction.SUSPEND)


if __name__ == "__main__":
    sys.exit(main())
