"""``condor_restart``: have daemons stopped and started anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.tools.lib.masters import AdminTool, run

TOOL = AdminTool(
    name="condor_restart",
    command="restart",
    does="Has masters stop their daemons and start them anew, themselves included.",
    stops=True,
    words=("Restart", "Restart"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_restart``; the exit status."""
    return run(TOOL, sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
