"""Who has opened the page by the link with its key (``WEB_ACCESS = KEY``): visits, and programs that show the key.

Theory: the link's key begins a visit and is in nothing that a browser keeps.  A visit is a session with two secrets
(:mod:`.sessions`): one is in the address of everything that this browser asks for, ``/visit/SECRET/…``, the other in a
cookie that is bound to that address.  A cookie knows no ports: a browser would hand one of ``/`` to every server of the
same host name.  This one goes nowhere else, since no other server knows the address; and the address, read over a
shoulder or found in a history, is worth nothing without the cookie.
"""

from __future__ import annotations

import hmac
from typing import Any

from condor_actors.daemons.web.sessions import Sessions

__all__ = ["Visits"]

COOKIE = "condor_visit"
PREFIX = b"/visit/"


class Visits:
    """The key, and the visits that it has begun.

    Args:
        key: of the link.
        sessions: the visits.
        secure: whether the page is served by HTTPS.
    """

    def __init__(self, key: str, sessions: Sessions, secure: bool) -> None:
        self._key = key.encode()
        self._sessions = sessions
        self._secure = secure
        self._cookie = f"__Secure-{COOKIE}" if secure else COOKIE

    def is_key(self, given: bytes) -> bool:
        """Whether it is the link's."""
        return hmac.compare_digest(given, self._key)

    def take_place(self, request: Any) -> bytes:
        """Take the visit's secret out of a request's path, and return it; empty: there is none."""
        secret, slash, rest = request.path.removeprefix(PREFIX).partition(b"/")
        if not request.path.startswith(PREFIX) or not slash:
            return b""
        request.path = b"/" + rest
        return bytes(secret)

    def lets_in(self, request: Any, secret: bytes) -> bool:
        """Whether a request is one of a visit, or a program's that shows the key.

        Args:
            request: its path is without the visit's.
            secret: what :meth:`take_place` has found.
        """
        bearer = (request.getHeader(b"authorization") or b"").partition(b" ")
        if bearer[0].lower() == b"bearer" and self.is_key(bearer[2].strip()):
            return True
        cookie = request.getCookie(self._cookie.encode()) or b""
        return bool(secret and cookie) and self._sessions.find(cookie, secret) is not None

    def begin(self, request: Any) -> str:
        """Begin a visit: its cookie goes into the answer.

        Returns:
            The path where the page is for it; empty: no visit may begin.
        """
        begun = self._sessions.begin("", (), "", 0.0)
        if begun is None:
            return ""
        cookie, session = begun
        place = f"{PREFIX.decode()}{session.page_secret}/"
        request.addCookie(self._cookie, cookie, path=place.encode(), httpOnly=True, secure=self._secure,
                          sameSite=b"strict", max_age=b"%d" % self._sessions.life_s)
        return place
