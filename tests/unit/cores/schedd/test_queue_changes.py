"""A follower of the queue has what the queue has, whatever it missed, and pays for changes only."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd import job_query
from condor_actors.cores.schedd.change_journal import CHANGES_A_PAGE, ChangeJournal
from condor_actors.cores.schedd.job_attributes import PRIVATE, JobSight
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.watch import Changes, QueryChanges

STRANGER = JobSight(PRIVATE, lambda owner: False)


def submit(queue: JobQueue, number: int, jobs: int) -> None:
    ad = ClassAd({"ClusterId": number, "Owner": "ann", "User": "ann@here"})
    cluster = queue.clusters[number] = Cluster(number, "ann", ad, jobs)
    for proc in range(jobs):
        own = ClassAd({"ProcId": proc, "JobStatus": 1})
        own.parent = ad
        queue.enter(cluster, proc, own)
    queue.cluster_row(cluster)


class Follower:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.token = ""
        self.jobs: dict[tuple[int, int], int] = {}
        self.told = 0

    def ask(self, queue: JobQueue) -> Changes:
        changes = job_query.changes(queue, QueryChanges(since=self.token, projection=("JobStatus",)), STRANGER, 0.0)
        self.token = changes.token
        if changes.begins:
            self.jobs.clear()
        for text in changes.ads:
            ad = ClassAd.from_bytes(text)
            self.jobs[ad.get_int("ClusterId"), ad.get_int("ProcId")] = ad.get_int("JobStatus")
        self.told += len(changes.ads)
        for cluster, proc in changes.gone:
            for key in [key for key in self.jobs if key[0] == cluster and proc in (-1, key[1])]:
                del self.jobs[key]
        return changes

    def catch_up(self, queue: JobQueue) -> None:
        while self.ask(queue).more:
            pass


def truth(queue: JobQueue) -> dict[tuple[int, int], int]:
    return {(job.cluster.number, job.proc): int(job.status) for job in queue.jobs()}


def test_after_the_first_time_only_changes_are_told() -> None:
    queue, follower = JobQueue(), Follower()
    for number in range(1, 41):
        submit(queue, number, 100)
    follower.catch_up(queue)
    assert follower.jobs == truth(queue)
    follower.told = 0
    job = queue.job(7, 7)
    assert job is not None
    queue.set_status(job, JobStatus.HELD, 5.0)
    queue.take_dirty()
    follower.catch_up(queue)
    assert (follower.jobs[7, 7], follower.told) == (5, 1)
    assert not follower.ask(queue).ads


@settings(max_examples=60, deadline=None)
@given(kept=st.integers(1, 40), steps=st.lists(st.tuples(st.sampled_from("shlea"), st.integers(0, 30)), max_size=60))
def test_a_follower_has_what_the_queue_has_however_often_it_asks(kept: int, steps: list[tuple[str, int]]) -> None:
    queue, follower = JobQueue(), Follower()
    queue.changes = ChangeJournal("1", kept)
    number = 0
    for what, which in steps:
        jobs = list(queue.jobs())
        job = jobs[which % len(jobs)] if jobs else None
        if what == "s":
            number += 1
            submit(queue, number, 1 + which % 4)
        elif what == "h" and job is not None:
            queue.set_status(job, JobStatus.HELD, 1.0)
        elif what == "l" and job is not None:
            queue.leave(job, 1.0)
        elif what == "e" and job is not None:
            queue.cluster_row(job.cluster)
        elif what == "a":
            queue.take_dirty()
            follower.ask(queue)
    queue.take_dirty()
    follower.catch_up(queue)
    assert follower.jobs == truth(queue)


def test_changes_during_the_first_pages_are_not_lost() -> None:
    queue, follower = JobQueue(), Follower()
    submit(queue, 1, 3 * CHANGES_A_PAGE)
    assert follower.ask(queue).more
    early, late = queue.job(1, 0), queue.job(1, 3 * CHANGES_A_PAGE - 1)
    assert early is not None
    assert late is not None
    queue.leave(early, 1.0)
    queue.set_status(late, JobStatus.HELD, 1.0)
    queue.take_dirty()
    submit(queue, 2, 5)
    follower.catch_up(queue)
    assert follower.jobs == truth(queue)


def test_another_life_and_nonsense_begin_anew() -> None:
    queue, follower = JobQueue(), Follower()
    submit(queue, 1, 3)
    follower.catch_up(queue)
    for token in ("", "1", "1/", "1/x", "2/1", "1/99999", "1/1/x.y", "1/1/1.0/2", "/1", "1/" + "9" * 200):
        follower.token = token
        assert follower.ask(queue).begins, token
        assert follower.jobs == truth(queue)


def test_no_answer_is_larger_than_a_message() -> None:
    queue, follower = JobQueue(), Follower()
    submit(queue, 1, 900)
    follower.catch_up(queue)
    for job in queue.jobs():
        queue.set(job, Cmd="/" + "x" * 2_000)
    queue.take_dirty()
    question = QueryChanges(since=follower.token, projection=("Cmd",))
    seen = 0
    while True:
        changes = job_query.changes(queue, question, STRANGER, 0.0)
        assert sum(map(len, changes.ads)) < 450_000
        seen += len(changes.ads)
        if not changes.more:
            break
        question = QueryChanges(since=changes.token, projection=("Cmd",))
    assert seen == 900


def test_what_only_owners_see_is_not_told() -> None:
    queue = JobQueue()
    submit(queue, 1, 1)
    job = queue.job(1, 0)
    assert job is not None
    queue.set(job, Args="secret", Environment="secret")
    question = QueryChanges(projection=("Args", "Environment", "ClaimId", "Owner"))
    changes = job_query.changes(queue, question, STRANGER, 0.0)
    assert b"secret" not in changes.ads[0]
    assert b"ann" in changes.ads[0]
