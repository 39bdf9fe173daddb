"""Connections from a user's machine to ports at which a running job listens (condor_ssh_to_job -L).

Theory: the starter connects, from the machine to itself, and only to a socket of the job's own account: whom a job
serves is its owner's business, and nobody else's port is reached this way.  Bytes travel as messages by way of shadow
and schedd, so each side sends a window of them and waits until the other has passed them on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint, connectProtocol
from twisted.internet.interfaces import IHalfCloseableProtocol, IPushProducer, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.cores.starter import job_run as jr
from condor_actors.machine.run.listening import listener
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.interactive import PORT_WINDOW_BYTES, OpenPort, PortData

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["Ports"]

BLOCK_BYTES = 16 * 1024
MOST_CONNECTIONS = 64
"""Of one run at a time."""
CONNECT_S = 10.0


class Ports:
    """The connections to ports of a run, by id.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._open: dict[str, PortConnection] = {}

    def receive(self, delivery: Delivery) -> None:
        """Open a connection, or pass on what is for one."""
        message, run = delivery.message, self._starter
        if isinstance(message, OpenPort):
            run.context.reply(delivery, self._connect(message))
            return
        connection = self._open.get(message.shell_id)
        if connection is not None:
            connection.take(message)
        elif not message.is_closed:
            run.context.tell(run.shadow, PortData(shell_id=message.shell_id, is_closed=True))

    def _connect(self, message: OpenPort) -> Done | Refused:
        run, name = self._starter, message.shell_id
        if name in self._open or len(self._open) >= MOST_CONNECTIONS:
            return Refused(code="busy", text=f"a job has {MOST_CONNECTIONS} connections to its ports at most")
        if run.core.state not in jr.ALIVE or run.sandbox is None:
            return Refused(code="not-found", text="the job is not running now")
        if not 0 < message.port < 65536:
            return Refused(code="malformed", text=f"{message.port} is no port")
        own = run.held.visits.services.leads_to(message.port) if run.held.visits is not None else None
        if own is None and "net" in run.edges.isolation(run.spec):
            return Refused(code="denied", text="the job has no network: it was submitted with want_job_networking = "
                                               "false or docker_network_type = none, or has one of its own, "
                                               "where container_service_names names its ports")
        account = run.account or run.edges.host.own_account
        host, port = own or (listener(message.port, os.geteuid() if account is None else account.uid), message.port)
        if not host:
            return Refused(code="unreachable", text=f"the job does not listen on port {message.port}")
        connection = PortConnection(run, name, lambda: self._open.pop(name, None))
        self._open[name] = connection
        at = (TCP6ClientEndpoint if ":" in host else TCP4ClientEndpoint)(
            run.edges.reactor, host, port, timeout=CONNECT_S)
        connectProtocol(at, connection).addErrback(
            lambda failure: connection.failed(f"the job's port: {failure.getErrorMessage()}"))
        return Done()

    def close_all(self) -> None:
        """The run is over."""
        for connection in tuple(self._open.values()):
            connection.close()


@implementer(IHalfCloseableProtocol)
class PortConnection(Protocol):
    """One connection; what it reads and how it ends are turns of its starter."""

    def __init__(self, run: Starter, name: str, gone: Callable[[], Any]) -> None:
        self._run, self._name = run, name
        self._gone: Callable[[], None] = run.context.as_turn(gone)
        self._tell: Callable[[PortData], None] = run.context.as_turn(self._told)
        self._early = bytearray()
        """What came for it before it was connected."""
        self._on_the_way = 0
        self._passed_on = _PassedOn(self._acknowledge)
        self._is_over = self._is_paused = False
        self._is_told_all = self._has_said_all = self._has_passed_all = False
        """Whether the user's side has ended, the job's has, and the job knows of the user's."""

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """Connected."""
        if self._is_over:
            self.close()
            return
        self._transport.registerProducer(self._passed_on, True)
        self._pass_on(bytes(self._early))
        self._early.clear()

    @property
    def _transport(self) -> Any:
        return cast(ITCPTransport, self.transport)

    def take(self, message: PortData) -> None:
        """Something from the user's side."""
        if self._is_over:
            return
        if message.is_closed:
            self._is_over = True
            self.close()
        elif self._is_told_all and (message.data or message.has_ended):
            self.failed("more was sent after the end")
        elif self._passed_on.waiting_bytes + len(self._early) + len(message.data) > PORT_WINDOW_BYTES:
            self.failed("more was sent than may be on its way")
        else:
            self._is_told_all = message.has_ended or self._is_told_all
            self._on_the_way = max(0, self._on_the_way - max(0, message.taken))
            if self.transport is None:
                self._early += message.data
                return
            if message.data or message.has_ended:
                self._pass_on(message.data)
            self._go_on()

    def _pass_on(self, data: bytes) -> None:
        """Give the job what came for it."""
        if data:
            self._transport.write(data)
            self._passed_on.add(len(data))
        if self._is_told_all:
            self._transport.unregisterProducer()  # else the connection would be kept open for it
            self._transport.loseWriteConnection()

    def _go_on(self) -> None:
        """Hear the job again, if there is room for what it says; one that has said all would be heard to end again."""
        if self._is_paused and not self._has_said_all and self._on_the_way < PORT_WINDOW_BYTES:
            self._is_paused = False
            self._transport.resumeProducing()

    def _acknowledge(self, count: int) -> None:
        self._tell(PortData(shell_id=self._name, taken=count))

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """The job says something."""
        self._on_the_way += len(data)
        if self._on_the_way >= PORT_WINDOW_BYTES and not self._is_paused:
            self._is_paused = True
            self._transport.pauseProducing()
        for start in range(0, len(data), BLOCK_BYTES):
            self._tell(PortData(shell_id=self._name, data=data[start:start + BLOCK_BYTES]))

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The job says no more."""
        self._has_said_all = True
        self._tell(PortData(shell_id=self._name, has_ended=True))
        self._close_if_all_is_said()

    def writeConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """The job knows that it is told no more."""
        self._has_passed_all = True
        self._close_if_all_is_said()

    def _close_if_all_is_said(self) -> None:
        if self._has_said_all and self._has_passed_all:
            self._transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """Over."""
        self.failed("")

    def failed(self, reason: str) -> None:
        """It is over, for a reason or because both sides have ended."""
        if not self._is_over:
            self._is_over = True
            self._tell(PortData(shell_id=self._name, is_closed=True, reason=reason))
        self.close()

    def close(self) -> None:
        """Leave the port."""
        self._is_over = True
        self._gone()
        if self.transport is not None:
            self._transport.unregisterProducer()  # what is written still goes out
            self._transport.loseConnection()

    def _told(self, message: PortData) -> None:
        self._run.context.tell(self._run.shadow, message)


@implementer(IPushProducer)
class _PassedOn:
    """Counts what is written to a transport, and says when the transport has room for more."""

    def __init__(self, say: Callable[[int], None]) -> None:
        self._say = say
        self._has_room = True
        self.waiting_bytes = 0

    def add(self, count: int) -> None:
        """So much was written."""
        self.waiting_bytes += count
        if self._has_room:
            self.resumeProducing()

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The transport has no room."""
        self._has_room = False

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """It has."""
        self._has_room = True
        count, self.waiting_bytes = self.waiting_bytes, 0
        if count:
            self._say(count)

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The connection is gone."""
