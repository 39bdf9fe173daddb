"""``twistd condor-schedd``."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The schedd of this machine, configured by ``condor_config``."""
    from condor_actors.daemons.schedd.before_drop import before_drop
    from condor_actors.daemons.schedd.schedd import make_daemon

    return daemon_service("schedd", make_daemon, options, reactor, before_drop)
