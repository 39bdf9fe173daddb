"""UP_DOWN: the rule of 1988, which keeps heavy users from drowning light ones.

Theory: each user has an index, 0 at first.  Once every pass (two minutes, then) it

* rises by ``step`` for each slot the user holds,
* falls by ``step`` while the user holds nothing, wants something and is denied,
* else goes back towards 0 by ``step``; from above ``ceiling`` it first drops to that.

The lowest index is served first.  A light user's index is low whenever it wants something, so it gets slots at once,
taken from the user with the highest index when none is free; a heavy user lives on what is left over, however much it
wants.

Between two changes of what a user holds or wants the passes only add up, so whole runs of them are applied at once.

Source: M. W. Mutka and M. Livny's algorithm as described in "Condor - A Hunter of Idle Workstations" (1988),
section 2.4; the drift and the ceiling from the implementation of the time.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from condor_actors.config.settings import setting
from condor_actors.cores.negotiator.user_priority import PriorityPolicy, UserRecord

__all__ = ["UpDown", "UpDownSettings"]


@attrs.frozen(kw_only=True)
class UpDownSettings:
    """UP_DOWN_STEP, UP_DOWN_INTERVAL and UP_DOWN_CEILING."""

    step: float = setting("UP_DOWN_STEP")
    interval_s: float = setting("UP_DOWN_INTERVAL")
    ceiling: float = setting("UP_DOWN_CEILING")


class UpDown(PriorityPolicy):
    """Orders submitters by the up-down index of 1988.

    Args:
        settings: step, length of a pass, ceiling of the idle.
        users: what the accountant had stored.
    """

    NAME = "UP_DOWN"

    def __init__(self, settings: UpDownSettings, users: Mapping[str, UserRecord] | None = None) -> None:
        super().__init__(users)
        self.settings = settings
        self.step = settings.step

    def move(self, record: UserRecord, now_s: float) -> None:
        """Apply the whole passes since the last move."""
        settings = self.settings
        passes = int((now_s - record.updated_s) / settings.interval_s)
        if passes <= 0:
            return
        record.updated_s += passes * settings.interval_s
        if record.slots:
            record.priority += passes * record.slots * settings.step
        elif record.wanting:
            record.priority -= passes * settings.step
        else:
            record.priority = _towards_zero(record.priority, passes, settings)


def _towards_zero(index: float, passes: int, settings: UpDownSettings) -> float:
    if index > settings.ceiling:
        index, passes = settings.ceiling, passes - 1
    way = passes * settings.step
    return max(0.0, index - way) if index > 0.0 else min(0.0, index + way)
