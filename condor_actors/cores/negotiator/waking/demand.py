"""Which of the machines that sleep the jobs of a cycle would have: what is woken by demand.

Theory: jobs are matched to machines that are awake.  What found none of these, although its user may have more, is held
against the slots of machines that sleep, by both Requirements and by what is left of each slot.  Nobody is given such a
slot: the collector is told that there are jobs for it, and the rooster wakes its machine by that.

A cycle asks for as few machines as it can, and the next one for the same ones: first come machines that were asked for
already, then those that were not, and last those that were asked for :data:`WAKE_S` ago and still sleep (they may be
dead, or nobody wakes them), the latest last.  Ranks do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from condor_actors.classads import ClassAd, match_ads
from condor_actors.classads.matching.index import AdIndex
from condor_actors.cores.negotiator.matchmaking import Request, cost_of
from condor_actors.cores.negotiator.pool_view import Slot
from condor_actors.effects import Effect
from condor_actors.messages.advertise import OfflineMatched

__all__ = ["TellCollectors", "WakingDemand"]

WAKE_S = 900.0
"""A machine that sleeps so long after it was asked for is not counted on."""
AGAIN_S = 60.0
"""So often the collector is told."""
PAGE = 2000


@attrs.frozen
class TellCollectors(Effect):
    """Every collector is to hear of this."""

    message: OfflineMatched


class WakingDemand:
    """Finds the machines that sleep and are wanted; remembers since when.

    Attributes:
        asked_s: when each was asked for first since it sleeps, by machine.
    """

    def __init__(self) -> None:
        self.asked_s: dict[str, float] = {}

    def tell(self, sleeping: Mapping[str, Slot], requests: Iterable[Request], now_s: float,
             go_on: Callable[[], bool] = lambda: True) -> list[Effect]:
        """What the collectors are to know.

        Args:
            sleeping: the slots of machines that sleep, by name.
            requests: what found no machine; their ``left`` says how many.
            now_s: the current time, seconds since the epoch.
            go_on: asked before each pair is evaluated; the rest is not looked at when it says no.
        """
        names = self.find(sleeping, requests, now_s, go_on)
        news = [name for name in names
                if now_s - sleeping[name].ad.get_int("MachineLastMatchTime") >= AGAIN_S]
        return [TellCollectors(OfflineMatched(names=tuple(news[at:at + PAGE]))) for at in range(0, len(news), PAGE)]

    def find(self, sleeping: Mapping[str, Slot], requests: Iterable[Request], now_s: float,
             go_on: Callable[[], bool] = lambda: True) -> tuple[str, ...]:
        """The names of the slots that the jobs would have."""
        machines = {slot.ad.get_str("Machine") for slot in sleeping.values()}
        self.asked_s = {machine: when_s for machine, when_s in self.asked_s.items() if machine in machines}
        slots = sorted(sleeping.values(), key=lambda slot: (*self._place(slot.ad.get_str("Machine"), now_s), slot.key))
        ads = [slot.ad.copy() for slot in slots]
        index = AdIndex(ads)
        wanted: dict[str, None] = {}
        for request in requests:
            left = request.left
            for at in sorted(index.matching(request.ad, now_s, go_on=go_on)):
                if left <= 0:
                    break
                taken = _take(request.ad, slots[at], ads, at, left, now_s, go_on)
                if taken:
                    left -= taken
                    wanted[slots[at].key] = None
                    self.asked_s.setdefault(slots[at].ad.get_str("Machine"), now_s)
                    if slots[at].partitionable:
                        index.replace(at, ads[at])
                    else:
                        index.remove(at)
        return tuple(wanted)

    def _place(self, machine: str, now_s: float) -> tuple[int, float]:
        """Where a machine comes in the order."""
        asked_s = self.asked_s.get(machine)
        if asked_s is None:
            return 1, 0.0
        return (0, asked_s) if now_s - asked_s < WAKE_S else (2, asked_s)


def _take(job: ClassAd, slot: Slot, ads: list[ClassAd], at: int, most: int, now_s: float,
          go_on: Callable[[], bool]) -> int:
    """How many of these jobs a slot takes, ``most`` at most; its ad in ``ads`` says then what is left of it."""
    taken = 0
    while taken < most and (not taken or (go_on() and match_ads(job, ads[at], now_s))):
        cost = cost_of(job, slot.resources, ads[at])
        if any(amount > ads[at].get_int(name) for name, amount in cost.items()):
            break
        taken += 1
        ad = ads[at] = ads[at].copy()
        for name, amount in cost.items():
            ad[name] = ad.get_int(name) - amount
        if not slot.partitionable or not cost:
            break
    return taken
