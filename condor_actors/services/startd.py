"""``twistd condor-startd``."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The startd of this machine, configured by ``condor_config``."""
    from condor_actors.daemons.startd import make_daemon
    from condor_actors.machine.supervisor.before_startd_drops import before_startd_drops

    return daemon_service("startd", make_daemon, options, reactor, before_startd_drops)
