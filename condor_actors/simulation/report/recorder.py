"""The measures of the 1988 paper, taken from what happens in a pool.

Theory: a recorder is a pure consumer of :mod:`condor_actors.simulation.report.events`.  Between two events everything
is constant, so times add up exactly; what the figures show over time is kept per interval (an hour): queue lengths at
its end, and the station-hours in it that owners took, that jobs ran, that were offered.

==================  ================================================================================================
measure             definition
==================  ================================================================================================
wait                time from submission to completion that was not service: in the queue, being placed, suspended
wait ratio          wait / demand
hours available     station-hours in which the owner's policy served the pool
hours consumed      station-hours in which jobs ran
checkpoint rate     times a job was moved per hour of its demand
leverage            demand / seconds of the home station: placements and checkpoints at :data:`SECONDS_PER_MIB`, remote
                    system calls at :data:`SECONDS_PER_CALL`
==================  ================================================================================================

Source: "Condor - A Hunter of Idle Workstations" (1988), section 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import attrs

from condor_actors.simulation.report.events import (
    Began,
    Completed,
    Event,
    Left,
    OwnerCame,
    OwnerLeft,
    Placed,
    Resumed,
    Saved,
    Served,
    Submitted,
    Suspended,
    Unserved,
)

__all__ = ["Interval", "JobRecord", "Record", "Recorder", "SECONDS_PER_CALL", "SECONDS_PER_MIB"]

SECONDS_PER_MIB = 5.0
SECONDS_PER_CALL = 0.010


@attrs.define(eq=False)
class JobRecord:
    """One job's life.

    Attributes:
        submitted_s, began_s, completed_s: when; began_s is the first time that it ran; both are None until then.
        served_s: time it has run; suspended_s: stopped at a station.
        placements, checkpoints: how often; moves: how often it left a station unfinished, by reason.
        lost_s: work that had to be done again.
    """

    name: Hashable
    user: str
    demand_s: float
    submitted_s: float
    calls: int = 0
    completed_s: float | None = None
    served_s: float = 0.0
    suspended_s: float = 0.0
    placements: int = 0
    checkpoints: int = 0
    lost_s: float = 0.0
    moves: Counter[str] = attrs.field(factory=Counter)
    station: Hashable = None
    state: str = "waiting"
    since_s: float = 0.0
    began_s: float | None = None

    @property
    def wait_s(self) -> float:
        """Time in the system without service; of a completed job."""
        assert self.completed_s is not None
        return max(0.0, self.completed_s - self.submitted_s - self.demand_s)

    @property
    def wait_ratio(self) -> float:
        """Waiting per service."""
        return self.wait_s / self.demand_s

    def home_s(self, image_mib: float) -> float:
        """Seconds of the home station's processor that the job has cost."""
        return (self.placements + self.checkpoints) * image_mib * SECONDS_PER_MIB + self.calls * SECONDS_PER_CALL

    def leverage(self, image_mib: float) -> float:
        """Remote seconds per local second."""
        return self.demand_s / max(1e-9, self.home_s(image_mib))


@attrs.frozen
class Interval:
    """One interval of the observation.

    Attributes:
        begin_s: when it began.
        queue: jobs in the system (running ones too) at its end, by user.
        local_h, running_h, served_h: station-hours taken by owners (their policy's word), run by jobs, offered.
    """

    begin_s: float
    queue: dict[str, int]
    local_h: float
    running_h: float
    served_h: float


@attrs.frozen(kw_only=True)
class Record:
    """All that was seen.

    Attributes:
        length_s: how long; stations: how many.
        jobs: in order of submission; intervals: one after another.
        reaction_s: for each return of an owner to a station with a running job: until it stood still.
        visits: returns of owners.
    """

    length_s: float
    stations: int
    jobs: tuple[JobRecord, ...]
    intervals: tuple[Interval, ...]
    reaction_s: tuple[float, ...]
    visits: int

    @property
    def completed(self) -> tuple[JobRecord, ...]:
        """The jobs that are done."""
        return tuple(job for job in self.jobs if job.completed_s is not None)

    @property
    def served_h(self) -> float:
        """Hours available."""
        return sum(each.served_h for each in self.intervals)

    @property
    def running_h(self) -> float:
        """Hours consumed."""
        return sum(each.running_h for each in self.intervals)

    @property
    def local_h(self) -> float:
        """Hours that owners had."""
        return sum(each.local_h for each in self.intervals)

    def mean_wait_ratio(self, users: Iterable[str]) -> float:
        """Mean over the completed jobs of these users; 0 when there are none."""
        wanted = set(users)
        ratios = [job.wait_ratio for job in self.completed if job.user in wanted]
        return sum(ratios) / len(ratios) if ratios else 0.0

    def open_wait_ratio(self, users: Iterable[str]) -> float:
        """All waiting so far per all service so far; jobs that are not done count, so that nobody hides them."""
        wanted = set(users)
        waited = served = 0.0
        for job in self.jobs:
            if job.user in wanted:
                end_s = job.completed_s if job.completed_s is not None else self.length_s
                done_s = min(job.demand_s, job.served_s - job.lost_s)
                waited += max(0.0, end_s - job.submitted_s - done_s)
                served += done_s
        return waited / served if served else float("inf") if waited else 0.0


class Recorder:
    """Turns events into the measures of the 1988 paper.

    Give it events in order of time, then ask for :meth:`finish`.

    Args:
        stations: how many there are; users: their names, in the order of reports.
        interval_s: of the observation.
    """

    def __init__(self, stations: int, users: Iterable[str] = (), interval_s: float = 3600.0) -> None:
        self.stations = stations
        self.interval_s = interval_s
        self.jobs: dict[Hashable, JobRecord] = {}
        self.intervals: list[Interval] = []
        self.reactions_s: list[float] = []
        self.visits = 0
        self._queue: dict[str, int] = dict.fromkeys(users, 0)
        self._running = 0
        self._served: set[Hashable] = set()
        self._came: dict[Hashable, float] = {}
        self._at: dict[Hashable, JobRecord] = {}
        self._now_s = 0.0
        self._edge_s = interval_s
        self._sums = [0.0, 0.0]
        self._steps: dict[type, Callable[[Any], None]] = {
            Submitted: self._submitted, Placed: self._placed, Began: self._began, Suspended: self._suspended,
            Resumed: self._resumed, Saved: self._saved, Left: self._left, Completed: self._completed,
            OwnerCame: self._owner_came, OwnerLeft: self._owner_left,
            Served: lambda event: self._served.add(event.station),
            Unserved: lambda event: self._served.discard(event.station),
        }

    def __call__(self, event: Event) -> None:
        """Take the next event.

        Raises:
            ValueError: it is earlier than the last.
        """
        if event.when_s < self._now_s:
            raise ValueError(f"{event} is earlier than {self._now_s}")
        self._advance(event.when_s)
        self._steps[type(event)](event)

    def finish(self, end_s: float) -> Record:
        """The observation is over."""
        self._advance(end_s)
        if end_s - (self._edge_s - self.interval_s) > 1.0:
            self._close(end_s)
        for job in self.jobs.values():
            self._account(job, end_s)
        return Record(length_s=end_s, stations=self.stations, jobs=tuple(self.jobs.values()),
                      intervals=tuple(self.intervals), reaction_s=tuple(self.reactions_s), visits=self.visits)

    # ---- time

    def _advance(self, when_s: float) -> None:
        while when_s >= self._edge_s:
            self._add(self._edge_s - self._now_s)
            self._now_s = self._edge_s
            self._close(self._edge_s)
            self._edge_s += self.interval_s
        self._add(when_s - self._now_s)
        self._now_s = when_s

    def _add(self, span_s: float) -> None:
        self._sums[0] += self._running * span_s
        self._sums[1] += len(self._served) * span_s

    def _close(self, end_s: float) -> None:
        begin_s = self._edge_s - self.interval_s
        running_h, served_h = (each / 3600.0 for each in self._sums)
        local_h = self.stations * (end_s - begin_s) / 3600.0 - served_h
        self.intervals.append(Interval(begin_s, dict(self._queue), local_h, running_h, served_h))
        self._sums = [0.0, 0.0]

    def _account(self, job: JobRecord, now_s: float) -> None:
        span_s = now_s - job.since_s
        if job.state == "running":
            job.served_s += span_s
        elif job.state == "suspended":
            job.suspended_s += span_s
        job.since_s = now_s

    def _go(self, job: JobRecord, state: str, now_s: float) -> None:
        self._account(job, now_s)
        self._running += (state == "running") - (job.state == "running")
        job.state = state

    # ---- events

    def _submitted(self, event: Submitted) -> None:
        self.jobs[event.job] = JobRecord(event.job, event.user, event.demand_s, event.when_s, event.calls,
                                         since_s=event.when_s)
        self._queue[event.user] = self._queue.get(event.user, 0) + 1

    def _placed(self, event: Placed) -> None:
        job = self.jobs[event.job]
        job.placements += 1
        job.station = event.station
        self._go(job, "placing", event.when_s)

    def _began(self, event: Began) -> None:
        job = self.jobs[event.job]
        job.station = event.station
        if job.began_s is None:
            job.began_s = event.when_s
        self._at[event.station] = job
        self._go(job, "running", event.when_s)

    def _suspended(self, event: Suspended) -> None:
        job = self.jobs[event.job]
        self._stands_still(job, event.when_s)
        self._go(job, "suspended", event.when_s)

    def _resumed(self, event: Resumed) -> None:
        self._go(self.jobs[event.job], "running", event.when_s)

    def _saved(self, event: Saved) -> None:
        self.jobs[event.job].checkpoints += 1

    def _left(self, event: Left) -> None:
        job = self.jobs[event.job]
        self._stands_still(job, event.when_s)
        self._go(job, "waiting", event.when_s)
        job.moves[event.why] += 1
        job.checkpoints += event.saved
        job.lost_s += event.lost_s
        self._at.pop(job.station, None)
        job.station = None

    def _completed(self, event: Completed) -> None:
        job = self.jobs[event.job]
        self._go(job, "done", event.when_s)
        job.completed_s = event.when_s
        self._queue[job.user] -= 1
        self._at.pop(job.station, None)

    def _owner_came(self, event: OwnerCame) -> None:
        self.visits += 1
        job = self._at.get(event.station)
        if job is not None and job.state == "running":
            self._came[event.station] = event.when_s

    def _owner_left(self, event: OwnerLeft) -> None:
        self._came.pop(event.station, None)

    def _stands_still(self, job: JobRecord, now_s: float) -> None:
        came_s = self._came.pop(job.station, None)
        if came_s is not None and job.state == "running":
            self.reactions_s.append(now_s - came_s)
