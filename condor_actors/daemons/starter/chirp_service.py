"""Where jobs reach their starter by chirp: one port on the loopback for all runs of the machine, and a cookie for each.

Theory: anybody on the machine can connect, so the port believes nobody: the first line has to be the cookie of a run,
256 random bits that lie in a file which only the job's account can read.  Who shows none is hung up soon, and there may
be few of them; when there are too many, the oldest goes.  What a client says is read only as fast as it is done.
"""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

from twisted.internet.interfaces import IDelayedCall, IPushProducer
from twisted.internet.protocol import Factory
from twisted.internet.protocol import Protocol as Connection
from twisted.logger import Logger
from zope.interface import implementer

from condor_actors.cores.chirp_protocol import LINE_BYTES, ChirpError

__all__ = ["ChirpClient", "ChirpConnection", "ChirpRun", "ChirpService"]

HOST = "127.0.0.1"
GREETING_S = 10.0
MOST_STRANGERS = 64
WRONG_COOKIES = 3
MOST_CLIENTS = 16
"""Of one run."""


class ChirpClient(Protocol):
    """What a run does with a client that has shown its cookie."""

    def received(self, data: bytes) -> None:
        """It has sent bytes; nothing more is read until ``go_on`` of its connection."""

    def written(self) -> None:
        """What was written to it has gone."""

    def lost(self) -> None:
        """It is gone."""


class ChirpRun(Protocol):
    """What the service knows of a run."""

    def connected(self, connection: ChirpConnection) -> ChirpClient:
        """A client has shown the run's cookie."""


class ChirpService:
    """The port, and whose cookie is whose.

    Args:
        reactor: the real one; one without sockets has no chirp.
        log: for what strangers try.
    """

    def __init__(self, reactor: Any, log: Logger) -> None:
        self.reactor = reactor
        self.log = log
        self.strangers: dict[ChirpConnection, None] = {}
        self._runs: dict[bytes, ChirpRun] = {}
        self._clients: dict[ChirpRun, set[ChirpConnection]] = {}
        self._port: Any = None

    @property
    def works(self) -> bool:
        """Whether there can be a port."""
        return hasattr(self.reactor, "listenTCP")

    def open(self, cookie: str, run: ChirpRun) -> str:
        """Let who shows the cookie speak for a run; where, as in ``.chirp.config``: host, port, cookie.

        Raises:
            OSError: there is no port.
        """
        if self._port is None:
            factory = Factory.forProtocol(ChirpConnection)
            factory.service = self  # type: ignore[attr-defined]
            factory.noisy = False
            self._port = self.reactor.listenTCP(0, factory, interface=HOST)
        self._runs[_key(cookie)] = run
        return f"{HOST} {self._port.getHost().port} {cookie}\n"

    def close(self, cookie: str, run: ChirpRun) -> None:
        """The run is over: its clients are hung up."""
        self._runs.pop(_key(cookie), None)
        for connection in tuple(self._clients.pop(run, ())):
            connection.hang_up()

    def find(self, cookie: str) -> ChirpRun | None:
        """Whose cookie it is."""
        return self._runs.get(_key(cookie))

    def admit(self, connection: ChirpConnection, run: ChirpRun) -> bool:
        """Count a client of a run; whether there may be one more."""
        clients = self._clients.setdefault(run, set())
        if len(clients) >= MOST_CLIENTS:
            return False
        clients.add(connection)
        return True

    def forget(self, connection: ChirpConnection, run: ChirpRun | None) -> None:
        """The connection is gone."""
        self.strangers.pop(connection, None)
        if run is not None and run in self._clients:
            self._clients[run].discard(connection)


def _key(cookie: str) -> bytes:
    """What a cookie is found by; how long that takes says nothing of it."""
    return hashlib.sha256(cookie.encode()).digest()


@implementer(IPushProducer)
class ChirpConnection(Connection):
    """One connection; itself what the transport pauses when the client does not read."""

    factory: Any
    transport: Any

    def __init__(self) -> None:
        self._run: ChirpRun | None = None
        self._client: ChirpClient | None = None
        self._line = bytearray()
        self._wrong = 0
        self._full = self._owes = False
        self._patience: IDelayedCall | None = None

    @property
    def service(self) -> ChirpService:
        """The one it belongs to."""
        service: ChirpService = self.factory.service
        return service

    # ---- the transport's

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """A stranger, until the cookie is shown."""
        strangers = self.service.strangers
        if len(strangers) >= MOST_STRANGERS:
            next(iter(strangers)).hang_up()
        strangers[self] = None
        self.transport.registerProducer(self, True)
        self._patience = self.service.reactor.callLater(GREETING_S, self.hang_up)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Bytes of the client."""
        if self._client is not None:
            self.transport.pauseProducing()
            self._client.received(data)
            return
        self._line += data
        while (end := self._line.find(b"\n")) >= 0:
            line = bytes(self._line[:end])
            del self._line[: end + 1]
            if not self._greeted(line):
                return
        if len(self._line) >= LINE_BYTES:
            self.hang_up()

    def _greeted(self, line: bytes) -> bool:
        """Whether the next line may be a cookie too."""
        word, _, cookie = line.decode("ascii", "replace").strip().partition(" ")
        run = self.service.find(cookie) if word == "cookie" else None
        if run is None:
            self._wrong += 1
            self.transport.write(b"%d\n" % ChirpError.NOT_AUTHENTICATED)
            if self._wrong >= WRONG_COOKIES:
                self.service.log.warn("chirp: a client on this machine has shown no cookie, or a wrong one, {count} "
                                      "times", count=self._wrong)
                self.transport.loseConnection()
                return False
            return True
        if not self.service.admit(self, run):
            self.transport.write(b"%d\n" % ChirpError.BUSY)
            self.transport.loseConnection()
            return False
        self.service.strangers.pop(self, None)
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self.transport.write(b"0\n")
        self._run, self._client = run, run.connected(self)
        rest = bytes(self._line)
        self._line.clear()
        if rest:
            self.dataReceived(rest)
        return False

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The client is gone."""
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self.service.forget(self, self._run)
        client, self._client = self._client, None
        if client is not None:
            client.lost()

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The client does not read what was written."""
        self._full = True

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """It does again."""
        self._full = False
        if self._owes and self._client is not None:
            self._owes = False
            self._client.written()

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        """The connection ends; ``connectionLost`` follows."""

    # ---- the run's

    def say(self, data: bytes) -> None:
        """Write, and tell the client's end when there is room for more."""
        self.transport.write(data)
        if self._full:
            self._owes = True
        elif self._client is not None:
            self._client.written()

    def go_on(self) -> None:
        """Read more of the client."""
        if self._client is not None:
            self.transport.resumeProducing()

    def hang_up(self) -> None:
        """End it at once."""
        self.transport.abortConnection()

    def end(self) -> None:
        """End it when all that was said has gone."""
        self.transport.unregisterProducer()
        self.transport.loseConnection()
