"""condor_release: release held jobs."""

from __future__ import annotations

import sys

from condor_actors.messages.queue import JobAction
from condor_actors.tools.lib.job_actions import run


def main() -> int:
    """Entry of ``condor_release``."""
    return run("condor_release", JobAction.RELEASE)


if __name__ == "__main__":
    sys.exit(main())
