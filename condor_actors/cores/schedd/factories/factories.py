"""Makes the jobs of clusters as their limits allow, and carries out what users do to such clusters.

Theory: whatever changes how many jobs a cluster has marks it.  At the end of the turn each marked cluster that may have
more makes them, a bounded number in a turn; the rest go on by a timer.  New jobs, the number of the next one and the
event of their submission are one transaction, so that a crash neither loses a job nor makes it twice.  What jobs are
made of is read from the disk when they are made; none of it stays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.schedd.factories.factory import Factory, limits, texts
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import InsertJobs, SaveItems
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.effects import job_note
from condor_actors.messages.codes import FactoryMode, JobEventType, JobStatus
from condor_actors.messages.queue import ActionResult, JobAction

__all__ = ["GAP_S", "Factories", "ItemsAway"]

MOST_A_TURN = 200
"""Jobs that are made in one turn."""
MOST_BYTES_A_TURN = 256 << 10
"""Of their texts, but for one: the size of a message that brings jobs one by one."""
GAP_S = 0.005
"""Between two such turns."""
AGAIN_S = 10.0
"""When a cluster that had no room in the queue, or whose items could not be read, is looked at again."""

Check = Callable[[ClassAd, Cluster], None]
"""What is wrong with the ad of a new job, as ``ValueError``; what is not its owner's to say is taken out of it."""


class ItemsAway(Exception):
    """What jobs are made of cannot be read now: later."""


class Factories:
    """The clusters that make their jobs as these are needed.

    Args:
        check: of the ads of new jobs.
        read: what a job of a cluster, and those behind it, are to be made of; None: nothing is there.  It raises
            `ItemsAway` while the disk does not answer.
    """

    def __init__(self, context: ScheddContext, transitions: JobTransitions, notices: JobNotices, check: Check) -> None:
        self._context = context
        self._transitions = transitions
        self._notices = notices
        self._check = check
        self.read: Callable[[int, int], SaveItems | None] = lambda cluster, proc: None
        self._waiting: dict[int, None] = {}
        self._full: dict[int, None] = {}
        self.made = False
        self._bytes_left = 0

    # ---- jobs

    def started(self) -> None:
        """The first turn: each may have room."""
        self.look_again()

    def look_again(self) -> None:
        """Factories that had no room may have some now."""
        queue = self._context.queue
        queue.mark(cluster for cluster in queue.clusters.values() if cluster.factory is not None)

    def begin(self, number: int = 0) -> None:
        """Timer: go on, or begin with a cluster that is new."""
        cluster = self._context.queue.clusters.get(number)
        if cluster is not None:
            self._context.queue.mark((cluster,))

    def full_again(self) -> None:
        """Timer: the clusters for which the queue had no room."""
        full, self._full = self._full, {}
        self._context.queue.mark(cluster for cluster in map(self._context.queue.clusters.get, full) if cluster)

    def plan(self) -> None:
        """The end of a turn: make what may be made."""
        marked = self._context.queue.take_marked()
        if marked:
            self._waiting.update(dict.fromkeys(cluster.number for cluster in marked))
        if not self._waiting:
            return
        left, self._bytes_left = MOST_A_TURN, MOST_BYTES_A_TURN
        while self._waiting and left > 0 and self._bytes_left > 0:
            number = next(iter(self._waiting))
            del self._waiting[number]
            cluster = self._context.queue.clusters.get(number)
            factory = cluster.factory if cluster is not None else None
            if cluster is None or factory is None or factory.mode is not FactoryMode.RUNNING:
                continue
            wanted = self._room(cluster, factory)
            if wanted <= 0:
                continue
            made = self._make(cluster, factory, min(wanted, left))
            left -= max(made, 1)
            if made < wanted and factory.mode is FactoryMode.RUNNING and number not in self._full:
                self._waiting[number] = None
        self._context.queue.take_marked()  # by the jobs just made
        if self._waiting:
            self._context.timer(("materialize",), GAP_S)

    def _room(self, cluster: Cluster, factory: Factory) -> int:
        """How many jobs may be made now; a cluster for which the queue has no room is looked at again in time."""
        settings, queue, counts = self._context.settings, self._context.queue, cluster.counts
        most, waiting = limits(cluster.ad)
        room = min(most - sum(counts), waiting - counts[JobStatus.IDLE] - counts[JobStatus.HELD],
                   cluster.total - factory.next_proc, settings.max_jobs_per_submission - sum(counts))
        free = min(settings.max_jobs_per_owner - sum(queue.counts(cluster.owner)),
                   settings.max_jobs_submitted - sum(queue.everybody))
        if room > 0 and free < room:
            self._later(cluster)
        return min(room, free)

    def _later(self, cluster: Cluster) -> None:
        if not self._full:
            self._context.timer(("materialize-again",), AGAIN_S)
        self._full[cluster.number] = None

    def _make(self, cluster: Cluster, factory: Factory, most: int) -> int:
        """Make the next jobs, up to a limit; returns how many were made."""
        context, first = self._context, factory.next_proc
        try:
            row = self.read(cluster.number, first)
        except ItemsAway as error:
            context.note(f"cluster {cluster.number} makes no jobs now: {error}", "warn")
            self._later(cluster)
            return 0
        jobs: list[Job] = []
        problem, mode = "", FactoryMode.HELD
        try:
            if row is None:
                raise ValueError(f"there is nothing that job {cluster.number}.{first} could be made of")
            made_of = self._as_much(texts(row, first, most))
        except ValueError as error:
            made_of, problem, mode = [], str(error), FactoryMode.INVALID
        for text in made_of:
            try:
                jobs.append(context.queue.enter(cluster, factory.next_proc, self._ad(cluster, factory, text)))
            except (ClassAdSyntaxError, ValueError) as error:
                problem = f"job {cluster.number}.{factory.next_proc} cannot be made: {error}"
                break
            factory.next_proc += 1
        if jobs:
            self._enter(cluster, jobs)
        if problem:
            self._pause(cluster, factory, mode, problem)
        elif factory.next_proc >= cluster.total:
            factory.mode = FactoryMode.DONE
        context.persist(factory.row(cluster.number))
        return len(jobs)

    def _as_much(self, found: Iterable[bytes]) -> list[bytes]:
        """So many texts as this turn may have."""
        taken = []
        for text in found:
            taken.append(text)
            self._bytes_left -= len(text)
            if self._bytes_left <= 0:
                break
        return taken

    def _ad(self, cluster: Cluster, factory: Factory, text: bytes) -> ClassAd:
        """The own ad of the next job."""
        context = self._context
        ad = ClassAd.from_bytes(text) if text else ClassAd()
        for name in factory.edited & ad.own.keys():
            del ad[name]
        ad.parent = cluster.ad
        self._check(ad, cluster)
        stamp = cluster.ad.get_int("QDate")
        ad.update({
            "ProcId": factory.next_proc, "EnteredCurrentStatus": int(context.now_s),
            "GlobalJobId": f"{context.settings.name}#{cluster.number}.{factory.next_proc}#{stamp}"})
        return ad

    def _enter(self, cluster: Cluster, jobs: list[Job]) -> None:
        context = self._context
        context.persist(InsertJobs(cluster.number, tuple([(job.proc, job.own) for job in jobs])))
        for job in jobs:
            self._transitions.offer(job)
        more = f" and {len(jobs) - 1} more, up to {jobs[-1].name}," if len(jobs) > 1 else ""
        context.out.append(job_note(jobs[0].name, "submitted", f"made of the items of its cluster{more}"))
        self._notices.submitted(cluster, jobs, context.submit_host)
        self.made = True

    def took_made(self) -> bool:
        """Whether jobs were made since the last call."""
        made, self.made = self.made, False
        return made

    # ---- what is done to them

    def _pause(self, cluster: Cluster, factory: Factory, mode: FactoryMode, reason: str) -> None:
        factory.mode, factory.reason = mode, reason
        self._context.note(f"cluster {cluster.number} makes no more jobs: {reason}", "warn")
        self._notices.of_cluster(cluster, JobEventType.FACTORY_PAUSED, PauseReason=reason, PauseCode=int(mode))
        self._context.queue.changes.note(cluster.number, -1)

    def act(self, cluster: Cluster, action: JobAction, reason: str) -> ActionResult | None:
        """Carry out an action on a cluster as such; None: it is none that makes jobs, or has nothing to do with that.

        The caller has the right; the jobs that were made are acted on beside it.
        """
        factory = cluster.factory
        if factory is None or not factory.may_make_more:
            return None
        if action in (JobAction.REMOVE, JobAction.REMOVE_FORCED):
            factory.mode, factory.reason = FactoryMode.REMOVED, reason
            self._context.note(f"cluster {cluster.number} was removed when {factory.next_proc} of its "
                               f"{cluster.total} jobs were made: {reason}")
            self._context.persist(factory.row(cluster.number))
            self._drop_empty(cluster)
        elif action is JobAction.HOLD and factory.mode is FactoryMode.RUNNING:
            self._pause(cluster, factory, FactoryMode.HELD, reason)
            self._context.persist(factory.row(cluster.number))
        elif action is JobAction.RELEASE and factory.mode is FactoryMode.HELD:
            factory.mode, factory.reason = FactoryMode.RUNNING, ""
            self._notices.of_cluster(cluster, JobEventType.FACTORY_RESUMED, PauseReason=reason)
            self._context.persist(factory.row(cluster.number))
            self._context.queue.mark((cluster,))
        else:
            return ActionResult.BAD_STATUS if action in (JobAction.HOLD, JobAction.RELEASE) else None
        return ActionResult.SUCCESS

    def _drop_empty(self, cluster: Cluster) -> None:
        if not cluster.jobs:
            self._notices.cluster_removed(cluster)
            for operation in self._context.queue.forget(cluster):
                self._context.persist(operation)

    def edited(self, cluster: Cluster, names: Iterable[str]) -> None:
        """Attributes of a cluster's ad, in small letters, were edited: those of jobs to come count no longer."""
        factory = cluster.factory
        if factory is not None and factory.may_make_more:
            factory.edited |= set(names)
            self._context.persist(factory.row(cluster.number))
            self._context.queue.mark((cluster,))
