"""Taking a connection away from the reactor: from then on it is a plain socket, without TLS."""

from __future__ import annotations

import os
import socket
from typing import Any

from twisted.protocols.tls import TLSMemoryBIOProtocol

__all__ = ["raw_transport", "take_socket"]


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
