"""``twistd condor-starter-host``: the parent of this machine's jobs; the startd starts it."""

from __future__ import annotations

from typing import Any

import attrs
from twisted.application.service import IService
from twisted.internet.threads import deferToThread

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service


class Options(DaemonOptions):
    """Beside the usual: whose starter host it is."""

    optParameters = [  # noqa: N815 - Twisted's name
        *DaemonOptions.optParameters,
        ["startd-socket", "s", None, "the startd's UNIX socket ($(RUN)/startd.sock)"],
    ]


def makeService(options: Options, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The starter host of the startd at ``--startd-socket``."""
    from condor_actors.actors import World
    from condor_actors.config import Config
    from condor_actors.daemons.starter.starter_host import StarterHostDaemon, make_starter_host
    from condor_actors.machine.run.before_drop import BeforeDrop
    from condor_actors.messages.envelope import Address
    from condor_actors.transfer.service import BulkService
    from condor_actors.transfer.standard_frames import CHANNEL_LINE, RESUMED_LINE, STANDARD_LINE
    from condor_actors.transfer.streams import BULK_LINE

    before = BeforeDrop()

    def make(config: Config, world: World) -> StarterHostDaemon:
        socket = options["startd-socket"] or str(config.path("RUN") / "startd.sock")
        bulk = BulkService(world.reactor_time, world.log, deferToThread)
        services: Any = getattr(world.post, "services", None)
        if services is not None:
            services[BULK_LINE] = bulk.connection
        edges = attrs.evolve(world, blobs=bulk, host=before.host)
        daemon = make_starter_host(config, edges, Address(f"unix:{socket}", "startd"))
        if services is not None:
            services[STANDARD_LINE] = daemon.standard_stream
            services[CHANNEL_LINE] = daemon.standard_channel
            services[RESUMED_LINE] = daemon.standard_resumed
        return daemon

    return daemon_service("starter-host", make, options, reactor, before)
