"""Since when an expression of a slot has had its value (STARTD_LATCH_EXPRS).

Theory: a policy often needs to know for how long something has been so ("the processor has been busy for two minutes").
An expression ``CpuBusy`` that is latched shows as ``CpuBusyValue`` (a number; true is 1) and ``CpuBusyTime`` (when that
last changed) in the slot's ad.

Source: HTCondor's manual, STARTD_LATCH_EXPRS.
"""

from __future__ import annotations

from collections.abc import Mapping

from condor_actors.classads import ClassAd, Expr

__all__ = ["latch"]


def latch(ad: ClassAd, expressions: Mapping[str, Expr], job: ClassAd | None, now_s: float) -> None:
    """Evaluate all of them over a slot's ad and date what changed."""
    for name, expression in expressions.items():
        value = expression.evaluate(ad, job, now_s)
        value_name, time_name = f"{name}Value", f"{name}Time"
        if not isinstance(value, (bool, int, float)):
            for each in (value_name, time_name):
                if each.lower() in ad.own:
                    del ad[each]
            continue
        shown = int(value) if isinstance(value, bool) else value
        if value_name.lower() not in ad.own or ad.own[value_name.lower()] != shown:
            ad[value_name] = shown
            ad[time_name] = int(now_s)
