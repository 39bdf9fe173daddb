"""``condor_off``: have a master stop its daemons."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.tools.lib.masters import AdminTool, run

TOOL = AdminTool(
    name="condor_off",
    command="off",
    does="Has masters stop their daemons; the master itself stays unless -master is given.",
    stops=True,
    words=("Kill-All-Daemons", "Kill-Daemon"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_off``; the exit status."""
    return run(TOOL, sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
