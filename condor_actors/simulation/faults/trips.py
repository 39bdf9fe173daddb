"""Turns that raise: a fault of the program itself, at a moment that a schedule names.

Theory: whatever a turn does, the runtime's answer to an error in it is the same, so any turn may stand for any error.
One that raises *after* it has done its work is the worse kind: the actor's state has changed, and nothing of what it
said is heard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from condor_actors.messages.envelope import Delivery

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process

__all__ = ["Injected", "Trips"]


class Injected(Exception):
    """The error of a turn that was made to raise."""


class Trips:
    """What is to raise, by (machine, daemon): its next process's turns count too."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], tuple[str, int]] = {}
        self._messages: dict[tuple[str, str], set[str]] = {}

    def arm(self, machine: str, daemon: str, moment: str, turn: int) -> None:
        """Have a turn raise, counted from now; the last order counts."""
        self._turns[machine, daemon] = (moment, turn)

    def arm_message(self, process: Process, kind: str) -> None:
        """Have the turn of a message raise that has just arrived."""
        self._messages.setdefault((process.machine.name, process.kind), set()).add(kind)

    def watch(self, process: Process) -> None:
        """Mind the turns of a process."""
        key = (process.machine.name, process.kind)

        def trip(moment: str, actor: str, about: Any) -> None:
            wanted = self._messages.get(key)
            if wanted and moment == "after" and isinstance(about, Delivery):
                kind = getattr(about.message, "KIND", "")
                if kind in wanted:
                    wanted.discard(kind)
                    raise Injected(f"{actor} has handled {kind}")
            order = self._turns.get(key)
            if order is None or order[0] != moment:
                return
            if order[1] > 1:
                self._turns[key] = (moment, order[1] - 1)
                return
            del self._turns[key]
            raise Injected(f"{moment} a turn of {actor}" if moment != "edge" else f"an edge of {actor}")

        assert process.system is not None
        process.system.trip = trip
