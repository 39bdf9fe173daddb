"""For how long this machine is usually left alone, and for how long it will be this time.

Theory: a machine with long intervals of availability tends to have long ones next (H88 section 5.1), so the mean of the
last intervals, the latest weighing most, says where a long job should go.  An interval that is under way counts as soon
as it is longer than what was expected.  Intervals of less than a minute are no availability.

=========================  =======================================================================================
attribute                  meaning
=========================  =======================================================================================
``AvailableSince``         when the owner left; missing while the owner is there
``AvailabilityIntervals``  how many intervals are known
``AvailabilityLast``       length of the last one, in seconds
``AvailabilityMean``       their mean, each weighing twice as much as the one before it
``ExpectedAvailability``   how long this one will be, as far as the past can tell: the mean, or what has passed of it
=========================  =======================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

__all__ = ["Availability"]

SHORTEST_S = 60.0
KEPT = 32
WEIGHT = 0.5


@attrs.define(eq=False)
class Availability:
    """Learns from a machine's past how long its owner stays away.

    Attributes:
        since_s: when the interval under way began; None: the owner is there.
        lengths_s: of the last intervals, the latest last.
    """

    since_s: float | None = None
    lengths_s: list[float] = attrs.field(factory=list)

    @classmethod
    def from_plain(cls, plain: Sequence[object]) -> Availability:
        """The opposite of :meth:`to_plain`; the interval that was under way goes on only if it is said so anew."""
        return cls(lengths_s=[float(each) for each in plain if isinstance(each, (int, float))][-KEPT:])

    def to_plain(self) -> list[float]:
        """What is kept across restarts."""
        return [round(each, 1) for each in self.lengths_s]

    def note(self, available: bool, now_s: float) -> bool:
        """The machine is available or its owner's now; returns whether an interval was over."""
        if available:
            if self.since_s is None:
                self.since_s = now_s
            return False
        if self.since_s is None:
            return False
        length_s, self.since_s = now_s - self.since_s, None
        if length_s < SHORTEST_S:
            return False
        self.lengths_s = [*self.lengths_s, length_s][-KEPT:]
        return True

    @property
    def mean_s(self) -> float | None:
        """The weighted mean of the past intervals; None: none is known."""
        if not self.lengths_s:
            return None
        mean_s = self.lengths_s[0]
        for length_s in self.lengths_s[1:]:
            mean_s = WEIGHT * length_s + (1.0 - WEIGHT) * mean_s
        return mean_s

    def expected_s(self, now_s: float) -> float | None:
        """How long the interval under way will be; None: nothing is known, or none is under way."""
        if self.since_s is None:
            return None
        passed_s = now_s - self.since_s
        return max(passed_s, self.mean_s) if self.mean_s is not None else passed_s

    def attributes(self, now_s: float) -> dict[str, int | None]:
        """For the slots' ads; None: to be left out."""
        mean_s, expected_s = self.mean_s, self.expected_s(now_s)
        return {
            "AvailableSince": None if self.since_s is None else int(self.since_s),
            "AvailabilityIntervals": len(self.lengths_s),
            "AvailabilityLast": int(self.lengths_s[-1]) if self.lengths_s else None,
            "AvailabilityMean": None if mean_s is None else int(mean_s),
            "ExpectedAvailability": None if expected_s is None else int(expected_s),
        }
