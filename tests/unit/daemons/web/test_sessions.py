"""Sessions of the page: two secrets, an end, a number; how many log-ins may fail; what a body may hold."""

from __future__ import annotations

import json

import pytest
from twisted.internet.task import Clock

from condor_actors.cores.web.job_actions import (
    ACTIONS,
    answer_in_words,
    job_ids,
    priority_question,
    question,
)
from condor_actors.daemons.web.bodies import BODIES, read_body
from condor_actors.daemons.web.door import is_loopback
from condor_actors.daemons.web.json_api import BadQuestion
from condor_actors.daemons.web.sessions import BURST, MOST_OF_ONE_USER, MOST_SOURCES, PAUSE_S, FailedLogins, Sessions
from condor_actors.messages.queue import ActionResult, ActionResults

NOW_S = 1_000_000.0


def made(most: int = 10, life_s: float = 100.0) -> tuple[Clock, Sessions]:
    clock = Clock()
    return clock, Sessions(clock, lambda: NOW_S + clock.seconds(), lambda: life_s, lambda: most)


def begun(sessions: Sessions, user: str = "alice@dom", ends_s: float = 0.0) -> tuple[bytes, bytes]:
    """The two secrets of a new session."""
    found = sessions.begin(user, ("WRITE",), "a.b.c", ends_s)
    assert found is not None
    return found[0].encode(), found[1].page_secret.encode()


def test_one_secret_is_none() -> None:
    _, sessions = made()
    cookie, secret = begun(sessions)
    other_cookie, other_secret = begun(sessions, "bob@dom")
    found = sessions.find(cookie, secret)
    assert found is not None
    assert (found.user, found.token) == ("alice@dom", "a.b.c")
    for pair in ((cookie, b""), (b"", secret), (cookie, other_secret), (other_cookie, secret), (secret, cookie),
                 (cookie, cookie), (cookie, b"\xff")):
        assert sessions.find(*pair) is None


def test_a_session_is_not_shown() -> None:
    _, sessions = made()
    cookie, secret = begun(sessions)
    found = sessions.find(cookie, secret)
    for hidden in ("a.b.c", cookie.decode(), secret.decode()):
        assert hidden not in repr(found)


@pytest.mark.parametrize(("life_s", "ends_s", "lasts_s"), [(100, 0, 100), (100, NOW_S + 40, 40), (30, NOW_S + 40, 30)])
def test_a_session_ends_with_its_time_or_its_token(life_s: float, ends_s: float, lasts_s: float) -> None:
    clock, sessions = made(life_s=life_s)
    secrets = begun(sessions, ends_s=ends_s)
    clock.advance(lasts_s - 1)
    assert sessions.find(*secrets) is not None
    clock.advance(1)
    assert sessions.find(*secrets) is None
    assert len(sessions) == 0
    assert not clock.getDelayedCalls()


def test_a_token_is_forgotten_when_its_session_ends_and_nobody_asks() -> None:
    clock, sessions = made(life_s=50)
    begun(sessions)
    clock.advance(10)
    begun(sessions, "bob@dom")
    clock.advance(40)
    assert len(sessions) == 1
    clock.advance(10)
    assert len(sessions) == 0


def test_a_clock_that_is_set_back_keeps_no_session_longer() -> None:
    clock = Clock()
    wall = [NOW_S]
    sessions = Sessions(clock, lambda: wall[0], lambda: 100.0, lambda: 10)
    secrets = begun(sessions, ends_s=NOW_S + 40)
    wall[0] -= 3600
    clock.advance(40)
    assert sessions.find(*secrets) is None


def test_who_logged_out_is_out() -> None:
    clock, sessions = made()
    secrets, other = begun(sessions), begun(sessions)
    found = sessions.find(*secrets)
    assert found is not None
    sessions.end(found)
    assert sessions.find(*secrets) is None
    assert sessions.find(*other) is not None
    sessions.end_all()
    assert sessions.find(*other) is None
    assert not clock.getDelayedCalls()


def test_one_user_has_so_many_sessions_and_the_oldest_goes() -> None:
    _, sessions = made()
    all_of_her = [begun(sessions) for _ in range(MOST_OF_ONE_USER + 1)]
    assert sessions.find(*all_of_her[0]) is None
    assert all(sessions.find(*each) is not None for each in all_of_her[1:])


def test_all_users_have_so_many_sessions() -> None:
    clock, sessions = made(most=2)
    first = begun(sessions)
    begun(sessions, "bob@dom")
    assert sessions.begin("eve@dom", (), "t", 0.0) is None
    assert sessions.find(*first) is not None
    clock.advance(100)
    assert sessions.begin("eve@dom", (), "t", 0.0) is not None


def test_failed_log_ins_are_slowed_down_for_their_address_only() -> None:
    clock = Clock()
    failed = FailedLogins(clock.seconds)
    assert [failed.take("a") for _ in range(BURST)] == [0.0] * BURST
    assert failed.take("a") == pytest.approx(PAUSE_S)
    assert failed.take("b") == 0.0
    clock.advance(PAUSE_S)
    assert failed.take("a") == 0.0
    assert failed.take("a") > 0.0
    clock.advance(BURST * PAUSE_S)
    assert [failed.take("a") for _ in range(BURST)] == [0.0] * BURST


def test_log_ins_that_work_are_not_counted() -> None:
    failed = FailedLogins(Clock().seconds)
    for _ in range(BURST * 3):
        assert failed.take("a") == 0.0
        failed.give_back("a")


def test_many_addresses_share_one_account_in_the_end() -> None:
    clock = Clock()
    failed = FailedLogins(clock.seconds)
    for number in range(MOST_SOURCES):
        assert failed.take(f"{number}") == 0.0
    waits = [failed.take(f"other-{number}") for number in range(BURST + 1)]
    assert waits[:BURST] == [0.0] * BURST
    assert waits[BURST] > 0.0
    clock.advance(BURST * PAUSE_S)
    assert failed.take("a new one") == 0.0


# ---- bodies

ACT = {"jobs": ["1.0"], "action": "hold"}


def test_a_body_has_its_fields_and_defaults() -> None:
    assert read_body("/api/act", json.dumps(ACT).encode()) == {
        "schedd": "", "jobs": ["1.0"], "action": "hold", "reason": ""}
    assert read_body("/api/logout", b"{}") == {}


@pytest.mark.parametrize("body", [
    b"", b"null", b"[]", b"{", b"\xff", b'{"a":' * 5000, b"[" * 9000, b'{"jobs":["1"],"jobs":["2"],"action":"hold"}',
    b'{"jobs":["1"]}', b'{"jobs":"1","action":"hold"}', b'{"jobs":[],"action":"hold"}', b'{"jobs":[1],"action":"hold"}',
    b'{"jobs":["1"],"action":"shoot"}', b'{"jobs":["1"],"action":["hold"]}', b'{"jobs":["1"],"action":"hold","x":1}',
    b'{"jobs":["-1"],"action":"hold"}', b'{"jobs":["1.0\\n"],"action":"hold"}',
    b'{"jobs":["\xd9\xa1"],"action":"hold"}',
    b'{"jobs":["1.-1"],"action":"hold"}', b'{"jobs":["9999999999"],"action":"hold"}',
    json.dumps({**ACT, "jobs": ["1"] * 501}).encode(), json.dumps({**ACT, "reason": "x" * 201}).encode(),
    json.dumps({**ACT, "reason": "\ud800"}).encode(), json.dumps({**ACT, "reason": "a\0"}).encode(),
    json.dumps({**ACT, "reason": None}).encode(), json.dumps({**ACT, "schedd": 1}).encode(),
])
def test_another_body_is_refused(body: bytes) -> None:
    with pytest.raises(BadQuestion):
        read_body("/api/act", body)


@pytest.mark.parametrize("priority", [True, 1.5, "1", None, 1_000_001, -1_000_001, float("nan")])
def test_a_priority_is_a_number(priority: object) -> None:
    with pytest.raises(BadQuestion):
        read_body("/api/priority", json.dumps({"jobs": ["1"], "priority": priority}).encode())


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert read_body("/api/priority", b'{"jobs":["1"],"priority":-3.0}')["priority"] == -3


def test_a_token_has_a_length() -> None:
    with pytest.raises(BadQuestion) as caught:
        read_body("/api/login", json.dumps({"token": "secret" * 2000}).encode())
    assert "secret" not in str(caught.value)


# ---- questions and answers


def test_jobs_and_clusters_are_named_once_each() -> None:
    assert job_ids(["12.0", "12", "12.0", "7.3"]) == ((12, 0), (12, -1), (7, 3))


def test_a_reason_is_one_line_of_text() -> None:
    assert question("hold", ((1, 0),), "a\nb\0c\ud800\u2028d ").reason == "a b c  d"
    assert question("remove", ((1, 0),), "\n").reason == "by the web page"


def test_a_priority_is_an_edit() -> None:
    assert priority_question(((1, -1),), -5).attributes == b"JobPrio = -5\n"


@pytest.mark.parametrize("action", [*ACTIONS, "priority"])
@pytest.mark.parametrize("result", ActionResult)
def test_every_answer_is_a_sentence(action: str, result: ActionResult) -> None:
    told = answer_in_words(action, ActionResults(results=((4, 2, result), (5, -1, result)), count=0))
    first, second = (each["text"] for each in told["results"])
    assert first.startswith("Job 4.2 ")
    assert second.startswith("Cluster 5 ")
    assert first.endswith(".")
    assert told["results"][0]["result"] == result.value


@pytest.mark.parametrize(("host", "near"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
                                            ("::", False), ("192.0.2.1", False), ("", False), ("a.example", False)])
def test_what_is_reached_from_here_only(host: str, near: bool) -> None:
    assert is_loopback(host) is near


def test_every_post_is_an_object_of_known_fields() -> None:
    for path, fields in BODIES.items():
        assert path.startswith("/api/")
        for name, field in fields.items():
            assert field.kind in ("text", "number", "list"), name
            assert field.doc


def test_one_visit_more_ends_the_oldest() -> None:
    """Visits have no users: their number is that of all."""
    clock = Clock()
    visits = Sessions(clock, clock.seconds, lambda: 100.0, lambda: 7, lambda: 7)
    pairs = [begun(visits, "") for _ in range(8)]
    assert [visits.find(*pair) is not None for pair in pairs] == [False] + [True] * 7
