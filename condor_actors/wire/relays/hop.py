"""One hop of a circuit: a TLS connection on which one thing is asked, and which then is a bare one.

Theory: both ends are known by their certificates before a byte is said.  The one that dialled says two lines and waits.
The other answers; with a yes it stops reading before that leaves, and takes the connection out of TLS as soon as it
has.  The first does so when it has read it, and nothing it says before that could be meant for anybody else.  So
neither loses or mistakes a byte.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IProtocol, IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

from condor_actors.messages.envelope import Identity
from condor_actors.wire.certificates.credentials import TlsDoor, TlsFactory
from condor_actors.wire.certificates.strangers import stranger_at
from condor_actors.wire.certificates.trust import BadCertificate
from condor_actors.wire.nodes import TlsNode
from condor_actors.wire.relays.lines import MOST_BYTES, YES, answer_of, no
from condor_actors.wire.relays.socket_handover import keep_alive, take_now, take_socket

__all__ = ["Asked", "NoCircuit", "adopt", "hop"]

_DONE = Failure(ConnectionDone())
FIRST_WORDS_S = 10.0
"""Who asks has so long to say what for."""


class NoCircuit(ConnectError):
    """There is no circuit; says why.

    Args:
        reason: for people.
        is_answer: whether the other end has said so; else it could not be asked.
    """

    def __init__(self, reason: str, *, is_answer: bool = False) -> None:
        super().__init__(string=reason)  # type: ignore[no-untyped-call]
        self.reason = reason
        self.is_answer = is_answer

    def __str__(self) -> str:
        return self.reason


def hop(reactor: Any, tls: TlsDoor, node: TlsNode, plain: IStreamClientEndpoint, said: bytes, *,
        role: str = "", patience_s: float,
        known: Callable[[Identity], None] = lambda identity: None) -> Deferred[socket.socket]:
    """Ask a machine for something that ends in a bare connection.

    Args:
        reactor: Twisted's.
        tls: what we show, and whom we believe.
        node: the machine; its certificate must name it.
        plain: connects to it.
        said: the two lines.
        role: what its certificate must allow it to be; empty: any machine will do.
        patience_s: how long the answer may take, the connection included.
        known: hears who has said yes, before the connection is there.

    Returns:
        Fires with the connected socket, or fails with :class:`NoCircuit`; may be cancelled.
    """
    asking = _Asking(reactor, tls, str(node), said, role, patience_s, known)
    connecting = plain.connect(TlsFactory(tls.dialling(node), True, _Only(asking)))
    asking.connecting = connecting
    connecting.addErrback(asking.not_connected)
    return asking.found


class _Only(Factory):
    """Makes one protocol's connection."""

    noisy = False

    def __init__(self, protocol: IProtocol) -> None:
        self._protocol = protocol

    def buildProtocol(self, addr: object) -> Any:  # noqa: N802 - Twisted's
        """The one."""
        return self._protocol


class _Asking(Protocol):
    """The end that asks."""

    def __init__(self, reactor: Any, tls: TlsDoor, node: str, said: bytes, role: str, patience_s: float,
                 known: Callable[[Identity], None]) -> None:
        self._tls = tls
        self._known = known
        self._who: Identity | None = None
        self._node = node
        self._said = said
        self._role = role
        self._line = b""
        self._over = False
        self._clock: IDelayedCall = reactor.callLater(patience_s, self._fail, "it does not answer")
        self.connecting: Deferred[Any] | None = None
        self.found: Deferred[socket.socket] = Deferred(lambda _: self._end())

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Ask; it leaves when the handshake has shown who is there."""
        assert self.transport is not None
        if self._over:
            self._abort()
        else:
            self.transport.write(self._said)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """The answer."""
        if self._over:
            return
        self._line += data
        if not self._line.endswith(b"\n"):
            if len(self._line) > MOST_BYTES:
                self._fail("it is no gateway")
            return
        stranger, reason = self._stranger(), answer_of(self._line)
        if stranger or reason:
            self._fail(stranger or reason, is_answer=not stranger)
            return
        self._over = True
        self._clock.cancel()
        if self._who is not None:
            self._known(self._who)
        self.found.callback(take_socket(self.transport))

    def _stranger(self) -> str:
        """Why the other end is not whom we mean; empty: it is."""
        transport: Any = self.transport
        try:
            identity = self._who = self._tls.identify(transport.getHandle())
        except BadCertificate as error:
            return str(error)
        if self._role and (identity is None or self._role not in identity.roles):
            return f"its certificate does not allow it to be a {self._role}"
        return ""

    def not_connected(self, failure: Failure) -> None:
        """Nobody answers there."""
        if not failure.check(CancelledError):
            self._fail(failure.getErrorMessage())

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has hung up instead of answering, or the socket is taken."""
        why = "it hung up" if reason.check(ConnectionDone) else reason.getErrorMessage()
        asked = self._said.partition(b"\n")[0].decode()
        self._fail(stranger_at(self.transport) or f"{why}, before an answer to {asked!r}: has it another release?")

    def _fail(self, reason: str, *, is_answer: bool = False) -> None:
        if not self._over:
            self._end()
            self.found.errback(NoCircuit(f"{self._node}: {reason}", is_answer=is_answer))

    def _end(self) -> None:
        self._over = True
        if self._clock.active():
            self._clock.cancel()
        if self.connecting is not None:
            self.connecting.cancel()
        self._abort()

    def _abort(self) -> None:
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()


class Asked(Protocol):
    """The end that is asked.

    Args:
        reactor: Twisted's.
        identity: who asks.
        asked: called once, with this and the second line; :meth:`accept` or :meth:`refuse` is to follow.

    Attributes:
        gone: called when who asked hangs up before there is an answer.
    """

    def __init__(self, reactor: Any, identity: Identity, asked: Callable[[Asked, str], None]) -> None:
        self.identity = identity
        self.gone: Callable[[], None] = lambda: None
        self._asked: Callable[[Asked, str], None] | None = asked
        self._line = b""
        self._answered = False
        self._clock: IDelayedCall = reactor.callLater(FIRST_WORDS_S, self._abort)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """The second line, and nothing beyond it."""
        self._line += data
        text, newline, rest = self._line.partition(b"\n")
        if rest or len(text) > MOST_BYTES or self._asked is None:
            self._abort()
        elif newline:
            self._calm()
            asked, self._asked = self._asked, None
            asked(self, text.decode(errors="replace"))

    def accept(self) -> socket.socket | None:
        """Say yes; the bare connection.  None: who asked is gone."""
        transport: Any = self.transport
        if self._answered:
            return None
        self._answered = True
        sock = take_now(transport, YES)
        if sock is None:
            self._calm()
        return sock

    def refuse(self, reason: str) -> None:
        """Say no."""
        transport: Any = self.transport
        if not self._answered:
            self._answered = True
            transport.write(no(reason))
            transport.loseConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """The requester is gone, or the connection is taken."""
        self._calm()
        if not self._answered:
            self._answered = True
            self.gone()

    def _calm(self) -> None:
        if self._clock.active():
            self._clock.cancel()

    def _abort(self) -> None:
        transport: Any = self.transport
        self._calm()
        transport.abortConnection()


def adopt(reactor: Any, sock: socket.socket, factory: Any) -> Any:
    """Give a bare connection back to the reactor.

    Args:
        reactor: Twisted's.
        sock: connected; closed here, the reactor has it under another number.
        factory: makes its protocol.

    Returns:
        The transport; its ``protocol`` is what the factory made.
    """
    with sock:
        keep_alive(sock)
        return reactor.adoptStreamConnection(sock.fileno(), sock.family, factory)
