"""The commands to masters: ``condor_on``, ``condor_off``, ``condor_restart``, ``condor_reconfig``.

``python -m condor_actors.tools.admin.daemon_commands NAME …`` runs one without its entry point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.lib.masters import AdminTool, run

__all__ = ["COMMANDS", "off", "on", "reconfig", "restart"]

COMMANDS = {tool.name: tool for tool in (
    AdminTool(
        name="condor_on", command="on", stops=False, words=("Spawn-All-Daemons", "Spawn-Daemon"),
    ),
    AdminTool(
        name="condor_off", command="off", stops=True, words=("Kill-All-Daemons", "Kill-Daemon"),
    ),
    AdminTool(
        name="condor_restart", command="restart", stops=True, words=("Restart", "Restart"),
    ),
    AdminTool(
        name="condor_reconfig", command="reconfig", stops=False, words=("Reconfig", "Reconfig"),
    ),
)}
TABLES: Mapping[str, tuple[Flag, ...]] = {name: tool.flags() for name, tool in COMMANDS.items()}


def _entry(name: str) -> Callable[[], int]:
    tool = COMMANDS[name]
    return lambda: run(tool, sys.argv[1:])


on = _entry("condor_on")
off = _entry("condor_off")
restart = _entry("condor_restart")
reconfig = _entry("condor_reconfig")


if __name__ == "__main__":
    sys.exit(_entry(sys.argv.pop(1))())
