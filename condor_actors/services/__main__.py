"""``python -m condor_actors.services NAME [options]``: one service in the foreground.

The same service as ``twistd -n --pidfile= condor-NAME``, without twistd's search for plugins, which takes longer than
the rest of the start.
"""

from __future__ import annotations

import gc

gc.disable()  # what modules leave is there to stay
# ruff: noqa: E402

import sys
from importlib import import_module

from twisted.python import usage

from condor_actors.config import ConfigError
from condor_actors.machine.supervisor import fork_server
from condor_actors.services.no_room import cannot_start
from condor_actors.services.steady_time import steady_timers
from condor_actors.services.telemetry.logs import leave_standard_error
from condor_actors.services.tenure import Tenure

NAMES = (
    "master", "collector", "negotiator", "schedd", "startd", "kbdd", "shadow-host", "starter-host",
    "ckpt_server", "credd", "defrag", "gateway", "rooster", "web",
)
STARTS_OTHERS = frozenset({"master", "schedd", "startd"})
"""What begins with a fork server for the services that it is to start."""
MODULES = (
    "encodings.idna",
    "importlib.resources.readers",
    "twisted.internet.epollreactor",
    "condor_actors.services.collector",
    "condor_actors.services.master",
    "condor_actors.services.negotiator",
    "condor_actors.services.schedd",
    "condor_actors.services.startd",
    "condor_actors.services.shadow_host",
    "condor_actors.services.starter_host",
    "condor_actors.daemons.collector",
    "condor_actors.daemons.negotiator",
    "condor_actors.daemons.schedd.before_drop",
    "condor_actors.daemons.schedd.schedd",
    "condor_actors.daemons.shadow.shadow_host",
    "condor_actors.daemons.startd",
    "condor_actors.daemons.starter.starter_host",
    "condor_actors.machine.run.before_drop",
    "condor_actors.machine.sensors.logind",
    "condor_actors.machine.supervisor.before_startd_drops",
    "condor_actors.machine.supervisor.mail",
    "condor_actors.machine.supervisor.master_host",
    "condor_actors.messages.flock",
    "condor_actors.transfer.client",
    "condor_actors.transfer.service",
    "condor_actors.transfer.standard_frames",
    "condor_actors.wire.membership",
)
"""What the services that every machine runs need: a fork server has it loaded before it forks one of them."""


def main(arguments: list[str]) -> int:
    """Run the named service until it stops; its exit status is returned."""
    if not arguments or arguments[0] not in NAMES:
        print(f"usage: python -m condor_actors.services {'|'.join(NAMES)} [options]", file=sys.stderr)  # noqa: T201
        return 2
    if arguments[0] in STARTS_OTHERS:
        born = with_fork_server()
        if born is not None:
            return main(born)
    gc.freeze()
    gc.enable()
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
        status, why = cannot_start(error)
        print(f"condor-{arguments[0]}: {why}", file=sys.stderr)  # noqa: T201
        return status
    leave_standard_error()
    service.privilegedStartService()
    service.startService()
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
    fork_server.end()
    return int(getattr(service, "exit_status", 0))


def with_fork_server() -> list[str] | None:
    """Begin this process's fork server, where that is possible, with all modules loaded.

    Returns:
        None in this process. In each process that the server forks: the service and its arguments.
    """
    if not fork_server.possible():
        return None
    try:
        for name in MODULES:
            import_module(name)
    except Exception:  # noqa: BLE001 - whatever it is, the service that needs that module says it
        return None
    return fork_server.begin()


if __name__ == "__main__":
    words = sys.argv[1:]
    while words and not words[-1]:  # room for the command lines of forked services
        words.pop()
    sys.exit(main(words))
