"""``python -m condor_actors.services NAME [options]``: one service in the foreground.

The same service as ``twistd -n --pidfile= condor-NAME``, without twistd's search for plugins, which takes longer than
the rest of the start.
"""

from __future__ import annotations

import sys
from importlib import import_module

from twisted.python import usage

from condor_actors.config import ConfigError
from condor_actors.services.steady_time import steady_timers
from condor_actors.services.tenure import Tenure

NAMES = (
    "master", "collector", "negotiator", "schedd", "startd", "kbdd", "shadow-host", "starter-host",
    "ckpt_server", "defrag", "gateway", "web",
)
CONFIG_ERROR = 44
"""The exit status of a daemon whose configuration is not valid: its master does not start it again and again."""


def main(arguments: list[str]) -> int:
    """Run the named service until it stops; its exit status is returned."""
    if not arguments or arguments[0] not in NAMES:
        print(f"usage: python -m condor_actors.services {'|'.join(NAMES)} [options]", file=sys.stderr)  # noqa: T201
        return 2
    from twisted.internet import reactor

    steady_timers(reactor)
    Tenure(reactor).begin()
    module = import_module(f"condor_actors.services.{arguments[0].replace('-', '_')}")
    options = module.Options()
    try:
        options.parseOptions(arguments[1:])
        service = module.makeService(options)
    except usage.UsageError as error:
        print(f"condor-{arguments[0]}: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except (ConfigError, OSError) as error:
        print(f"condor-{arguments[0]}: {error}", file=sys.stderr)  # noqa: T201
        return CONFIG_ERROR
    service.privilegedStartService()
    service.startService()
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
    return int(getattr(service, "exit_status", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
