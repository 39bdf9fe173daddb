"""Two bare connections as one: what comes in at one end goes out at the other, unread.

=====================================  =====================================================================
at one end                             at the other
=====================================  =====================================================================
bytes                                  the same bytes; who sends waits for who receives
it will say no more (a half-close)     the same, once what came before it is written; answers still go back
it is closed or reset                  closed when what came before is written, after a minute at the latest
=====================================  =====================================================================
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IHalfCloseableProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.wire.relays.hop import adopt

__all__ = ["Splice"]

_DONE = Failure(ConnectionDone())
READ_BYTES = 256 << 10
LINGER_S = 60.0
"""When one end is gone the other gets so long to take what it still has to get."""


@implementer(IHalfCloseableProtocol)
class _End(Protocol):
    """One of the two connections."""

    def __init__(self, splice: Splice, number: int) -> None:
        self._splice = splice
        self._number = number

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's
        """It will say no more."""
        self._splice.silent(self._number)

    def writeConnectionLost(self) -> None:  # noqa: N802
        """It has been told that the other will say no more."""

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended."""
        self._splice.lost(self._number)


class Splice:
    """Two connections spliced.

    Args:
        reactor: Twisted's.
        first, second: connected; this object's from now on.
        ended: called once, when both are closed.

    Attributes:
        carried: bytes from the first to the second, and the other way.
    """

    def __init__(self, reactor: Any, first: socket.socket, second: socket.socket, ended: Callable[[], None]) -> None:
        self.carried = [0, 0]
        self._reactor = reactor
        self._ended = ended
        self._open = {0, 1}
        self._speaking = {0, 1}
        self._linger: IDelayedCall | None = None
        ends = _End(self, 0), _End(self, 1)
        self._transports: list[Any] = []
        try:
            for sock, end in zip((first, second), ends, strict=True):
                factory = Factory.forProtocol(lambda end=end: end)  # type: ignore[misc]  # bound for this round
                factory.noisy = False
                self._transports.append(adopt(reactor, sock, factory))
        except OSError:  # an end was reset meanwhile
            self._open = set(range(len(self._transports)))
            first.close()
            second.close()
            self.cut()
            if not self._open:
                reactor.callLater(0, ended)
            return
        for number in (0, 1):
            self._join(number, ends[number])

    def _join(self, number: int, end: _End) -> None:
        own, other, carried = self._transports[number], self._transports[1 - number], self.carried
        own.bufferSize = READ_BYTES
        other.registerProducer(own, True)
        write = other.write

        def received(data: bytes) -> None:
            carried[number] += len(data)
            write(data)

        end.dataReceived = received  # type: ignore[method-assign]  # nothing stands between the two

    def cut(self) -> None:
        """End both at once."""
        for number in tuple(self._open):
            self._transports[number].abortConnection()

    def silent(self, number: int) -> None:
        """One end will say no more; when neither will, it is over."""
        self._speaking.discard(number)
        if self._speaking:
            other = self._transports[1 - number]
            other.unregisterProducer()
            other.loseWriteConnection()
        else:
            self._finish(self._open)

    def _finish(self, numbers: set[int]) -> None:
        """Close what is open, when it has got what it still has to get, or has not taken it for long."""
        for number in tuple(numbers):
            self._transports[number].unregisterProducer()
            self._transports[number].loseConnection()
        if self._linger is None:
            self._linger = self._reactor.callLater(LINGER_S, self.cut)

    def lost(self, number: int) -> None:
        """One connection has ended: so does the other, when what it still has to get is written."""
        self._open.discard(number)
        if self._open and len(self._transports) == 2:
            self._finish(self._open)
        elif not self._open:
            if self._linger is not None and self._linger.active():
                self._linger.cancel()
            self._ended()
