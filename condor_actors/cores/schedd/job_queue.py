"""The job queue in memory: clusters, their jobs, and counts that are always up to date.

Theory: a job is a dictionary of its own attributes chained to the ad of its cluster, so ten thousand idle jobs of one
cluster cost ten thousand small dictionaries.  On the wire and on disk an ad is ``cluster text + own text``; the reader
keeps the later line of a name, so no merge is needed, and the cluster's text is rendered once.  Every change goes
through :meth:`JobQueue.set` or :meth:`JobQueue.set_status`, which remember what must be saved and keep the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.schedd.change_journal import ChangeJournal
from condor_actors.cores.schedd.charging import is_charged_apart
from condor_actors.cores.schedd.factories.factory import Factory, factory_objection
from condor_actors.cores.schedd.queue_operations import (
    ArchiveJob,
    DropCluster,
    QueueOperation,
    QueueSnapshot,
    SaveCluster,
    SaveJob,
)
from condor_actors.cores.schedd.queued_job import Cluster, Counts, Job
from condor_actors.cores.schedd.runs.job_spans import JobSpans
from condor_actors.cores.schedd.sets.job_sets import JobSets
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.codes import JobStatus

__all__ = ["JobQueue", "Tally"]

Tally = Counter[tuple[str, int]]
"""How many jobs are charged to a submitter, by the submitter's name and the jobs' status."""


class JobQueue:
    """All jobs of a schedd; see the module.

    Attributes:
        clusters: by number.
        by_owner, by_submitter: job counts of those who have any; everybody: over all.
        next_cluster: the next number to give; stored_cluster: the one that a schedd started again would give.
        changes: what followers have not seen yet.
        sets: which clusters belong together.
        spans: is told when a job's status changes, and when it leaves; None: nobody is.
    """

    def __init__(self) -> None:
        self.changes = ChangeJournal("1")
        self.clusters: dict[int, Cluster] = {}
        self.sets = JobSets()
        self.spans: JobSpans | None = None
        self.by_owner: dict[str, Counts] = {}
        self.by_submitter: dict[str, Counts] = {}
        self.everybody: Counts = [0] * 8
        self.next_cluster = self.stored_cluster = 1
        self._dirty: dict[Job, None] = {}
        self._touched: dict[str, None] = {}
        self._marked: dict[Cluster, None] = {}

    def restore(self, snapshot: QueueSnapshot) -> None:
        """Take over what the store had."""
        self.next_cluster = self.stored_cluster = snapshot.counters.get("next_cluster", 1)
        for row in snapshot.clusters:
            cluster = Cluster(row.cluster, row.owner, ClassAd.from_bytes(row.ad), row.total, row.version)
            self.clusters[row.cluster] = cluster
            self.sets.restore(cluster, snapshot.counters)
        for each in snapshot.factories:
            self.clusters[each.cluster].factory = Factory.of(each)
        for number, rows in groupby(snapshot.jobs, attrgetter("cluster")):
            tally: Tally = Counter()
            self.arrive(self.clusters[number], ((row.proc, ClassAd.from_bytes(row.ad)) for row in rows), tally)
            self._count_all(self.clusters[number], tally)
        self._dirty.clear()

    # ---- look up

    def job(self, cluster: int, proc: int) -> Job | None:
        """The job, None when it is not (or no longer) in the queue."""
        found = self.clusters.get(cluster)
        return found.jobs.get(proc) if found is not None else None

    def jobs(self) -> Iterator[Job]:
        """Every job, in order of their numbers."""
        for number in sorted(self.clusters):
            yield from self.clusters[number].jobs.values()

    def counts(self, owner: str) -> Counts:
        """Job counts of a user."""
        return self.by_owner.get(owner) or [0] * 8

    # ---- changes

    def enter(self, cluster: Cluster, proc: int, ad: ClassAd) -> Job:
        """Add a job; its ad is chained to the cluster's."""
        status = JobStatus(ad.get_int("JobStatus", JobStatus.IDLE))
        job = Job(cluster, proc, ad, status)
        cluster.jobs[proc] = job
        cluster.apart += is_charged_apart(ad)
        self._count(job, status, 1)
        self.changes.note(cluster.number, proc)
        return job

    @staticmethod
    def arrive(cluster: Cluster, rows: Iterable[tuple[int, ClassAd]], tally: Tally) -> list[Job]:
        """Make jobs of a cluster that is not in the queue yet: they are in it, and counted, with :meth:`show`.

        Args:
            tally: gets how many are charged to whom, by status.
        """
        shared = JobStatus(cluster.ad.get_int("JobStatus", JobStatus.IDLE))
        counts: Counts = [0] * 8
        jobs: list[Job] = []
        for proc, ad in rows:
            ad.parent = cluster.ad
            status = JobStatus(ad.get_int("JobStatus", JobStatus.IDLE)) if "jobstatus" in ad.own else shared
            job = cluster.jobs[proc] = Job(cluster, proc, ad, status)
            jobs.append(job)
            if is_charged_apart(ad):
                cluster.apart += 1
                tally[job.submitter, status] += 1
            else:
                counts[status] += 1
        for each, count in enumerate(counts):
            if count:
                tally[cluster.submitter, each] += count
        return jobs

    def show(self, cluster: Cluster, tally: Tally) -> None:
        """A cluster is in the queue from now on, with the jobs that have arrived."""
        self.clusters[cluster.number] = cluster
        self.sets.join(cluster)
        self._count_all(cluster, tally)
        self.changes.note_jobs(cluster.jobs.values())

    def _count_all(self, cluster: Cluster, tally: Tally) -> None:
        for (submitter, status), count in tally.items():
            self._count_of(cluster, status, count)
            self._charge(submitter, status, count)

    def _count(self, job: Job, status: int, step: int) -> None:
        self._count_of(job.cluster, status, step)
        self._charge(job.submitter, status, step)

    def _count_moved(self, job: Job, old: int, new: int) -> None:
        """As :meth:`_count` of one less and one more, in less time: nobody's counts become empty."""
        cluster, submitter = job.cluster, job.submitter
        for counts in (cluster.counts, self.everybody, self.by_owner[cluster.owner], self.by_submitter[submitter]):
            counts[old] -= 1
            counts[new] += 1
        self._touched[submitter] = None
        if cluster.factory is not None:
            self._marked[cluster] = None

    def _count_of(self, cluster: Cluster, status: int, step: int) -> None:
        cluster.counts[status] += step
        if cluster.factory is not None:
            self._marked[cluster] = None
        self.everybody[status] += step
        _add(self.by_owner, cluster.owner, status, step)

    def _charge(self, submitter: str, status: int, step: int) -> None:
        _add(self.by_submitter, submitter, status, step)
        self._touched[submitter] = None

    def charge_anew(self, cluster: Cluster) -> None:
        """The ad of a cluster names another to be charged: its jobs count for that one, but for those that say for
        themselves whom they are charged to."""
        old, new = cluster.submitter, cluster.submitter_by_ad()
        if old == new:
            return
        counts = list(cluster.counts)
        for job in cluster.jobs.values() if cluster.apart else ():
            counts[job.status] -= is_charged_apart(job.ad)
        cluster.submitter = new
        for status, count in enumerate(counts):
            if count:
                self._charge(new, status, count)
                self._charge(old, status, -count)

    def set(self, job: Job, **values: Any) -> None:
        """Set attributes of a job."""
        store = job.ad.store
        for name, value in values.items():
            store(name, value)
        self._dirty[job] = None

    def update(self, job: Job, values: ClassAd) -> None:
        """Take over all attributes of an ad."""
        charged, apart = job.submitter, is_charged_apart(job.ad)
        for name, value in values.stored_items():
            job.ad.store(name, value)
        job.cluster.apart += is_charged_apart(job.ad) - apart
        if job.submitter != charged:
            self._charge(job.submitter, job.status, 1)
            self._charge(charged, job.status, -1)
        self._dirty[job] = None

    def unset(self, job: Job, *names: str) -> None:
        """Make attributes undefined."""
        for name in names:
            if job.ad.find(name.lower()) is None:
                continue
            if job.cluster.ad.find(name.lower()) is not None:
                job.ad.store(name, UNDEFINED)
            else:
                del job.ad[name]
            self._dirty[job] = None

    def set_status(self, job: Job, status: JobStatus, now_s: float) -> None:
        """Move a job to another status."""
        if job.status is status:
            return
        if self.spans is not None:
            self.spans.changes(job, status, now_s)
        self._count_moved(job, job.status, status)
        self.set(job, LastJobStatus=int(job.status), JobStatus=int(status), EnteredCurrentStatus=int(now_s))
        job.status = status

    def leave(self, job: Job, now_s: float) -> tuple[QueueOperation, ...]:
        """Take a job out of the queue; returns what must be persisted for it to be in the history instead."""
        if self.spans is not None:
            self.spans.leaves(job, now_s)
        cluster = job.cluster
        del cluster.jobs[job.proc]
        cluster.apart -= is_charged_apart(job.ad)
        self._count(job, job.status, -1)
        self.changes.note(cluster.number, job.proc)
        self._dirty.pop(job, None)
        archived = ArchiveJob(cluster.number, job.proc, cluster.owner, cluster.version, now_s, job.own, cluster.text)
        counted = self.sets.left(cluster, job.status)
        if cluster.jobs or cluster.may_make_more:
            return (archived, *counted)
        return (archived, *counted, *self.forget(cluster))

    def forget(self, cluster: Cluster) -> tuple[QueueOperation, ...]:
        """A cluster has gone; returns what must be persisted."""
        del self.clusters[cluster.number]
        self.changes.note(cluster.number, -1)
        return (DropCluster(cluster.number), *self.sets.forget(cluster))

    # ---- what changed

    def mark(self, clusters: Iterable[Cluster]) -> None:
        """These may make jobs now."""
        self._marked.update(dict.fromkeys(clusters))

    def take_marked(self) -> Iterable[Cluster]:
        """Clusters of which there may be more jobs now, since the last call."""
        if not self._marked:
            return ()
        marked, self._marked = self._marked, {}
        return marked

    def take_dirty(self) -> list[QueueOperation]:
        """Rows to save for the jobs changed since the last call."""
        if not self._dirty:
            return []
        dirty, self._dirty = self._dirty, {}
        self.changes.note_jobs(dirty)
        return [SaveJob(job.cluster.number, job.proc, job.own) for job in dirty if job.proc in job.cluster.jobs]

    def take_touched(self) -> Iterable[str]:
        """Submitters whose counts changed since the last call."""
        if not self._touched:
            return ()
        touched, self._touched = self._touched, {}
        return touched

    def cluster_row(self, cluster: Cluster) -> SaveCluster:
        """The row of a cluster, whose ad is new or has changed."""
        self.changes.note(cluster.number, -1)
        return SaveCluster(cluster.number, cluster.owner, cluster.total, cluster.version, cluster.text)

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two turns: jobs where they belong, and counts that are those of the jobs.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        self.sets.validate(self.clusters)
        everybody: Counts = [0] * 8
        by_owner: dict[str, Counts] = {}
        by_submitter: dict[str, Counts] = {}
        for number, cluster in self.clusters.items():
            if cluster.number != number or number >= self.next_cluster:
                raise InvariantBroken(f"cluster {cluster.number} is kept as {number}; the next is {self.next_cluster}")
            objection = factory_objection(cluster)
            if objection:
                raise InvariantBroken(f"cluster {number} {objection}")
            counts = [0] * 8
            for proc, job in cluster.jobs.items():
                self._validate_job(cluster, proc, job)
                counts[job.status] += 1
                by_submitter.setdefault(job.submitter, [0] * 8)[job.status] += 1
            if counts != cluster.counts:
                raise InvariantBroken(f"cluster {number} counts {cluster.counts}, its jobs are {counts}")
            apart = sum(is_charged_apart(job.ad) for job in cluster.jobs.values())
            if apart != cluster.apart:
                raise InvariantBroken(f"cluster {number} has {apart} jobs charged apart, and counts {cluster.apart}")
            for sums in (everybody, by_owner.setdefault(cluster.owner, [0] * 8)):
                sums[:] = map(int.__add__, sums, counts)
        for what, kept, real in (("the queue", {"": self.everybody}, {"": everybody}),
                                 ("owner", self.by_owner, by_owner), ("submitter", self.by_submitter, by_submitter)):
            for name in kept.keys() | real.keys():
                if kept.get(name, [0] * 8) != real.get(name, [0] * 8):
                    raise InvariantBroken(f"{what} {name}: counted {kept.get(name)}, the jobs are {real.get(name)}")

    @staticmethod
    def _validate_job(cluster: Cluster, proc: int, job: Job) -> None:
        if job.cluster is not cluster or job.proc != proc or job.ad.parent is not cluster.ad:
            raise InvariantBroken(f"job {job.name} is kept as {cluster.number}.{proc}, or shows another cluster's ad")
        if job.ad.get_int("JobStatus") != job.status:
            raise InvariantBroken(f"job {job.name} is {job.status.name}, its ad says {job.ad.get_int('JobStatus')}")
        if job.order is not None and not job.ready:
            raise InvariantBroken(f"job {job.name} is offered, and is {job.status.name}, with the run {job.run_id!r}"
                                  f"{', and asked for' if job.reserved else ''}")


def _add(table: dict[str, Counts], key: str, status: int, step: int) -> None:
    counts = table.get(key)
    if counts is None:
        counts = table[key] = [0] * 8
    counts[status] += step
    if step < 0 and not any(counts):
        del table[key]
