"""The production cores as nodes under one simulated clock: messages, questions, timers.

Theory: a core is ``handle(event, now_s) -> effects``.  In production an actor performs the effects; here a
:class:`Node` does: a ``Send`` is handed to the other node a moment later, an ``Ask`` comes back as an ``Answer``,
timers are calls of the clock, what is persisted needs no store because nothing crashes here.  That costs little more
than the decisions themselves.  Crashes, lost messages and disks are the business of the world of whole daemons, not of
this one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.negotiator_core import NegotiatorCore
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages.advertise import AdChange, AdKind, AdsChanged, UpdateAd
from condor_actors.messages.claim import RequestClaim
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Identity, TimerFired
from condor_actors.simulation.world.clock import HeapClock, SimulatedCall

__all__ = ["COLLECTOR", "NEGOTIATOR", "Collector", "Mesh", "Negotiator", "Node"]

COLLECTOR, NEGOTIATOR = "<collector:9618>", "<negotiator:1>"
LATENCY_S = 0.002
POOL = Identity(name="condor@pool")
SLOW = (RequestClaim,)
"""Questions that may be answered so late that the asker gives up; all others are answered at once."""


class Mesh:
    """Carries messages between nodes, in order, each :data:`LATENCY_S` later.

    Attributes:
        clock: simulated time, whose ``soon_s`` is :data:`LATENCY_S`; messages: how many were carried.
    """

    def __init__(self, clock: HeapClock) -> None:
        self.clock = clock
        self.nodes: dict[str, Any] = {}
        self.messages = 0
        self.ids = count(1)
        self.pending: dict[str, tuple[Node, Any]] = {}

    def carry(self, to: str, delivery: Delivery) -> None:
        """Hand a delivery to a node."""
        self.messages += 1
        self.clock.soon(self._arrive, to, delivery)

    def _arrive(self, to: str, delivery: Delivery) -> None:
        node = self.nodes.get(to)
        if node is not None:
            node.take(delivery)

    def answer(self, message_id: str, message: Any) -> None:
        """Answer a question, if anyone still waits."""
        self.messages += 1
        self.clock.soon(self.settle, message_id, message)

    def settle(self, message_id: str, message: Any) -> None:
        """The answer is there."""
        waiting = self.pending.pop(message_id, None)
        if waiting is not None:
            waiting[0].event(Answer(waiting[1], message))


class Node:
    """One core and its edges.

    Args:
        mesh: the network; name: of the node; core: has ``handle``.
        wrapped: whether the core wants local events as deliveries too.
    """

    actor = ""

    def __init__(self, mesh: Mesh, name: str, *, wrapped: bool = False) -> None:
        self.mesh = mesh
        self.clock = mesh.clock
        self.name = name
        self.core: Any = None
        self.address = Address(name, self.actor)
        self._itself = Address("", self.actor)
        self._wrapped = wrapped
        self._timers: dict[Hashable, SimulatedCall] = {}
        mesh.nodes[name] = self

    def take(self, delivery: Delivery) -> None:
        """A message is here."""
        self.perform(self.core.handle(delivery, self.clock.wall()), delivery)

    def event(self, event: Any) -> None:
        """Something happened at this node itself."""
        if self._wrapped:
            event = Delivery(message=event, sender=self._itself)
        self.perform(self.core.handle(event, self.clock.wall()), None)

    def perform(self, effects: tuple[Any, ...], delivery: Delivery | None) -> None:
        """Do what the core wants."""
        for effect in effects:
            kind = type(effect)
            if kind is Persist or kind is Note:
                continue
            if kind is SetTimer:
                self._set_timer(effect.key, effect.delay_s)
            elif kind is Send:
                self.mesh.carry(effect.to.node, Delivery(message=effect.message, sender=self.address, identity=POOL,
                                                         answerable=False))
            elif kind is Ask:
                self._ask(effect)
            elif kind is Reply:
                to = effect.to or delivery
                if to is not None and to.answerable:
                    self.mesh.answer(to.message_id, effect.message)
            elif kind is CancelTimer:
                call = self._timers.pop(effect.key, None)
                if call is not None and call.active():
                    call.cancel()
            else:
                self.perform_own(effect, delivery)

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """An effect of the core's own."""

    def _ask(self, ask: Ask) -> None:
        message_id = str(next(self.mesh.ids))
        self.mesh.pending[message_id] = (self, ask.tag)
        self.mesh.carry(ask.to.node, Delivery(message=ask.message, sender=self.address, identity=POOL,
                                              message_id=message_id))
        if isinstance(ask.message, SLOW):
            failed = AskFailed(reason="timeout", text="no answer in time", question=ask.message)
            self.clock.callLater(ask.timeout_s, self.mesh.settle, message_id, failed)

    def _set_timer(self, key: Hashable, delay_s: float) -> None:
        call = self._timers.get(key)
        if call is not None and call.active():
            call.reset(delay_s)
        else:
            self._timers[key] = self.clock.callLater(delay_s, self._fired, key)

    def _fired(self, key: Hashable) -> None:
        self._timers.pop(key, None)
        self.event(TimerFired(key=key))


class Collector:
    """Passes slot and submitter ads on to the negotiator, all that changed at one instant together.

    It decides nothing, so nothing of the production collector is needed here; ads never expire, as nobody dies.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.updates = 0
        self._changes: dict[tuple[AdKind, str], AdChange] = {}
        self._sequence = 0
        mesh.nodes[COLLECTOR] = self

    def take(self, delivery: Delivery) -> None:
        """An ad of a schedd or a submitter."""
        update = delivery.message
        if isinstance(update, UpdateAd) and update.ad_kind is AdKind.SUBMITTER:
            ad = ClassAd.from_bytes(update.ad)
            self.show(update.ad_kind, f"{ad.get_str('Name')}/{ad.get_str('ScheddName')}", update.ad)

    def show(self, kind: AdKind, name: str, ad: bytes, private: bytes = b"") -> None:
        """An ad is new or has changed."""
        self.updates += 1
        if not self._changes:
            self.mesh.clock.soon(self._tell)
        self._changes[kind, name] = AdChange(ad_kind=kind, name=name, ad=ad, private=private)

    def _tell(self) -> None:
        changes, self._changes = tuple(self._changes.values()), {}
        self._sequence += 1
        self.mesh.nodes[NEGOTIATOR].event(AdsChanged(sequence=self._sequence, changes=changes))


class Negotiator(Node):
    """The production negotiator's core.

    Args:
        watch: called before and after each event, with the event; None: nobody measures.
    """

    actor = "negotiator"

    def __init__(self, mesh: Mesh, core: NegotiatorCore,
                 watch: Callable[[Any, Callable[[], None]], None] | None = None) -> None:
        super().__init__(mesh, NEGOTIATOR)
        self.core = core
        self._watch = watch
        self.perform(core.started(), None)

    def event(self, event: Any) -> None:
        """An ad, an answer or a timer."""
        if self._watch is None:
            super().event(event)
        else:
            self._watch(event, lambda: super(Negotiator, self).event(event))
