"""What event logs say of jobs, as condor_watch_q counts it.

Theory: each event that changes a job's state gives it another; nothing else is kept of a job, so that a log of a
hundred thousand takes little.

======================  ===========================================================
event                   state
======================  ===========================================================
000 004 007 013 024     IDLE
001 011                 RUN
005                     DONE
009                     REMOVED
010                     SUSPENDED
012                     HELD
040                     INPUT or OUTPUT, where it says that a transfer has started
======================  ===========================================================

**Source**: the manual, condor_watch_q.
"""

from __future__ import annotations

import calendar
import enum
import re
import time
from collections.abc import Collection, Iterator, Mapping

import attrs

from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.reader import Event

__all__ = ["ACTIVE", "ENDED", "Cluster", "State", "TrackedJobs"]


class State(enum.Enum):
    """A job's; the value is the column."""

    REMOVED = "REMOVED"
    HELD = "HELD"
    SUSPENDED = "SUSPENDED"
    IDLE = "IDLE"
    INPUT = "INPUT"
    RUN = "RUN"
    OUTPUT = "OUTPUT"
    DONE = "DONE"


ENDED = frozenset({State.DONE, State.REMOVED})
ACTIVE = frozenset(State) - ENDED
_STATES: Mapping[int, State] = {
    JobEventType.SUBMIT: State.IDLE, JobEventType.JOB_EVICTED: State.IDLE, JobEventType.JOB_RELEASED: State.IDLE,
    JobEventType.SHADOW_EXCEPTION: State.IDLE, JobEventType.JOB_RECONNECT_FAILED: State.IDLE,
    JobEventType.JOB_TERMINATED: State.DONE, JobEventType.EXECUTE: State.RUN, JobEventType.JOB_HELD: State.HELD,
    JobEventType.JOB_SUSPENDED: State.SUSPENDED, JobEventType.JOB_UNSUSPENDED: State.RUN,
    JobEventType.JOB_ABORTED: State.REMOVED,
}
_DATE = re.compile(r"(?:\d{3} \([^)]*\) |<s>)(?:(\d{4})-)?(\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.\d+)?(Z?)")


@attrs.define(eq=False)
class Cluster:
    """The jobs of a cluster that a log has told of.

    Attributes:
        number: the cluster.
        log: which log.
        batch: the name of its batch.
        expected: how many jobs it has in all; 0: nobody said.
        states: by proc.
        ended_s: when the last of its jobs left the queue; None: one is there.
    """

    number: int
    log: str
    batch: str
    expected: int = 0
    states: dict[int, State] = attrs.Factory(dict)
    ended_s: float | None = None
    _active: int = 0

    def put(self, proc: int, state: State) -> None:
        """A job's new state."""
        before = self.states.get(proc)
        self._active += (state in ACTIVE) - (before in ACTIVE)
        self.states[proc] = state

    @property
    def is_over(self) -> bool:
        """Whether all jobs that are known have left the queue."""
        return self._active == 0

    @property
    def jobs(self) -> int:
        """How many jobs it has."""
        return self.expected or len(self.states)

    def is_shown(self, now_s: float, decay_s: float) -> bool:
        """Whether it is to be shown still, where what has ended is shown for a time only."""
        return not self.is_over or self.ended_s is None or now_s - self.ended_s < decay_s


class TrackedJobs:
    """All jobs that are watched.

    Args:
        only: these clusters; None: all.
        least: clusters from this number on.
        batches: names of batches, by cluster.
        expected: how many jobs clusters have.
        decays_from_read: what has ended begins to fade when that is read, not when it happened.
    """

    def __init__(self, *, only: Collection[int] | None = None, least: int = 0,
                 batches: Mapping[int, str] | None = None, expected: Mapping[int, int] | None = None,
                 decays_from_read: bool = False) -> None:
        self.clusters: dict[int, Cluster] = {}
        self._only = only
        self._least = least
        self._batches = batches or {}
        self._expected = expected or {}
        self._decays_from_read = decays_from_read

    def take(self, log: str, event: Event) -> bool:
        """An event of a log; whether it has changed anything."""
        state = _STATES.get(event.number) if event.number != JobEventType.FILE_TRANSFER else _transfer(event.text)
        if state is None or event.cluster < self._least or (
                self._only is not None and event.cluster not in self._only):
            return False
        cluster = self.clusters.get(event.cluster)
        if cluster is None:
            cluster = self.clusters[event.cluster] = Cluster(
                event.cluster, log, self._batches.get(event.cluster) or f"ID: {event.cluster}",
                self._expected.get(event.cluster, 0))
        cluster.put(event.proc, state)
        cluster.ended_s = (time.time() if self._decays_from_read else _moment(event.text)) if cluster.is_over else None
        return True

    def states(self) -> Iterator[State]:
        """Of all jobs."""
        for cluster in self.clusters.values():
            yield from cluster.states.values()


def _transfer(text: str) -> State | None:
    """Which transfer has started."""
    words = text[:400].lower()
    if "started" not in words and "<i>2</i>" not in words and "<i>5</i>" not in words:
        return None
    if "input" in words or '<a n="type"><i>2</i>' in words:
        return State.INPUT
    return State.OUTPUT if "output" in words or '<a n="type"><i>5</i>' in words else None


def _moment(text: str) -> float:
    """When an event happened, seconds since 1970; now, where it does not say."""
    found = _DATE.search(text[:400])
    if found is None:
        return time.time()
    year, month, day, hour, minute, second = (
        int(part) if part else time.localtime().tm_year for part in found.groups()[:6])
    try:
        moment = (year, month, day, hour, minute, second, 0, 0, -1)
        return float(calendar.timegm(moment)) if found[7] else time.mktime(moment)
    except (ValueError, OverflowError):
        return time.time()
