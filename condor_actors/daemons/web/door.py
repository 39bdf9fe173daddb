"""Who gets in by HTTP, and with what: everything about a request that is refused before anybody looks at its path.

Theory: what comes here is a stranger's.  A request has a name of ours in ``Host`` (a page of another site, whose
name was made to point at this address, has not), the method GET or HEAD, no body, and with ``WEB_ACCESS = KEY`` it
is one of a visit that the link with the key has begun (:mod:`.visits`), or has the key as a bearer token.  Some paths
take a POST instead, with a small body of JSON.  A browser that asks for data on behalf of another site's page says so,
and gets none; one that sends a POST says from which page, and it must be ours.  How many connections there may be, and
how long, says :mod:`condor_actors.wire.http_room`.  No answer may be framed, guessed at or run anything but our own
scripts.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Any

from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from condor_actors.daemons.web.visits import Visits

__all__ = ["HEADERS", "LONGEST_BODY", "Door", "answer", "is_loopback", "is_own_name", "refuse"]

LONGEST_PATH = 4096
LONGEST_BODY = 16 * 1024
OTHERS_PAGES = (b"cross-site", b"same-site")
"""What browsers say of a request that a page of another origin makes; another port of this machine is ``same-site``."""
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
GO_ON = (b'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>The pool</title>\n'
         b'<meta http-equiv="refresh" content="0; url=%(place)s"></head>\n'
         b'<body><p><a href="%(place)s">The page</a></p></body></html>\n')
"""Leads to the page.  A redirection would not do: a browser that follows a link of another site to its end sends no
``SameSite=Strict`` cookie there."""

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
        visits: who has opened the link with the key; None: everybody is let in.
        secure: whether this is HTTPS.
        posts: the paths that take a POST, and nothing else.
    """

    isLeaf = True

    def __init__(self, route: Callable[[bytes], Route | None], names: Callable[[], Collection[str]],
                 visits: Visits | None, secure: bool, posts: Collection[bytes] = ()) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._route = route
        self._names = names
        self._visits = visits
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
        place = self._visits.take_place(request) if self._visits is not None else b""
        objection = self._objection(request, hosts[0])
        if objection is not None:
            return refuse(request, *objection)
        if len(request.uri) > LONGEST_PATH:
            return refuse(request, HTTPStatus.REQUEST_URI_TOO_LONG, f"an address has at most {LONGEST_PATH} letters")
        if self._visits is not None and (not self._visits.lets_in(request, place) or _keys_of(request)):
            return self._visit(request, self._visits, _keys_of(request))
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

    def _visit(self, request: Any, visits: Visits, keys: Collection[bytes]) -> bytes:
        """Begin a visit by the link, or refuse."""
        request.setHeader(b"cache-control", b"no-store")
        if not any(visits.is_key(key) for key in keys):
            return refuse(request, HTTPStatus.UNAUTHORIZED, "this page is opened by its link with the key, which an "
                          "administrator has; what the link has opened ends after WEB_SESSION_LIFETIME")
        place = visits.begin(request)
        if not place:
            return refuse(request, HTTPStatus.SERVICE_UNAVAILABLE, "WEB_MAX_SESSIONS allows no visit more")
        return answer(request, b"text/html; charset=utf-8", GO_ON % {b"place": place.encode()})


def _keys_of(request: Any) -> Collection[bytes]:
    """The keys that a link has."""
    return request.args.get(b"key", ()) if request.path == b"/" else ()


LATER = NOT_DONE_YET
