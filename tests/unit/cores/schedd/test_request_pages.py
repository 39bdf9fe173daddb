"""What a submitter wants is told to the negotiator page by page."""

from __future__ import annotations

import pytest

from condor_actors.messages.envelope import Identity
from condor_actors.messages.negotiate import NegotiateRequests, ResourceRequests
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


def test_a_schedd_that_was_started_meanwhile_goes_on_at_the_cursor() -> None:
    queue = wanting()
    assert [request.job_id for request in page(queue, "3").requests] == ["4.0", "5.0", "6.0"]


@pytest.mark.parametrize("cursor", ["-5", "x", "9" * 5000, "²", "1e9"])
def test_a_cursor_that_is_none_begins_anew(cursor: str) -> None:
    assert [request.job_id for request in page(wanting(), cursor).requests] == ["1.0", "2.0", "3.0"]


def test_a_cursor_beyond_the_end() -> None:
    answer = page(wanting(), "99999")
    assert (answer.requests, answer.cursor) == ((), "")
