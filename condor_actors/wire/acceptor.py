"""The first line of a connection says what it is for.

Theory: before a broker or a bulk stream reads a byte, the other side is known: by ``SO_PEERCRED`` on a UNIX socket, by
its certificate chain on TLS, or by a token that it shows there (:mod:`condor_actors.wire.idtokens.exchange`).  Then it
writes one line (``condor actors 1``) and the connection belongs to that protocol.  A peer without a certificate or
token may only ask for one, and only where that is offered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import attrs
from cryptography.hazmat.primitives.serialization import Encoding
from twisted.internet import tcp, unix
from twisted.internet.address import UNIXAddress
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IProtocol, ITransport
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure

from condor_actors.accounts import NotYet
from condor_actors.messages.envelope import Identity
from condor_actors.wire.certificates.credentials import TlsDoor
from condor_actors.wire.certificates.strangers import stranger_at
from condor_actors.wire.certificates.trust import BadCertificate
from condor_actors.wire.frames import ACTORS_LINE, TOKEN_LINE
from condor_actors.wire.idtokens.exchange import TokenExchange
from condor_actors.wire.idtokens.signed_token import BadToken
from condor_actors.wire.peers import local_identity, loopback_uid, peer_uid
from condor_actors.wire.relays.lines import RELAYED_LINE, no, other_version

if TYPE_CHECKING:
    from condor_actors.wire.post_office import PostOffice

_DONE = Failure(ConnectionDone())
FIRST_LINE_S = 10.0
FIRST_LINE_ABROAD_S = 30.0
"""Through gateways: the true end can speak only when the rest of its way is made, too."""

MAX_LINE_BYTES = 32
ACCEPTS_AT_ONCE = 16
BACKLOG = 512
ASK_AGAIN_S = 0.1


class InboundConnection(Protocol):
    """Reads the first line and hands the connection over."""

    def __init__(self, office: PostOffice, tls: TlsDoor | None, realm: str = "") -> None:
        self._office = office
        self._tls = tls
        self._realm = realm
        self._buffer = b""
        self._inner: IProtocol | None = None
        self._timeout: IDelayedCall | None = None
        self._asking: IDelayedCall | None = None
        self._exchange: TokenExchange | None = None
        self._bearer: Identity | None = None
        self.identity: Identity | None = None
        self._source = ""
        self._refused = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Wait for the line, but not forever; hang up at once on a source that has too many connections."""
        source = f"pool {self._realm}" if self._realm else source_of(self.transport)
        if not self._office.admission.enter(source):
            _abort(self.transport)
            return
        self._source = source
        patience_s = FIRST_LINE_ABROAD_S if self._realm else FIRST_LINE_S
        self._timeout = self._office.clock.callLater(patience_s, self._too_slow)
        self._office.inbound_connections.add(self)

    def _too_slow(self) -> None:
        self._timeout = None
        if not self._refused:
            self._office.log.info("a connection from {peer} does not say what it wants", peer=self._peer())
        _abort(self.transport)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Collect the line."""
        if self._inner is not None:
            self._inner.dataReceived(data)
            return
        if self._exchange is not None:
            self._exchange.received(data)
            return
        if not self._source or self._refused:
            return
        self._buffer += data
        line, newline, rest = self._buffer.partition(b"\n")
        if newline:
            self._hand_over(line + newline, rest)
        elif len(self._buffer) > MAX_LINE_BYTES:
            _abort(self.transport)

    def _ask_again(self) -> None:
        """The user database may have said by now who this is."""
        self._asking = None
        transport: Any = self.transport
        transport.resumeProducing()
        line, newline, rest = self._buffer.partition(b"\n")
        self._hand_over(line + newline, rest)

    def _hand_over(self, line: bytes, rest: bytes) -> None:
        if line == TOKEN_LINE and self._takes_token(rest):
            return
        try:
            identity = self._bearer or self._identify()
        except NotYet:
            transport: Any = self.transport
            transport.pauseProducing()
            self._asking = self._office.clock.callLater(ASK_AGAIN_S, self._ask_again)
            return
        if identity is not None and identity is not _NOBODY:
            identity = self._office.known_here(attrs.evolve(identity, address=self._address()))
        inner = self._office.accept(line, identity) if self._may_enter(identity) else None
        if inner is None:
            self._refuse(line, identity)
            return
        self._stop_clock()
        self._office.admission.spoke(self._source)
        self._inner, self.identity = inner, identity
        assert self.transport is not None
        inner.makeConnection(self.transport)
        self.dataReceived = inner.dataReceived  # type: ignore[method-assign]  # one call less for each chunk
        if rest:
            inner.dataReceived(rest)

    def _refuse(self, line: bytes, identity: Identity | None) -> None:
        """Hang up; a peer of another release that may enter hears why."""
        admitted = identity is not None and self._may_enter(identity)
        known = (ACTORS_LINE, RELAYED_LINE, *self._office.services)
        reason = other_version(line, known) if admitted and line not in known else ""
        self._office.log.info("a connection from {peer} ({who}) wants {line!r}: refused{reason}", peer=self._peer(),
                              who=getattr(identity, "name", "a stranger"), line=line,
                              reason=f" ({reason})" if reason else "")
        if not reason:
            _abort(self.transport)
            return
        self._refused = True
        transport: Any = self.transport
        transport.write(no(reason))
        transport.loseConnection()

    def _may_enter(self, identity: Identity | None) -> bool:
        """Whether a peer is admitted; through the gateway only those of the pool that it names."""
        if self._realm:
            return identity is not None and identity.realm == self._realm
        return identity is not _NOBODY

    # ---- tokens

    def _takes_token(self, rest: bytes) -> bool:
        """Let the peer show a token, once, where one counts: on TLS, since a local socket tells who it is."""
        verifier = self._office.tokens
        if self._tls is None or self._realm or verifier is None or rest or self._bearer is not None:
            return False
        transport: Any = self.transport
        own = transport.getHandle().get_certificate()
        if own is None:
            return False
        self._buffer = b""
        certificate = own.to_cryptography().public_bytes(Encoding.DER)
        self._exchange = TokenExchange(verifier, certificate, transport.write, self._token_judged)
        self._exchange.begin()
        return True

    def _token_judged(self, found: Identity | BadToken) -> None:
        self._exchange = None
        if isinstance(found, Identity):
            self._bearer = found
            return
        self._office.log.warn("a token from {peer} refused: {error}",  # noqa: G010 - Twisted's name
                              peer=self._peer(), error=found)
        self.hang_up()

    def _address(self) -> str:
        """The IP address of the peer; empty at a local socket."""
        assert self.transport is not None
        return str(getattr(self.transport.getPeer(), "host", "")) if self._tls is not None else ""

    def cut(self, reason: str) -> None:
        """End the connection at once: its peer may stay no longer."""
        self._office.log.warn("the connection of {who} from {peer} is cut: {reason}",  # noqa: G010
                              who=self.identity.name if self.identity is not None else "a stranger", peer=self._peer(),
                              reason=reason)
        _abort(self.transport)

    def _identify(self) -> Any:
        transport: Any = self.transport
        if self._tls is None:
            return local_identity(transport.socket, self._office.uid_domain)
        try:
            return self._tls.identify(transport.getHandle())
        except BadCertificate as error:
            self._office.log.warn("a certificate from {peer} refused: {error}",  # noqa: G010 - Twisted's name
                                  peer=self._peer(), error=error)
            return _NOBODY

    def _peer(self) -> str:
        assert self.transport is not None
        return str(self.transport.getPeer())

    def _stop_clock(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """Tell the connection's owner."""
        self._stop_clock()
        if self._source:
            self._office.admission.leave(self._source, spoke=self._inner is not None)
            self._source = ""
        self._office.inbound_connections.discard(self)
        if self._inner is not None:
            self._inner.connectionLost(reason)
        elif (said := stranger_at(self.transport)) and self._office.strangers.note(
                said, self._address(), self._office.clock.seconds()):
            self._office.log.warn("{peer} refused: {said}", peer=self._peer(), said=said)  # noqa: G010

    def hang_up(self) -> None:
        """Close the connection after what was written."""
        if self.transport is not None:
            self.transport.loseConnection()


_NOBODY = Identity(name="nobody@nowhere", method="tls")


def _abort(transport: ITransport | None) -> None:
    if transport is not None:
        transport.abortConnection()  # type: ignore[attr-defined]  # every transport of ours has it


def source_of(transport: Any) -> str:
    """Where a connection comes from: the uid of a local process, else the address."""
    peer, own = transport.getPeer(), transport.getHost()
    if isinstance(peer, UNIXAddress):
        return f"uid {peer_uid(transport.socket)}"
    host = str(getattr(peer, "host", ""))
    if host.startswith("127.") or host == "::1":
        uid = loopback_uid((host, peer.port), (own.host, own.port))
        return host if uid is None else f"uid {uid}"
    return host


class _Few:
    """A port that takes a few connections in an iteration, however many wait: Twisted takes ever more."""

    @property
    def numberAccepts(self) -> int:  # noqa: N802 - Twisted's
        """How many it takes at once."""
        return ACCEPTS_AT_ONCE

    @numberAccepts.setter
    def numberAccepts(self, number: int) -> None:  # noqa: N802
        """Twisted's wish."""


class TcpDoor(_Few, tcp.Port):
    """As :meth:`reactor.listenTCP` makes."""


class UnixDoor(_Few, unix.Port):
    """As ``reactor.listenUNIX`` makes, with its mode from the beginning.

    Twisted changes it by its name afterwards, which in a folder of another account may be a link by then.

    Args:
        path: where it is made.
        factory: makes the protocols; backlog: how many wait; mode: who may connect.
    """

    def __init__(self, path: bytes, factory: Factory, backlog: int, mode: int, reactor: Any) -> None:
        super().__init__(path, factory, backlog, mode, reactor=reactor)
        self._place, self._mode = path, mode

    def startListening(self) -> None:  # noqa: N802 - Twisted's
        """Make the socket.

        Raises:
            OSError: it cannot be made there.
        """
        door: Any = self  # Twisted's own words for it have no types
        made = door.createInternetSocket()
        umask = os.umask(0o777 & ~self._mode)
        try:
            made.bind(self._place)
        except BaseException:
            made.close()
            raise
        finally:
            os.umask(umask)
        made.listen(self.backlog)
        door.factory.doStart()
        door.connected, door.socket, door.fileno = True, made, made.fileno
        door.startReading()


class DoorFactory(Factory):
    """Makes an :class:`InboundConnection` for each that comes; with ``realm`` for that pool's, through a gateway."""

    noisy = False

    def __init__(self, office: PostOffice, tls: TlsDoor | None, realm: str = "") -> None:
        self._office = office
        self._tls = tls
        self._realm = realm

    def buildProtocol(self, addr: object) -> InboundConnection:  # noqa: N802 - Twisted's
        """What speaks over it."""
        return InboundConnection(self._office, self._tls, self._realm)
