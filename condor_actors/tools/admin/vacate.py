"""condor_vacate: make the jobs of machines leave.

**Source**: the manual, condor_vacate.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.messages.admin import VacateSlots
from condor_actors.tools.lib.command import ToolError, Words, run, values_of
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.machine_commands import STARTD, ask, startds

FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("graceful", 1),
    Flag("fast", 1),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("addr", 2, 1),
    Flag("constraint", 1, 1),
    Flag("all", 2),
)


def main() -> int:
    """Entry of ``condor_vacate``."""
    return run(FLAGS, "condor_vacate", _vacate, words=Words.of("condor_vacate"))


def _vacate(given: Sequence[Given]) -> int:
    values = values_of(given)
    if {"fast", "graceful"} <= values.keys():
        raise ToolError("only one of -graceful and -fast may be given")
    names = tuple(item.values[0] for item in given if item.name in ("", "name"))
    constraint = values.get("constraint", "true" if "all" in values else "")
    word = "VACATE_ALL_FAST" if "fast" in values else "VACATE_ALL_CLAIMS"
    for name, _, client in startds(
        load(), names=names, constraint=constraint, address=values.get("addr", ""), pool=values.get("pool", "")
    ):
        with client:
            slots = tuple(target for target in names if "@" in target)
            ask(client, STARTD, VacateSlots(slots=slots, fast="fast" in values))
        print(f'Sent "{word}" command to {"startd " + name if names or constraint else "local startd"}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
