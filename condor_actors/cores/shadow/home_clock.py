"""The dates of a run by the clock of its home, where the clock of its machine differs."""

from __future__ import annotations

__all__ = ["HomeClock"]

SAME_CLOCK_S = 30.0
"""The clock of a machine that is no more beside the one here counts as the same: its dates are taken as they are."""


class HomeClock:
    """What is known of a machine's clock.

    Attributes:
        ahead_s: so far it is ahead of the one here; 0: it counts as the same.
    """

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def compare(self, began_s: float, earliest_s: float, now_s: float, known_s: float) -> None:
        """Learn how far it is ahead, from when the program began by it.

        The program began after its run, and has begun by now.  A shadow that takes a run over finds the date in the
        job's ad, so that both give the run's events the same dates.

        Args:
            began_s: by the machine's clock; earliest_s: when the run began, by ours; now_s: by ours.
            known_s: when the program began, by ours, as the job's ad says; 0: it does not.
        """
        assumed_s = known_s or now_s
        if not (known_s or earliest_s) - SAME_CLOCK_S <= began_s <= assumed_s + SAME_CLOCK_S:
            self.ahead_s = began_s - assumed_s

    def at_home(self, when_s: float, now_s: float) -> float:
        """A date of the machine's by the clock here; 0, as of an event of this moment, stays."""
        return min(max(0.0, when_s - self.ahead_s), now_s + SAME_CLOCK_S) if when_s else 0.0
