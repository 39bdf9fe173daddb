"""A job that is to run now in the place of another of its owner's (condor_now).

Theory: the other one is vacated as by condor_vacate_job; its claim stays with the schedd, and the job gets it when the
run is over, before any other.  What is promised is remembered for as long as the run lasts and this schedd lives; a job
that has found a machine elsewhere meanwhile needs no other.

**Source**: HTCondor's manual, condor_now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from condor_actors.cores.schedd.claims.held_claim import HeldClaim
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.runs.run import Run
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.codes import JobStatus, Universe
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.queue import RunNow

__all__ = ["Promises"]


class Promises:
    """Who runs next in the place of whom.

    Args:
        context: of the schedd.
        runs: by id.
        may_serve: whether a claim may be used for a job.
        vacate: has the run of a job end, with a reason.
    """

    def __init__(self, context: ScheddContext, runs: Mapping[str, Run], may_serve: Callable[[HeldClaim, Job], bool],
                 vacate: Callable[[Job, str, str], None]) -> None:
        self._context = context
        self._runs = runs
        self._may_serve = may_serve
        self._vacate = vacate
        self._promised: dict[str, Job] = {}

    def run_now(self, message: RunNow, delivery: Delivery) -> None:
        """Vacate a job for another one, or say why not."""
        context, refusal = self._context, self._refusal(message, delivery)
        if refusal is not None:
            context.reply(refusal)
            return
        job, victim = context.queue.job(*message.job), context.queue.job(*message.vacate[0])
        assert job is not None
        assert victim is not None
        self._promised[victim.run_id] = job
        reason = f"via condor_now, for job {job.name} (by user {delivery.identity.user})"
        context.remember(job, "now", f"is to run in the place of job {victim.name} (condor_now)")
        self._vacate(victim, "vacate", reason)
        context.reply(Done(text=f"job {victim.name} is vacated for job {job.name}"))

    def take(self, run_id: str) -> Job | None:
        """The job that the claim of a run was promised to, now that it is over; None: none."""
        return self._promised.pop(run_id, None)

    def _refusal(self, message: RunNow, delivery: Delivery) -> Refused | None:
        """Why it cannot be done; None: it can."""
        context = self._context
        if len(message.vacate) != 1:
            return Refused(code="invalid", text=(
                "the slots of several jobs are not joined: name one job whose slot is large enough"))
        for numbers in (message.job, *message.vacate):
            found = context.queue.job(*numbers)
            if found is None:
                return Refused(code="not-found", text=f"there is no job {numbers[0]}.{numbers[1]}")
            if not context.may_touch(delivery.identity, found.cluster.owner):
                return Refused(code="denied", text=f"job {found.name} is not yours")
        job, victim = context.queue.job(*message.job), context.queue.job(*message.vacate[0])
        assert job is not None
        assert victim is not None
        problem = self._problem(job, victim)
        return Refused(code="invalid", text=problem) if problem else None

    def _problem(self, job: Job, victim: Job) -> str:
        """Why the one cannot run in the place of the other; empty: it can."""
        if job.cluster.user != victim.cluster.user:
            return f"job {job.name} and job {victim.name} have different owners"
        for each in (job, victim):
            if each.ad.find("jobuniverse") != Universe.VANILLA or is_gang(each.ad):
                return f"job {each.name} is not of the vanilla universe"
        if job.status is not JobStatus.IDLE or job.run_id:
            return f"job {job.name} is not idle"
        run = self._runs.get(victim.run_id)
        if victim.status is not JobStatus.RUNNING or run is None or run.claim is None:
            return f"job {victim.name} is not running"
        if run.stop is not None or not run.claim.usable or run.run_id in self._promised:
            return f"job {victim.name} is on its way already"
        if not self._may_serve(run.claim, job) or not run.claim.fits(job, self._context.now_s):
            return (f"job {job.name} cannot run on {run.claim.row.slot_name}: its requirements, or its concurrency "
                    "limits, do not fit (condor_q -better-analyze says more)")
        return ""
