"""Sends one file over a connection, no faster than the other side takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from zope.interface import implementer

from condor_actors.transfer.streams import BLOCK_BYTES, END, Packer, frame

BLOCKS_PER_TURN = 4
"""Blocks written before the reactor gets to look after others."""


@implementer(IPushProducer)
class FileSender:
    """A push producer: pauses when the transport's buffer is full.

    Args:
        transport: where to.
        stream: an open file, at the offset to begin with; closed at the end.
        packer: of the connection.
        clock: for giving way to others between turns.
        done: called with None when all was written, with the error when the file could not be read.
        moved: called with the number of bytes whenever some were written.
    """

    def __init__(self, transport: Any, stream: BinaryIO, packer: Packer, clock: IReactorTime, *,
                 done: Callable[[Exception | None], None], moved: Callable[[int], None]) -> None:
        self._transport = transport
        self._stream = stream
        self._packer = packer
        self._clock = clock
        self._done = done
        self._moved = moved
        self._paused = False
        self._stopped = False
        self._call: IDelayedCall | None = None
        self._bytes = 0
        self._began_s = clock.seconds()
        packer.new_file()

    def start(self) -> None:
        """Begin."""
        self._transport.registerProducer(self, True)
        self._next()

    def _next(self) -> None:
        self._call = None
        for _ in range(BLOCKS_PER_TURN):
            if self._paused or self._stopped:
                return
            try:
                block = self._stream.read(BLOCK_BYTES)
            except OSError as error:
                self._finish(error)
                return
            if not block:
                self._transport.write(frame(END))
                self._finish(None)
                return
            self._bytes += len(block)
            self._transport.write(self._packer.pack(block))
            self._moved(len(block))
        if not self._paused and not self._stopped:
            self._call = self._clock.callLater(0.0, self._next)

    def _finish(self, error: Exception | None) -> None:
        self._packer.sent(self._bytes, self._clock.seconds() - self._began_s)
        self.cancel()
        self._transport.unregisterProducer()
        self._done(error)

    def cancel(self) -> None:
        """Send no more."""
        self._stopped = True
        self._stream.close()
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's
        """The transport is full."""
        self._paused = True

    def resumeProducing(self) -> None:  # noqa: N802
        """The transport has room."""
        self._paused = False
        if not self._stopped and self._call is None:
            self._call = self._clock.callLater(0.0, self._next)

    def stopProducing(self) -> None:  # noqa: N802
        """The connection is gone."""
        self.cancel()
