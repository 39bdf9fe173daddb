"""Spans of a job's trace, and their numbers.

Theory: the schedd, the shadow and the starter of a job each tell what they saw, and none has to believe another.  So
the numbers are derived, not handed on: a trace's from the job's ``GlobalJobId``, a span's from its trace and its name
within it.  Who knows the job finds the same numbers, also after a crash, and a span that is told twice is one.

A span is told when it is over, so nothing has to be remembered of one but when it began.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import attrs

__all__ = ["JOB", "Fact", "RunSpans", "Span", "TellSpan", "run_name", "span_of", "trace_of"]

JOB = "job"
"""The name of a trace's first span: the job, from its submission to its end."""
MOST_SPANS = 1_000
"""Of one run and one daemon: a job that is suspended and continued all day has no more."""

Fact = str | int | float | bool


@attrs.frozen(kw_only=True)
class Span:
    """A part of a job's life.

    Attributes:
        trace: 128 bits; number, parent: 64 bits, never 0; parent 0: none.
        name: for people.
        begin_s, end_s: seconds since 1970.
        facts: what is known of it, by name.
        failure: why it failed; empty: it did not.
    """

    trace: int
    number: int
    parent: int
    name: str
    begin_s: float
    end_s: float
    facts: Mapping[str, Fact] = attrs.field(factory=dict)
    failure: str = ""


TellSpan = Callable[[Span], None]


def trace_of(global_id: str) -> int:
    """The number of a job's trace.

    Args:
        global_id: its ``GlobalJobId``.
    """
    return _number(global_id.encode(errors="replace"), 16)


def span_of(trace: int, name: str) -> int:
    """The number of a span that has this name within its trace."""
    return _number(trace.to_bytes(16, "big") + name.encode(errors="replace"), 8)


def run_name(run_id: str) -> str:
    """Within its trace, the name of the run ``12.0#3@schedd``: ``run 3``."""
    return f"run {run_id.partition('#')[2].partition('@')[0]}"


def _number(text: bytes, length: int) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:length], "big") or 1


class RunSpans:
    """The states that a run goes through at one daemon, each as a span within the schedd's span of the run.

    Args:
        tell: gets each span when it is over.
        global_id: the job's.
        run_id: the run's.
        daemon: ``shadow`` or ``starter``.
        names: the span's name for each state that has one.
        facts: of each span.
    """

    def __init__(self, tell: TellSpan, global_id: str, run_id: str, daemon: str, names: Mapping[str, str],
                 facts: Mapping[str, Fact]) -> None:
        self._tell = tell
        self._trace = trace_of(global_id)
        self._run = run_name(run_id)
        self._parent = span_of(self._trace, self._run)
        self._daemon = daemon
        self._names = names
        self._facts = {"condor.job.id": run_id.partition("#")[0], "condor.run": run_id, **facts}
        self._state = ""
        self._since_s = 0.0
        self._told = 0

    def enter(self, state: str, now_s: float) -> None:
        """The run is in a state, the one that it was in or another."""
        if state == self._state:
            return
        name = self._names.get(self._state)
        if name is not None and self._told < MOST_SPANS:
            self._told += 1
            number = span_of(self._trace, f"{self._run} {self._daemon} {self._told} {self._state}")
            self._tell(Span(trace=self._trace, number=number, parent=self._parent, name=name, begin_s=self._since_s,
                            end_s=now_s, facts=self._facts))
        self._state, self._since_s = state, now_s
