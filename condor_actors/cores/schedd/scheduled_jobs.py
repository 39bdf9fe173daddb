"""Idle jobs that are not offered at once: those that begin at a time, and those that do nothing at all.

Theory: a job with a time (DeferralTime) sleeps here until DeferralPrepTime before it; then it is offered as any other,
and waits for the time itself on the machine that it was matched with.  A job of the local universe, which needs no
match, sleeps until its time.  One with a cron schedule gets its next time when it comes into the queue, when it is
queued again or released, and when it found no machine in time; all others that find none are held.  Dates are those of
the wall clock, which may be set: the sleepers are looked at every minute, whatever the timers say.

**Source**: the manual, "Time Scheduling for Job Execution" and ``noop_job``.
"""

from __future__ import annotations

import math
from datetime import datetime
from heapq import heappop, heappush
from itertools import count

import attrs

from condor_actors.classads import UNDEFINED, is_true
from condor_actors.cores.cron_schedule import CRON_FIELDS, BadCron, cron_line, next_time_s
from condor_actors.cores.schedd.local_jobs import is_local
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.codes import HoldCode

__all__ = ["SCHEDULE", "Late", "ScheduledJobs", "Span"]

LOOK_S = 60.0
SLICE = 500
"""Jobs woken in one turn."""
PREPARATION_S = 300.0
"""DeferralPrepTime of a job that does not say."""
_CRON = frozenset(name.lower() for name in CRON_FIELDS)
SCHEDULE = _CRON | {"deferraltime", "isnoopjob"}
"""The attributes, in lower case, that give a job a time or let it do nothing."""


@attrs.frozen
class Late:
    """A job cannot begin as it wants to: why it is held, and with which code."""

    reason: str
    code: HoldCode


@attrs.frozen
class Span:
    """When a job may be offered: seconds since the epoch."""

    from_s: float = 0.0
    until_s: float = math.inf


class ScheduledJobs:
    """Those that sleep; see the module."""

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self._due: dict[Job, float] = {}
        self._heap: list[tuple[float, int, Job]] = []
        self._order = count()

    @staticmethod
    def concerns(job: Job) -> bool:
        """Whether a job has a time, or may do nothing."""
        memo = job.cluster.memo
        shared: bool | None = memo.get("scheduled")
        if shared is None:
            shared = memo["scheduled"] = not SCHEDULE.isdisjoint(job.cluster.ad.own)
        return shared or not SCHEDULE.isdisjoint(job.ad.own)

    @staticmethod
    def does_nothing(job: Job) -> bool:
        """Whether a job is over without a run (IsNoopJob)."""
        return is_true(job.ad.evaluate("IsNoopJob"))

    def renew(self, job: Job) -> None:
        """A job is to begin once more: by a cron schedule at its next time."""
        if self.concerns(job) and any(job.ad.find(name) is not None for name in _CRON):
            self._context.queue.unset(job, "DeferralTime")

    def span(self, job: Job) -> Span | Late:
        """When a job may be offered, or that and why it cannot begin."""
        now_s = self._context.now_s
        window_s = job.ad.get_float("DeferralWindow")
        try:
            self._plan_next(job, window_s)
        except BadCron as error:
            return Late(f"The cron schedule of the job cannot be followed: {error}", HoldCode.INVALID_CRON_SETTINGS)
        value = job.ad.evaluate("DeferralTime", now_s=now_s)
        if value is UNDEFINED:
            return Span()
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e11:
            return Late(f"DeferralTime = {job.ad.expression('DeferralTime')} is no time (seconds since 1970)",
                        HoldCode.MISSED_DEFERRED_EXECUTION_TIME)
        if job.ad.evaluate("DeferralTime", now_s=now_s + 1.0) != value:  # so long after it has arrived
            if not is_local(job):
                return Span()
            self._context.queue.set(job, DeferralTime=int(value))
        if now_s > value + window_s:
            return Late(_late(value, window_s, now_s, self._context), HoldCode.MISSED_DEFERRED_EXECUTION_TIME)
        prepares_s = 0.0 if is_local(job) else job.ad.get_float("DeferralPrepTime", PREPARATION_S)
        return Span(value - prepares_s, value + window_s)

    def _plan_next(self, job: Job, window_s: float) -> None:
        """Give a job with a cron schedule its next time, unless it has one that is still to come.

        Raises:
            BadCron: there is none.
        """
        if all(job.ad.find(name) is None for name in _CRON):
            return
        context = self._context
        known = job.ad.find("deferraltime")
        line = cron_line(job.ad)
        if line is None or (type(known) is int and context.now_s <= known + window_s):
            return
        at_s = next_time_s(line, context.now_s, context.settings.zone)
        context.remember(job, "scheduled", f"its next time is {_date(at_s, context)}")
        context.queue.set(job, DeferralTime=at_s)

    # ---- sleep

    def sleep(self, job: Job, until_s: float = 0.0) -> None:
        """Leave a job alone until a date; without one, until this turn is over."""
        self._due[job] = until_s
        heappush(self._heap, (until_s, next(self._order), job))
        self.started()

    def forget(self, job: Job) -> None:
        """A job sleeps no longer; one that did not is no error."""
        self._due.pop(job, None)

    def started(self) -> None:
        """Wake the first one when it is time."""
        if self._heap:
            self._context.timer(("scheduled",), min(LOOK_S, max(0.0, self._heap[0][0] - self._context.now_s)))

    def awake(self) -> list[Job]:
        """Those whose date has come, the first of them first."""
        found: list[Job] = []
        while self._heap and self._heap[0][0] <= self._context.now_s and len(found) < SLICE:
            due_s, _, job = heappop(self._heap)
            if self._due.get(job) == due_s:
                del self._due[job]
                found.append(job)
        self.started()
        return found


def _date(when_s: float, context: ScheddContext) -> str:
    return datetime.fromtimestamp(int(when_s), context.settings.zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def _late(wanted_s: float, window_s: float, now_s: float, context: ScheddContext) -> str:
    """Why a job that missed its time is held."""
    return (f"Job missed deferred execution time: it was to begin at {_date(wanted_s, context)} or up to {window_s:g} "
            f"seconds later (DeferralWindow), and had not been matched by {_date(now_s, context)}")
