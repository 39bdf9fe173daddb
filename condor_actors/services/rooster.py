"""``twistd condor-rooster``."""

from __future__ import annotations

from typing import Any

from twisted.application.service import IService

from condor_actors.services.options import DaemonOptions
from condor_actors.services.process import daemon_service

Options = DaemonOptions


def makeService(options: DaemonOptions, reactor: Any = None) -> IService:  # noqa: N802 - twistd's name
    """The rooster of this pool, configured by ``condor_config``."""
    from condor_actors.daemons.rooster import make_daemon

    return daemon_service("rooster", make_daemon, options, reactor)
