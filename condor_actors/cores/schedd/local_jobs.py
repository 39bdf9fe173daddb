"""Jobs of the local, scheduler and grid universes: which wait, and which of them may begin.

Theory: they need no match, so the schedd begins them at the end of a turn: the first two kinds on this machine, those
of the grid universe by handing them to another batch system.  It looks at them only when that can have
another outcome than before: a job came, one ended, the settings changed.  Where an expression of the administrator's
decides (START_LOCAL_UNIVERSE, START_SCHEDULER_UNIVERSE), time passes for it, so those that it refused are tried again,
some at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from itertools import islice

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.codes import JobStatus, Universe

__all__ = ["LOCAL_UNIVERSES", "LocalJobs", "LocalStarts", "grid_run_s", "is_grid", "is_local", "runs_there"]

SOME = 50
"""How many jobs of an owner and universe are tried in one turn."""
AGAIN_S = 5.0
"""How soon those that an expression refused are tried again."""

LOCAL_UNIVERSES = (Universe.SCHEDULER, Universe.LOCAL, Universe.GRID)

Kind = tuple[int, str]
"""A universe and an owner."""


def is_local(job: Job) -> bool:
    """Whether the job is begun here, without a match."""
    return job.ad.find("jobuniverse") in LOCAL_UNIVERSES


def is_grid(job: Job) -> bool:
    """Whether another batch system runs the job: it is idle while it waits there."""
    return bool(job.ad.find("jobuniverse") == Universe.GRID)


def runs_there(context: ScheddContext, job: Job) -> None:
    """The program of a job has begun in another batch system."""
    since_s = job.ad.get_int("JobCurrentStartExecutingDate") or int(context.now_s)
    context.remember(job, "run", f"it runs in {job.ad.get_str('GridResource')}")
    context.queue.set(job, JobCurrentStartDate=since_s, ShadowBday=since_s)
    context.queue.set_status(job, JobStatus.RUNNING, context.now_s)


def grid_run_s(context: ScheddContext, job: Job, handed_s: float) -> float:
    """How long a job has run in another batch system that it was handed to then: it has waited there as well."""
    began_s = job.ad.get_float("JobCurrentStartExecutingDate")
    return max(0.0, context.now_s - began_s) if began_s >= int(handed_s) else 0.0


class LocalJobs:
    """Those that wait.

    Attributes:
        waiting: by universe and owner, those to be tried first first.
        changed: whether more may begin than when they were last looked at.
    """

    def __init__(self) -> None:
        self.waiting: dict[Kind, dict[Job, None]] = {}
        self.changed = False
        self._kinds: dict[Job, Kind] = {}

    def add(self, job: Job) -> None:
        """A job is ready."""
        kind = (job.ad.get_int("JobUniverse"), job.cluster.owner)
        if self._kinds.get(job, kind) != kind:
            self.remove(job)
        self._kinds[job] = kind
        self.waiting.setdefault(kind, {})[job] = None
        self.changed = True

    def remove(self, job: Job) -> None:
        """A job waits no longer; one that did not is no error."""
        kind = self._kinds.pop(job, None)
        if kind is None:
            return
        del self.waiting[kind][job]
        if not self.waiting[kind]:
            del self.waiting[kind]

    def __bool__(self) -> bool:
        return bool(self.waiting)


class LocalStarts:
    """Begins those that may.

    Args:
        context: the queue, settings and time.
        jobs: those that wait.
        begin: begins a job, and withdraws it from those that wait.
        withdraw: a job waits no longer, since it may not begin at all now.

    Attributes:
        schedd_ad: makes the ad that the administrator's expressions see.
    """

    def __init__(self, context: ScheddContext, jobs: LocalJobs, begin: Callable[[Job], None],
                 withdraw: Callable[[Job], None]) -> None:
        self._context = context
        self._jobs = jobs
        self._begin = begin
        self._withdraw = withdraw
        self._running: dict[str, Kind] = {}
        self._counts: Counter[Kind] = Counter()
        self.schedd_ad: Callable[[], ClassAd] = ClassAd

    def began(self, run_id: str, job: Job) -> None:
        """A local run is there."""
        kind = self._running[run_id] = (job.ad.get_int("JobUniverse"), job.cluster.owner)
        self._counts[kind] += 1

    def ended(self, run_id: str) -> None:
        """A run is over; nothing happens when it was not local."""
        kind = self._running.pop(run_id, None)
        if kind is not None:
            self._counts[kind] -= 1
            if not self._counts[kind]:
                del self._counts[kind]
            self._jobs.changed = True

    def round(self) -> None:
        """Begin what may begin now, if anything has changed."""
        if not self._jobs.changed:
            return
        self._jobs.changed = False
        refused = False
        for universe, owner in tuple(self._jobs.waiting):
            refused |= self._round_of(universe, owner)
        if refused:
            self._context.timer(("locals",), AGAIN_S)

    def again(self) -> None:
        """Time has passed for the expressions."""
        self._jobs.changed = True

    def _round_of(self, universe: int, owner: str) -> bool:
        """Whether one of an owner's must be tried again later, or was not tried yet."""
        jobs = self._jobs.waiting[universe, owner]
        settings = self._context.settings
        expression = {Universe.LOCAL: settings.start_local, Universe.SCHEDULER: settings.start_scheduler}.get(
            Universe(universe))
        mine = self.schedd_ad() if expression is not None else ClassAd()
        more = len(jobs) > SOME
        refused: list[Job] = []
        for job in tuple(islice(jobs, SOME)):
            if not job.ready or not is_local(job):
                self._withdraw(job)
            elif not self._has_room(universe, owner):
                return bool(refused)  # the next one that ends wakes us
            elif expression is None or self._is_true(expression, mine, job):
                self._begin(job)
            else:
                refused.append(job)
        for job in refused:  # others come first the next time
            del jobs[job]
            jobs[job] = None
        if more and not refused:
            self._jobs.changed = True
            self._context.timer(("locals",), 0.0)
        return bool(refused)

    def _is_true(self, expression: Expr, mine: ClassAd, job: Job) -> bool:
        mine["TotalLocalJobsRunning"] = self._total(Universe.LOCAL)
        mine["TotalSchedulerJobsRunning"] = self._total(Universe.SCHEDULER)
        return is_true(expression.evaluate(mine, job.ad, self._context.now_s))

    def _total(self, universe: int) -> int:
        return sum(count for (each, _), count in self._counts.items() if each == universe)

    def _has_room(self, universe: int, owner: str) -> bool:
        settings = self._context.settings
        if universe == Universe.LOCAL:
            return self._total(Universe.LOCAL) < settings.max_local_jobs
        if universe == Universe.GRID:
            return self._counts[universe, owner] < settings.max_grid_jobs_per_owner
        return self._counts[universe, owner] < settings.max_scheduler_jobs_per_owner

    # ---- what always holds

    def validate(self, runs: Collection[str]) -> None:
        """Check that those counted as running are among ``runs``, which have no claim.

        Raises:
            InvariantBroken: they are not.
        """
        if not self._running.keys() <= set(runs) or self._counts != Counter(self._running.values()):
            raise InvariantBroken(f"{sorted(self._running)} are counted as local runs, {sorted(runs)} are")
