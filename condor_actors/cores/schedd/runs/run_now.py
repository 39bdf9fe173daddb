"""A job that is to run now in the place of another of its owner's, or of several (condor_now).

Theory: the others are vacated as by condor_vacate_job; their claims stay with the schedd, and the job gets them when
the runs are over, before any other.  What is promised is remembered for as long as the runs last and this schedd lives;
a job that has found a machine elsewhere meanwhile needs no other.  Several claims are joined by their startd
(:mod:`condor_actors.cores.schedd.claims.joined_claims`), so they have to be of parts of one slot.

**Source**: HTCondor's manual, condor_now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from condor_actors.cores.schedd.claims.held_claim import HeldClaim, limits_of
from condor_actors.cores.schedd.claims.joined_claims import JoinedClaims, sum_of
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
        joined: keeps several claims for one job.
        vacate: has the run of a job end, with a reason.
    """

    def __init__(self, context: ScheddContext, runs: Mapping[str, Run], may_serve: Callable[[HeldClaim, Job], bool],
                 joined: JoinedClaims, vacate: Callable[[Job, str, str], None]) -> None:
        self._context = context
        self._runs = runs
        self._may_serve = may_serve
        self._joined = joined
        self._vacate = vacate
        self._promised: dict[str, Job] = {}

    def run_now(self, message: RunNow, delivery: Delivery) -> None:
        """Vacate jobs for another one, or say why not."""
        context, refusal = self._context, self._refusal(message, delivery)
        if refusal is not None:
            context.reply(refusal)
            return
        job, victims = self._named(message)
        claims = self._claims_of(victims)
        if len(victims) == 1:
            self._promised[victims[0].run_id] = job
        else:
            self._joined.promise(job, claims)
        reason = f"via condor_now, for job {job.name} (by user {delivery.identity.user})"
        names = ", ".join(victim.name for victim in victims)
        context.remember(job, "now", f"is to run in the place of {names} (condor_now)")
        for victim in victims:
            self._vacate(victim, "vacate", reason)
        context.reply(Done(text=f"vacated for job {job.name}: {names}"))

    def _named(self, message: RunNow) -> tuple[Job, list[Job]]:
        """The job and its victims, which are in the queue."""
        found = [job for numbers in (message.job, *message.vacate)
                 if (job := self._context.queue.job(*numbers)) is not None]
        return found[0], found[1:]

    def _claims_of(self, victims: Sequence[Job]) -> list[HeldClaim]:
        """What they run on."""
        runs = [self._runs[victim.run_id] for victim in victims if victim.run_id in self._runs]
        return [run.claim for run in runs if run.claim is not None]

    def take(self, run_id: str) -> Job | None:
        """The job that the claim of a run was promised to, now that it is over; None: none."""
        return self._promised.pop(run_id, None)

    def _refusal(self, message: RunNow, delivery: Delivery) -> Refused | None:
        """Why it cannot be done; None: it can."""
        context = self._context
        if not message.vacate:
            return Refused(code="invalid", text="name a job in whose place it is to run")
        if len(set(message.vacate)) < len(message.vacate):
            return Refused(code="invalid", text="a job is named twice")
        for numbers in (message.job, *message.vacate):
            found = context.queue.job(*numbers)
            if found is None:
                return Refused(code="not-found", text=f"there is no job {numbers[0]}.{numbers[1]}")
            if not context.may_touch(delivery.identity, found.cluster.owner):
                return Refused(code="denied", text=f"job {found.name} is not yours")
        job, victims = self._named(message)
        problem = next(filter(None, (self._problem(job, victim) for victim in victims)), "")
        problem = problem or self._misfit(job, self._claims_of(victims))
        return Refused(code="invalid", text=problem) if problem else None

    def _problem(self, job: Job, victim: Job) -> str:
        """Why the one cannot have the other's claim; empty: it can."""
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
        promised = run.run_id in self._promised or run.claim in self._joined
        if run.stop is not None or not run.claim.usable or promised:
            return f"job {victim.name} is on its way already"
        return "" if self._may_serve(run.claim, job) else f"job {job.name} may not use {run.claim.row.slot_name}"

    def _misfit(self, job: Job, claims: Sequence[HeldClaim]) -> str:
        """Why a job does not fit a slot made of these; empty: it does."""
        rows = [claim.row for claim in claims]
        parents = {claim.ad.get_str("ParentSlotName") for claim in claims}
        if len(claims) == 1:
            fits = claims[0].fits(job, self._context.now_s)
        elif claims[0].realm or len(parents) > 1 or not all(parents) or len({row.startd for row in rows}) > 1:
            return (f"{', '.join(row.slot_name for row in rows)} are not joined: they are not parts of one "
                    "partitionable slot of this pool")
        elif len({row.submitter for row in rows}) > 1:
            return "the jobs are charged to different groups, and their slots are not joined"
        else:
            joined = HeldClaim(rows[0], sum_of(claims), limits=limits_of(job.ad))
            fits = joined.fits(job, self._context.now_s) and limits_of(job.ad) in {claim.limits for claim in claims}
        where = " and ".join(row.slot_name for row in rows)
        return "" if fits else (f"job {job.name} cannot run on {where}: its requirements, or its concurrency limits, "
                                "do not fit (condor_q -better-analyze says more)")
