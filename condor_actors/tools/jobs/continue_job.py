"""condor_continue: let suspended jobs go on."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_continue``."""
    return run("condor_continue", JobAction.CONTINUE)


if __name__ == "__main__":
    sys.exit(main())
