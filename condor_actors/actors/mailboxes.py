"""The actors of one process by name, and which of them have something to do."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from condor_actors.actors.cell import Cell
from condor_actors.actors.lanes import OWN, Ledger, Turn
from condor_actors.messages.envelope import Address, Delivery

__all__ = ["NOBODY", "Mailboxes"]

NOBODY = Address("", "")
"""The sender of local events."""


class Mailboxes:
    """All cells; what is put into one has the loop run.

    Attributes:
        ledger: what waits of each sender.
        ready: cells with turns that wait, in the order in which they come up.
        closed: nothing is taken any more.
        on_ready: called when a cell has become ready.
    """

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        self.ledger = Ledger()
        self.ready: deque[Cell] = deque()
        self.closed = False
        self.on_ready: Callable[[], None] = lambda: None

    def get(self, name: str) -> Cell | None:
        """The actor of that name."""
        return self._cells.get(name)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All actors, in the order in which they were started."""
        return tuple(self._cells.values())

    def add(self, cell: Cell) -> None:
        """A new actor, and its parent's child.

        Raises:
            ValueError: there is an actor of that name.
        """
        if cell.name in self._cells:
            raise ValueError(f"there is an actor {cell.name!r} already")
        self._cells[cell.name] = cell
        parent = self._cells.get(cell.spec.parent)
        if parent is not None:
            parent.children[cell.name] = None

    def remove(self, cell: Cell) -> None:
        """An actor is gone for good, with what waits for it."""
        cell.incarnation += 1
        cell.inbox.clear()
        self._cells.pop(cell.name, None)
        parent = self._cells.get(cell.spec.parent)
        if parent is not None:
            parent.children.pop(cell.name, None)

    def close(self) -> None:
        """Take nothing any more."""
        self.closed = True
        self.ready.clear()

    def put(self, cell: Cell, turn: Turn, sender: str = OWN, size_bytes: int = 0) -> None:
        """Add a turn to a mailbox, in its sender's lane."""
        cell.inbox.add(turn, sender, size_bytes)
        self.make_ready(cell)

    def make_ready(self, cell: Cell) -> None:
        """A mailbox has something in it."""
        if not cell.queued:
            cell.queued = True
            self.ready.append(cell)
            self.on_ready()

    def notify(self, name: str, event: Any, sender: str = OWN) -> None:
        """Give an actor a local event, behind what waits of ``sender``; ignored when there is no such actor."""
        cell = self._cells.get(name)
        if cell is not None:
            self.put(cell, (None, Delivery(message=event, sender=NOBODY, answerable=False), 0.0), sender)

    @property
    def backlog(self) -> int:
        """Turns that wait in all mailboxes."""
        return sum([len(cell.inbox) for cell in self.ready]) if self.ready else 0
