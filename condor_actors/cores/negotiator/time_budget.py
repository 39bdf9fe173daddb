"""How much of a negotiation one user may take: a budget of time, spent by evaluating that user's requests.

Theory: a negotiator is one thread.  A user whose Requirements are expensive, or who has very many autoclusters, is
served for a slice of time in each turn of a cycle.  The rest is put off to further turns, which come when all other
users have been told of matches, and until the user has used up what a cycle has for one
(NEGOTIATOR_MAX_TIME_PER_SUBMITTER) or another user waits for the next.  Time is the greater of what a stopwatch says
and of the steps that evaluations have taken, so that it passes in a simulation too, the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from condor_actors.classads.evaluation.budget import spent

__all__ = ["SLICE_S", "STEPS_PER_S", "TimeBudget"]

SLICE_S = 1.0
"""What one user may take of one turn."""
STEPS_PER_S = 10_000_000
"""How many steps of evaluations count for a second; an ordinary machine does more."""


@attrs.define(eq=False)
class TimeBudget:
    """What a user may still take of a turn, used as a context while that user is served.

    Attributes:
        limit_s: how much it was.
        stopwatch: seconds; only differences count.
        used_s: how much is spent, by what was served before the present context.
    """

    limit_s: float = math.inf
    stopwatch: Callable[[], float] = lambda: 0.0
    used_s: float = 0.0
    _began_s: float = attrs.field(default=0.0, init=False)
    _began_steps: int = attrs.field(default=0, init=False)

    def __enter__(self) -> TimeBudget:
        self._began_s, self._began_steps = self.stopwatch(), spent()[0]
        return self

    def __exit__(self, *_: object) -> None:
        self.used_s += self._since()

    def _since(self) -> float:
        return max(self.stopwatch() - self._began_s, (spent()[0] - self._began_steps) / STEPS_PER_S)

    def has_more(self) -> bool:
        """Whether something is left; asked within the context."""
        return self.used_s + self._since() < self.limit_s

    def is_fresh(self) -> bool:
        """Whether nearly nothing is spent yet: what does not fit now never will; asked within the context."""
        return self.used_s + self._since() < self.limit_s / 2
