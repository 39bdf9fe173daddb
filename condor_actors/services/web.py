"""``twistd condor-web``."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The web page of this pool, configured by ``condor_config``."""
    from condor_actors.daemons.web.web import make_daemon

    return daemon_service("web", make_daemon, options, reactor)
