"""One question for everybody who asks the same.

Theory: questions that come while an answer is on its way wait for the next one, since that answer may be older than
what they are about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

__all__ = ["SharedQuestion"]

GATHER_S = 0.05
"""How long others are waited for who ask at the same moment."""


class SharedQuestion:
    """Asks for all at once.

    Args:
        reactor: its clock.
        put: puts the question; fires with the answer or fails.
    """

    def __init__(self, reactor: Any, put: Callable[[], Deferred[Any]]) -> None:
        self._reactor = reactor
        self._put = put
        self._is_busy = False
        self._waiting: list[Deferred[Any]] = []

    def ask(self) -> Deferred[Any]:
        """An answer that is younger than this call."""
        mine: Deferred[Any] = Deferred()
        self._waiting.append(mine)
        self._begin()
        return mine

    def _begin(self) -> None:
        if self._waiting and not self._is_busy:
            self._is_busy = True
            self._reactor.callLater(GATHER_S, self._ask)

    def _ask(self) -> None:
        asked, self._waiting = self._waiting, []

        def answered(answer: Any) -> None:
            self._is_busy = False
            self._begin()
            for each in asked:
                each.callback(answer)  # a Failure too

        self._put().addBoth(answered)
