"""Reads what a program prints, no faster than it is wanted: one that floods its output waits in its own write."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

__all__ = ["PipeReader"]

READ_BYTES = 64 * 1024
PAUSE_S = 0.05
"""After so much output a program waits so long."""
DRAIN_READS = 32
"""What is left in a pipe when its program has ended is read in so many pieces at most: others may still write."""


@implementer(IReadDescriptor)
class PipeReader:
    """Reads one pipe, a piece at a time.

    Args:
        reactor: Twisted's.
        descriptor: the reading end, which is closed with it.
        take: is called with each piece.
    """

    def __init__(self, reactor: Any, descriptor: int, take: Callable[[bytes], None]) -> None:
        self._reactor = reactor
        self._descriptor = descriptor
        self._take = take
        self._pause: Any = None
        os.set_blocking(descriptor, False)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._descriptor

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "pipe"

    def read(self) -> None:
        """Begin to read, or go on."""
        self._pause = None
        if self._descriptor >= 0:
            self._reactor.addReader(self)

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """A piece, and a pause when it was a full one."""
        size = self._piece()
        if size >= READ_BYTES and self._descriptor >= 0:
            self._reactor.removeReader(self)
            self._pause = self._reactor.callLater(PAUSE_S, self.read)

    def _piece(self) -> int:
        """Read a piece; its size, 0: there is nothing now, or nothing any more."""
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()
        return len(data)

    def drain(self) -> None:
        """What is in the pipe now."""
        for _ in range(DRAIN_READS):
            if self._descriptor < 0 or not self._piece():
                return

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The other end is closed: what is still in it is read."""
        self.drain()
        self.close()

    def close(self) -> None:
        """Read no more."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._descriptor >= 0:
            self._reactor.removeReader(self)
            os.close(self._descriptor)
            self._descriptor = -1
