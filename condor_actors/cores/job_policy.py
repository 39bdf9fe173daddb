"""The policies of a job: what its own and the system's expressions say about holding, releasing, removing it.

Theory: most jobs have no periodic expressions (or constant ones), and then there is nothing to look at however many
there are: a cluster knows whether its jobs have any.  The others are looked at every PERIODIC_EXPR_INTERVAL, a slice
at a time, and when something happened to them.

Order of the expressions: release (held jobs), hold (others), remove; at exit: OnExitHold, then OnExitRemove, which
decides between completion and another run.

**Source**: the manual's description of the periodic and on-exit expressions, and of the reasons in the hold codes 3,
5, 26, 27, 46 and 47.
"""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors.classads import ERROR, UNDEFINED, Expr, is_true
from condor_actors.cores.job_actions import RunStopper
from condor_actors.cores.job_moves import JobMoves
from condor_actors.cores.job_queue import Cluster, Job
from condor_actors.cores.job_status import ALIVE, HoldCode, JobStatus
from condor_actors.cores.schedd_desk import ScheddDesk
from condor_actors.cores.schedd_settings import SystemPolicy

__all__ = ["Policy"]

SLICE = 500
"""Jobs looked at in one turn."""

PERIODIC = ("periodichold", "periodicrelease", "periodicremove", "timerremove")
DURATIONS = ("allowedjobduration", "allowedexecuteduration")


class Policy:
    """See the module; ``runs`` is set before the first turn."""

    def __init__(self, desk: ScheddDesk, moves: JobMoves) -> None:
        self._desk = desk
        self._moves = moves
        self.runs: RunStopper
        self._round: Iterator[Job] | None = None

    # ---- which jobs

    def _system(self) -> bool:
        settings = self._desk.settings
        return any(each.expression is not None
                   for each in (settings.hold_policy, settings.release_policy, settings.remove_policy))

    def concerns(self, job: Job) -> bool:
        """Whether any expression may ever do something to the job."""
        cluster = job.cluster
        shared = cluster.memo.get("policy")
        if shared is None:
            shared = cluster.memo["policy"] = _live(cluster)
        if shared or job.status is JobStatus.COMPLETED or (job.status is JobStatus.REMOVED and not job.run_id):
            return True
        own = job.ad.own
        return any(name in own and own[name] is not False for name in (*PERIODIC, *DURATIONS)) or self._system()

    def started(self) -> None:
        """Look at the jobs every now and then."""
        if self._desk.settings.policy_interval_s > 0:
            self._desk.timer(("policy",), self._desk.settings.policy_interval_s)

    def round(self) -> None:
        """Begin to look at all jobs."""
        if self._round is None:
            self._round = iter([job for job in self._desk.queue.jobs() if self.concerns(job)])
            self.slice()
        self.started()

    def slice(self) -> None:
        """Look at the next jobs of the round."""
        if self._round is None:
            return
        for count, job in enumerate(self._round, 1):
            if job.cluster.jobs.get(job.proc) is job:
                self.look(job)
            if count >= SLICE:
                self._desk.timer(("policy-slice",), 0.0)
                return
        self._round = None

    # ---- periodic

    def look(self, job: Job) -> None:
        """Evaluate what concerns a job now."""
        if not self.concerns(job):
            return
        if job.status is JobStatus.COMPLETED or (job.status is JobStatus.REMOVED and not job.run_id):
            if not self._moves.stays(job):
                self._moves.leave(job)
        elif job.status is JobStatus.REMOVED:
            return
        elif job.status is JobStatus.HELD:
            if not self._release(job):
                self._remove(job)
        elif not self._durations(job) and not self._hold(job):
            self._remove(job)

    def _evaluate(self, job: Job, name: str) -> object:
        value = job.ad.find(name)
        if not isinstance(value, Expr):
            return value
        return value.evaluate(job.ad, None, self._desk.now_s)

    def _hold(self, job: Job) -> bool:
        value = self._evaluate(job, "periodichold")
        if is_true(value):
            self._stop_and_hold(job, self._reason(job, "PeriodicHold"), HoldCode.JOB_POLICY,
                                job.ad.get_int("PeriodicHoldSubCode"))
            return True
        system = self._desk.settings.hold_policy
        if self._says(system, job):
            reason, subcode = self._system_reason(system, job, "SYSTEM_PERIODIC_HOLD")
            self._stop_and_hold(job, reason, HoldCode.SYSTEM_POLICY, subcode)
            return True
        return False

    def _release(self, job: Job) -> bool:
        code = job.ad.get_int("HoldReasonCode")
        if code in (HoldCode.USER_REQUEST, HoldCode.SUBMITTED_ON_HOLD, HoldCode.SPOOLING_INPUT):
            return False
        if is_true(self._evaluate(job, "periodicrelease")):
            self._moves.release(job, self._reason(job, "PeriodicRelease"))
            return True
        system = self._desk.settings.release_policy
        if self._says(system, job):
            self._moves.release(job, self._system_reason(system, job, "SYSTEM_PERIODIC_RELEASE")[0])
            return True
        return False

    def _remove(self, job: Job) -> bool:
        system = self._desk.settings.remove_policy
        if is_true(self._evaluate(job, "periodicremove")):
            reason = self._reason(job, "PeriodicRemove")
        elif job.ad.find("timerremove") is not None and self._is_past(job):
            reason = self._reason(job, "TimerRemove")
        elif self._says(system, job):
            reason = self._system_reason(system, job, "SYSTEM_PERIODIC_REMOVE")[0]
        else:
            return False
        self._moves.mark_removed(job, reason)
        if job.run_id:
            self.runs.stop(job, "remove", reason)
        else:
            self._moves.leave_removed(job)
        return True

    def _is_past(self, job: Job) -> bool:
        value = self._evaluate(job, "timerremove")
        return isinstance(value, (int, float)) and 0 <= value <= self._desk.now_s

    def _durations(self, job: Job) -> bool:
        """AllowedJobDuration and AllowedExecuteDuration of a running job."""
        if job.status not in ALIVE:
            return False
        for name, start, code, what in (
            ("AllowedJobDuration", "JobCurrentStartDate", HoldCode.JOB_DURATION_EXCEEDED, "job duration"),
            ("AllowedExecuteDuration", "JobCurrentStartExecutingDate", HoldCode.JOB_EXECUTE_EXCEEDED,
             "execute duration"),
        ):
            if job.ad.find(name.lower()) is None:
                continue
            allowed = job.ad.get_int(name, -1)
            since = job.ad.get_int(start)
            if allowed >= 0 and since and self._desk.now_s - since > allowed:
                self._stop_and_hold(job, f"The job exceeded allowed {what} of {_clock(allowed)}", code, 0)
                return True
        return False

    def _stop_and_hold(self, job: Job, reason: str, code: int, subcode: int) -> None:
        self._moves.hold(job, reason, code, subcode)
        if job.run_id:
            self.runs.stop(job, "hold", reason)

    def _says(self, system: SystemPolicy, job: Job) -> bool:
        expression = system.expression
        return expression is not None and is_true(expression.evaluate(job.ad, None, self._desk.now_s))

    def _reason(self, job: Job, name: str) -> str:
        """The job's own words, or a sentence with the expression that was true."""
        own = job.ad.get_str(f"{name}Reason")
        if own:
            return own
        expression = job.ad.expression(name)
        return f"The job attribute {name} expression '{expression}' evaluated to TRUE"

    def _system_reason(self, system: SystemPolicy, job: Job, name: str) -> tuple[str, int]:
        reason = system.reason.evaluate(job.ad, None, self._desk.now_s) if system.reason is not None else None
        subcode = system.subcode.evaluate(job.ad, None, self._desk.now_s) if system.subcode is not None else 0
        text = reason if isinstance(reason, str) and reason else (
            f"The system macro {name} expression '{system.expression}' evaluated to TRUE")
        return text, int(subcode) if isinstance(subcode, (int, float)) else 0

    # ---- at exit

    def on_exit(self, job: Job) -> str:
        """The program has ended by itself: hold, complete or run again; returns the verdict."""
        ad = job.ad
        self._desk.queue.set(job, NumFailedStarts=0)
        value = self._evaluate(job, "onexithold")
        if is_true(value):
            self._moves.hold(job, self._reason(job, "OnExitHold"), HoldCode.JOB_POLICY,
                             ad.get_int("OnExitHoldSubCode"))
            return "held"
        if value is ERROR:
            self._moves.hold(job, f"The job attribute OnExitHold expression '{ad.expression('OnExitHold')}' "
                             "evaluated to ERROR", HoldCode.JOB_POLICY_UNDEFINED)
            return "held"
        if self._hold(job):
            return "held"
        remove = self._evaluate(job, "onexitremove")
        if remove is None or remove is UNDEFINED or remove is ERROR or is_true(remove):
            if remove is UNDEFINED or remove is ERROR:
                self._desk.note(f"{job.name}: OnExitRemove is {remove}; the job is taken as done", "warn")
            self._moves.complete(job)
            return "completed"
        self._moves.requeue_after_exit(job)
        return "requeued"


def _live(cluster: Cluster) -> bool:
    """Whether an expression of the cluster's ad may become true."""
    ad = cluster.ad
    if any(isinstance(ad.find(name), Expr) or ad.find(name) is True for name in PERIODIC):
        return True
    return any(ad.find(name) is not None for name in (*DURATIONS, "timerremove"))


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    return f"{days}+{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
