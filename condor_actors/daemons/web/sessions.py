"""Who is logged in to the page: sessions in this process's memory, and how many failed log-ins are let pass.

Theory: a session has two secrets.  One is in a cookie, which no script can read; the other is given once, in the answer
to the log-in, and the page sends it in a header.  Neither is worth anything alone: a browser also sends the cookie for
pages of other ports of this machine and to their servers, and a header cannot be made by another site's page.  Of the
cookie's only a digest is kept.  A session keeps its user's token, shows it to nobody, and ends when the token does, at
log-out, after WEB_SESSION_LIFETIME, and with the process.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any

import attrs

__all__ = ["FailedLogins", "Session", "Sessions"]

MOST_OF_ONE_USER = 5
"""Sessions of one user; a further log-in ends the oldest."""
BURST = 10
"""Failed log-ins of one address in a row."""
PAUSE_S = 6.0
"""In which one more of an address is let pass."""
MOST_SOURCES = 1000
"""Addresses whose failures are remembered; with more, further ones share one account."""


@attrs.frozen(kw_only=True, eq=False)
class Session:
    """One user's.

    Attributes:
        user: the identity that the pool's collector gave to the token's bearer.
        levels: the levels of access that it has there.
        token: the user's.
        ends_s: when the token ends, seconds since 1970; 0: without end.
        over_s: when the session ends, by the clock of `Sessions`.
        digest: of the cookie's secret.
        page_secret: what the page sends in a header.
    """

    user: str
    levels: tuple[str, ...]
    token: str = attrs.field(repr=False)
    ends_s: float
    over_s: float
    digest: bytes = attrs.field(repr=False)
    page_secret: str = attrs.field(repr=False)


class Sessions:
    """All of them.

    Args:
        clock: the reactor: seconds that only grow, and timers.
        wall_clock: seconds since 1970.
        life_s: how long a session lasts.
        most: how many there may be.
        most_of_one: how many of one user; a further one ends the oldest.
    """

    def __init__(self, clock: Any, wall_clock: Callable[[], float], life_s: Callable[[], float],
                 most: Callable[[], int], most_of_one: Callable[[], int] = lambda: MOST_OF_ONE_USER) -> None:
        self._clock = clock
        self._wall_clock = wall_clock
        self._life_s = life_s
        self._most = most
        self._most_of_one = most_of_one
        self._open: dict[bytes, Session] = {}
        self._timer: Any = None

    def __len__(self) -> int:
        return len(self._open)

    @property
    def life_s(self) -> float:
        """How long a new one lasts at most."""
        return self._life_s()

    def begin(self, user: str, levels: tuple[str, ...], token: str, ends_s: float) -> tuple[str, Session] | None:
        """A new session and the secret for its cookie; None when there are too many.

        Args:
            user, levels, token, ends_s: as in `Session`.
        """
        self._forget_ended()
        own = [each for each in self._open.values() if each.user == user]
        if len(own) >= self._most_of_one():
            self.end(own[0])
        if len(self._open) >= self._most():
            return None
        life_s = self._life_s()
        if ends_s:
            life_s = min(life_s, max(0.0, ends_s - self._wall_clock()))
        cookie = secrets.token_urlsafe(32)
        made = Session(user=user, levels=levels, token=token, ends_s=ends_s, over_s=self._clock.seconds() + life_s,
                       digest=_digest(cookie.encode()), page_secret=secrets.token_urlsafe(32))
        self._open[made.digest] = made
        self._set_timer()
        return cookie, made

    def find(self, cookie: bytes, page_secret: bytes) -> Session | None:
        """The session that both secrets are of."""
        found = self._open.get(_digest(cookie))
        if found is None or not hmac.compare_digest(found.page_secret.encode(), page_secret):
            return None
        if self._is_over(found):
            self.end(found)
            return None
        return found

    def end(self, session: Session) -> None:
        """Forget a session and its token."""
        self._open.pop(session.digest, None)
        self._set_timer()

    def end_all(self) -> None:
        """Forget all."""
        self._open.clear()
        self._set_timer()

    def _is_over(self, session: Session) -> bool:
        return (self._clock.seconds() >= session.over_s
                or bool(session.ends_s and self._wall_clock() >= session.ends_s))

    def _forget_ended(self) -> None:
        for each in [each for each in self._open.values() if self._is_over(each)]:
            del self._open[each.digest]

    def _set_timer(self) -> None:
        """So that no token is kept longer than its session lasts, whether the page is asked or not."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
        if self._open:
            first_s = min(each.over_s for each in self._open.values())
            self._timer = self._clock.callLater(max(0.0, first_s - self._clock.seconds()), self._look)

    def _look(self) -> None:
        self._forget_ended()
        self._set_timer()


class FailedLogins:
    """How many more attempts to log in an address has: :data:`BURST`, and one more each :data:`PAUSE_S`.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._used: dict[str, tuple[float, float]] = {}

    def take(self, source: str) -> float:
        """Take one attempt; how many seconds to wait when there is none, 0 when there was."""
        key = self._key(source)
        now_s = self._clock()
        used = self._used_now(key, now_s)
        if used > BURST - 1:
            return (used - (BURST - 1)) * PAUSE_S
        self._used[key] = (used + 1.0, now_s)
        return 0.0

    def give_back(self, source: str) -> None:
        """An attempt was none that failed."""
        key = self._key(source)
        now_s = self._clock()
        used = self._used_now(key, now_s) - 1.0
        if used > 0:
            self._used[key] = (used, now_s)
        else:
            self._used.pop(key, None)

    def _key(self, source: str) -> str:
        if source in self._used or len(self._used) < MOST_SOURCES:
            return source
        now_s = self._clock()
        for each in [each for each in self._used if not self._used_now(each, now_s)]:
            del self._used[each]
        return source if len(self._used) < MOST_SOURCES else "(others)"

    def _used_now(self, key: str, now_s: float) -> float:
        used, at_s = self._used.get(key, (0.0, now_s))
        return max(0.0, used - (now_s - at_s) / PAUSE_S)


def _digest(cookie: bytes) -> bytes:
    return hashlib.sha256(cookie).digest()
