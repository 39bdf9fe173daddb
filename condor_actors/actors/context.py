"""What an actor can do: its only way to the world.

Theory: every method either acts on the actor's own record (timers, questions) or adds to the turn's outgoing list;
nothing in that list leaves before what the turn persisted is durable, and all of it is dropped when the turn raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger, LogLevel
from twisted.python.failure import Failure

from condor_actors.actors.cell import Action, Cell, LocalPost, Outgoing, RemotePost
from condor_actors.actors.supervision import PERMANENT, ChildSpec
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, GoOn, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages.codec import OversizedMessage, encode
from condor_actors.messages.envelope import Address, Delivery, Envelope, Refused

if TYPE_CHECKING:
    from condor_actors.actors.actor import Actor
    from condor_actors.actors.system import ActorSystem


_LOG_WORDS = frozenset({"actor", "format", "level", "self", "text"})
"""Names of a log event that are taken; a note's field of that name gets a line behind it."""
_LEVELS = {level.name: level for level in LogLevel.iterconstants()}


class Context:
    """The means of one incarnation of an actor; see ``docs/architecture.md``, "Actors".

    Attributes:
        address: the actor's own address within the process.
        random: the only source of chance.
        log: for what is not an effect of a core.
    """

    def __init__(self, system: ActorSystem, cell: Cell) -> None:
        self._system = system
        self._cell = cell
        self._incarnation = cell.incarnation
        self.address = Address("", cell.name)
        self.random: Random = system.random
        self.log: Logger = system.log
        self._actor_name = str(self.address)

    @property
    def system(self) -> ActorSystem:
        """The system that hosts the actor."""
        return self._system

    def now_s(self) -> float:
        """The wall clock, seconds since 1970."""
        return self._system.wall_clock()

    # ---- messages

    def tell(self, to: Address, message: Any, *, trace_id: str = "") -> None:
        """Send ``message`` one way; whether it arrives is not reported."""
        try:
            self._post(to, message, self._system.outbound.next_id(), trace_id=trace_id)
        except OversizedMessage as error:
            self.log.error("{actor}: not told to {to}: {error}", actor=self.address, to=to, error=error)

    def ask(self, to: Address, message: Any, *, timeout_s: float, then: Callable[[Delivery], None],
            trace_id: str = "") -> str:
        """Send ``message`` and have ``then`` called, in a turn of this actor, with exactly one delivery.

        Args:
            to: whom to ask.
            message: the question.
            timeout_s: after this many seconds the answer is ``AskFailed("timeout")``.
            then: gets the answer, a ``Refused``, or an ``AskFailed``; never called once the actor was rebuilt.
            trace_id: for the logs; by default that of the message being handled.

        Returns:
            The message_id of the question.
        """
        message_id = self._system.outbound.next_id()
        self._system.questions.expect(self._cell, message_id, to.node, message, timeout_s, then)
        try:
            self._post(to, message, message_id, timeout_s=timeout_s, trace_id=trace_id)
        except OversizedMessage as error:
            self._system.questions.settle(message_id, Refused(code="invalid", text=str(error)), Address("", ""))
        return message_id

    def reply(self, delivery: Delivery, message: Any) -> None:
        """Answer a question; nothing happens when the sender did not ask."""
        if not delivery.answerable or not delivery.sender.actor:
            return
        to, answers = delivery.sender, delivery.message_id
        try:
            self._post(to, message, self._system.outbound.next_id(), in_reply_to=answers, trace_id=delivery.trace_id)
        except OversizedMessage as error:
            self.log.error("{actor}: no answer to {to}: {error}", actor=self.address, to=to, error=error)
            refusal = Refused(code="invalid", text=f"the answer is too long: {error}")
            self._post(to, refusal, self._system.outbound.next_id(), in_reply_to=answers, trace_id=delivery.trace_id)
            message = refusal
        witness = self._system.witness
        if witness is not None and to.node and witness.sees(delivery):
            self.after_commit(lambda: witness.answered(delivery, message))

    def _post(self, to: Address, message: Any, message_id: str, *, timeout_s: float = 0.0, in_reply_to: str = "",
              trace_id: str = "") -> None:
        cell = self._cell
        if not trace_id and cell.current is not None:
            trace_id = cell.current.trace_id
        if not to.node:
            delivery = Delivery(
                message=self._system.outbound.maybe_recoded(message), sender=self.address, message_id=message_id,
                in_reply_to=in_reply_to, trace_id=trace_id, answerable=timeout_s > 0.0,
            )
            self._add(LocalPost(to.actor, delivery, timeout_s))
            return
        envelope = Envelope(
            kind=message.KIND, version=message.VERSION, body=encode(message), message_id=message_id, to=to.actor,
            reply_to=cell.name, in_reply_to=in_reply_to, deadline_s=timeout_s, trace_id=trace_id,
        )
        self._add(RemotePost(to, envelope))

    def _add(self, item: Outgoing) -> None:
        if self._incarnation != self._cell.incarnation:
            return
        if self._cell.outgoing is None:
            self._system.loop.emit(self._cell, item)
        else:
            self._cell.outgoing.append(item)

    # ---- time

    def set_timer(self, key: Any, delay_s: float) -> None:
        """Receive ``TimerFired(key)`` in ``delay_s`` seconds; replaces a timer of the same key."""
        self._system.loop.set_timer(self._cell, key, delay_s)

    def cancel_timer(self, key: Any) -> None:
        """Forget a timer, also one that has run out but was not received yet."""
        self._system.loop.cancel_timer(self._cell, key)

    def has_timer(self, key: Any) -> bool:
        """Whether the timer is set and not received yet."""
        return key in self._cell.timers

    # ---- links

    def watch(self, node: str) -> None:
        """Keep a link to ``node``; receive ``PeerUp`` and ``PeerDown`` as it comes and goes."""
        self._system.watches.watch(self._cell, node)

    def unwatch(self, node: str) -> None:
        """The opposite of :meth:`watch`."""
        self._system.watches.unwatch(self._cell, node)

    # ---- children

    def spawn(self, name: str, factory: Callable[[], Actor], *, restart: str = PERMANENT,
              inbox_limit: int = 1000, survives: bool = False) -> Address:
        """Start a supervised child; it is stopped when this actor is stopped or rebuilt.

        Args:
            name: unique in the process.
            factory: makes the actor; what it raises now is this call's to raise.
            restart: ``permanent`` or ``temporary``.
            inbox_limit: see :class:`ChildSpec`.
            survives: it goes on when this actor is rebuilt, and is then among :attr:`children`.

        Raises:
            ValueError: the process has an actor of that name.
        """
        spec = ChildSpec(name=name, factory=factory, restart=restart, inbox_limit=inbox_limit, parent=self._cell.name,
                         survives=survives)
        return self._system.lifecycle.spawn(spec)

    @property
    def children(self) -> tuple[str, ...]:
        """The names of the children that live."""
        return tuple(self._cell.children)

    def stop_actor(self, name: str) -> None:
        """Stop an actor (its children first); also the one that calls.  One that is not there is no error."""
        self._system.lifecycle.stop(name)

    # ---- durability and edges

    def persist(self, operation: Any) -> None:
        """Make ``operation`` durable before anything that this actor sends from now on leaves."""
        self._system.loop.persist(self._cell, operation)

    def after_commit(self, function: Callable[[], None]) -> None:
        """Call ``function`` when what the turn persisted is durable; never when the turn or the commit fails.

        What it raises is a crash of this actor, which is built anew from what was committed; all else that the turn
        sent leaves nevertheless.
        """
        self._add(Action(function, self._cell, self._incarnation))

    def defer_to_turn(self, deferred: Deferred[Any], then: Callable[[Any], None]) -> None:
        """Have ``then`` called in a turn with the Deferred's result, or with its ``Failure``."""
        cell, incarnation = self._cell, self._incarnation

        def arrived(result: Any) -> None:
            self._system.loop.add_turn(cell, incarnation, then, result)

        deferred.addBoth(arrived)

    def as_turn(self, function: Callable[..., None]) -> Callable[..., None]:
        """What an I/O edge may call at any time: ``function`` runs later, with the same arguments, as a turn of this
        actor; never once the actor was stopped or rebuilt."""
        cell, incarnation = self._cell, self._incarnation

        def call(*arguments: Any) -> None:
            self._system.loop.add_turn(cell, incarnation, lambda _: function(*arguments), None)

        return call

    def guarded(self, function: Callable[..., None]) -> Callable[..., None]:
        """What an I/O edge may call that has to act at once: ``function`` itself, but what it raises is a crash of this
        actor, not the edge's trouble.  It is called also when the actor is gone, to let go of what it is given."""
        cell, incarnation = self._cell, self._incarnation

        def fail(failure: Failure) -> None:
            failure.raiseException()

        def call(*arguments: Any) -> None:
            try:
                function(*arguments)
            except Exception:  # noqa: BLE001 - the door: an actor's fault becomes a restart
                self._system.loop.add_turn(cell, incarnation, fail, Failure())

        return call

    def perform(self, effects: Iterable[Effect], delivery: Delivery | None = None) -> None:
        """Perform what a core returned.

        Args:
            effects: in their order.
            delivery: what the core was given; the default addressee of ``Reply``.
        """
        for effect in effects:
            self._perform_one(effect, delivery)

    def _perform_one(self, effect: Effect, delivery: Delivery | None) -> None:
        perform = _PERFORM.get(type(effect))
        if perform is not None:
            perform(self, effect, delivery)
        else:
            assert self._cell.actor is not None
            self._cell.actor.perform_own(effect, delivery)

    def _send(self, effect: Send, delivery: Delivery | None) -> None:
        self.tell(effect.to, effect.message, trace_id=effect.trace_id)

    def _persist(self, effect: Persist, delivery: Delivery | None) -> None:
        self.persist(effect.operation)

    def _reply(self, effect: Reply, delivery: Delivery | None) -> None:
        addressee = effect.to or delivery
        if addressee is not None:
            self.reply(addressee, effect.message)

    def _set_timer(self, effect: SetTimer, delivery: Delivery | None) -> None:
        self.set_timer(effect.key, effect.delay_s)

    def _cancel_timer(self, effect: CancelTimer, delivery: Delivery | None) -> None:
        self.cancel_timer(effect.key)

    def _ask(self, effect: Ask, delivery: Delivery | None) -> None:
        self.ask(effect.to, effect.message, timeout_s=effect.timeout_s, then=self._answerer(effect.tag),
                 trace_id=effect.trace_id)

    def _go_on(self, effect: GoOn, delivery: Delivery | None) -> None:
        assert delivery is not None
        self._system.loop.go_on(self._cell, attrs.evolve(delivery, message=effect.event))

    def _note(self, note: Note, delivery: Delivery | None) -> None:
        """A line of the log: what ``Logger.emit`` makes of it, at a third of its cost; jobs have many lines."""
        log = self.log
        event: dict[str, Any] = {
            "log_logger": log, "log_level": _LEVELS[note.level], "log_namespace": log.namespace,
            "log_source": log.source, "log_format": "{text}", "log_time": time.time(), "text": note.text,
            "actor": self._actor_name,
        }
        for name, value in note.fields:
            event[f"{name}_" if name in event or name in _LOG_WORDS else name] = value
        log.observer(event)

    def _answerer(self, tag: Any) -> Callable[[Delivery], None]:
        def answered(delivery: Delivery) -> None:
            assert self._cell.actor is not None
            self._cell.actor.receive(
                Delivery(
                    message=Answer(tag, delivery.message), sender=delivery.sender, identity=delivery.identity,
                    message_id=delivery.message_id, in_reply_to=delivery.in_reply_to, trace_id=delivery.trace_id,
                    answerable=False,
                )
            )

        return answered


_PERFORM: dict[type, Callable[[Context, Any, Delivery | None], None]] = {
    Send: Context._send, Persist: Context._persist, Reply: Context._reply, SetTimer: Context._set_timer,
    CancelTimer: Context._cancel_timer, Ask: Context._ask, GoOn: Context._go_on, Note: Context._note,
}
"""What is done for each effect that all cores have; the others are their actor's own."""
