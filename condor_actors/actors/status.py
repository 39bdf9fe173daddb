"""What an admin sees of an actor."""

from __future__ import annotations

import attrs

from condor_actors.actors.cell import Cell


@attrs.frozen(kw_only=True)
class ActorStatus:
    """What an admin sees of one actor."""

    name: str
    kind: str
    parent: str
    waiting: int
    inbox_limit: int
    turns: int
    restarts: int
    timers: int
    questions: int
    restart: str


def status_of(cell: Cell) -> ActorStatus:
    """The status of the actor in a cell."""
    kind = type(cell.actor).__name__ if cell.actor is not None else "(restarting)"
    return ActorStatus(
        name=cell.name, kind=kind, parent=cell.spec.parent, waiting=len(cell.inbox), inbox_limit=cell.spec.inbox_limit,
        turns=cell.turns, restarts=cell.intensity.total, timers=len(cell.timers), questions=len(cell.questions),
        restart=cell.spec.restart,
    )
