"""Who gets in by HTTP, and with what: everything about a request that is refused before anybody looks at its path.

Theory: what comes here is a stranger's.  A request has a name of ours in ``Host`` (a page of another site, whose
name was made to point at this address, has not), the method GET or HEAD, no body, and with ``WEB_ACCESS = KEY`` the
key: in a cookie, which the link with the key has set, or as a bearer token.  Some paths take a POST instead, with a
small body of JSON.  A browser that asks for data on behalf of another site's page says so, and gets none; one that
sends a POST says from which page, and it must be ours.  Connections are counted, of all and of each address, so that
nobody takes the room of others; one that has not sent a whole request within :data:`PATIENCE_S` ends.  No answer may be
framed, guessed at or run anything but our own scripts.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections import Counter
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any

from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

__all__ = ["COOKIE", "HEADERS", "CheckedRequest", "CheckedSite", "Door", "answer", "is_loopback",
           "is_own_name", "refuse", "source_of"]

PATIENCE_S = 30.0
ROOM = 100
"""Connections beside those of watchers."""
LONGEST_PATH = 4096
LONGEST_BODY = 16 * 1024
OTHERS_PAGES = (b"cross-site", b"same-site")
"""What browsers say of a request that a page of another origin makes; another port of this machine is ``same-site``."""
COOKIE = b"condor_web_key"
HEADERS = (
    (b"content-security-policy",
     b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     b"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
     b"require-trusted-types-for 'script'; trusted-types 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
"""What every answer says."""

Route = Callable[[Any], Any]


def is_own_name(host: bytes, names: Collection[str]) -> bool:
    """Whether a request's ``Host`` is an address, ``localhost`` or one of our names, with any port or none."""
    text = host.decode("latin-1").lower()
    if text.startswith("["):
        name, bracket, port = text[1:].partition("]")
        port = port.removeprefix(":") if bracket else "?"
    else:
        name, _, port = text.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return False
    name = name.removesuffix(".")
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def source_of(address: Any) -> str:
    """Whose connection it is, for counting: loopback, the IPv4 address, or the /64 of IPv6 that one machine has."""
    host = getattr(address, "host", "").partition("%")[0]
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return "loopback"
    if found.version == 6:
        return str(ipaddress.ip_network((found, 64), strict=False).network_address)
    return str(found)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def answer(request: Any, kind: bytes, body: bytes, status: int = 200) -> bytes:
    """Set what an answer says of its body; returns what to render."""
    request.setResponseCode(status)
    request.setHeader(b"content-type", kind)
    request.setHeader(b"content-length", b"%d" % len(body))
    return b"" if request.method == b"HEAD" else body


def refuse(request: Any, status: int, text: str) -> bytes:
    """An answer that says why there is no other, as JSON."""
    import json

    request.setHeader(b"cache-control", b"no-store")
    return answer(request, b"application/json", json.dumps({"error": text}).encode() + b"\n", status)



class Door(Resource):
    """Lets requests in, and hands them to their routes.

    Args:
        route: the route of a path; None: there is none.
        names: of this machine, in small letters, as browsers may call it.
        key: what lets in; empty: everybody is.
        secure: whether this is HTTPS.
        posts: the paths that take a POST, and nothing else.
    """

    isLeaf = True

    def __init__(self, route: Callable[[bytes], Route | None], names: Callable[[], Collection[str]], key: str,
                 secure: bool, posts: Collection[bytes] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._route = route
        self._names = names
        self._key = key.encode()
        self._secure = secure
        self._posts = posts

    def render(self, request: Any) -> Any:
        """Answer one request."""
        for name, value in HEADERS:
            request.setHeader(name, value)
        request.setHeader(b"server", b"condor")
        hosts = request.requestHeaders.getRawHeaders(b"host") or []
        if len(hosts) != 1 or not is_own_name(hosts[0], self._names()):
            return refuse(request, HTTPStatus.MISDIRECTED_REQUEST, "this page is not called that; an administrator can "
                          "add the name to WEB_HOST_NAMES")
        objection = self._objection(request, hosts[0])
        if objection is not None:
            return refuse(request, *objection)
        if len(request.uri) > LONGEST_PATH:
            return refuse(request, HTTPStatus.REQUEST_URI_TOO_LONG, f"an address has at most {LONGEST_PATH} letters")
        if self._key and not self._is_let_in(request):
            given = request.args.get(b"key", [b""])[0]
            if request.path == b"/" and given and self._is_key(given):
                return self._let_in(request)
            return refuse(request, HTTPStatus.UNAUTHORIZED, "this page is opened by its link with the key, which an "
                          "administrator has")
        if self._key and request.path == b"/" and b"key" in request.args:
            return self._let_in(request)  # so that the key does not stay in the address
        route = self._route(request.path)
        if route is None:
            return refuse(request, HTTPStatus.NOT_FOUND, "there is nothing of this name; / is the page")
        return route(request)

    def _objection(self, request: Any, host: bytes) -> tuple[int, str] | None:
        """What is wrong with the method, the body, or the page that the request comes from."""
        is_post = request.path in self._posts
        if (request.method == b"POST") is not is_post or request.method not in (b"GET", b"HEAD", b"POST"):
            request.setHeader(b"allow", b"POST" if is_post else b"GET, HEAD")
            return HTTPStatus.METHOD_NOT_ALLOWED, ("this path takes POST" if is_post else
                                                   "this path is only read: it takes GET and HEAD")
        if not is_post and request.content.read(1):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "there may be no body here"
        site = (request.getHeader(b"sec-fetch-site") or b"").lower()
        is_others = site not in (b"", b"same-origin") if is_post else site in OTHERS_PAGES
        if is_others and request.path.startswith(b"/api/"):
            return HTTPStatus.FORBIDDEN, "another page asks for this; open the page itself"
        if not is_post:
            return None
        origins = request.requestHeaders.getRawHeaders(b"origin") or []
        own = {b"https://" + host.lower(), *(() if self._secure else (b"http://" + host.lower(),))}
        if any(origin.lower() not in own for origin in origins):
            return HTTPStatus.FORBIDDEN, "another page sends this; open the page itself"
        kind = (request.getHeader(b"content-type") or b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":
            return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body is JSON, with Content-Type: application/json"
        return None

    def _is_key(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._key)

    def _is_let_in(self, request: Any) -> bool:
        bearer = (request.getHeader(b"authorization") or b"").partition(b" ")
        if bearer[0].lower() == b"bearer" and self._is_key(bearer[2].strip()):
            return True
        return self._is_key(request.getCookie(COOKIE) or b"")

    def _let_in(self, request: Any) -> bytes:
        request.addCookie(COOKIE, self._key, path=b"/", httpOnly=True, secure=self._secure, sameSite=b"lax",
                          max_age=b"31536000")
        request.setHeader(b"location", b"/")
        request.setHeader(b"cache-control", b"no-store")
        return answer(request, b"text/plain", b"", HTTPStatus.SEE_OTHER)


class CheckedRequest(Request):
    """A request whose body, if it has one, is small and of a length that is said before."""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        """Refuse another body before it is read."""
        if length is not None and length <= LONGEST_BODY:
            super().gotLength(length)  # type: ignore[no-untyped-call]
            return
        super().gotLength(0)  # type: ignore[no-untyped-call]
        channel: Any = self.channel
        if channel is not None and channel.transport is not None:
            channel.transport.write(b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            channel.transport.loseConnection()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802 - Twisted's name
        """It is here with its body; a form in it is not read (its type is refused later)."""
        channel: Any = self.channel
        if channel is not None:
            channel.has_request()
        self._parsePOSTFormSubmission = False
        super().requestReceived(command, path, version)  # type: ignore[no-untyped-call]


class PatientChannel(HTTPChannel):
    """A connection that ends when it does not come to a request, however slowly it sends one."""

    _impatient: IDelayedCall | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """The clock runs."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        self._wait()

    def has_request(self) -> None:
        """A request is here with its body."""
        self._rest()

    def requestDone(self, request: Any) -> None:  # noqa: N802 - Twisted's name
        """The next one has its own time."""
        super().requestDone(request)  # type: ignore[no-untyped-call]
        self._wait()

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """No clock stays behind."""
        self._rest()
        super().connectionLost(reason)  # type: ignore[no-untyped-call]

    def _wait(self) -> None:
        self._rest()
        if self.transport is not None and self.factory is not None:
            self._impatient = self.factory.reactor.callLater(PATIENCE_S, self._end)

    def _rest(self) -> None:
        if self._impatient is not None and self._impatient.active():
            self._impatient.cancel()
        self._impatient = None

    def _end(self) -> None:
        self._impatient = None
        transport: Any = self.transport
        if transport is not None:
            transport.abortConnection()


class CheckedSite(Site):
    """The site: so many connections, nothing written down of requests (one of them has the key).

    Args:
        door: answers.
        most: pages that are kept up to date at a time; connections are counted with :data:`ROOM` for more.
        most_of_one: connections of one address at a time.
        reactor: Twisted's.
    """

    requestFactory = CheckedRequest
    displayTracebacks = False

    def __init__(self, door: Door, most: Callable[[], int], most_of_one: Callable[[], int], reactor: Any) -> None:
        super().__init__(door, timeout=PATIENCE_S, reactor=reactor)  # type: ignore[no-untyped-call]
        self._most = most
        self._most_of_one = most_of_one
        self.sources: Counter[str] = Counter()

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802 - Twisted's name
        """A connection; None, which closes it, when there are too many."""
        source = source_of(addr)
        if self.sources.total() >= self._most() + ROOM or self.sources[source] >= self._most_of_one():
            return None
        channel: Any = PatientChannel()  # type: ignore[no-untyped-call]
        channel.factory = self
        channel.site = self
        channel.requestFactory = CheckedRequest
        channel.timeOut = self.timeOut
        channel.callLater = self.reactor.callLater
        self.sources[source] += 1
        lost = channel.connectionLost

        def gone(reason: Failure = connectionDone) -> None:
            self.sources[source] -= 1
            if not self.sources[source]:
                del self.sources[source]
            lost(reason)

        channel.connectionLost = gone
        return channel

    def log(self, request: Any) -> None:
        """Nothing is written down."""


LATER = NOT_DONE_YET
