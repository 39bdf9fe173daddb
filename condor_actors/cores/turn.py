"""The turn that a core of several parts takes: when it began, and the effects that its parts add.

Theory: a core that would be one long class is several small ones, each with a few collaborators.  All of them add to
the one list of effects, so the order of what is sent and stored is the order in which they decided it.
"""

from __future__ import annotations

from typing import Any

from condor_actors.effects import Effect, Reply
from condor_actors.messages.envelope import Delivery, Refused

__all__ = ["Turn"]


class Turn:
    """Time and effects of the present turn.

    Args:
        now_s: before the first turn: when the core was made.

    Attributes:
        now_s: when the turn began.
    """

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s
        self._effects: list[Effect] = []

    def begin(self, now_s: float) -> None:
        """A new turn: nothing follows yet."""
        self.now_s = now_s
        self._effects = []

    def do(self, *effects: Effect) -> None:
        """Add effects, in this order."""
        self._effects.extend(effects)

    def refuse(self, event: Any, code: str, text: str) -> None:
        """Refuse what the turn handles; nothing happens when it is no message."""
        if isinstance(event, Delivery):
            self.do(Reply(Refused(code=code, text=text), event))

    def end(self) -> tuple[Effect, ...]:
        """What follows from the turn."""
        return tuple(self._effects)
