"""What a run asks of its gang: the wishes of its clients, each until it is answered, over shadows that come and go.

Theory: the hub where the members meet (:mod:`condor_actors.cores.shadow.gang_hub`) lives with the shadows at home and
may die with them.  So what this member has put, and which messages it has received last, is kept here and told to the
next hub; every wish is asked again with its number, by which the hub knows it.  What was asked before the member joined
is not heard any more: else it could take a message of which the next hub was not told.

The machine need not trust the hub: what is kept for it here has the same limits as there, whatever it agrees to, and
while it leaves too much unanswered nothing new is asked.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.messages.envelope import AskFailed, Refused
from condor_actors.messages.run import (
    GANG_KEPT,
    GANG_KEPT_BYTES,
    GANG_TAKEN,
    NOT_JOINED,
    GangCall,
    GangResult,
    gang_value_bytes,
)

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["RunGang"]

ANSWER_S = 60.0
AGAIN_S = 1.0
TIMER = "gang"
PASSING = ("busy", "internal", "unknown-actor")
"""Refusals after which it is asked again."""
OF_ANOTHER = ("took", "cancel")
"""Verbs that are about the wish of their number; a hub that does not know it needs none."""
MOST_UNHEARD = GANG_TAKEN
"""Such calls that the hub has not answered; with more of them under way, nothing new is asked."""


@attrs.define(eq=False)
class _Wish:
    """A call, what to do with its answer, and whether it is under way."""

    call: GangCall
    then: Callable[[GangResult], None] | None
    under_way: bool = False


class RunGang:
    """One member's.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._numbers = itertools.count(1)
        self._wishes: dict[int, _Wish] = {}
        self._kept: dict[str, bytes] = {}
        self._kept_bytes = 0
        self._taken: deque[tuple[int, int]] = deque(maxlen=GANG_TAKEN)
        self._times = 0
        self._is_joined = self._is_joining = self._is_over = False

    def join(self) -> None:
        """Tell the hub that there is this member, and what it knows."""
        if self._is_joining or self._is_over or not self._starter.core.connected:
            return
        self._is_joining, self._is_joined = True, False
        self._times += 1
        for wish in self._wishes.values():
            wish.under_way = False
        self._ask(GangCall(run_id=self._starter.run_id, verb="join", kept=tuple(self._kept.items()),
                           taken=tuple(self._taken)), self._joined)

    def shadow_is_back(self) -> None:
        """There may be another hub."""
        self._is_joined = False
        self.join()

    def ask(self, verb: str, names: tuple[str, ...], data: bytes, then: Callable[[GangResult], None]) -> int:
        """Wish for something; returns the number of the wish, 0 when the hub leaves too much unanswered."""
        if sum(wish.then is None for wish in self._wishes.values()) >= MOST_UNHEARD:
            return 0
        number = next(self._numbers)
        self._wish(number, GangCall(run_id=self._starter.run_id, verb=verb, number=number, names=names, data=data),
                   then)
        return number

    def cancel(self, number: int) -> None:
        """Nobody wants it any more."""
        wish = self._wishes.pop(number, None)
        if wish is not None and wish.call.verb != "put":
            self._about("cancel", number)

    def go_on(self) -> None:
        """Ask what is not under way: the shadow is there again, or a while has passed."""
        if not self._is_joined:
            self.join()
            return
        for wish in tuple(self._wishes.values()):
            self._send(wish)

    def close(self) -> None:
        """The run is over."""
        self._is_over = True
        self._wishes.clear()

    # ---- asking

    def _wish(self, number: int, call: GangCall, then: Callable[[GangResult], None] | None) -> None:
        wish = self._wishes[number] = _Wish(call, then)
        if self._is_joined:
            self._send(wish)
        else:
            self.join()

    def _about(self, verb: str, number: int) -> None:
        """Tell the hub something about an earlier wish."""
        self._wish(next(self._numbers), GangCall(run_id=self._starter.run_id, verb=verb, number=number), None)

    def _send(self, wish: _Wish) -> None:
        if not wish.under_way and self._starter.core.connected:
            wish.under_way = True
            times = self._times
            self._ask(wish.call, lambda answer: self._answered(wish, times, answer))

    def _ask(self, call: GangCall, then: Callable[[Any], None]) -> None:
        self._starter.context.ask(self._starter.shadow, call, timeout_s=ANSWER_S,
                                  then=lambda answer: then(answer.message))

    def _joined(self, answer: Any) -> None:
        self._is_joining = False
        if self._is_over:
            return
        if isinstance(answer, GangResult) and answer.value == 0:
            self._is_joined = True
            self.go_on()
        elif isinstance(answer, AskFailed) or (isinstance(answer, Refused) and answer.code in PASSING):
            self._later()
        else:
            for number in tuple(self._wishes):
                self._end(number, GangResult(value=ChirpError.NOT_AUTHORIZED))

    def _answered(self, wish: _Wish, times: int, answer: Any) -> None:
        if times != self._times:
            return
        wish.under_way = False
        number = next((number for number, each in self._wishes.items() if each is wish), 0)
        if not number:
            return
        if isinstance(answer, GangResult) and answer.value == NOT_JOINED:
            if wish.call.verb in OF_ANOTHER:
                del self._wishes[number]
            self.join()
        elif isinstance(answer, GangResult) and answer.value == ChirpError.TRY_AGAIN:
            self._send(wish)
        elif isinstance(answer, GangResult):
            self._end(number, self._noted(wish.call, answer))
        elif isinstance(answer, AskFailed) or answer.code in PASSING:
            self._later()
        else:
            self._end(number, GangResult(value=ChirpError.NOT_AUTHORIZED))

    def _noted(self, call: GangCall, answer: GangResult) -> GangResult:
        """Remember what the next hub has to know; returns the answer."""
        if answer.value:
            return answer
        if call.verb == "put" and not self._keep(call.names[0], call.data):
            return GangResult(value=ChirpError.NO_SPACE)
        if call.verb == "recv":
            self._taken.append((answer.member, answer.number))
            self._about("took", call.number)
        return answer

    def _keep(self, name: str, data: bytes) -> bool:
        """Keep a value for the next hub; False: a hub that keeps to the limits would not have taken it."""
        old = self._kept.get(name)
        size = self._kept_bytes + gang_value_bytes(name, data) - (gang_value_bytes(name, old) if old is not None else 0)
        if len(self._kept) + (old is None) > GANG_KEPT or size > GANG_KEPT_BYTES:
            return False
        self._kept[name], self._kept_bytes = data, size
        return True

    def _end(self, number: int, result: GangResult) -> None:
        then = self._wishes.pop(number).then
        if then is not None:
            then(result)

    def _later(self) -> None:
        self._starter.context.set_timer(TIMER, AGAIN_S)
