"""How a job moves from one status to the next, with all the attributes and log events that go with it.

**Source**: the manual's job attributes (HoldReason…, NumHolds, RemoveReason, CompletionDate …) and hold codes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

import attrs

from condor_actors.classads import ClassAd, Expr, is_true, parse_expression
from condor_actors.cores.reasons import bounded_reason
from condor_actors.cores.schedd.entering.backlog import Backlog
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.local_jobs import LOCAL_UNIVERSES, LocalJobs, is_local
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.scheduled_jobs import SCHEDULE, Late, ScheduledJobs
from condor_actors.effects import Effect
from condor_actors.messages.codes import HoldCode, JobEventType, JobStatus, Universe, hold_label

__all__ = ["ForgetSpool", "JobTransitions"]

OFFERS = 2_000
"""Jobs that are put in their place anew in one turn."""
OFFER_GAP_S = 0.01
"""Between two such turns others have theirs."""


@lru_cache(maxsize=1000)
def _record(counts: tuple[tuple[str, int], ...]) -> Expr:
    """Counts as a record; equal ones are one expression, whose text is rendered once."""
    return parse_expression(f"[ {'; '.join(f'{name} = {count}' for name, count in counts)} ]")


@attrs.frozen
class ForgetSpool(Effect):
    """A job has left the queue: remove its spool folder, and what an evicted run of it left for the next."""

    cluster: int
    proc: int
    owner: str


def _unrun(job: Job) -> dict[str, object]:
    """How a job ends that does nothing (NoopJobExitCode, NoopJobExitSignal)."""
    code, number = job.ad.evaluate("NoopJobExitCode"), job.ad.evaluate("NoopJobExitSignal")
    if type(number) is int and number > 0 and type(code) is not int:
        return {"ExitBySignal": True, "ExitSignal": number}
    return {"ExitBySignal": False, "ExitCode": code if type(code) is int else 0}


class JobTransitions:
    """Moves jobs from status to status, with every attribute and log event that the change implies.

    ``local`` are the ready jobs that need no match, ``scheduled`` those that are not offered yet.
    """

    def __init__(self, context: ScheddContext, notices: JobNotices) -> None:
        self._context = context
        self._notices = notices
        self.local = LocalJobs()
        self._anew: Backlog[Job] = Backlog()
        self.scheduled = ScheduledJobs(context)

    def offer(self, job: Job) -> None:
        """A job that is idle and free may run: put it where claims (or the local machine) find it."""
        context = self._context
        if not job.ready:
            return
        if job.not_before_s > context.now_s:
            context.timer(("again", job.cluster.number, job.proc), job.not_before_s - context.now_s)
        elif self.scheduled.concerns(job) and self._has_to_wait(job):
            return
        elif is_local(job):
            self.local.add(job)
        else:
            context.autoclusters.add(job)

    def offer_all(self, cluster: Cluster, jobs: Iterable[Job]) -> None:
        """As :meth:`offer` of each of these jobs of a cluster, in less time."""
        alike: list[Job] = []
        special = SCHEDULE | {"jobuniverse"}
        shared = not SCHEDULE.isdisjoint(cluster.ad.own) or cluster.ad.find("jobuniverse") in LOCAL_UNIVERSES
        for job in jobs:
            if shared or job.not_before_s or not special.isdisjoint(job.ad.own):
                self.offer(job)
            elif job.ready and job.order is None:
                alike.append(job)
        self._context.autoclusters.add_all(cluster, alike)

    def offer_anew(self, jobs: deque[Job] | None = None) -> bool:
        """These jobs, and those of earlier calls, have lost their place: the first ones get another now.

        Args:
            jobs: they are the callee's from now on.

        Returns:
            Whether more are left, which get theirs at ``TimerFired(("offer-anew",))``.
        """
        anew = self._anew
        if jobs is not None:
            anew.join(jobs)
        for cluster, mine in groupby(anew.take(OFFERS), attrgetter("cluster")):
            self.offer_all(cluster, [job for job in mine if job.order is None and cluster.jobs.get(job.proc) is job])
        if anew:
            self._context.timer(("offer-anew",), OFFER_GAP_S)
        return bool(anew)

    def _has_to_wait(self, job: Job) -> bool:
        """Whether a job has another time to begin; one that will never run is dealt with in a turn of its own."""
        if self.scheduled.does_nothing(job):
            self.scheduled.sleep(job)
            return True
        span = self.scheduled.span(job)
        if isinstance(span, Late):
            self.scheduled.sleep(job)
        elif span.from_s > self._context.now_s:
            self.scheduled.sleep(job, span.from_s)
        else:
            self.scheduled.forget(job)
            if span.until_s < math.inf:  # then it is too late
                self.scheduled.sleep(job, span.until_s + 0.1)
            return False
        self._context.autoclusters.remove(job)
        self.local.remove(job)
        return True

    def wake(self) -> bool:
        """Sleeping jobs whose date has come are offered, held as too late, or done without a run.

        Returns:
            Whether any is offered now.
        """
        offered = False
        for job in self.scheduled.awake():
            if not job.ready:
                continue
            if self.scheduled.does_nothing(job):
                self._context.queue.set(job, **_unrun(job))
                self.complete(job)
                continue
            span = self.scheduled.span(job)
            if isinstance(span, Late):
                self.hold(job, span.reason, span.code)
            else:
                self.offer(job)
                offered |= job.order is not None
        return offered

    def withdraw(self, job: Job) -> None:
        """A job must not be started now."""
        self._context.autoclusters.remove(job)
        self.local.remove(job)
        self.scheduled.forget(job)

    def hold(self, job: Job, reason: str, code: int, subcode: int = 0) -> None:
        """Put a job on hold; its run, if it has one, is the caller's to stop.

        Its log says so at once, or when that run has ended (:meth:`tell_hold_of`).
        """
        queue, reason = self._context.queue, bounded_reason(reason)
        self.withdraw(job)
        self._context.remember(job, "held", f"held ({code}): {reason}")
        ad = job.ad
        known = ad.get("NumHoldsByReason")
        counts = {name: known.get_int(name) for name in known} if isinstance(known, ClassAd) else {}
        label = hold_label(code)
        counts[label] = counts.get(label, 0) + 1
        queue.set(job, HoldReason=reason, HoldReasonCode=int(code), HoldReasonSubCode=int(subcode),
                  NumHolds=ad.get_int("NumHolds") + 1, NumHoldsByReason=_record(tuple(sorted(counts.items()))))
        if code not in (HoldCode.USER_REQUEST, HoldCode.SUBMITTED_ON_HOLD, HoldCode.SPOOLING_INPUT):
            queue.set(job, NumSystemHolds=ad.get_int("NumSystemHolds") + 1)
        queue.unset(job, "ReleaseReason")
        queue.set_status(job, JobStatus.HELD, self._context.now_s)
        if not (job.run_id and self.evicts(job)):
            self._tell_hold(job)

    @staticmethod
    def evicts(job: Job) -> bool:
        """Whether the log tells that a run was ended by the hold of its job, and the hold after that.

        As in HTCondor, that of a user, and any hold of a job that runs on the submit machine.
        """
        return (job.ad.get_int("HoldReasonCode") == HoldCode.USER_REQUEST
                or job.ad.get_int("JobUniverse") in (Universe.LOCAL, Universe.SCHEDULER))

    def tell_hold_of(self, job: Job, *, evicted: bool) -> None:
        """The run of a job that was put on hold has ended: what its log does not say yet."""
        if self.evicts(job):
            if evicted:
                self._notices.due(job, JobEventType.JOB_EVICTED, EvictReason=job.ad.get_str("HoldReason"))
            self._tell_hold(job)

    def _tell_hold(self, job: Job) -> None:
        self._notices.due(job, JobEventType.JOB_HELD, HoldReason=job.ad.get_str("HoldReason"),
                          HoldReasonCode=job.ad.get_int("HoldReasonCode"),
                          HoldReasonSubCode=job.ad.get_int("HoldReasonSubCode"))

    def release(self, job: Job, reason: str) -> None:
        """Take a job off hold."""
        queue, ad, reason = self._context.queue, job.ad, bounded_reason(reason)
        self._context.remember(job, "released", f"released: {reason}")
        if job.run_id and self.evicts(job):  # the run has not ended yet
            self._tell_hold(job)
        queue.set(job, ReleaseReason=reason, LastHoldReason=ad.get_str("HoldReason"),
                  LastHoldReasonCode=ad.get_int("HoldReasonCode"),
                  LastHoldReasonSubCode=ad.get_int("HoldReasonSubCode"))
        queue.unset(job, "HoldReason", "HoldReasonCode", "HoldReasonSubCode")
        queue.set_status(job, JobStatus.IDLE, self._context.now_s)
        job.not_before_s = 0.0
        self.scheduled.renew(job)
        self._notices.due(job, JobEventType.JOB_RELEASED, ReleaseReason=reason)
        self.offer(job)

    def requeue(self, job: Job, delay_s: float = 0.0) -> None:
        """The job's run is over and it wants another."""
        context = self._context
        context.remember(job, "requeued", f"idle again{f', for at least {delay_s:g} s' if delay_s else ''}")
        if job.status is not JobStatus.IDLE:
            context.queue.set_status(job, JobStatus.IDLE, context.now_s)
        job.not_before_s = context.now_s + delay_s if delay_s else 0.0
        self.scheduled.renew(job)
        self.offer(job)

    def requeue_after_exit(self, job: Job) -> None:
        """The program ended, and the job's policy wants another run: the log says so."""
        self._notices.due(job, JobEventType.JOB_EVICTED, TerminatedAndRequeued=True,
                          EvictReason="The job exited but its policy wants it to run again")
        self.requeue(job)

    def mark_removed(self, job: Job, reason: str) -> None:
        """A job is to go; it stays as REMOVED while its run ends."""
        reason = bounded_reason(reason)
        self.withdraw(job)
        self._context.remember(job, "removed", f"removed: {reason}")
        self._context.queue.set(job, RemoveReason=reason)
        self._context.queue.set_status(job, JobStatus.REMOVED, self._context.now_s)

    def leave_removed(self, job: Job) -> None:
        """A removed job without a run goes into the history, unless its owner wants to look at it first."""
        self._notices.due(job, JobEventType.JOB_ABORTED, RemoveReason=job.ad.get_str("RemoveReason"))
        self._leave_or_stay(job)

    def complete(self, job: Job) -> None:
        """The job is done."""
        context = self._context
        context.remember(job, "completed", "completed")
        context.queue.set(job, CompletionDate=int(context.now_s), JobFinishedHookDone=int(context.now_s))
        context.queue.set_status(job, JobStatus.COMPLETED, context.now_s)
        self._notices.due(job, JobEventType.JOB_TERMINATED)
        self._leave_or_stay(job)

    def _leave_or_stay(self, job: Job) -> None:
        if not self.stays(job):
            self.leave(job)

    def stays(self, job: Job) -> bool:
        """Whether a job that is done is to be looked at first (LeaveJobInQueue)."""
        return is_true(job.ad.evaluate("LeaveJobInQueue", now_s=self._context.now_s))

    def leave(self, job: Job) -> None:
        """Out of the queue, into the history."""
        self.withdraw(job)
        self._context.queue.set(job, EpochWriteDate=int(self._context.now_s))
        if job.ad.find("submit_iwd") is not None or job.ad.find("numvacates") is not None \
                or job.ad.find("jobuniverse") == Universe.STANDARD:
            self._context.out.append(ForgetSpool(job.cluster.number, job.proc, job.cluster.owner))
        if job.ad.find("checkpointdestination") is not None and job.ad.get_int("NumShadowStarts"):
            self._notices.remove_checkpoints(job)
        for operation in self._context.queue.leave(job, self._context.now_s):
            self._context.persist(operation)
        if job.cluster.factory is not None and job.cluster.number not in self._context.queue.clusters:
            self._notices.cluster_removed(job.cluster)
