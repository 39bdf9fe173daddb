"""The connections on which a stream goes on whose connection has broken: home dials them, the starter host takes them.

Theory: home shows the key of the run, as it did at first, and says how much has come of the stream; the starter answers
with the same (``condor standard resumed 1``).  From then on the connection is the stream's, and whatever ends it has
home dial again: soon, then every few seconds, and no longer than the job's lease.  Where the other pool's gateway
itself says all the while that nobody answers at the machine, that is not for long: no gateway is away then, but the
machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

from condor_actors.machine.standard.resumable import ResumableStream
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.streams import BadStream
from condor_actors.wire.relays.lines import NOBODY_THERE

__all__ = ["FarLine", "HomeLine", "Redialling"]

_DONE = Failure(ConnectionDone())
PATIENCE_S = 60.0
"""How long the other end may take for its first word: through gateways that are being started, too."""
FIRST_RETRY_S, MOST_RETRY_S = 0.5, 5.0


class _Line(Protocol):
    """What both have in common: a first frame, and from then on the bytes of a stream."""

    def __init__(self, reactor: Any) -> None:
        self._said = b""
        self._stream: ResumableStream | None = None
        self._patience = reactor.callLater(PATIENCE_S, self.hang_up)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """The first frame, then those of the stream."""
        if self._stream is None:
            data = self._begin(data)
        if data and self._stream is not None:
            self._stream.data_of(self, data)

    def _begin(self, data: bytes) -> bytes:
        """Take the first frame once it is whole; what came after it."""
        self._said += data
        try:
            found = ss.first_frame(self._said)
            if found is None:
                return b""
            letter, payload, self._said = found
            self.first(letter, payload)
        except (ValueError, OSError):
            self.hang_up()
            return b""
        return self._said

    def first(self, letter: int, payload: bytes) -> None:
        """The other end's first word.

        Raises:
            BadStream: no honest peer says it.
        """
        raise NotImplementedError

    def calm(self) -> None:
        """It has come."""
        if self._patience.active():
            self._patience.cancel()

    def hang_up(self) -> None:
        """The peer is of no use."""
        self.calm()
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended."""
        self.calm()
        if self._stream is not None:
            self._stream.lost_of(self, reason)


class HomeLine(_Line):
    """The end that dials.

    Args:
        run: id and key, shown to the starter host.
        stream: what goes on.
        failed: called once when it does not go on here: (why, whether the starter host has said so).
    """

    def __init__(self, reactor: Any, run: tuple[str, str], stream: ResumableStream,
                 failed: Callable[[str, bool], None]) -> None:
        super().__init__(reactor)
        self._run = run
        self._of = stream
        self._failed: Callable[[str, bool], None] | None = failed

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say which stream it is."""
        transport: Any = self.transport
        transport.write(ss.RESUMED_LINE + ss.message_frame(ss.RESUMED, *self._run, self._of.received))

    def first(self, letter: int, payload: bytes) -> None:
        """Whether it goes on, and how much has come there."""
        self.calm()
        if letter == ss.NO:
            self._fail(str(ss.fields_of(letter, payload)[0]), said=True)
            self.hang_up()
        elif letter != ss.ARRIVED:
            raise BadStream("neither yes nor no")
        else:
            self._go_on(ss.number_of(payload))

    def _go_on(self, arrived: int) -> None:
        try:
            self._of.resume(self, arrived)
        except BadStream as error:  # another try would say the same
            self._fail(str(error), said=True)
            raise
        self._stream, self._failed = self._of, None

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended, or could not be made."""
        super().connectionLost(reason)
        self._fail(reason.getErrorMessage(), said=False)

    def _fail(self, why: str, said: bool) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            failed(why, said)


class FarLine(_Line):
    """The end beside the runtime.

    Args:
        accept: finds the run of (run id, key): None, or the object that has its ``lasting_stream()``.
    """

    def __init__(self, reactor: Any, accept: Callable[[str, str], Any]) -> None:
        super().__init__(reactor)
        self._accept = accept

    def first(self, letter: int, payload: bytes) -> None:
        """Whose stream goes on here."""
        if letter != ss.RESUMED:
            raise BadStream("a stream that does not say whose it is")
        run_id, key, received = ss.fields_of(letter, payload)
        self.calm()
        run = self._accept(run_id, key)
        stream: ResumableStream | None = run.lasting_stream() if run is not None else None
        transport: Any = self.transport
        if stream is None:
            transport.write(ss.message_frame(ss.NO, "there is no such run here, or its stream is over"))
            transport.loseConnection()
            return
        stream.resume(self, received, answer=True)
        self._stream = stream


class Redialling:
    """Dials for a stream whose connection has broken, until it goes on or nobody waits any longer.

    Args:
        reactor: Twisted's.
        run: id and key.
        endpoint: where the starter host is.
        lease_s: how long a stream may be without a connection.
        nobody_s: how long the gateway of the other pool may say that nobody answers there.
    """

    def __init__(self, reactor: Any, run: tuple[str, str], endpoint: Callable[[], IStreamClientEndpoint],
                 lease_s: float, nobody_s: float) -> None:
        self._reactor = reactor
        self._run = run
        self._endpoint = endpoint
        self._lease_s = lease_s
        self._nobody_s = nobody_s
        self._nobody_until_s: float | None = None
        self._until_s = 0.0
        self._retry_s = FIRST_RETRY_S

    def begin(self, stream: ResumableStream) -> None:
        """Its connection has broken."""
        self._until_s = self._reactor.seconds() + self._lease_s
        self._nobody_until_s = None
        self._retry_s = FIRST_RETRY_S
        self._dial(stream)

    def _is_vanished(self, why: str) -> bool:
        """Whether the gateway that is next to the machine has said for long enough that it does not answer."""
        now_s = self._reactor.seconds()
        if NOBODY_THERE not in why:  # a gateway is away: nobody knows
            self._nobody_until_s = None
        elif self._nobody_until_s is None:
            self._nobody_until_s = now_s + self._nobody_s
        return self._nobody_until_s is not None and now_s >= self._nobody_until_s

    def _dial(self, stream: ResumableStream) -> None:
        if stream.over:
            return

        def failed(why: str, said: bool) -> None:
            if stream.over:
                return
            if said or self._reactor.seconds() >= self._until_s:
                stream.cut(why if said else f"no connection within the job's lease: {why}")
                return
            if self._is_vanished(why):
                stream.cut(f"the machine does not answer its own pool's gateway any more: {why}")
                return
            self._reactor.callLater(self._retry_s, self._dial, stream)
            self._retry_s = min(2 * self._retry_s, MOST_RETRY_S)

        line = HomeLine(self._reactor, self._run, stream, failed)
        try:
            connecting = self._endpoint().connect(Factory.forProtocol(lambda: line))
        except (ValueError, OSError) as error:
            line.connectionLost(Failure(error))
            return
        connecting.addErrback(line.connectionLost)
