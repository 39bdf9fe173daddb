"""How often actors had which turns, and how long these took: for condor_top and for metrics.

Theory: the loop reads the clock between two turns anyway; what it reads is added up by the kind of actor and by what
the turn was about (the type of a message, the name of a function), of which there are as many as the program has.  A
turn costs a look into a table: durations are added up some at a time, and when they are asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from condor_actors.actors.lanes import Turn
from condor_actors.messages.envelope import Delivery

__all__ = ["BOUNDS_S", "TurnTimes", "Times"]

BOUNDS_S = (0.0001, 0.0005, 0.002, 0.01, 0.05, 0.2, 1.0)
"""Upper bounds of the classes of durations; the last class has none."""
TOGETHER = 64
"""How many durations of a kind are added up at once."""


class Times:
    """Durations added up.

    Attributes:
        count, total_s, least_s, longest_s, squares: how many, and their sum, bounds and sum of squares.
        classes: how many are in each class of :data:`BOUNDS_S`.
    """

    __slots__ = ("classes", "count", "least_s", "longest_s", "squares", "total_s")

    def __init__(self) -> None:
        self.count = 0
        self.total_s = self.longest_s = self.squares = 0.0
        self.least_s = float("inf")
        self.classes = [0] * (len(BOUNDS_S) + 1)

    def add(self, durations_s: Sequence[float]) -> None:
        """Some more; at least one."""
        self.count += len(durations_s)
        self.total_s += sum(durations_s)
        self.longest_s = max(self.longest_s, *durations_s)
        self.least_s = min(self.least_s, *durations_s)
        for seconds in durations_s:
            self.squares += seconds * seconds
            self.classes[bisect_left(BOUNDS_S, seconds)] += 1

    @property
    def deviation_s(self) -> float:
        """The standard deviation."""
        if self.count < 2:
            return 0.0
        spread = self.squares - self.total_s * self.total_s / self.count
        return math.sqrt(max(spread, 0.0) / (self.count - 1))


class TurnTimes:
    """The durations of a process's turns."""

    def __init__(self) -> None:
        self._times: dict[tuple[type, Any], Times] = {}
        self._recent: dict[tuple[type, Any], list[float]] = {}

    def add(self, actor: type, turn: Turn, seconds: float) -> None:
        """A turn of an actor of this type took so long."""
        function, argument, _ = turn
        what: Any = type(argument.message) if isinstance(argument, Delivery) else getattr(
            function, "__code__", type(argument))
        kind = actor, what
        recent = self._recent.get(kind)
        if recent is None:
            recent = self._recent[kind] = []
        recent.append(max(seconds, 0.0))  # a clock may be put back
        if len(recent) >= TOGETHER:
            self._add_up(kind, recent)

    def _add_up(self, kind: tuple[type, Any], recent: list[float]) -> None:
        times = self._times.get(kind)
        if times is None:
            times = self._times[kind] = Times()
        times.add(recent)
        recent.clear()

    def _all(self) -> Mapping[tuple[type, Any], Times]:
        for kind, recent in self._recent.items():
            if recent:
                self._add_up(kind, recent)
        return self._times

    @property
    def busy_s(self) -> float:
        """Of all turns."""
        return sum([times.total_s for times in self._all().values()])

    @property
    def turns(self) -> int:
        """How many there were."""
        return sum([times.count for times in self._all().values()])

    def by_name(self) -> Mapping[tuple[str, str], Times]:
        """Each with the names of actor and turn."""
        return {(actor.__name__, _name(what)): times for (actor, what), times in self._all().items()}


def _name(what: Any) -> str:
    """A message's type, or the last part of a function's name that is one."""
    if isinstance(what, type):
        return what.__name__
    parts = [part for part in str(what.co_qualname).split(".") if part.isidentifier()]
    return parts[-1] if parts else "turn"
