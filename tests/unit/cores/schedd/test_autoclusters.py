"""Which job a claim or the negotiator gets next, whatever joined and left before."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd import autoclusters as autoclusters_module
from condor_actors.cores.schedd.autoclusters import SMALL_HEAP, Autoclusters
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.messages.codes import JobStatus


def make_job(number: int, proc: int, since_s: int = 0, owner: str = "alice", **attributes: object) -> Job:
    ad = ClassAd({"ClusterId": number, "Owner": owner, "User": f"{owner}@here", "EnteredCurrentStatus": since_s})
    own = ClassAd({"ProcId": proc, **attributes})
    own.parent = ad
    return Job(Cluster(number, owner, ad, 1), proc, own, JobStatus.IDLE)


def order(autoclusters: Autoclusters) -> list[tuple[int, Job]]:
    return [(autocluster.number, job) for autocluster, job in autoclusters.of_submitter("alice@here")]


def expected(waiting: set[Job]) -> list[tuple[int, Job]]:
    """By looking at all of them."""
    first: dict[int, Job] = {}
    for job in waiting:
        known = first.get(job.autocluster)
        if known is None or job.order < known.order:
            first[job.autocluster] = job
    return sorted(first.items(), key=lambda each: each[1].order)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_all_heads(seed: int) -> None:
    random = Random(seed)
    autoclusters = Autoclusters()
    jobs = [make_job(1 + number % 7, number, RequestMemory=number % 11, JobPrio=random.randrange(3))
            for number in range(60)]
    waiting: set[Job] = set()
    for _ in range(600):
        job = random.choice(jobs)
        if random.random() < 0.6:
            job.ad.store("JobPrio", random.randrange(3))
            autoclusters.add(job)
            waiting.add(job)
        else:
            autoclusters.remove(job)
            waiting.discard(job)
        if random.random() < 0.2:
            assert order(autoclusters) == expected(waiting)
    for job in tuple(waiting):
        autoclusters.remove(job)
    assert order(autoclusters) == []


def test_priorities_that_change_leave_nothing_behind() -> None:
    autoclusters = Autoclusters()
    job, other = make_job(1, 0), make_job(1, 1)
    autoclusters.add(other)
    for number in range(10_000):
        job.ad.store("JobPrio", number % 5 - 2)
        autoclusters.add(job)
    (autocluster,) = autoclusters.by_number.values()
    assert len(autocluster.heap) <= SMALL_HEAP + 5
    (heads,) = autoclusters._by_submitter.values()
    assert len(heads._heap) <= SMALL_HEAP + 5


LEAVING = {
    "first to last": list,
    "last to first": lambda jobs: list(reversed(jobs)),
    "the first one last": lambda jobs: [*jobs[1:], jobs[0]],
    "by chance": lambda jobs: Random(1).sample(jobs, len(jobs)),
}


@pytest.mark.parametrize("leaving", LEAVING.values(), ids=LEAVING.keys())
def test_what_has_left_takes_no_look_long(leaving: Callable[[list[Job]], list[Job]], monkeypatch: pytest.MonkeyPatch
                                          ) -> None:
    """Nobody asks while most jobs leave; then the first look takes few entries out, and no job stays that has gone."""
    taken: list[object] = []

    def counted(heap: list[Any]) -> Any:
        taken.append(heapq.heappop(heap))
        return taken[-1]

    monkeypatch.setattr(autoclusters_module, "heappop", counted)
    autoclusters = Autoclusters()
    jobs = [make_job(1, proc) for proc in range(2_000)]
    for job in jobs:
        autoclusters.add(job)
    (autocluster,) = autoclusters.by_number.values()
    left = leaving(jobs)
    for gone, job in enumerate(left[:-1], 1):
        autoclusters.remove(job)
        assert len(autocluster.heap) <= SMALL_HEAP + 2 * autocluster.waiting
        if gone % 97 == 0:
            taken.clear()
            assert autocluster.head() is min(left[gone:], key=lambda each: each.proc)
            assert len(taken) <= max(SMALL_HEAP + 1, len(autocluster.heap) // 4)
    assert order(autoclusters) == [(autocluster.number, left[-1])]


def candidates(autoclusters: Autoclusters, own: int, overdue_s: float) -> list[int]:
    return [job.proc for job, _ in autoclusters.candidates("alice@here", own, overdue_s)]


def test_a_claim_stays_with_its_own_autocluster_until_others_have_waited_long() -> None:
    autoclusters = Autoclusters()
    jobs = [make_job(1, proc, since_s=100 * proc, RequestMemory=memory) for proc, memory in enumerate((3, 1, 2, 1))]
    for job in jobs:
        autoclusters.add(job)
    own = jobs[2].autocluster
    assert candidates(autoclusters, own, overdue_s=0.0) == [2, 0, 1]
    assert candidates(autoclusters, own, overdue_s=50.0) == [0, 2, 1]
    assert candidates(autoclusters, own, overdue_s=1000.0) == [0, 1, 2]
    jobs[3].ad.store("JobPrio", 5)
    autoclusters.add(jobs[3])
    assert candidates(autoclusters, own, overdue_s=0.0) == [3, 2, 0]


def test_what_the_claim_is_known_to_fit_is_said() -> None:
    autoclusters = Autoclusters()
    jobs = [make_job(1, proc, RequestMemory=proc) for proc in range(3)]
    for job in jobs:
        autoclusters.add(job)
    found = list(autoclusters.candidates("alice@here", jobs[1].autocluster, 0.0))
    assert [(job.proc, fits) for job, fits in found] == [(1, True), (0, False), (2, False)]
    assert list(autoclusters.candidates("bob@here", jobs[1].autocluster, 0.0)) == []
