"""A channel of its own for a job's first process: straight from the runtime to the native shadow, past both Pythons.

Theory: home dials the starter host once more and shows the key of the run over the connection's TLS, and beside it 32
random bytes.  Once that is answered neither side has anything more to say, and both take the socket away from TLS: the
native shadow serves one end, the runtime is executed with the other, and what they say is encrypted with those bytes
(``native/seal.h``), of which a UNIX socket needs none.  The first word is the runtime's, and it is not started before
home has told the starter to begin: so nothing is said before both have taken their ends.

Where that cannot be (an older starter host), the stream carries the channel.

The helpers that a program starts get connections of the same kind, dialled before they are needed: each has a label, by
which home says whose it becomes.  Keys of theirs follow from their parent's.

Where gateways are in the way a channel outlives its connections (:mod:`.numbered_channel`).
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.streams import BadStream
from condor_actors.wire.relays.socket_handover import raw_transport, take_socket

if TYPE_CHECKING:
    from condor_actors.machine.standard.numbered_channel import FarNumbered

__all__ = ["SECRET_BYTES", "FarChannel", "HomeChannel", "OneAnswer"]

_DONE = Failure(ConnectionDone())
PATIENCE_S = 20.0
SECRET_BYTES = 32


class OneAnswer(Protocol):
    """What both have in common: one frame, and an end that is told once."""

    def __init__(self, reactor: Any) -> None:
        self.reactor = reactor
        self._reader = ss.StreamReader()
        self._patience = reactor.callLater(PATIENCE_S, self.cut)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """The one frame."""
        try:
            for letter, _, payload in self._reader.feed(data):
                self.take(letter, payload)
        except (ValueError, OSError):
            self.cut()

    def take(self, letter: int, payload: bytes) -> None:
        """It has come."""
        raise NotImplementedError

    def calm(self) -> None:
        """What was awaited has come."""
        if self._patience.active():
            self._patience.cancel()

    def cut(self) -> None:
        """It is not wanted any more."""
        self.calm()
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()


class HomeChannel(OneAnswer):
    """The end that dials.

    Args:
        run_id, key: what is shown to the starter host.
        ready: called once: with the socket and the secret of its encryption (None: it needs none), or with None.
        label: it is to be the channel of a helper, whose encryption follows from the first process's.
    """

    def __init__(self, reactor: Any, run_id: str, key: str,
                 ready: Callable[[socket.socket | None, bytes | None], None], label: int | None = None) -> None:
        super().__init__(reactor)
        self._run = run_id, key
        self._label = label
        self._ready: Callable[[socket.socket | None, bytes | None], None] | None = ready
        self._secret: bytes | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say what it is to be."""
        transport: Any = self.transport
        if self._label is not None:
            transport.write(ss.CHANNEL_LINE + ss.message_frame(ss.SPARE, *self._run, self._label))
            return
        if raw_transport(transport) is not transport:
            self._secret = os.urandom(SECRET_BYTES)
        transport.write(ss.CHANNEL_LINE + ss.message_frame(ss.CHANNEL, *self._run, self._secret or b""))

    def take(self, letter: int, payload: bytes) -> None:
        """Yes or no."""
        if letter != ss.READY:
            self.cut()
            return
        self.calm()
        self._tell(take_socket(self.transport))

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended, or is not the reactor's any more."""
        self.calm()
        self._tell(None)

    def _tell(self, sock: socket.socket | None) -> None:
        ready, self._ready = self._ready, None
        if ready is not None:
            ready(sock, self._secret)
        elif sock is not None:
            sock.close()


class FarChannel(OneAnswer):
    """The end beside the runtime.

    Args:
        accept: finds the run of (run id, key): None, or the object whose ``channelled(channel, answer)``, or
            ``spared(channel, label, answer)`` of a helper's, calls ``answer(whether it takes it)`` soon, and whose
            ``numbered(line, label, secret, received)`` calls ``go_on`` or ``refuse`` of this.
    """

    def __init__(self, reactor: Any, accept: Callable[[str, str], Any]) -> None:
        super().__init__(reactor)
        self._accept = accept
        self.secret = b""
        self._over = False

    def take(self, letter: int, payload: bytes) -> None:
        """Whose channel it is to be."""
        if letter not in (ss.CHANNEL, ss.SPARE, ss.NUMBERED) or not self._patience.active():
            raise BadStream("a channel that does not say whose it is")
        run_id, key, *what = ss.fields_of(letter, payload)
        self.calm()
        run = self._accept(run_id, key)
        if run is None:
            self.refuse()
        elif letter == ss.SPARE:
            run.spared(self, what[0], self._answered)
        elif letter == ss.NUMBERED:
            self._numbered(run, *what)
        elif len(what[0]) in (0, SECRET_BYTES):
            self.secret = what[0]
            run.channelled(self, self._answered)
        else:
            self.refuse()

    def _numbered(self, run: Any, label: int, secret: bytes, received: int) -> None:
        if label < 0 or not 0 <= received < 1 << 63 or len(secret) != (0 if label else SECRET_BYTES):
            raise BadStream("a numbered channel that cannot be")
        run.numbered(self, label, secret, received)

    def _answered(self, taken: bool) -> None:
        transport: Any = self.transport
        if self._over:
            return
        if not taken:
            self.refuse()
            return
        transport.write(ss.frame(ss.READY))
        raw_transport(transport).pauseProducing()

    def refuse(self) -> None:
        """There is no use for it."""
        transport: Any = self.transport
        if not self._over:
            transport.write(ss.message_frame(ss.NO, "there is no such run here, or it has its channel already"))
            transport.loseConnection()

    def go_on(self, channel: FarNumbered, received: int) -> None:
        """A numbered channel goes on over this connection, whose other end has so many bytes."""
        if not self._over and not channel.go_on(self.transport, received):
            self.refuse()

    def socket(self) -> socket.socket:
        """The socket, once home has said that the run may begin: so it has the answer."""
        return take_socket(self.transport)

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended before it was used: the process that is given it will notice."""
        self._over = True
        self.calm()
