"""``twistd condor-credd``: keeps users' credentials, and has tokens for their jobs."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The credential daemon of this machine, configured by ``condor_config``."""
    from condor_actors.daemons.credd.credd import make_daemon

    return daemon_service("credd", make_daemon, options, reactor)
