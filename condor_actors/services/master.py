"""``twistd condor-master``."""

from __future__ import annotations

import os
import sys
from typing import Any

import attrs
from twisted.application.service import IService

from condor_actors.actors import World
from condor_actors.config import Config
from condor_actors.machine.supervisor import fork_server
from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service
from condor_actors.services.valid_config import startable_config

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The master of this machine, configured by ``condor_config``."""
    if reactor is None:
        from twisted.internet import reactor as default_reactor

        reactor = default_reactor
    from condor_actors.daemons.master import Master, make_daemon
    from condor_actors.machine.privilege.pool_account import pool_uid
    from condor_actors.machine.supervisor.mail import Mailer
    from condor_actors.machine.supervisor.master_host import RealHost
    from condor_actors.machine.supervisor.surviving_processes import KeptProcesses

    def make(config: Config, world: World) -> Master:
        kept = KeptProcesses(reactor, config.path("RUN") / "master.children", {pool_uid(config)})
        host = RealHost(kept, startable_config)
        reactor.addSystemEventTrigger("after", "shutdown", become_new, host)
        return make_daemon(config, attrs.evolve(world, processes=host, mail=Mailer(config, reactor)))

    return daemon_service("master", make, options, reactor)


def become_new(host: Any) -> None:
    """After the end of a master that is to begin anew: the same command line in the same process."""
    if host.renew:
        fork_server.end()
        os.execv(sys.executable, sys.orig_argv)
