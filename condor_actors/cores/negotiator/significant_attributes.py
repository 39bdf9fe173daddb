"""Which attributes of a job can make a difference to a match, as far as slots and the negotiator decide that.

Theory: a slot looks at a job through its Requirements and Rank, and through what these refer to; the negotiator through
its own expressions.  A schedd adds what its jobs' Requirements and Rank refer to, and puts jobs that agree in all of
them into one autocluster.  The set only grows: an autocluster that is finer than needed costs little, changing it all
the time costs much.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd, Expr
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.pool_view import PoolView

__all__ = ["SignificantAttributes"]

JUDGING = ("requirements", "rank")
OURS = frozenset({"submitteruserprio", "submitteruserresourcesinuse", "submittergroup", "submitternegotiatinggroup"})
"""Put into requests by the negotiator itself."""


class SignificantAttributes:
    """Collects the job attributes that slots and the negotiator's expressions refer to.

    Args:
        settings: the negotiator's expressions.
    """

    def __init__(self, settings: MatchSettings) -> None:
        self._names: set[str] = set()
        self._seen: set[tuple[str, ...]] = set()
        for expression in (settings.pre_job_rank, settings.post_job_rank, settings.preemption_requirements,
                           settings.preemption_rank):
            if expression is not None:
                self._names |= target_names(expression)
        self.names: tuple[str, ...] = self._sorted()

    def learn(self, view: PoolView) -> None:
        """Look at the slots that came or changed."""
        before = len(self._names)
        fresh, view.fresh = view.fresh, {}
        for key in fresh:
            slot = view.slots.get(key)
            if slot is not None:
                self._learn(slot.ad)
        if len(self._names) != before:
            self.names = self._sorted()

    def _learn(self, ad: ClassAd) -> None:
        signature = tuple(str(value) for value in ad.own.values() if isinstance(value, Expr))
        if signature in self._seen:
            return
        if len(self._seen) > 10_000:
            self._seen.clear()
        self._seen.add(signature)
        for name in JUDGING:
            expression = ad.expression(name)
            if expression is not None:
                _, external = expression.references(ad)
                self._names |= external

    def _sorted(self) -> tuple[str, ...]:
        return tuple(sorted(self._names - OURS))


def target_names(expression: Expr) -> frozenset[str]:
    """What an expression of the negotiator names with ``TARGET.``."""
    return expression.references()[1]
