"""What the end of a run means for its job: it has completed, is held, or runs again."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_policy import JobPolicy
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.local_jobs import is_grid
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.raised_requests import larger_request
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.codes import HoldCode, JobEventType, JobStatus
from condor_actors.messages.shadow_host import RunEnded

__all__ = ["JobVerdict", "end_of"]

FAILURE_DELAYS_S = (0.0, 1.0, 5.0, 20.0, 60.0, 300.0)
"""How long a job waits after its n-th start in a row that failed through no fault of its own."""


class JobVerdict:
    """Judges jobs whose runs have ended."""

    def __init__(self, context: ScheddContext, transitions: JobTransitions, notices: JobNotices,
                 policy: JobPolicy) -> None:
        self._context = context
        self._transitions = transitions
        self._notices = notices
        self._policy = policy

    def __call__(self, job: Job, message: RunEnded) -> str:
        """The verdict about the job."""
        outcome = message.outcome
        evicted = outcome not in ("lost", "failed")
        if job.status is JobStatus.REMOVED:
            if evicted and not is_grid(job):  # the log says that the run was ended before it says that the job is gone
                self._notices.due(job, JobEventType.JOB_EVICTED, EvictReason=job.ad.get_str("RemoveReason"))
            self._transitions.leave_removed(job)
            return "removed"
        if job.status is JobStatus.HELD:
            self._transitions.tell_hold_of(job, evicted=evicted)
            return "held"
        if job.status is JobStatus.IDLE and (outcome == "evicted" or not is_grid(job)):  # released while the run ended
            if evicted:
                self._notices.due(job, JobEventType.JOB_EVICTED, EvictReason=job.ad.get_str("LastHoldReason"))
            self._transitions.requeue(job)
            return "requeued"
        if outcome == "exited":
            return self._policy.on_exit(job)
        if outcome == "hold":
            more = larger_request(job.ad, message.hold_code, message.hold_subcode)
            if more is not None:
                return self._ask_for_more(job, message.reason, *more)
            self._transitions.hold(job, message.reason or "put on hold by the shadow",
                             message.hold_code or HoldCode.STARTD_HELD_JOB, message.hold_subcode)
            return "held"
        if outcome == "removed":
            self._transitions.mark_removed(job, message.reason or "removed by the shadow")
            self._transitions.leave_removed(job)
            return "removed"
        if outcome == "lost":
            return self._lost(job, message.reason)
        if outcome == "failed":
            return self._failed(job, message.reason)
        self._notices.due(job, JobEventType.JOB_EVICTED, EvictReason=message.reason)
        vacates = job.ad.get_int("NumVacates") + 1
        self._context.queue.set(job, LastVacateTime=int(self._context.now_s), NumVacates=vacates)
        self._context.queue.set(job, NumFailedStarts=0, NumLostRuns=0)
        self._transitions.requeue(job)
        self._policy.evaluate(job)
        return "requeued"

    def _ask_for_more(self, job: Job, reason: str, attribute: str, amount: int) -> str:
        """The job was over a limit, and has said what it needs then."""
        self._notices.due(job, JobEventType.JOB_EVICTED,
                          EvictReason=f"{reason}; it asks for {attribute} = {amount} from now on")
        self._context.remember(job, "raised", f"asks for {attribute} = {amount} from now on")
        self._context.queue.set(job, NumFailedStarts=0, NumLostRuns=0, **{attribute: amount})
        self._transitions.requeue(job)
        return "requeued"

    def _lost(self, job: Job, reason: str) -> str:
        """Nobody knows what became of the run: the job is run again, unless that has happened too often in a row, as to
        one that kills its own starter host."""
        lost, most = job.ad.get_int("NumLostRuns") + 1, self._context.settings.max_lost_runs
        self._context.queue.set(job, NumLostRuns=lost)
        if 0 < most <= lost:
            self._context.queue.set(job, NumLostRuns=0)  # once released it may try again
            why = f"its last {lost} runs were lost (MAX_LOST_RUNS): {reason}"
            self._transitions.hold(job, why, HoldCode.SYSTEM_POLICY)
            return "held"
        self._transitions.requeue(job)
        self._policy.evaluate(job)
        return "requeued"

    def _failed(self, job: Job, reason: str) -> str:
        """The system failed the job; it is tried again, later and later."""
        failures = job.ad.get_int("NumFailedStarts") + 1
        self._context.queue.set(job, NumFailedStarts=failures,
                             NumShadowExceptions=job.ad.get_int("NumShadowExceptions") + 1)
        self._notices.due(job, JobEventType.SHADOW_EXCEPTION, ExceptionReason=reason)
        self._transitions.requeue(job, FAILURE_DELAYS_S[min(failures, len(FAILURE_DELAYS_S) - 1)])
        self._policy.evaluate(job)
        return "requeued"


def end_of(message: RunEnded, ad: ClassAd) -> str:
    """How a run ended, in words."""
    if message.outcome == "exited":
        if ad.get_bool("ExitBySignal"):
            return f"the program was ended by signal {ad.get_int('ExitSignal')}"
        return f"the program has exited with status {ad.get_int('ExitCode')}"
    return f"{message.outcome}{': ' if message.reason else ''}{message.reason}"
