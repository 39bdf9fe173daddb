"""UPDATE_PRIO: the rule of 1989, an expression of the administrator's.

Theory: once every pass a submitter's ``Prio`` becomes the value of UPDATE_PRIO, evaluated with

=============  ===================================================
``Prio``       what it was
``Users``      1 while the submitter wants or has something, else 0
``Running``    slots it holds
``Wanting``    whether it wanted more and did not get it
=============  ===================================================

and is kept between MIN_PRIO and MAX_PRIO; of submitters without jobs it goes back towards 0 by one.  The *highest* is
served first, so the effective priority, of which less is better, is ``-Prio``.  The paper's submitters are machines,
whose users count; ours are users.

Source: "Condor Technical Summary" (1989), section 9.3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from condor_actors.classads import ClassAd, Expr
from condor_actors.config.settings import setting
from condor_actors.cores.negotiator.user_priority import PriorityPolicy, UserRecord

__all__ = ["UpdatePrio", "UpdatePrioSettings"]

MOST_PASSES = 2000
"""Evaluated at most in one move; after so long without a change every sane expression has come to rest."""


@attrs.frozen(kw_only=True)
class UpdatePrioSettings:
    """UPDATE_PRIO, the length of a pass, MIN_PRIO and MAX_PRIO."""

    expression: Expr = setting("UPDATE_PRIO")
    interval_s: float = setting("UP_DOWN_INTERVAL")
    least: float = setting("MIN_PRIO")
    most: float = setting("MAX_PRIO")


class UpdatePrio(PriorityPolicy):
    """Orders submitters by the administrator's UPDATE_PRIO expression.

    Args:
        settings: the expression and its bounds.
        users: what the accountant had stored.
    """

    NAME = "UPDATE_PRIO"

    def __init__(self, settings: UpdatePrioSettings, users: Mapping[str, UserRecord] | None = None) -> None:
        super().__init__(users)
        self.settings = settings

    def move(self, record: UserRecord, now_s: float) -> None:
        """Apply the whole passes since the last move."""
        settings = self.settings
        passes = int((now_s - record.updated_s) / settings.interval_s)
        if passes <= 0:
            return
        record.updated_s += passes * settings.interval_s
        for _ in range(min(passes, MOST_PASSES)):
            before = record.priority
            record.priority = min(settings.most, max(settings.least, self._next(record)))
            if record.priority == before:
                return

    def _next(self, record: UserRecord) -> float:
        prio = record.priority
        if not record.slots and not record.wanting:
            return max(0.0, prio - 1.0) if prio > 0.0 else min(0.0, prio + 1.0)
        ad = ClassAd({"Prio": prio, "Users": 1, "Running": record.slots, "Wanting": record.wanting})
        value = self.settings.expression.evaluate(ad, None, 0.0)
        return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else prio

    def value_of(self, record: UserRecord) -> float:
        """Less is better here, so the sign is turned."""
        return -record.priority
