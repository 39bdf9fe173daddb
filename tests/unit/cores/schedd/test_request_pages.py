"""What a submitter wants is told to the negotiator page by page."""

from __future__ import annotations

import pytest

from condor_actors.effects import SetTimer
from condor_actors.messages.codec import MAX_BODY_BYTES, encode
from condor_actors.messages.envelope import Address, Delivery, Identity, TimerFired
from condor_actors.messages.negotiate import (
    Match,
    MatchesMade,
    NegotiateRequests,
    Rejection,
    RequestsRejected,
    ResourceRequests,
)
from tests.unit.cores.schedd.test_job_attributes import Queue

CENTRAL = Identity(name="condor@pool", roles=frozenset({"negotiator"}), method="tls")


def wanting() -> Queue:
    queue = Queue("RequestMemory = 1\n")
    for memory in range(2, 8):
        queue.submit(f"RequestMemory = {memory}\n")
    return queue


def page(queue: Queue, cursor: str = "") -> ResourceRequests:
    answer = queue.send(NegotiateRequests(cycle=1, submitter="ann@dom", limit=3, cursor=cursor), CENTRAL)
    assert isinstance(answer, ResourceRequests)
    return answer


def test_every_autocluster_comes_once_in_its_order() -> None:
    queue = wanting()
    found, cursor = [], ""
    while True:
        answer = page(queue, cursor)
        assert len(answer.requests) <= 3
        found += [request.job_id for request in answer.requests]
        cursor = answer.cursor
        if not cursor:
            break
    assert found == [f"{cluster}.0" for cluster in range(1, 8)]


def test_large_jobs_come_in_pages_that_are_messages() -> None:
    """The jobs of one user that fit no message together are offered one after the other."""
    queue = Queue("RequestMemory = 1\n")
    for memory in range(2, 5):
        queue.submit(f'RequestMemory = {memory}\nLong = "{"x" * 280_000}"\n')
    found, cursor = [], ""
    for _ in range(9):
        answer = page(queue, cursor)
        assert len(encode(answer)) <= MAX_BODY_BYTES
        found += [request.job_id for request in answer.requests]
        cursor = answer.cursor
        if not cursor:
            break
    assert found == ["1.0", "2.0", "3.0", "4.0"]


def test_a_schedd_that_was_started_meanwhile_goes_on_at_the_cursor() -> None:
    queue = wanting()
    assert [request.job_id for request in page(queue, "3").requests] == ["4.0", "5.0", "6.0"]


@pytest.mark.parametrize("cursor", ["-5", "x", "9" * 5000, "²", "1e9"])
def test_a_cursor_that_is_none_begins_anew(cursor: str) -> None:
    assert [request.job_id for request in page(wanting(), cursor).requests] == ["1.0", "2.0", "3.0"]


def test_a_cursor_beyond_the_end() -> None:
    answer = page(wanting(), "99999")
    assert (answer.requests, answer.cursor) == ((), "")


def test_jobs_that_fit_nowhere_keep_no_room_from_others_of_their_owner() -> None:
    queue = Queue("RequestMemory = 1\n", max_jobs_running=2)
    for memory in (2, 3):
        queue.submit(f"RequestMemory = {memory}\n")

    def asked() -> list[tuple[str, int]]:
        return [(request.job_id, request.count) for request in page(queue).requests]

    assert asked() == [("1.0", 1), ("2.0", 1)]
    queue.send(TimerFired(key=("advertise",)))
    out = queue.core.handle(Delivery(
        message=RequestsRejected(cycle=1, submitter="ann@dom", rejections=(
            Rejection(autocluster=1, job_id="1.0", reason="no"),
            Rejection(autocluster=2, job_id="2.0", reason="no"))),
        sender=Address("<n:1>", "negotiator"), identity=CENTRAL), 3.0)
    assert any(isinstance(each, SetTimer) and each.key == ("advertise",) for each in out), "a cycle is wished for"
    assert asked() == [("1.0", 1), ("2.0", 1), ("3.0", 1)]


def test_no_more_slots_are_asked_for_than_jobs_may_run() -> None:
    queue = Queue(max_jobs_running=1)
    queue.submit("")
    jobs = [queue.core.context.queue.job(number, 0) for number in (1, 2)]
    matches = tuple(Match(autocluster=0, job_id=job.name, slot_name=f"slot{job.cluster.number}@m", slot_ad=b"",
                          startd_address="<m:1>", capability="c") for job in jobs if job is not None)
    queue.send(MatchesMade(cycle=1, submitter="ann@dom", matches=matches), CENTRAL)
    assert [job is not None and job.reserved for job in jobs] == [True, False]
