"""What is beside a run: its tool daemon, its services, and its user's shells and connections to its ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.daemons.starter.interactive.ports import Ports
from condor_actors.daemons.starter.interactive.services import Services
from condor_actors.daemons.starter.interactive.shells import Shells
from condor_actors.daemons.starter.interactive.tool_daemon import ToolDaemon
from condor_actors.messages.envelope import Delivery
from condor_actors.messages.interactive import OpenPort, OpenShell, PortData, ShellData

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["VISITS", "Visits"]

VISITS = (OpenShell, ShellData, OpenPort, PortData)
"""The messages of visits."""


class Visits:
    """Opens shells and connections of a run, and passes on what is for them.

    Args:
        starter: whose run it is.

    Attributes:
        services: the machine's ports that lead to those of the job.
        tool: its tool daemon, if it has one.
    """

    def __init__(self, starter: Starter) -> None:
        self._shells = Shells(starter)
        self._ports = Ports(starter)
        self.services = Services(starter)
        self.tool = ToolDaemon(starter)

    def receive(self, delivery: Delivery) -> None:
        """One of :data:`VISITS`."""
        of_port = isinstance(delivery.message, (OpenPort, PortData))
        (self._ports if of_port else self._shells).receive(delivery)

    def let_job_go(self, number: int) -> None:
        """The program shall hear a signal (``number``): it waits for no shell and no tool any longer."""
        self._shells.let_job_go()
        self.tool.signal(number)

    def close_all(self) -> None:
        """The run is over."""
        self._shells.close_all()
        self._ports.close_all()
        self.services.close()
        self.tool.close()
