"""A peer that sends bytes of its own."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol

__all__ = ["Raw"]


class Raw(Protocol):
    """Sends bytes and waits for the connection's end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.got = b""
        self.ended: Deferred[bytes] = Deferred()

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(self.data)

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Any = None) -> None:
        self.ended.callback(self.got)
