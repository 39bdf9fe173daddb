"""Which job a claim or the negotiator gets next, whatever joined and left before."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.classads import ClassAd
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
