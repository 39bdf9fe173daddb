"""Which machines to drain so that large jobs find whole ones again.

Theory: small jobs nibble partitionable slots until no large job fits anywhere.  Every ``interval_s`` some machines are
asked to drain and to go back into service when they are empty: at most ``per_hour`` in an hour, never more than
``most_draining`` at a time, and none while there are ``most_whole`` whole machines.  A drain is called off when its
machine has become whole enough.  A machine whose owner is there is left alone.

Source: HTCondor's manual, condor_defrag and the parameters DEFRAG_….
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.config.settings import setting

__all__ = ["Defrag", "DefragSettings", "Order"]


@attrs.frozen(kw_only=True)
class DefragSettings:
    """The parameters DEFRAG_…; -1: no limit.

    Attributes:
        interval_s: between two looks.
        per_hour: machines drained in an hour; most_draining: at a time; most_whole: enough whole machines.
        requirements: which may be drained; whole: which are whole; cancel: whose drain is called off.
        rank: the higher, the sooner.
        how: graceful, quick or fast; start: what may run meanwhile.
    """

    interval_s: float = setting("DEFRAG_INTERVAL")
    per_hour: float = setting("DEFRAG_DRAINING_MACHINES_PER_HOUR")
    most_draining: int = setting("DEFRAG_MAX_CONCURRENT_DRAINING")
    most_whole: int = setting("DEFRAG_MAX_WHOLE_MACHINES")
    requirements: Expr | None = setting("DEFRAG_REQUIREMENTS")
    whole: Expr | None = setting("DEFRAG_WHOLE_MACHINE_EXPR")
    cancel: Expr | None = None
    rank: Expr | None = setting("DEFRAG_RANK")
    how: str = setting("DEFRAG_DRAINING_SCHEDULE")
    start: str = ""


@attrs.frozen
class Order:
    """Drain a machine, or call that off."""

    address: str
    machine: str
    drain: bool


class Defrag:
    """Decides which machines to drain, and how many at a time.

    Args:
        settings: the parameters.
    """

    def __init__(self, settings: DefragSettings) -> None:
        self.settings = settings
        self.ours: set[str] = set()
        self.drained = 0
        self._credit = 0.0
        self._looked_s: float | None = None

    def plan(self, slots: Iterable[ClassAd], now_s: float) -> tuple[Order, ...]:
        """What to do now; ``slots`` are the ads of all partitionable slots."""
        settings = self.settings
        slots = [ad for ad in slots if ad.get_bool("PartitionableSlot")]
        draining = [ad for ad in slots if ad.get_bool("Draining")]
        whole = [ad for ad in slots if _holds(settings.whole, ad, now_s) and not ad.get_bool("Draining")
                 and ad.get_str("State") == "Unclaimed"]
        self.ours &= {ad.get_str("Machine") for ad in draining}
        orders = [Order(ad.get_str("MyAddress"), ad.get_str("Machine"), False) for ad in draining
                  if ad.get_str("Machine") in self.ours and _holds(settings.cancel, ad, now_s)]
        for order in orders:
            self.ours.discard(order.machine)
        room = self._room(len(draining) - len(orders), len(whole) + len(orders), now_s)
        fitting = [ad for ad in slots if not ad.get_bool("Draining") and ad.get_str("State") != "Owner"
                   and not _holds(settings.whole, ad, now_s)
                   and (settings.requirements is None or _holds(settings.requirements, ad, now_s))]
        fitting.sort(key=lambda ad: (-self._rank(ad, now_s), ad.get_str("Machine")))
        for ad in fitting[:room]:
            self._credit -= 1.0
            self.drained += 1
            self.ours.add(ad.get_str("Machine"))
            orders.append(Order(ad.get_str("MyAddress"), ad.get_str("Machine"), True))
        return tuple(orders)

    def _room(self, draining: int, whole: int, now_s: float) -> int:
        """How many machines may be asked to drain now."""
        settings = self.settings
        span_s = settings.interval_s if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        gained = settings.per_hour * max(0.0, span_s) / 3600.0
        self._credit = min(self._credit + gained, max(1.0, settings.per_hour * settings.interval_s / 3600.0))
        room = int(self._credit + 1e-9)
        if settings.most_draining >= 0:
            room = min(room, settings.most_draining - draining)
        if settings.most_whole >= 0:
            room = min(room, settings.most_whole - whole - draining)
        return max(0, room)

    def _rank(self, ad: ClassAd, now_s: float) -> float:
        value = self.settings.rank.evaluate(ad, None, now_s) if self.settings.rank is not None else 0
        return float(value) if isinstance(value, (int, float)) else 0.0


def _holds(expression: Expr | None, ad: ClassAd, now_s: float) -> bool:
    return expression is not None and is_true(expression.evaluate(ad, None, now_s))
