"""``twistd condor-gateway``: carries what this pool and its partners say to each other."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The gateway of this pool, configured by ``condor_config``."""
    from condor_actors.actors import World
    from condor_actors.config import Config
    from condor_actors.daemons.gateway.gateway import GatewayDaemon, make_daemon
    from condor_actors.wire.relays.lines import BACK_LINE, CIRCUIT_LINE

    def make(config: Config, world: World) -> GatewayDaemon:
        gateway = make_daemon(config, world)
        services: Any = getattr(world.post, "services", None)
        if services is not None:
            services[CIRCUIT_LINE] = gateway.circuit
            services[BACK_LINE] = gateway.circuit_back
        return gateway

    return daemon_service("gateway", make, options, reactor)
