"""condor_reschedule: ask for a cycle now.

Demand that changes asks by itself; this tells a schedd to tell the negotiator again.  **Source**: the manual.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.messages.negotiate import RequestCycle
from condor_actors.tools.lib.command import ToolError, Words, run, values_of
from condor_actors.tools.lib.contact import QUEUE, all_schedds, load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.printing.ad_output import checked, fitting

FLAGS = (
    Flag("help"),
    Flag("version", 1),
    Flag("debug", 1, idle=NO_DEBUG),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("addr", 2, 1),
    Flag("all", 2),
    Flag("constraint", 1, 1),
)


def main() -> int:
    """Entry of ``condor_reschedule``."""
    return run(FLAGS, "condor_reschedule", _reschedule, words=Words.of("condor_reschedule"))


def _reschedule(given: Sequence[Given]) -> int:
    values = values_of(given)
    config = load()
    pool = values.get("pool", "")
    if "all" in values or "constraint" in values:
        ads = list(fitting(all_schedds(config, pool=pool), checked(values.get("constraint", "true"))))
        if not ads:
            raise ToolError("condor_reschedule: no schedd of the pool fits")
        places = [(ad.get_str("Name"), ad.get_str("MyAddress")) for ad in ads]
    else:
        names = [item.values[0] for item in given if item.name in ("", "name")] or [""]
        places = [(name, values.get("addr", "")) for name in names]
    for name, address in places:
        with schedd(config, name=name, pool=pool, address=address) as there:
            there.client.tell(QUEUE, RequestCycle())
            print(f'Sent "Reschedule" command to {"schedd " + there.name if name else "local schedd"}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
