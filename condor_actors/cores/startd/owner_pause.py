"""The owner's own word: nothing of the pool runs here for a time, whatever the policy says.

Theory: a pause is kept on disk like a claim, so it outlives the startd.  While it lasts every look of the policy is
overruled: the machine is its owner's, jobs are frozen (a short pause) or have to go (a long one, so that their memory
is the owner's as well and they can run elsewhere), and nothing new starts.
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from condor_actors.cores.startd.slot_states import PolicyEvaluation

__all__ = ["HOW", "KEEP_S", "LONGEST_S", "Pause", "bad_wish", "begin_pause"]

HOW = ("suspend", "vacate", "kill")
KEEP_S = 600.0
"""Up to this long jobs wait frozen."""

LONGEST_S = 30 * 86400.0


@attrs.frozen(kw_only=True)
class Pause:
    """A pause under way.

    Attributes:
        until_s: when it is over; began_s: since when.
        by: who asked for it; how: one of :data:`HOW`.
    """

    until_s: float
    began_s: float
    by: str
    how: str

    def overrule(self, evaluation: PolicyEvaluation) -> PolicyEvaluation:
        """What the policy comes to while the pause lasts."""
        stays = self.how == "suspend"
        return attrs.evolve(
            evaluation,
            is_owner=True,
            suspend=stays,
            want_suspend=stays,
            resume=False,
            preempt=not stays,
            retirement_s=0.0,
            want_hold=False,
            want_vacate=evaluation.want_vacate and self.how != "kill",
            kill=evaluation.kill or self.how == "kill",
            benchmark=False,
            hold_reason=f"paused by {self.by}",
        )

    def to_plain(self) -> dict[str, Any]:
        """As numbers and strings."""
        return attrs.asdict(self)

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Pause:
        """The opposite of :meth:`to_plain`."""
        return cls(**plain)


def bad_wish(duration_s: float, how: str) -> str:
    """Why such a pause cannot be; empty: it can."""
    if not math.isfinite(duration_s) or not 0 < duration_s <= LONGEST_S:
        return f"a pause lasts between a second and {LONGEST_S / 86400:.0f} days"
    if how and how not in HOW:
        return f"how is one of {', '.join(HOW)}"
    return ""


def begin_pause(duration_s: float, how: str, by: str, now_s: float) -> Pause:
    """The pause that was asked for."""
    return Pause(until_s=now_s + duration_s, began_s=now_s, by=by,
                 how=how or ("suspend" if duration_s <= KEEP_S else "vacate"))
