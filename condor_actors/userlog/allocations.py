"""The times for which machines were given to the jobs of an event log: what condor_userlog counts.

An allocation begins with event 001 and ends with the first of these:

=======================  =====================================================================
event                    good time, and the processor time that counts
=======================  =====================================================================
005 terminated           all of it
004 evicted              all of it when its end is a checkpoint, else up to the last one (003)
007 024 009 012          up to the last checkpoint
=======================  =====================================================================

**Source**: the manual, condor_userlog.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

import attrs

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.reader import Event

__all__ = ["Allocation", "Allocations", "cpu_s_of"]

ENDS = frozenset({
    JobEventType.JOB_EVICTED, JobEventType.JOB_TERMINATED,
    JobEventType.SHADOW_EXCEPTION, JobEventType.JOB_ABORTED, JobEventType.JOB_HELD, JobEventType.JOB_RECONNECT_FAILED,
})
_SEEN = ENDS | {JobEventType.EXECUTE, JobEventType.CHECKPOINTED}
_HOST = re.compile(r"<(\[[^]]*\]|[^:?>]*)")
_USAGE = re.compile(r"Usr (\d{1,6}) (\d\d):(\d\d):(\d\d), Sys (\d{1,6}) (\d\d):(\d\d):(\d\d)")

Job = tuple[int, int]


def cpu_s_of(usage: str) -> float:
    """The seconds of ``Usr 0 00:00:09, Sys 0 00:00:01``; of what is none, 0."""
    found = _USAGE.match(usage)
    if found is None:
        return 0.0
    days, hours, minutes, seconds, *system = (int(part) for part in found.groups())
    return float((days + system[0]) * 86400 + (hours + system[1]) * 3600 + (minutes + system[2]) * 60
                 + seconds + system[3])


@attrs.frozen(kw_only=True)
class Allocation:
    """A machine's time for a job.

    Attributes:
        job: cluster and proc.
        host: its address without a port; slot: the name of its slot, empty where the log does not say.
        began_s, ended_s: seconds since 1970.
        good_s: how much of it counts towards the job's completion; cpu_s: processor time of that.
        is_eviction: whether the job was evicted at the end.
    """

    job: Job
    host: str
    slot: str
    began_s: float
    ended_s: float
    good_s: float
    cpu_s: float
    is_eviction: bool

    @property
    def wall_s(self) -> float:
        """How long it was."""
        return self.ended_s - self.began_s


@attrs.frozen
class _Begun:
    when_s: float
    host: str
    slot: str


class Allocations:
    """Finds the allocations in the events of one log."""

    def __init__(self) -> None:
        self._begun: dict[Job, _Begun] = {}
        self._saved: dict[Job, tuple[float, float]] = {}

    def take(self, event: Event, *, is_xml: bool) -> Iterator[Allocation]:
        """What an event ends.

        Args:
            event: the next one of the log.
            is_xml: whether the log is XML.
        """
        if event.number not in _SEEN:
            return
        facts = facts_of(event, is_xml=is_xml)
        when_s = _when_s(facts)
        if when_s is None:
            return
        job = (event.cluster, event.proc)
        if event.number == JobEventType.EXECUTE:
            found = _HOST.match(facts.get_str("ExecuteHost"))
            host = found.group(1).strip("[]") if found else facts.get_str("ExecuteHost")
            before = self._begun.get(job)
            if before is None or before.host != host:  # the same again is said of one allocation
                self._begun[job] = _Begun(when_s, host, facts.get_str("SlotName"))
        elif event.number == JobEventType.CHECKPOINTED:
            self._saved[job] = when_s, cpu_s_of(facts.get_str("RunRemoteUsage"))
        elif job in self._begun:
            begun = self._begun.pop(job)
            if when_s >= begun.when_s:  # else a clock was set, or a year ended in a log without years
                yield self._ended(job, begun, event.number, when_s, facts)

    def _ended(self, job: Job, begun: _Begun, number: int, when_s: float, facts: ClassAd) -> Allocation:
        good_s, cpu_s = 0.0, 0.0
        if number == JobEventType.JOB_TERMINATED or (
                number == JobEventType.JOB_EVICTED and facts.get_bool("Checkpointed", False)):
            good_s, cpu_s = when_s - begun.when_s, cpu_s_of(facts.get_str("RunRemoteUsage"))
        elif job in self._saved and begun.when_s <= self._saved[job][0] <= when_s:
            saved_s, cpu_s = self._saved[job]
            good_s = saved_s - begun.when_s
        return Allocation(job=job, host=begun.host, slot=begun.slot, began_s=begun.when_s, ended_s=when_s,
                          good_s=good_s, cpu_s=cpu_s, is_eviction=number == JobEventType.JOB_EVICTED)


def _when_s(facts: ClassAd) -> float | None:
    """The event's moment, seconds since 1970; None when it is no date."""
    try:
        return datetime.fromisoformat(facts.get_str("EventTime")).timestamp()
    except (ValueError, OverflowError):
        return None
