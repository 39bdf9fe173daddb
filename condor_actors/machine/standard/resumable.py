"""A stream between a standard-universe job and its home that outlives its connections.

Theory: between pools a connection goes through gateways, each of which may be started again at any moment.  What ends
with one is a way, and neither the program nor its home: so home dials again, both say how much has come
(:mod:`condor_actors.transfer.numbered_frames`), and the stream goes on where it was.  Meanwhile the program waits in
its next call.  No call is done twice: a request that had come is not sent again, and its answer is.

Such a stream carries the calls, too (they have no channel of their own), since the sockets that the runtime and the
native shadow hold are those of this machine then, and do not break.

================  =========================================================================================
what breaks       what follows
================  =========================================================================================
the connection    ``broken()`` of both ends; home dials (:mod:`.resuming`), the starter waits for its lease
a process, or     the other end hears of it by ``O``, by a refusal of ``U``, or when its lease is over: then the
the run's end     stream is over, as one that does not outlive its connection is at once
================  =========================================================================================
"""

from __future__ import annotations

from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from condor_actors.machine.standard.stream import StandardStream
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.numbered_frames import NumberedFrames
from condor_actors.transfer.streams import BadStream

__all__ = ["ResumableStream"]

_DONE = Failure(ConnectionDone())
TELL_S = 1.0
"""What has come is acknowledged within this time."""
LAST_WORDS_S = 5.0
"""How long a connection is kept for ``O`` to leave."""


class ResumableStream(StandardStream):
    """A stream that may outlive its connections; arguments as for :class:`StandardStream`."""

    def __init__(self, reactor: Any, **options: Any) -> None:
        super().__init__(reactor, **options)
        self._numbers: NumberedFrames | None = None
        self._line: Any = None
        self._choked = False
        self._telling: IDelayedCall | None = None
        self.offered = False

    @property
    def lasts(self) -> bool:
        """Whether it outlives its connections."""
        return self._numbers is not None

    @property
    def received(self) -> int:
        """How many frames have come."""
        return self._numbers.received if self._numbers is not None else 0

    def last(self) -> None:
        """From now on it outlives its connections."""
        self._numbers = NumberedFrames()

    # ---- connections

    def use(self, transport: Any) -> None:
        """Send over this connection."""
        self._line = self._line or self
        super().use(transport)

    def resume(self, line: Any, received: int, *, answer: bool = False) -> None:
        """Go on over another connection.

        Args:
            line: its protocol, which calls :meth:`data_of` and :meth:`lost_of`.
            received: how many frames the other end has.
            answer: say first how many have come.

        Raises:
            BadStream: the other end cannot have them; or the stream is over.
        """
        numbers = self._numbers
        if numbers is None or self.over:
            raise BadStream("the stream is over")
        numbers.acknowledged(received)
        old: Any = self.transport
        self._line, self.transport, self._choked = line, line.transport, False
        if old is not None:
            old.abortConnection()
        self._reader = ss.StreamReader()
        self.use(line.transport)
        if answer:
            self.tell()
        for frame in numbers.unacknowledged:
            self._write(frame)
        self._pace()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Over the connection with which it began."""
        self.data_of(self, data)

    def data_of(self, line: Any, data: bytes) -> None:
        """Over a connection, which may be an old one."""
        if line is self._line:
            super().dataReceived(data)

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """The connection with which it began has ended."""
        self.lost_of(self, reason)

    def lost_of(self, line: Any, reason: Failure) -> None:
        """A connection has ended, which may be an old one."""
        if line is not self._line:
            return
        if self._numbers is None or self.over:
            super().connectionLost(reason)
            return
        self._line = self.transport = None
        self._write = lambda data: None
        self._pace()
        self.broken(reason.getErrorMessage())

    # ---- frames

    def send(self, data: bytes) -> None:
        """One frame to the other end; kept until that has it."""
        if self._numbers is not None and not self.over:
            self._numbers.sent(data)
        super().send(data)
        self._pace()

    def came(self, letter: int, member: int, payload: bytes) -> None:
        """Count it, but for those about the counting."""
        if letter == ss.ARRIVED:
            if self._numbers is None and self.offered:
                self.last()
            if self._numbers is None:
                raise BadStream("an acknowledgement of frames that have no numbers")
            self._numbers.acknowledged(ss.number_of(payload))
            self._pace()
            return
        if self._numbers is None:
            self.take(letter, member, payload)
        elif letter == ss.OVER:
            self._end("the other end has ended it")
            self._hang_up()
        else:
            if self._numbers.came(len(payload)):
                self.tell()
            elif self._telling is None:
                self._telling = self.reactor.callLater(TELL_S, self.tell)
            self.take(letter, member, payload)

    def tell(self) -> None:
        """Say how much has come."""
        telling, self._telling = self._telling, None
        if telling is not None and telling.active():
            telling.cancel()
        if self._numbers is not None and not self.over:
            self._write(ss.arrived_frame(self._numbers.told()))

    # ---- pace

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's
        """The other end takes no more for now."""
        self._choked = True
        self._pace()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's
        """It does again."""
        self._choked = False
        self._pace()

    def _pace(self) -> None:
        """Take more to send, or not: without a connection nothing that need not be."""
        lacks = self._numbers is not None and (self._line is None or self._numbers.full)
        held = self._choked or lacks
        if held and not self._paused:
            super().pauseProducing()
        elif self._paused and not held:
            super().resumeProducing()

    # ---- the end

    def cut(self, reason: str) -> None:
        """End it; the other end is told that it need not wait."""
        transport: Any = self.transport
        if self.over or self._numbers is None or transport is None:
            super().cut(reason)
            return
        self._write(ss.frame(ss.OVER))
        self._end(reason)
        transport.unregisterProducer()
        transport.loseConnection()
        self.reactor.callLater(LAST_WORDS_S, transport.abortConnection)

    def _end(self, reason: str) -> None:
        if self._telling is not None and self._telling.active():
            self._telling.cancel()
        super()._end(reason)

    def broken(self, reason: str) -> None:
        """Its connection has ended, and it has not."""
        raise NotImplementedError
