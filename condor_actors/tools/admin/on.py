"""``condor_on``: have a master start its daemons."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.tools.lib.masters import AdminTool, run

TOOL = AdminTool(
    name="condor_on",
    command="on",
    does="Has masters start their daemons.",
    stops=False,
    words=("Spawn-All-Daemons", "Spawn-Daemon"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_on``; the exit status."""
    return run(TOOL, sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
