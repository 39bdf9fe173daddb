"""The job queue in memory: clusters, their jobs, and counts that are always up to date.

Theory: a job is a dictionary of its own attributes chained to the ad of its cluster, so ten thousand idle jobs of one
cluster cost ten thousand small dictionaries.  On the wire and on disk an ad is ``cluster text + own text``; the reader
keeps the later line of a name, so no merge is needed, and the cluster's text is rendered once.  Every change goes
through :meth:`JobQueue.set` or :meth:`JobQueue.set_status`, which remember what must be saved and keep the counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.schedd.charging import CHARGED_TO, is_charged_apart
from condor_actors.cores.schedd.factories.factory import Factory, factory_objection
from condor_actors.cores.schedd.queue_operations import (
    ArchiveJob,
    DropCluster,
    QueueOperation,
    QueueSnapshot,
    SaveCluster,
    SaveJob,
)
from condor_actors.cores.schedd.sets.job_sets import JobSets
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.codes import JobStatus
from condor_actors.numerals import job_numbers, numeral

__all__ = ["CHANGES_A_PAGE", "ChangeJournal", "Cluster", "Job", "JobQueue", "Position", "own_text"]

FEW_JOBS = 1_000
"""Jobs of a cluster that are looked through for those after one of them; of more, the numbers are counted up."""

SPARSE = 16
"""Where fewer than one in so many jobs of a cluster is left, they are looked through too."""

CHANGES_KEPT = 50_000
"""Jobs and clusters whose last change is known."""
CHANGES_A_PAGE = 1_000
"""Jobs in one answer to a follower: some ten milliseconds of the schedd."""

Counts = list[int]
"""Number of jobs per JobStatus; index 0 is unused."""


def own_text(ad: ClassAd) -> bytes:
    """The wire text of what an ad has itself, without what it shows from its parent."""
    if ad.parent is None:
        return ad.to_bytes()
    view = ClassAd()
    view.own = ad.own
    view.spellings = ad.spellings
    return view.to_bytes()


class Cluster:
    """What the jobs of one submission share.

    Attributes:
        number: the ClusterId.
        owner: the user (without domain) whose jobs these are; user: ``owner@uid.domain``.
        ad: the common attributes.
        jobs: by ProcId, those still in the queue.
        total: procs ever submitted.
        version: goes up with each edit of the ad.
        counts: of its jobs in the queue.
        apart: how many of these jobs say for themselves whom they are charged to.
        factory: how far it is when its jobs are made as they are needed; None: all are made.
        memo: facts derived from the ad (policies, autocluster keys); emptied when it changes.
    """

    __slots__ = ("_text", "ad", "apart", "counts", "factory", "jobs", "memo", "number", "owner", "submitter",
                 "total", "user", "version")

    def __init__(self, number: int, owner: str, ad: ClassAd, total: int = 0, version: int = 1) -> None:
        self.number = number
        self.owner = owner
        self.ad = ad
        self.user = ad.get_str("User", owner)
        self.submitter = self.submitter_by_ad()
        self.jobs: dict[int, Job] = {}
        self.total = total
        self.version = version
        self.counts: Counts = [0] * 8
        self.apart = 0
        self.factory: Factory | None = None
        self.memo: dict[Any, Any] = {}
        self._text: bytes | None = None

    def submitter_by_ad(self) -> str:
        """Whom the jobs are charged to, as the ad says now."""
        return self.submitter_called(self.ad.get_str("AccountingGroup", self.user))

    def submitter_called(self, name: str) -> str:
        """The whole name of one to be charged, as an ``AccountingGroup`` has it."""
        return name if "@" in name else f"{name}@{self.user.partition('@')[2]}"

    @property
    def may_make_more(self) -> bool:
        """Whether there may be jobs of it that were not made yet."""
        return self.factory is not None and self.factory.may_make_more

    @property
    def made(self) -> int:
        """How many of its jobs have ever been in the queue."""
        return self.total if self.factory is None else self.factory.next_proc

    @property
    def text(self) -> bytes:
        """The ad as it crosses the wire."""
        if self._text is None:
            self._text = self.ad.to_bytes()
        return self._text

    def jobs_after(self, proc: int) -> Iterator[Job]:
        """The jobs after one of them, in the order of their numbers; they may come and go meanwhile.

        However often somebody goes on after the last job that he has seen, each number is counted up once.
        """
        jobs = self.jobs
        numbers: Iterable[int]
        if len(jobs) <= FEW_JOBS or len(jobs) * SPARSE < self.made:
            numbers = sorted([each for each in jobs if each > proc])
        else:
            numbers = range(proc + 1, max(self.made, next(reversed(jobs)) + 1))
        for number in numbers:
            job = jobs.get(number)
            if job is not None:
                yield job

    def changed(self) -> None:
        """The ad was edited: what was derived from it is out of date."""
        self._text = None
        self.version += 1
        self.memo.clear()


class Job:
    """One job.

    Attributes:
        cluster, proc, ad, status: as in its ad.
        run_id: its run while it has one (also while that is being stopped), else empty.
        reserved: a claim was asked for in its name.
        not_before_s: earliest date of the next start, after a failure of the system.
        order: where it stands in its autocluster (see :mod:`condor_actors.cores.schedd.autoclusters`); None: nowhere.
        autocluster: number of its autocluster, 0 when not computed.
    """

    __slots__ = ("ad", "autocluster", "cluster", "not_before_s", "order", "proc", "reserved", "run_id", "status")

    def __init__(self, cluster: Cluster, proc: int, ad: ClassAd, status: JobStatus) -> None:
        self.cluster = cluster
        self.proc = proc
        self.ad = ad
        self.status = status
        self.run_id = ""
        self.reserved = False
        self.not_before_s = 0.0
        self.order: Any = None
        self.autocluster = 0

    @property
    def name(self) -> str:
        """``cluster.proc``."""
        return f"{self.cluster.number}.{self.proc}"

    @property
    def submitter(self) -> str:
        """Whom it is charged to: the one in its own ad, else its cluster's."""
        if is_charged_apart(self.ad):
            return self.cluster.submitter_called(self.ad.own[CHARGED_TO])
        return self.cluster.submitter

    @property
    def own(self) -> bytes:
        """The text of its own attributes."""
        return own_text(self.ad)

    @property
    def text(self) -> bytes:
        """The text of its whole ad."""
        return self.cluster.text + own_text(self.ad)

    @property
    def ready(self) -> bool:
        """Idle, without a run that still ends, and without a claim under way."""
        return self.status is JobStatus.IDLE and not self.run_id and not self.reserved


class Position:
    """How far a follower of the queue has come, as his token says.

    ========================  ============================================
    token                     the next answer has
    ========================  ============================================
    ``life/number``           what changed after the number
    ``life/number/12.3``      all jobs after 12.3; afterwards as above
    anything else             all jobs from the first on
    ========================  ============================================
    """

    __slots__ = ("after", "life", "number")

    def __init__(self, life: str, number: int, after: str = "") -> None:
        self.life = life
        self.number = number
        self.after = after

    @classmethod
    def of(cls, token: str) -> Position | None:
        """The position that a token names; None: it is none."""
        life, _, rest = token.partition("/")
        number, _, after = rest.partition("/")
        place = numeral(number)
        if not life or place is None or len(token) > 100 or (after and job_numbers(after) is None):
            return None
        return cls(life, place, after)

    def __str__(self) -> str:
        return f"{self.life}/{self.number}" + (f"/{self.after}" if self.after else "")


class ChangeJournal:
    """The last change of each job and cluster, so that a follower of a hundred thousand jobs pays only for changes.

    Theory: each change of a job or of a cluster's ad gives that job or cluster the next number; the journal keeps for
    each the last number only, in order.  A follower's token names the queue's life (a schedd started again begins
    another one) and the last number that he has seen.  Who is too far behind, or of another life, begins anew.

    Args:
        life: names this life of the queue; no two queues of a schedd have the same.
        kept: the most that are remembered.
    """

    def __init__(self, life: str, kept: int = CHANGES_KEPT) -> None:
        self.life = life
        self.number = 0
        self._kept = kept
        self._floor = 0
        self._last: OrderedDict[tuple[int, int], int] = OrderedDict()

    def note(self, cluster: int, proc: int) -> None:
        """A job, or with -1 the ad of a cluster, has changed, come or gone."""
        self.number += 1
        key = (cluster, proc)
        self._last[key] = self.number
        self._last.move_to_end(key)
        if len(self._last) > self._kept:
            _, self._floor = self._last.popitem(last=False)

    def note_jobs(self, jobs: Iterable[Job]) -> None:
        """Several jobs have changed."""
        for job in jobs:
            self.note(job.cluster.number, job.proc)

    def is_known(self, position: Position | None) -> bool:
        """Whether the changes since a position are all here."""
        return position is not None and position.life == self.life and self._floor <= position.number <= self.number

    def since(self, number: int) -> list[tuple[tuple[int, int], int]]:
        """What changed after a number, oldest first, with the numbers."""
        found = []
        for key in reversed(self._last):
            if self._last[key] <= number:
                break
            found.append((key, self._last[key]))
        return found[::-1]


class JobQueue:
    """All jobs of a schedd; see the module.

    Attributes:
        clusters: by number.
        by_owner, by_submitter: job counts of those who have any; everybody: over all.
        next_cluster: the next number to give; stored_cluster: the one that a schedd started again would give.
        changes: what followers have not seen yet.
        sets: which clusters belong together.
    """

    def __init__(self) -> None:
        self.changes = ChangeJournal("1")
        self.clusters: dict[int, Cluster] = {}
        self.sets = JobSets()
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
            self._enter_all(self.clusters[number], ((row.proc, ClassAd.from_bytes(row.ad)) for row in rows))
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

    def enter_all(self, cluster: Cluster, rows: Iterable[tuple[int, ClassAd]]) -> list[Job]:
        """As :meth:`enter` of each (proc, ad), in less time."""
        jobs = self._enter_all(cluster, rows)
        self.changes.note_jobs(jobs)
        return jobs

    def _enter_all(self, cluster: Cluster, rows: Iterable[tuple[int, ClassAd]]) -> list[Job]:
        """The journal is not told."""
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
                self._count(job, status, 1)
            else:
                counts[status] += 1
        for each, count in enumerate(counts):
            if count:
                self._count_of(cluster, each, count)
                self._charge(cluster.submitter, each, count)
        return jobs

    def _count(self, job: Job, status: int, step: int) -> None:
        self._count_of(job.cluster, status, step)
        self._charge(job.submitter, status, step)

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
        self._count(job, job.status, -1)
        self._count(job, status, 1)
        self.set(job, LastJobStatus=int(job.status), JobStatus=int(status), EnteredCurrentStatus=int(now_s))
        job.status = status

    def leave(self, job: Job, now_s: float) -> tuple[QueueOperation, ...]:
        """Take a job out of the queue; returns what must be persisted for it to be in the history instead."""
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
