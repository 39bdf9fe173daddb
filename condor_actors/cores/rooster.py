"""Which machines that sleep are woken, and in which order.

Theory: a machine is woken when the ad of one of its slots satisfies ROOSTER_UNHIBERNATE.  Those of higher rank come
first, and only so many at a time.  A machine that was tried and still sleeps comes after all that were not tried since
(it may be dead): so the limit is not used up by machines that do not wake.

Source: HTCondor's manual, "Rooster Daemon Configuration Options".
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.config.settings import setting

__all__ = ["Rooster", "RoosterSettings"]


@attrs.frozen(kw_only=True)
class RoosterSettings:
    """The parameters ROOSTER_….

    Attributes:
        interval_s: between two looks.
        unhibernate: which machines are woken; rank: which of them first.
        most: how many are woken in one look; 0: any number.
        command: the program that wakes a machine whose ad it reads from its standard input, and its arguments.
    """

    interval_s: float = setting("ROOSTER_INTERVAL")
    unhibernate: Expr | None = setting("ROOSTER_UNHIBERNATE")
    rank: Expr | None = setting("ROOSTER_UNHIBERNATE_RANK")
    most: int = setting("ROOSTER_MAX_UNHIBERNATE")
    command: tuple[str, ...] = ()


class Rooster:
    """Decides which machines are woken.

    Args:
        settings: the parameters.

    Attributes:
        tried: how often each machine was tried since it sleeps.
        woken: how many times one was tried in all.
    """

    def __init__(self, settings: RoosterSettings) -> None:
        self.settings = settings
        self.tried: dict[str, int] = {}
        self.woken = 0

    def plan(self, slots: Iterable[ClassAd], now_s: float) -> tuple[ClassAd, ...]:
        """The machines to wake now, each as the ad of one of its slots; ``slots`` are those of machines that sleep."""
        settings = self.settings
        offline = [ad for ad in slots if ad.get_bool("Offline") and ad.get_str("Machine")]
        there = {ad.get_str("Machine") for ad in offline}
        self.tried = {machine: count for machine, count in self.tried.items() if machine in there}
        best: dict[str, tuple[float, ClassAd]] = {}
        for ad in sorted(offline, key=lambda ad: ad.get_str("Name")):
            machine = ad.get_str("Machine")
            if settings.unhibernate is None or not is_true(settings.unhibernate.evaluate(ad, None, now_s)):
                continue
            rank = self._rank(ad, now_s)
            if machine not in best or rank > best[machine][0]:
                best[machine] = rank, ad
        order = sorted(best, key=lambda machine: (self.tried.get(machine, 0), -best[machine][0], machine))
        chosen = order[:settings.most] if settings.most else order
        for machine in chosen:
            self.tried[machine] = self.tried.get(machine, 0) + 1
        self.woken += len(chosen)
        return tuple(best[machine][1] for machine in chosen)

    def _rank(self, ad: ClassAd, now_s: float) -> float:
        value = self.settings.rank.evaluate(ad, None, now_s) if self.settings.rank is not None else 0
        return float(value) if isinstance(value, (int, float)) else 0.0
