"""The runtime's record of one actor: its mailbox, timers, questions and children.

Theory: everything that belongs to one *incarnation* of an actor (timers, open questions, watches, results awaited
from I/O) dies with it; the mailbox outlives it, less the message that killed it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.interfaces import IDelayedCall

from condor_actors.actors.lanes import Lanes
from condor_actors.actors.supervision import ChildSpec, Intensity
from condor_actors.messages.envelope import Address, Delivery, Envelope

if TYPE_CHECKING:
    from condor_actors.actors.actor import Actor


@attrs.frozen
class LocalPost:
    """Outgoing: a delivery for an actor of this process."""

    name: str
    delivery: Delivery
    timeout_s: float


@attrs.frozen
class RemotePost:
    """Outgoing: an envelope for another node."""

    to: Address
    envelope: Envelope


@attrs.frozen
class Action:
    """Outgoing: an edge of the actor in ``cell`` that must wait for the commit as a message does."""

    function: Callable[[], None]
    cell: Cell
    incarnation: int


Outgoing = LocalPost | RemotePost | Action


@attrs.define(eq=False)
class Question:
    """An ask without its answer yet."""

    message_id: str
    cell: Cell
    node: str
    message: Any
    then: Callable[[Delivery], None]
    timer: IDelayedCall | None = None


class Cell:
    """One actor: see the module."""

    __slots__ = (
        "actor",
        "children",
        "current",
        "dirty",
        "inbox",
        "incarnation",
        "intensity",
        "operations",
        "outgoing",
        "questions",
        "queued",
        "spec",
        "stopping",
        "timers",
        "turns",
        "watches",
    )

    def __init__(self, spec: ChildSpec, inbox: Lanes) -> None:
        self.spec = spec
        self.actor: Actor | None = None
        self.inbox = inbox
        self.queued = False
        self.stopping = False
        self.incarnation = 0
        self.turns = 0
        self.intensity = Intensity()
        self.timers: dict[Any, IDelayedCall] = {}
        self.questions: dict[str, Question] = {}
        self.watches: set[str] = set()
        self.children: dict[str, None] = {}
        self.current: Delivery | None = None
        self.outgoing: list[Outgoing] | None = None
        self.operations: list[Any] = []
        self.dirty = False

    @property
    def name(self) -> str:
        """The actor's name."""
        return self.spec.name
