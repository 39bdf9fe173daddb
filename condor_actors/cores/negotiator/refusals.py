"""Those who are turned away without a cycle: they want something, and the pool has nothing to give.

Theory: a schedd of a pool that flocks waits for a word of its negotiator before it offers jobs to the next pool.  A
cycle is not begun for nothing, so it is said without one: once for each ad of a submitter, again when a schedd asks for
a cycle, and every NEGOTIATOR_INTERVAL, since what is told may be lost.  :data:`GAP_S` lies between two such rounds, so
that schedds that ask all the time have no thousand others told each time.
"""

from __future__ import annotations

from collections.abc import Iterable

from condor_actors.cores.negotiator.pool_view import Submitter
from condor_actors.effects import Effect, Send, SetTimer
from condor_actors.messages.envelope import Address
from condor_actors.messages.negotiate import RequestsRejected

__all__ = ["GAP_S", "Refusals"]

GAP_S = 0.1


class Refusals:
    """Who was turned away.

    Attributes:
        due_s: when the next round is; infinite: none is planned.
    """

    def __init__(self) -> None:
        self.due_s = float("inf")
        self._told: dict[str, Submitter] = {}
        self._last_s = float("-inf")

    def planned(self, now_s: float, delay_s: float) -> tuple[Effect, ...]:
        """Plan a round soon, unless one is planned."""
        if self.due_s != float("inf"):
            return ()
        self.due_s = max(now_s + delay_s, self._last_s + GAP_S)
        return (SetTimer("turn-away", self.due_s - now_s),)

    def forget(self) -> None:
        """Everybody is to be told again."""
        self._told = {}

    def tell(self, wanting: Iterable[Submitter], cycle: int, now_s: float) -> tuple[Effect, ...]:
        """Tell those who have not been told since they said what they want."""
        self._last_s = now_s
        before, self._told = self._told, {each.key: each for each in wanting}
        return tuple(
            Send(Address(each.schedd, "schedd"), RequestsRejected(cycle=cycle, submitter=each.name, rejections=()))
            for each in self._told.values() if before.get(each.key) is not each)
