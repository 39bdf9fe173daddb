"""The policies of a job: what its own and the system's expressions say about holding, releasing, removing it.

Theory: most jobs have no periodic expressions (or constant ones), and then there is nothing to look at however many
there are: a cluster knows whether its jobs have any.  The others are looked at every PERIODIC_EXPR_INTERVAL, a slice
at a time, and when something happened to them.

Order of the expressions: the allowed durations and vacate (running jobs), hold (those that are neither held nor done),
release (held ones), remove; at exit: hold, remove, OnExitHold, then OnExitRemove, which decides between completion and
another run. Of each kind the job's own comes first, then the system's. A value that is no number fires nothing.

**Source**: the manual's description of the periodic and on-exit expressions, and of the reasons in the hold codes 3,
5, 26, 27, 46 and 47.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, Expr
from condor_actors.classads.evaluation.budget import TURN_STEPS, spent
from condor_actors.cores.schedd.job_actions import RunStopper
from condor_actors.cores.schedd.job_status import ALIVE
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.schedd_settings import SystemPolicy
from condor_actors.messages.codes import HoldCode, JobStatus
from condor_actors.numerals import whole

__all__ = ["JobPolicy"]

SLICE = 5_000
EVALUATION = 10
"""What a turn may cost: a job that nothing concerns costs 1, one whose expressions are evaluated :data:`EVALUATION`."""
SLICE_GAP_S = 0.01
"""Between two such turns others have theirs."""

PERIODIC = ("periodichold", "periodicrelease", "periodicremove", "periodicvacate")
DATES = ("allowedjobduration", "allowedexecuteduration", "timerremove")
WALL_CLOCK = "remotewallclocktime"
_NOT_THERE = object()


class JobPolicy:
    """Evaluates the policy expressions of jobs and of the system.

    ``runs`` is set before the first turn.
    """

    def __init__(self, context: ScheddContext, transitions: JobTransitions) -> None:
        self._context = context
        self._transitions = transitions
        self.runs: RunStopper
        self._round: Iterator[int] | None = None

    # ---- which jobs

    def _system(self) -> bool:
        settings = self._context.settings
        return bool(settings.hold_policies or settings.release_policies or settings.remove_policies
                    or settings.vacate_policies)

    def concerns(self, job: Job) -> bool:
        """Whether any expression may ever do something to the job."""
        cluster = job.cluster
        shared = cluster.memo.get("policy")
        if shared is None:
            shared = cluster.memo["policy"] = _live(cluster.ad)
        if shared or job.status is JobStatus.COMPLETED or (job.status is JobStatus.REMOVED and not job.run_id):
            return True
        return self._system() or _live(job.ad, own=True)

    def started(self) -> None:
        """Look at the jobs every now and then."""
        if self._context.settings.policy_interval_s > 0:
            self._context.timer(("policy",), self._context.settings.policy_interval_s)

    def round(self) -> None:
        """Begin to look at all jobs."""
        if self._round is None:
            self._round = self._looks()
            self.slice()
        self.started()

    def _looks(self) -> Iterator[int]:
        """Look at the jobs that there are now, one after the other; yields what that costs."""
        clusters = self._context.queue.clusters
        for number in sorted(clusters):
            cluster = clusters.get(number)
            for job in cluster.jobs_after(-1) if cluster is not None else ():
                if self.concerns(job):
                    self.evaluate(job)
                    yield EVALUATION
                else:
                    yield 1

    def slice(self) -> None:
        """Look at the next jobs of the round."""
        if self._round is None:
            return
        left, steps_before = SLICE, spent()[0]
        for cost in self._round:
            left -= cost
            if left <= 0 or spent()[0] - steps_before > TURN_STEPS:
                self._context.timer(("policy-slice",), SLICE_GAP_S)
                return
        self._round = None

    # ---- periodic

    def evaluate(self, job: Job) -> None:
        """Evaluate what concerns a job now."""
        if not self.concerns(job):
            return
        with self._up_to_date(job):
            if job.status is JobStatus.COMPLETED or (job.status is JobStatus.REMOVED and not job.run_id):
                if not self._transitions.stays(job):
                    self._transitions.leave(job)
                elif job.status is JobStatus.COMPLETED:
                    self._remove(job)
            elif job.status is JobStatus.REMOVED:
                return
            elif job.status is JobStatus.HELD:
                if not self._release(job):
                    self._remove(job)
            elif not self._durations(job) and not self._vacate(job) and not self._hold(job):
                self._remove(job)

    @contextmanager
    def _up_to_date(self, job: Job) -> Iterator[None]:
        """While expressions are evaluated, a running job's RemoteWallClockTime counts the run that goes on."""
        own = job.ad.own
        since_s = job.ad.get_int("JobCurrentStartDate") if job.run_id and job.status in ALIVE else 0
        if not since_s:
            yield
            return
        kept = own.get(WALL_CLOCK, _NOT_THERE)
        before_s = job.ad.get_float("RemoteWallClockTime")
        job.ad.store("RemoteWallClockTime", before_s + max(0.0, self._context.now_s - since_s))
        try:
            yield
        finally:
            if kept is _NOT_THERE:
                own.pop(WALL_CLOCK, None)
            else:
                own[WALL_CLOCK] = kept

    def _evaluate(self, job: Job, name: str) -> object:
        value = job.ad.find(name)
        if not isinstance(value, Expr):
            return value
        return value.evaluate(job.ad, None, self._context.now_s)

    def _vacate(self, job: Job) -> bool:
        if not job.run_id or job.status not in (JobStatus.RUNNING, JobStatus.SUSPENDED):
            return False
        if _fires(self._evaluate(job, "periodicvacate")):
            self.runs.stop(job, "vacate", self._reason(job, "PeriodicVacate"))
            return True
        for system in self._context.settings.vacate_policies:
            if self._says(system, job):
                self.runs.stop(job, "vacate", self._system_reason(system, job)[0])
                return True
        return False

    def _hold(self, job: Job) -> bool:
        if _fires(self._evaluate(job, "periodichold")):
            self._stop_and_hold(job, self._reason(job, "PeriodicHold"), HoldCode.JOB_POLICY,
                                self._subcode(job, "PeriodicHold"))
            return True
        for system in self._context.settings.hold_policies:
            if self._says(system, job):
                reason, subcode = self._system_reason(system, job)
                self._stop_and_hold(job, reason, HoldCode.SYSTEM_POLICY, subcode)
                return True
        return False

    def _release(self, job: Job) -> bool:
        """Whatever held it, but its user's own wish: neither that nor files that are still to come are overruled."""
        most = self._context.settings.max_releases
        if job.ad.get_int("HoldReasonCode") in (HoldCode.USER_REQUEST, HoldCode.SPOOLING_INPUT):
            return False
        if 0 <= most <= job.ad.get_int("NumHolds"):
            return False
        if _fires(self._evaluate(job, "periodicrelease")):
            self._transitions.release(job, self._reason(job, "PeriodicRelease"))
            return True
        for system in self._context.settings.release_policies:
            if self._says(system, job):
                self._transitions.release(job, self._system_reason(system, job)[0])
                return True
        return False

    def _remove(self, job: Job) -> bool:
        reason = self._why_remove(job)
        if not reason:
            return False
        done = job.status is JobStatus.COMPLETED
        self._transitions.mark_removed(job, reason)
        if job.run_id:
            self.runs.stop(job, "remove", reason)
        elif done:
            self._transitions.leave(job)
        else:
            self._transitions.leave_removed(job)
        return True

    def _why_remove(self, job: Job) -> str:
        if _fires(self._evaluate(job, "periodicremove")):
            return self._reason(job, "PeriodicRemove")
        if job.ad.find("timerremove") is not None and self._is_past(job):
            return self._reason(job, "TimerRemove")
        for system in self._context.settings.remove_policies:
            if self._says(system, job):
                return self._system_reason(system, job)[0]
        return ""

    def _is_past(self, job: Job) -> bool:
        value = self._evaluate(job, "timerremove")
        return isinstance(value, (int, float)) and 0 <= value <= self._context.now_s

    def _durations(self, job: Job) -> bool:
        """AllowedJobDuration and AllowedExecuteDuration of a running job."""
        if job.status not in ALIVE:
            return False
        began_s = job.ad.get_int("JobCurrentStartDate")
        for name, start, code, what in (
            ("AllowedJobDuration", "JobCurrentStartDate", HoldCode.JOB_DURATION_EXCEEDED, "job duration"),
            ("AllowedExecuteDuration", "JobCurrentStartExecutingDate", HoldCode.JOB_EXECUTE_EXCEEDED,
             "execute duration"),
        ):
            if job.ad.find(name.lower()) is None:
                continue
            allowed = job.ad.get_int(name, -1)
            since = job.ad.get_int(start)
            # One that is older than this start is the last run's.
            if allowed >= 0 and since and since >= began_s and self._context.now_s - since > allowed:
                self._stop_and_hold(job, f"The job exceeded allowed {what} of {_clock(allowed)}", code, 0)
                return True
        return False

    def _stop_and_hold(self, job: Job, reason: str, code: int, subcode: int) -> None:
        self._transitions.hold(job, reason, code, subcode)
        if job.run_id:
            self.runs.stop(job, "hold", reason)

    # ---- words

    def _says(self, system: SystemPolicy, job: Job) -> bool:
        return _fires(system.expression.evaluate(job.ad, None, self._context.now_s))

    def _reason(self, job: Job, name: str) -> str:
        """The job's own words, or a sentence with the expression that was true."""
        own = self._evaluate(job, f"{name}Reason".lower())
        if isinstance(own, str) and own:
            return own
        expression = job.ad.expression(name)
        return f"The job attribute {name} expression '{expression}' evaluated to TRUE"

    def _subcode(self, job: Job, name: str) -> int:
        value = self._evaluate(job, f"{name}SubCode".lower())
        return whole(value)

    def _system_reason(self, system: SystemPolicy, job: Job) -> tuple[str, int]:
        reason = system.reason.evaluate(job.ad, None, self._context.now_s) if system.reason is not None else None
        subcode = system.subcode.evaluate(job.ad, None, self._context.now_s) if system.subcode is not None else 0
        text = reason if isinstance(reason, str) and reason else (
            f"The system macro {system.name} expression '{system.expression}' evaluated to TRUE")
        return text, whole(subcode)

    # ---- at exit

    def on_exit(self, job: Job) -> str:
        """The program has ended by itself: hold, remove, complete or run again; returns the verdict."""
        self._context.queue.set(job, NumFailedStarts=0)
        if self._hold(job):
            return "held"
        if self._remove(job):
            return "removed"
        value = self._evaluate(job, "onexithold")
        if _fires(value):
            self._transitions.hold(job, self._reason(job, "OnExitHold"), HoldCode.JOB_POLICY,
                             self._subcode(job, "OnExitHold"))
            return "held"
        if value is ERROR:
            self._transitions.hold(job, f"The job attribute OnExitHold expression '{job.ad.expression('OnExitHold')}' "
                             "evaluated to ERROR", HoldCode.JOB_POLICY_UNDEFINED)
            return "held"
        remove = self._evaluate(job, "onexitremove")
        if isinstance(remove, (bool, int, float)) and not _fires(remove):
            self._transitions.requeue_after_exit(job)
            return "requeued"
        if remove is UNDEFINED or remove is ERROR:
            self._context.note(f"{job.name}: OnExitRemove is {remove}; the job is taken as done", "warn")
        self._transitions.complete(job)
        return "completed"


def _fires(value: object) -> bool:
    """Whether a policy's value means yes: a number whose whole part is not zero, as HTCondor has it."""
    return isinstance(value, (bool, int, float)) and not math.isnan(value) and abs(value) >= 1


def _live(ad: ClassAd, *, own: bool = False) -> bool:
    """Whether a policy in an ad (of a job's own attributes only) may become true."""
    values = ad.own

    def value(name: str) -> object:
        return values.get(name) if own else ad.find(name)

    return any(isinstance(found := value(name), Expr) or _fires(found) for name in PERIODIC) or any(
        value(name) is not None for name in DATES)


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    return f"{days}+{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
