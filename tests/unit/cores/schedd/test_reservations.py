"""Cluster numbers that are reserved many at once."""

from __future__ import annotations

import pytest

from condor_actors.messages.envelope import Refused
from condor_actors.messages.submission import ReserveCluster, SubmitPage, Submitted
from tests.unit.cores.schedd.test_charging import BOB, Queue


def page(number: int) -> SubmitPage:
    return SubmitPage(cluster_id=number, page=0, cluster_ad=b'Cmd = "/x"\n', procs=(b"",), first_proc=0, last=True)


def test_a_reservation_of_many_counts_as_one_and_what_is_left_comes_back() -> None:
    queue = Queue(max_reserved=1)
    first = queue.send(ReserveCluster(count=10)).cluster_id
    assert queue.send(ReserveCluster()).code == "busy"
    for number in (first, first + 3):
        assert isinstance(queue.send(page(number)), Submitted)
    assert isinstance(queue.send(page(first)), Refused)
    assert isinstance(queue.send(page(first + 1), BOB), Refused)
    queue.core.submissions.link_lost("in:9")
    assert isinstance(queue.send(page(first + 1)), Refused)
    assert [queue.send(ReserveCluster(), BOB).cluster_id for _ in range(1)] == [first + 1]


def test_one_that_is_used_up_makes_room_for_the_next() -> None:
    queue = Queue(max_reserved=1)
    for _ in range(3):
        first = queue.send(ReserveCluster(count=2)).cluster_id
        for number in (first, first + 1):
            assert isinstance(queue.send(page(number)), Submitted)


@pytest.mark.parametrize("count", [0, -1, 1001, 1 << 40])
def test_numbers_that_cannot_be_reserved(count: int) -> None:
    assert "can be reserved" in Queue().send(ReserveCluster(count=count)).text
