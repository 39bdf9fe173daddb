"""An actor: receives one message after the other, and nothing else happens to it.

Theory: ``receive`` runs to completion and never awaits, so an actor's state needs no lock and a turn is a
transaction.  :class:`CoreActor` is the usual one: it feeds a pure core and performs the effects that come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from condor_actors.effects import Effect
from condor_actors.messages.envelope import Delivery

if TYPE_CHECKING:
    from condor_actors.actors.context import Context


class Actor:
    """Subclass and override what you need.

    Attributes:
        context: the actor's means to act; set before :meth:`started`.
    """

    context: Context

    def started(self) -> None:
        """The first turn of a new or rebuilt actor."""

    def receive(self, delivery: Delivery) -> None:
        """One turn: a message, or a local event (``TimerFired PeerUp PeerDown Answer ChildDown``)."""

    def stopped(self) -> None:
        """The last turn of an actor that is stopped on purpose; not called after a crash."""

    def dropped(self) -> None:
        """A turn of this actor has raised, or its commit failed: another takes its place, or none.

        Close what would live on without it (connections, sessions); the context is no use any more.
        """

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Perform an effect that the runtime does not know (``StartProcess``, ``Transfer`` …)."""
        raise TypeError(f"{type(self).__name__} cannot perform {type(effect).__name__}")


class Core(Protocol):
    """A pure decision: see ``docs/architecture.md``, "Cores and effects"."""

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""


class CoreActor(Actor):
    """An actor that hands each message to its core and performs what the core returns."""

    def __init__(self, core: Core) -> None:
        self.core = core

    def receive(self, delivery: Delivery) -> None:
        """Let the core decide about the message."""
        self.context.perform(self.core.handle(self.event(delivery), self.context.now_s()), delivery)

    def event(self, delivery: Delivery) -> Any:
        """The event the core sees; override it where the core must know who sent the message."""
        return delivery.message
