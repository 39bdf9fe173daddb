"""``twistd condor-ckpt-server``: keeps checkpoints for submit machines."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The checkpoint server of this machine, configured by ``condor_config``."""
    from condor_actors.actors import World
    from condor_actors.config import Config
    from condor_actors.daemons.ckpt_server import CHECKPOINT_LINE, CheckpointServer, make_daemon

    def make(config: Config, world: World) -> CheckpointServer:
        server = make_daemon(config, world)
        services: Any = getattr(world.post, "services", None)
        if services is not None:
            services[CHECKPOINT_LINE] = server.stream
        return server

    return daemon_service("ckpt_server", make, options, reactor)
