"""What a submitter wants is told to the negotiator page by page."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.effects import SetTimer
from condor_actors.messages.codec import MAX_BODY_BYTES, encode
from condor_actors.messages.envelope import Address, Delivery, Identity, Refused, TimerFired
from condor_actors.messages.negotiate import (
    Match,
    MatchesMade,
    NegotiateRequests,
    Rejection,
    RequestsRejected,
    ResourceRequests,
)
from condor_actors.messages.submission import ReserveCluster, SubmitPage, Submitted
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


def gang(queue: Queue, groups: int, common: int, own: int) -> Any:
    """A gang of so many groups of nodes, whose ads have so many letters in common and of their own; the answer."""
    number = queue.send(ReserveCluster()).cluster_id
    procs = tuple(f'MinHosts = 1\nMaxHosts = 1\nOwn = "{n}{"y" * own}"\n'.encode() for n in range(groups))
    ad = f'Cmd = "/bin/true"\nRequirements = true\nJobUniverse = 11\nLong = "{"x" * common}"\n'
    return queue.send(SubmitPage(cluster_id=number, page=0, cluster_ad=ad.encode(), procs=procs, first_proc=0,
                                 last=True))


def test_groups_of_a_gang_that_fit_no_message_together_come_when_the_others_have_their_claims() -> None:
    queue = Queue("RequestMemory = 1\n")
    assert isinstance(gang(queue, 3, 100_000, 40_000), Submitted)
    queue.submit("RequestMemory = 2\n")
    found, cursor = [], ""
    for _ in range(9):
        answer = page(queue, cursor)
        assert len(encode(answer)) <= MAX_BODY_BYTES
        found += [request.job_id for request in answer.requests]
        cursor = answer.cursor
        if not cursor:
            break
    assert set(found) == {"1.0", "2.0", "3.0"}


@pytest.mark.parametrize(("groups", "own"), [(8, 40_000), (2, 120_000), (1001, 1)])
def test_a_gang_whose_nodes_no_message_holds_is_not_queued(groups: int, own: int) -> None:
    """Each alone would be; together they are one job, which goes to every machine that it is to have."""
    answer = gang(Queue(), groups, 100, own)
    assert isinstance(answer, Refused)
    assert "at most" in answer.text


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
