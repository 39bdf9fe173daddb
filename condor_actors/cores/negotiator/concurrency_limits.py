"""Concurrency limits: how many of something jobs may hold at once in the whole pool (licences, database connections).

Theory: a job names what it holds, ``ConcurrencyLimits = "matlab:2,db"``; names may have a group before a dot.  What is
in use is read from the ads of claimed slots, with the matches that no ad shows yet, so it is right after a restart too.

===================  ==========================================================
limit of ``name``    <NAME>_LIMIT, else the default below
limit of ``g.name``  <G.NAME>_LIMIT, else CONCURRENCY_LIMIT_DEFAULT_<G>, else …
default              CONCURRENCY_LIMIT_DEFAULT
===================  ==========================================================

Source: HTCondor's manual, "Concurrency Limits".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.messages.negotiate import MOST_LIMITS

__all__ = ["ConcurrencyLimits", "parse_limits"]

LimitOf = Callable[[str], float]


def parse_limits(text: str) -> dict[str, float]:
    """What a job holds: ``a:2,b`` is two of ``a`` and one of ``b``; an amount that is no positive number counts one."""
    found: dict[str, float] = {}
    for word in text.replace(",", " ").split():
        name, colon, amount = word.partition(":")
        try:
            value = float(amount) if colon else 1.0
        except ValueError:
            value = 1.0
        if name:
            found[name.lower()] = found.get(name.lower(), 0.0) + (value if value > 0.0 else 1.0)
    return found


class ConcurrencyLimits:
    """The limits within one cycle.

    Args:
        limit_of: the size of a limit by lower-case name.
        view: what is in use.
    """

    def __init__(self, limit_of: LimitOf, view: PoolView) -> None:
        self._limit_of = limit_of
        self.in_use: dict[str, float] = {}
        for slot in view.slots.values():
            if slot.holds and "concurrencylimits" in slot.ad.own:
                self._add(parse_limits(slot.ad.get_str("ConcurrencyLimits")))
            for handout in slot.handouts:
                self._add(handout.limits)

    def _add(self, limits: Mapping[str, float]) -> None:
        for name, amount in limits.items():
            self.in_use[name] = self.in_use.get(name, 0.0) + amount

    def why_not(self, wanted: Mapping[str, float]) -> str:
        """Which limit keeps a job from starting; empty when none does."""
        for name, amount in wanted.items():
            limit = self._limit_of(name)
            used = self.in_use.get(name, 0.0)
            if amount > limit:
                return f"the job asks for {_shown(amount)} of the concurrency limit {name}, which is {_shown(limit)}"
            if used + amount > limit:
                return f"the concurrency limit {name} is reached ({_shown(used)} of {_shown(limit)} in use)"
        return ""

    def take(self, wanted: Mapping[str, float]) -> None:
        """A job of these limits got a slot."""
        self._add(wanted)


def _shown(amount: float) -> str:
    return f"{amount:,.10g}"


def limits_of(job: ClassAd) -> dict[str, float]:
    """What a job holds while it runs.

    Raises:
        ValueError: it is more than the ad of a slot can tell.
    """
    if job.find("concurrencylimits") is None:
        return {}
    text = job.get_str("ConcurrencyLimits")
    if len(text) > MOST_LIMITS:
        raise ValueError(f"its ConcurrencyLimits have {len(text):,} letters, and {MOST_LIMITS:,} are the most")
    return parse_limits(text)
