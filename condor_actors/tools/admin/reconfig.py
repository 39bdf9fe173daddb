"""``condor_reconfig``: have daemons read their configuration again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.tools.lib.masters import AdminTool, run

TOOL = AdminTool(
    name="condor_reconfig",
    command="reconfig",
    does="Has masters and their daemons read the configuration again.",
    stops=False,
    words=("Reconfig", "Reconfig"),
)


def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_reconfig``; the exit status."""
    return run(TOOL, sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
