"""How fast jobs may start: JOB_START_COUNT in each JOB_START_DELAY, and one owner's jobs by their own wish."""

from __future__ import annotations

from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext

__all__ = ["StartPacing"]


class StartPacing:
    """Says whether a job may start now.

    The timers ``("starts",)`` and ``("starts-of", owner)`` say when some may start again.

    Attributes:
        spaced: owners whose next job has to wait, and until when.
    """

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self._left = context.settings.job_start_count
        self.spaced: dict[str, float] = {}

    @property
    def exhausted(self) -> bool:
        """Whether nothing more may start before the next JOB_START_DELAY is over."""
        return self._left <= 0

    def may_start(self, job: Job) -> bool:
        """Whether a job may start now; where it may, it is counted."""
        context = self._context
        if self.spaced.get(job.cluster.owner, 0.0) > context.now_s:
            return False
        delay_s = context.settings.job_start_delay_s
        if delay_s <= 0.0:
            return True
        if self._left == context.settings.job_start_count:
            context.timer(("starts",), delay_s)
        if self._left <= 0:
            return False
        self._left -= 1
        return True

    def started(self, job: Job) -> None:
        """A job has started; with ``next_job_start_delay`` its owner's next one starts so many seconds later."""
        value = job.ad.evaluate("NextJobStartDelay") if job.ad.find("nextjobstartdelay") is not None else 0
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
            gap_s = min(float(value), self._context.settings.max_start_gap_s)
            self.spaced[job.cluster.owner] = self._context.now_s + gap_s
            self._context.timer(("starts-of", job.cluster.owner), gap_s)

    def delay_over(self) -> None:
        """A JOB_START_DELAY is over."""
        self._left = self._context.settings.job_start_count
