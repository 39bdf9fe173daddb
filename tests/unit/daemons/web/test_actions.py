"""Questions in users' names: nobody keeps all who ask for others busy."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.test.requesthelper import DummyRequest

from condor_actors.daemons.web.actions import COOKIE, OF_ONE, SESSION_HEADER, UserActions, UserSettings
from condor_actors.daemons.web.door import LATER
from condor_actors.daemons.web.sessions import BURST, FailedLogins, Sessions
from condor_actors.wire.errors import TimedOut
from condor_actors.wire.idtokens.signed_token import sign

ACT = {"jobs": ["1.0"], "action": "hold", "reason": ""}
LOGIN = {"token": sign(b"x" * 32, "POOL", "issuer", "alice@here", now_s=1.7e9)}


class Page:
    """The page's answers to users, whose questions nobody answers until it is said."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.asked: list[Deferred[Any]] = []
        self.sessions = Sessions(self.clock, self.clock.seconds, lambda: 1_000.0, lambda: 100)
        known: Any = SimpleNamespace(schedds={"s": SimpleNamespace(address="<10.0.0.1:1>")}, hurry=None)
        settings = UserSettings(refusal="", collectors=("<10.0.0.1:9618>",), ca="", is_secure=False)
        self.routes = UserActions(known, self.sessions, FailedLogins(self.clock.seconds), lambda: settings, self._run,
                                  Logger("test")).routes()

    def _run(self, function: Any) -> Deferred[Any]:
        self.asked.append(Deferred())
        return self.asked[-1]

    def session(self, user: str) -> tuple[str, str]:
        found = self.sessions.begin(user, ("WRITE",), "a.b.c", 0.0)
        assert found is not None
        return found[0], found[1].page_secret

    def post(self, path: str, fields: dict[str, Any], session: tuple[str, str] = ("", "any")) -> int:
        """Whether it was refused: with which status; 0: it is being asked."""
        request: Any = DummyRequest([])
        request.content = io.BytesIO(json.dumps(fields).encode())
        request.getClientAddress = lambda: IPv4Address("TCP", "10.0.0.9", 7)
        request.getHost = lambda: IPv4Address("TCP", "10.0.0.1", 80)
        request.requestHeaders.setRawHeaders(SESSION_HEADER, [session[1]])
        request.getCookie = {COOKIE.encode(): session[0].encode()}.get
        return 0 if self.routes[path](request) is LATER else int(request.responseCode)

    def answer_all(self) -> None:
        asked, self.asked = self.asked, []
        for each in asked:
            each.errback(Failure(TimedOut("no answer")))


def test_one_user_with_many_sessions_has_a_users_share() -> None:
    page = Page()
    of_alice = [page.session("alice@here") for _ in range(4)]
    answers = [page.post("/api/act", ACT, of_alice[number % 4]) for number in range(3 * OF_ONE)]
    assert answers == [0] * OF_ONE + [503] * 2 * OF_ONE
    assert page.post("/api/act", ACT, page.session("bob@here")) == 0
    page.answer_all()
    assert page.post("/api/act", ACT, of_alice[0]) == 0


def test_strangers_who_want_to_log_in_keep_no_user_waiting_and_lose_no_attempt_by_waiting() -> None:
    page = Page()
    answers = [page.post("/api/login", LOGIN) for _ in range(3 * BURST)]
    assert answers == [0] * OF_ONE + [503] * (3 * BURST - OF_ONE)
    assert page.post("/api/act", ACT, page.session("bob@here")) == 0
    page.answer_all()
    assert page.post("/api/login", LOGIN) == 0
