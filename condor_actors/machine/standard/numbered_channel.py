"""The channels of a job's processes where gateways are in the way: straight as well, and past a gateway's end.

Theory: what breaks with a gateway is a connection, and neither the runtime nor the native shadow, which hold the two
ends of a channel.  So each of them gets a socket of its own machine instead, and a native relay
(``native/relay/numbered.c``) lies between that and the connection.  The relays number the bytes; what they say is
encrypted as on any channel.  When a connection breaks, home dials another one, both ends say how much has come, and
the rest is sent again: so no call is lost, and none is done twice.  Meanwhile the program waits in its next call.

Python makes the connections, as it does those of other channels (:mod:`.channel`), and is in the way of no byte.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from condor_actors.machine.native.relays import NumberedChannel, native_relays
from condor_actors.machine.standard.channel import SECRET_BYTES, OneAnswer
from condor_actors.machine.standard.resuming import FIRST_RETRY_S, MOST_RETRY_S
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.streams import BadStream
from condor_actors.wire.relays.socket_handover import keep_alive, take_now, take_socket

__all__ = ["FarNumbered", "HomeChannels"]

_DONE = Failure(ConnectionDone())
Ready = Callable[[socket.socket | None, bytes | None], None]
"""Called once: with the end of a channel and the secret of its encryption, or with None."""


class _HomeLine(OneAnswer):
    """One connection that a channel may go on over.

    Args:
        said: what is shown to the starter host.
        answered: called once: with how many bytes have come there (None: it says no), and the socket.
        failed: called when there is no answer.
    """

    def __init__(self, reactor: Any, said: bytes, answered: Callable[[int | None, socket.socket | None], None],
                 failed: Callable[[], None]) -> None:
        super().__init__(reactor)
        self._said = said
        self._answered: Callable[[int | None, socket.socket | None], None] | None = answered
        self._failed = failed

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say which channel it is."""
        transport: Any = self.transport
        transport.write(ss.CHANNEL_LINE + self._said)

    def take(self, letter: int, payload: bytes) -> None:
        """Yes, and how much has come there; or no."""
        if letter not in (ss.ARRIVED, ss.NO) or self._answered is None:
            raise BadStream("neither yes nor no")
        number = ss.number_of(payload) if letter == ss.ARRIVED else None
        answered, self._answered = self._answered, None
        self.calm()
        if number is None:
            self.cut()
            answered(None, None)
        else:
            answered(number, take_socket(self.transport))

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended, or could not be made."""
        self.calm()
        if self._answered is not None:
            self._answered = None
            self._failed()


class _HomeNumbered:
    """The home end of one channel.

    Args:
        channels: the run's.
        label: of the channel; 0: the first process's.
        ready: gets its end, once the starter host has taken the channel.
        is_patient: whether what cannot be made at once is tried again.
    """

    def __init__(self, channels: HomeChannels, label: int, ready: Ready, *, is_patient: bool) -> None:
        self._channels = channels
        self._label = label
        self._ready: Ready | None = ready
        self._is_patient = is_patient
        self._secret = os.urandom(SECRET_BYTES) if label == 0 else b""
        self._retry_s = FIRST_RETRY_S
        self._until_s = channels.reactor.seconds() + channels.lease_s
        self._own: socket.socket | None
        self._own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._relay: NumberedChannel = native_relays(channels.reactor).channel(theirs, self._ended, self._lost)

    def dial(self) -> None:
        """Look for a connection."""
        received = self._relay.detach()
        if received is None:
            return
        said = ss.message_frame(ss.NUMBERED, *self._channels.run, self._label, self._secret, received)
        line = _HomeLine(self._channels.reactor, said, self._answered, self._failed)
        try:
            connecting = self._channels.endpoint().connect(Factory.forProtocol(lambda: line))
        except (ValueError, OSError) as error:
            line.connectionLost(Failure(error))
            return
        connecting.addErrback(line.connectionLost)

    def _answered(self, arrived: int | None, sock: socket.socket | None) -> None:
        if arrived is None or sock is None:
            self.cut()
            return
        try:
            keep_alive(sock)
        except OSError:
            sock.close()
            self._failed()
            return
        if not self._relay.attach(sock, arrived, listens=False):
            self.cut()
            return
        self._retry_s = FIRST_RETRY_S
        own, self._own = self._own, None
        self._tell(own)

    def _lost(self) -> None:
        self._until_s = self._channels.reactor.seconds() + self._channels.lease_s
        self.dial()

    def _failed(self) -> None:
        """No connection, this time."""
        reactor = self._channels.reactor
        if reactor.seconds() >= self._until_s or (self._ready is not None and not self._is_patient):
            self.cut()
            return
        reactor.callLater(self._retry_s, self.dial)
        self._retry_s = min(2 * self._retry_s, MOST_RETRY_S)

    def cut(self) -> None:
        """It is not wanted any more, or leads nowhere."""
        self._relay.cut()

    def _ended(self, why: str) -> None:
        self._channels.forget(self)
        own, self._own = self._own, None
        if own is not None:
            own.close()
        self._tell(None)

    def _tell(self, own: socket.socket | None) -> None:
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(own, self._secret or None)


class HomeChannels:
    """The home ends of a run's channels.

    Args:
        reactor: Twisted's.
        run: id and key, shown to the starter host.
        endpoint: where that is.
        lease_s: how long a channel may be without a connection.
    """

    def __init__(self, reactor: Any, run: tuple[str, str], endpoint: Callable[[], IStreamClientEndpoint],
                 lease_s: float) -> None:
        self.reactor = reactor
        self.run = run
        self.endpoint = endpoint
        self.lease_s = lease_s
        self._open: set[_HomeNumbered] = set()

    def open(self, label: int, ready: Ready) -> None:
        """Make one; see :class:`_HomeNumbered`.  The first process's is worth some waiting."""
        try:
            channel = _HomeNumbered(self, label, ready, is_patient=label == 0)
        except OSError:
            ready(None, None)
            return
        self._open.add(channel)
        channel.dial()

    def forget(self, channel: _HomeNumbered) -> None:
        """It has ended."""
        self._open.discard(channel)

    def cut(self) -> None:
        """The run is over."""
        for channel in tuple(self._open):
            channel.cut()


class FarNumbered:
    """The end of one channel that is beside the runtime, whose connections come and go.

    Args:
        reactor: Twisted's.
        secret: of the channel's encryption; empty: it follows from another's.
        over: called once, when the channel is.

    Raises:
        OSError: no memory, no descriptors.
    """

    def __init__(self, reactor: Any, secret: bytes, over: Callable[[], None]) -> None:
        self.secret = secret
        self._over = over
        own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._own: socket.socket | None = own
        self._relay: NumberedChannel = native_relays(reactor).channel(theirs, self._ended)

    def go_on(self, transport: Any, received: int) -> bool:
        """Over this connection, whose other end has so many bytes; whether it does."""
        here = self._relay.detach()
        if here is None:
            return False
        sock = take_now(transport, ss.arrived_frame(here))
        if sock is not None:
            with contextlib.suppress(OSError):
                keep_alive(sock)
            if not self._relay.attach(sock, received, listens=True):
                self.cut()  # the two do not fit, and never will
        return True

    def socket(self) -> socket.socket:
        """The end that is a process's.

        Raises:
            OSError: it is over, or was taken.
        """
        own, self._own = self._own, None
        if own is None:
            raise OSError("the channel is over")
        return own

    def cut(self) -> None:
        """It is not wanted any more."""
        self._relay.cut()

    def _ended(self, why: str) -> None:
        own, self._own = self._own, None
        if own is not None:
            own.close()
        self._over()
