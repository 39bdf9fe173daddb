"""Taking a connection away from the reactor: from then on it is a plain socket, without TLS."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall, IReadDescriptor
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

__all__ = ["READY", "FirstByte", "keep_alive", "raw_transport", "take_now", "take_socket"]

READY = b"\n"
"""What the end that was answered says, bare, where the other would speak first: it has taken its connection."""

SILENT_S, PROBE_S, PROBES, UNACKNOWLEDGED_MS = 20, 10, 3, 60_000
"""A bare connection without a word for so long is asked whether it is alive, so often; and what was sent over it and is
not acknowledged for so long ends it."""


def raw_transport(transport: Any) -> Any:
    """What is below TLS, or the transport itself."""
    while isinstance(transport, TLSMemoryBIOProtocol):
        transport = transport.transport
    return transport


def take_socket(transport: Any) -> socket.socket:
    """The connection's socket, blocking.

    Nothing may be under way: all that was written has been received (the other side has answered it), and the other
    side says nothing before it hears from us.  The reactor keeps a dead socket in its place, and closes that.
    """
    raw = raw_transport(transport)
    raw.pauseProducing()
    raw.stopWriting()
    number = raw.fileno()
    taken = socket.socket(fileno=os.dup(number))
    dead, other = socket.socketpair()
    with dead, other:
        os.dup2(dead.fileno(), number, inheritable=False)
    transport.abortConnection()
    taken.setblocking(True)
    if taken.family != socket.AF_UNIX:
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return taken


def take_now(transport: Any, last_words: bytes) -> socket.socket | None:
    """Say the last words over TLS, and take the connection's socket: what comes next is not for TLS.  None: the other
    end does not even take these, and the connection is given up."""
    raw = raw_transport(transport)
    raw.pauseProducing()
    transport.write(last_words)
    raw.doWrite()  # to the kernel, now
    if raw.dataBuffer or raw._tempDataBuffer:  # noqa: SLF001 - Twisted has no other name for what is left
        transport.abortConnection()
        return None
    return take_socket(transport)


def keep_alive(sock: socket.socket) -> None:
    """Have the kernel find out that the other end of a bare connection is gone.

    Raises:
        OSError: it is already.
    """
    if sock.family == socket.AF_UNIX:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, SILENT_S), (socket.TCP_KEEPINTVL, PROBE_S),
                          (socket.TCP_KEEPCNT, PROBES), (socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)


@implementer(IReadDescriptor)
class FirstByte:
    """Waits until the other side has taken its connection out of TLS, too, and says so.

    Without that, what is sent to it at once may come in the same read as the answer, and is lost in its TLS.

    Args:
        reactor: Twisted's.
        sock: bare, and ours until ``then`` has it.
        patience_s: how long that may take.
        then: gets the socket; None: it did not come, and the socket is closed.
    """

    def __init__(self, reactor: Any, sock: socket.socket, patience_s: float,
                 then: Callable[[socket.socket | None], None]) -> None:
        self._reactor = reactor
        self._sock = sock
        self._then = then
        self._clock: IDelayedCall = reactor.callLater(patience_s, self._end, False)
        reactor.addReader(self)

    def fileno(self) -> int:
        """For the reactor."""
        return self._sock.fileno()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's
        """For the reactor."""
        return "FirstByte"

    def doRead(self) -> None:  # noqa: N802
        """The byte, or the end."""
        try:
            said = self._sock.recv(1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self._end(said == READY)

    def connectionLost(self, reason: Failure) -> None:  # noqa: N802
        """The reactor stops."""
        self._end(False)

    def _end(self, came: bool) -> None:
        self._reactor.removeReader(self)
        if self._clock.active():
            self._clock.cancel()
        if not came:
            self._sock.close()
        self._then(self._sock if came else None)
