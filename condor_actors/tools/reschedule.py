"""condor_reschedule: ask for a cycle now.

Demand that changes asks by itself; this tells a schedd to tell the negotiator again.  **Source**: the manual.
"""

from __future__ import annotations

import sys

from condor_actors.messages.negotiate import RequestCycle
from condor_actors.tools.contact import QUEUE, ToolError, load, schedd
from condor_actors.tools.flags import Flag, MissingValue, UnknownFlag, parse

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
    try:
        given = parse(sys.argv[1:], FLAGS)
    except (UnknownFlag, MissingValue) as error:
        print(f"condor_reschedule: {error.word} is not a valid option\n{USAGE}", file=sys.stderr)
        return 1
    values = {item.name: item.values[0] if item.values else "" for item in given if item.name}
    if "help" in values:
        print(USAGE)
        return 0
    if "version" in values:
        from condor_actors.tools.version import platform_line, version_line

        print(f"{version_line()}\n{platform_line()}")
        return 0
    names = [item.values[0] for item in given if item.name in ("", "name")] or [""]
    try:
        config = load()
        for name in names:
            with schedd(config, name=name, pool=values.get("pool", ""), address=values.get("addr", "")) as there:
                there.client.tell(QUEUE, RequestCycle())
                print(f'Sent "Reschedule" command to {"schedd " + there.name if name else "local schedd"}')
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
