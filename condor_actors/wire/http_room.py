"""Room for HTTP connections of strangers: how many, how long one may say nothing, how large a body may be.

Theory: a connection costs a descriptor before it has said a word, and opening one costs a stranger nothing. So they
are counted, of all and of each source (on loopback the user at the other end, who has all its addresses). One that
has no request under way is the cheapest to lose: where a source has its share, its own that has been silent longest
makes room for the new one, and where all is taken, one of the source with the most. Requests under way make room only
for a source that has fewer. So idle connections, and ones
that send a request a letter at a time, keep nobody out. A connection that does not come to a request within
:data:`PATIENCE_S` ends, and so does one that does not read its answer. Sixteen are accepted in an iteration of the
reactor, so that what an honest client sends behind its connection is read before others can take its place.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from condor_actors.wire.acceptor import BACKLOG, TcpDoor
from condor_actors.wire.peers import loopback_uid
from condor_actors.written_text import read_plain

__all__ = ["BoundedSite", "Connections", "http_source", "listen_http", "tls_context"]

PATIENCE_S = 30.0


def http_source(peer: Any, own: Any) -> str:
    """Whose connection it is: a user of this machine, the IPv4 address, or the /64 of IPv6 that one machine has.

    Args:
        peer, own: the addresses of the two ends, as Twisted has them.
    """
    host = getattr(peer, "host", "").partition("%")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        uid = loopback_uid((peer.host, peer.port), (own.host, own.port))
        return "loopback" if uid is None else f"uid {uid}"
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False).network_address)
    return str(found)


class Connections:
    """Counts connections, and says which of them makes room.

    Args:
        most: in all.
        most_of_one: of one source.

    Attributes:
        sources: how many each has.
    """

    def __init__(self, most: Callable[[], int], most_of_one: Callable[[], int]) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._silent: dict[str, dict[BoundedChannel, None]] = {}
        self._busy: dict[str, dict[BoundedChannel, None]] = {}
        self.sources: Counter[str] = Counter()

    def enter(self, source: str, channel: BoundedChannel) -> bool:
        """A connection comes, silent as yet; False: there is no room, and it is not counted."""
        while self.sources[source] >= self._most_of_one():
            if not self._make_room(self._silent, source):
                return False
        while self.sources.total() >= self._most():
            more_than = self.sources[source] + 1
            if not self._make_room(self._silent) and not self._make_room(self._busy, more_than=more_than):
                return False
        self.sources[source] += 1
        self.silent(source, channel)
        return True

    def _make_room(self, among: dict[str, dict[BoundedChannel, None]], source: str = "", more_than: int = 0) -> bool:
        """End the first of them, of a source or of the one that has the most, if that has more than so many."""
        if not source:
            source = max(among, key=self.sources.__getitem__, default="")
        for channel in among.get(source, ()) if self.sources[source] > more_than else ():
            channel.give_way()
            return True
        return False

    def silent(self, source: str, channel: BoundedChannel) -> None:
        """It has no request under way, from now on."""
        self._forget(source, channel)
        self._silent.setdefault(source, {})[channel] = None

    def busy(self, source: str, channel: BoundedChannel) -> None:
        """A request of it is answered."""
        self._forget(source, channel)
        self._busy.setdefault(source, {})[channel] = None

    def _forget(self, source: str, channel: BoundedChannel) -> None:
        for table in (self._silent, self._busy):
            known = table.get(source, {})
            known.pop(channel, None)
            if not known:
                table.pop(source, None)

    def leave(self, source: str, channel: BoundedChannel) -> None:
        """It is gone."""
        self._forget(source, channel)
        self.sources[source] -= 1
        if not self.sources[source]:
            del self.sources[source]


class BoundedRequest(Request):
    """A request whose body, if it has one, is small and of a length that is said before."""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Refuse another body before it is read."""
        channel: Any = self.channel
        if channel is None or (length is not None and length <= channel.factory.longest_body):
            super().gotLength(length)  # type: ignore[no-untyped-call]
            return
        super().gotLength(0)  # type: ignore[no-untyped-call]
        if channel.transport is not None:
            channel.transport.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            channel.loseConnection()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802 - Twisted's name
        """It is here with its body; a form in it is not read."""
        channel: Any = self.channel
        if channel is not None:
            channel.has_request()
        self._parsePOSTFormSubmission = False
        super().requestReceived(command, path, version)  # type: ignore[no-untyped-call]


class BoundedChannel(HTTPChannel):
    """A connection that ends when it does not come to a request, however slowly it sends one."""

    _impatient: IDelayedCall | None = None
    _source = ""
    _is_ending = False

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """The clock runs, if there is room."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        transport: Any = self.transport
        source = http_source(transport.getPeer(), transport.getHost())
        if not self.factory.connections.enter(source, self):
            transport.abortConnection()
            return
        self._source = source
        self.rest()

    def has_request(self) -> None:
        """A request is here with its body."""
        self._stop()
        if self._source:
            self.factory.connections.busy(self._source, self)

    def requestDone(self, request: Any) -> None:  # noqa: N802 - Twisted's name
        """The next one has its own time."""
        self.rest()
        super().requestDone(request)  # type: ignore[no-untyped-call]

    def loseConnection(self) -> None:  # noqa: N802 - Twisted's name
        """It ends with what was written, and reads no more; with TLS its peer could go on for as long as it liked."""
        if not self._is_ending:
            self._is_ending = True
            super().loseConnection()  # type: ignore[no-untyped-call]

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Read, unless it ends."""
        if self._is_ending:
            transport: Any = self.transport
            transport.abortConnection()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802 - Twisted's name
        """There is no end to it."""
        transport: Any = self.transport
        transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """No clock stays behind."""
        self._stop()
        self._leave()
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def give_way(self) -> None:
        """Others need the room."""
        self._stop()
        self._leave()
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()

    def _leave(self) -> None:
        source, self._source = self._source, ""
        if source:
            self.factory.connections.leave(source, self)

    def rest(self) -> None:
        """No request is under way; it has so long to come to one."""
        self._stop()
        if self._source and self.transport is not None:
            self.factory.connections.silent(self._source, self)
            self._impatient = self.factory.reactor.callLater(PATIENCE_S, self.give_way)

    def _stop(self) -> None:
        if self._impatient is not None and self._impatient.active():
            self._impatient.cancel()
        self._impatient = None


class BoundedSite(Site):
    """A site with so many connections, which writes nothing down of its requests (they may have keys).

    Args:
        root: answers.
        most: connections at a time, of all.
        most_of_one: of one source.
        reactor: Twisted's.
        longest_body: of a request, in bytes.
    """

    requestFactory = BoundedRequest
    displayTracebacks = False
    noisy = False

    def __init__(self, root: Resource, most: Callable[[], int], most_of_one: Callable[[], int], reactor: Any,
                 longest_body: int = 0) -> None:
        super().__init__(root, timeout=PATIENCE_S, reactor=reactor)  # type: ignore[no-untyped-call]
        self.connections = Connections(most, most_of_one)
        self.longest_body = longest_body

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """A connection."""
        channel: Any = BoundedChannel()  # type: ignore[no-untyped-call]
        channel.factory = self
        channel.site = self
        channel.requestFactory = self.requestFactory
        channel.timeOut = self.timeOut
        channel.callLater = self.reactor.callLater
        return channel

    def log(self, request: Any) -> None:
        """Nothing is written down."""


def tls_context(name: str, certificate: str, key: str) -> Any:
    """What HTTPS is served with.

    Args:
        name: of the parameter that has the certificate, for the error.
        certificate, key: files in PEM, the first with its chain.

    Raises:
        OSError: they cannot be used.
    """
    from OpenSSL import SSL
    from twisted.internet.ssl import DefaultOpenSSLContextFactory

    for path in (certificate, key):
        read_plain(path)  # OpenSSL would wait for a FIFO
    try:
        context = DefaultOpenSSLContextFactory(key, certificate, sslmethod=SSL.TLS_SERVER_METHOD)
        context.getContext().use_certificate_chain_file(certificate)
        context.getContext().set_min_proto_version(SSL.TLS1_2_VERSION)
    except SSL.Error as error:
        raise OSError(f"{name} = {certificate} cannot be used with its key: {error}") from None
    return context


def listen_http(site: Site, port: int, interface: str, context: Any, reactor: Any) -> TcpDoor:
    """Serve a site.

    Args:
        site: what is served.
        port: 0 for any.
        interface: an address of this machine.
        context: of :func:`tls_context`; None: without TLS.
        reactor: Twisted's.

    Raises:
        CannotListenError: the port is taken.
    """
    served: Any = site
    if context is not None:
        from twisted.protocols.tls import TLSMemoryBIOFactory

        served = TLSMemoryBIOFactory(context, False, served)
    door = TcpDoor(port, served, BACKLOG, interface, reactor)
    door.startListening()
    return door
