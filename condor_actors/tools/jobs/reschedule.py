"""condor_reschedule: ask for a cycle now.

Demand that changes asks by itself; this tells a schedd to tell the negotiator again.  **Source**: the manual.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.messages.negotiate import RequestCycle
from condor_actors.tools.lib.command import Words, run, values_of
from condor_actors.tools.lib.contact import QUEUE, load, schedd
from condor_actors.tools.lib.flags import Flag, Given

FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("addr", 2, 1),
    Flag("all", 2),
)
USAGE = "Usage: condor_reschedule [-pool host] [-name schedd | -addr <ip:port>] [schedd ...]"


def main() -> int:
    """Entry of ``condor_reschedule``."""
    return run(FLAGS, USAGE, _reschedule, words=Words.of("condor_reschedule"))


def _reschedule(given: Sequence[Given]) -> int:
    values = values_of(given)
    config = load()
    for name in [item.values[0] for item in given if item.name in ("", "name")] or [""]:
        with schedd(config, name=name, pool=values.get("pool", ""), address=values.get("addr", "")) as there:
            there.client.tell(QUEUE, RequestCycle())
            print(f'Sent "Reschedule" command to {"schedd " + there.name if name else "local schedd"}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
