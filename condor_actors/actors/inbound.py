"""The door of an actor system: what comes in from other processes.

Theory: before an actor sees a message from outside, the door has checked that its kind is known, that its sender has
the level the kind demands, that the body is what the kind says, that it is no repeat, that the actor exists and its
mailbox has room.  Each failure is answered with a ``Refused``.  An answer is let in only when it comes over the very
link on which the question went out.

A question to a full mailbox is refused as ``busy``.  What is told is never dropped for that: a Post grants its peers
no further credit while many messages wait (see :attr:`ActorSystem.backlog`), so what waits stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.logger import Logger

from condor_actors.actors.cell import Cell
from condor_actors.actors.post import Post
from condor_actors.actors.questions import Questions
from condor_actors.messages.codec import MalformedMessage, decode, encode, message_class
from condor_actors.messages.envelope import (
    Address,
    Delivery,
    Envelope,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
)

SEEN_PER_IDENTITY = 8_000
"""More than a peer may have under way (its window), so that whatever it sends again is known."""

BUSY_RETRY_S = 1.0


class Inbound(Questions):
    """The part of :class:`ActorSystem` that a :class:`Post` talks to."""

    log: Logger
    stopped: bool
    _post: Post
    _cells: dict[str, Cell]
    _watchers: dict[str, dict[str, None]]

    if TYPE_CHECKING:
        def notify(self, name: str, event: Any) -> None: ...
        def next_id(self) -> str: ...

    def __init__(self, authorize: Callable[[Identity, Level], bool]) -> None:
        super().__init__()
        self._authorize = authorize
        self._seen: dict[str, dict[str, None]] = {}
        self._up: dict[str, Identity] = {}

    def arrived(self, node: str, identity: Identity, envelope: Envelope) -> None:
        """An envelope came in over the link to ``node``."""
        if self.stopped:
            return
        if envelope.in_reply_to:
            self._answer_arrived(node, identity, envelope)
            return
        if self._is_repeat(identity, envelope.message_id):
            return
        delivery_or_refusal = self._admit(node, identity, envelope)
        if isinstance(delivery_or_refusal, Refused):
            self._refuse_arrival(node, identity, envelope, delivery_or_refusal)
            return
        cell = self._cells[envelope.to]
        expiry = self.clock.seconds() + envelope.deadline_s if envelope.deadline_s > 0.0 else 0.0
        cell.inbox.append((None, delivery_or_refusal, expiry))
        self._make_ready(cell)

    def _admit(self, node: str, identity: Identity, envelope: Envelope) -> Delivery | Refused:
        cls = message_class(envelope.kind, envelope.version)
        if cls is None:
            return Refused(code="malformed", text=f"unknown message {envelope.kind!r} version {envelope.version}")
        level: Any = cls.LEVEL  # type: ignore[attr-defined]  # every registered message has one
        if not self._authorize(identity, Level(level)):
            return Refused(code="denied", text=f"{identity.name} may not send {envelope.kind}: it needs {level}")
        cell = self._cells.get(envelope.to)
        if cell is None or cell.stopping:
            return Refused(code="unknown-actor", text=f"there is no actor {envelope.to!r}")
        if envelope.deadline_s > 0.0 and len(cell.inbox) >= cell.spec.inbox_limit:
            return Refused(code="busy", text=f"{envelope.to} has {len(cell.inbox)} messages waiting",
                           retry_after_s=BUSY_RETRY_S)
        try:
            message = decode(envelope.kind, envelope.version, envelope.body)
        except MalformedMessage as error:
            return Refused(code="malformed", text=str(error))
        return Delivery(
            message=message, sender=Address(node, envelope.reply_to), identity=identity,
            message_id=envelope.message_id, trace_id=envelope.trace_id, answerable=envelope.deadline_s > 0.0,
        )

    def _is_repeat(self, identity: Identity, message_id: str) -> bool:
        seen = self._seen.setdefault(identity.name, {})
        if message_id in seen:
            return True
        seen[message_id] = None
        if len(seen) > SEEN_PER_IDENTITY:
            del seen[next(iter(seen))]
        return False

    def _refuse_arrival(self, node: str, identity: Identity, envelope: Envelope, refusal: Refused) -> None:
        self.log.warn("{kind} for {to} from {who} refused: {text}",  # noqa: G010 - Twisted's name for it
                      kind=envelope.kind, to=envelope.to, who=identity.name, text=refusal.text)
        if envelope.deadline_s > 0.0 and envelope.reply_to:
            delivery = Delivery(message=None, sender=Address(node, envelope.reply_to), identity=identity,
                                message_id=envelope.message_id, trace_id=envelope.trace_id)
            self.answer_remote(delivery, refusal)

    def answer_remote(self, delivery: Delivery, message: Any) -> None:
        """Answer a question from another process on behalf of the system."""
        envelope = Envelope(kind=message.KIND, version=message.VERSION, body=encode(message),
                            message_id=self.next_id(), to=delivery.sender.actor, in_reply_to=delivery.message_id,
                            trace_id=delivery.trace_id)
        self._post.send(delivery.sender, envelope)

    def _answer_arrived(self, node: str, identity: Identity, envelope: Envelope) -> None:
        question = self._questions.get(envelope.in_reply_to)
        if question is None or question.node != node:
            self.log.debug("late or foreign answer {kind} from {who}", kind=envelope.kind, who=identity.name)
            return
        try:
            message = decode(envelope.kind, envelope.version, envelope.body)
        except MalformedMessage as error:
            message = Refused(code="malformed", text=f"the answer: {error}")
        self.settle(envelope.in_reply_to, message, Address(node, envelope.reply_to), identity, envelope.trace_id)

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        """An envelope that this process sent was not delivered."""
        if envelope.deadline_s > 0.0:
            self.fail_question(envelope.message_id, reason, text)
        else:
            self.log.debug("{kind} for {to}@{node} lost: {text}", kind=envelope.kind, to=envelope.to, node=node,
                           text=text)

    def link_up(self, node: str, identity: Identity) -> None:
        """A link is up: tell those who watch the node."""
        self._up[node] = identity
        for name in tuple(self._watchers.get(node, ())):
            self.notify(name, PeerUp(node=node, identity=identity))

    def link_down(self, node: str, reason: str) -> None:
        """A link was lost: fail the questions that went over it and tell those who watch the node."""
        self._up.pop(node, None)
        for question in [each for each in self._questions.values() if each.node == node]:
            self.fail_question(question.message_id, "link-lost", reason)
        for name in tuple(self._watchers.get(node, ())):
            self.notify(name, PeerDown(node=node, reason=reason))
        if node.startswith("in:"):  # gone for good: nobody will be told of it again
            for name in self._watchers.pop(node, ()):
                cell = self._cells.get(name)
                if cell is not None:
                    cell.watches.discard(node)

    def watch(self, cell: Cell, node: str) -> None:
        """Have an actor told of the node's links; at once when there is one."""
        if node in cell.watches:
            return
        cell.watches.add(node)
        watchers = self._watchers.setdefault(node, {})
        watchers[cell.name] = None
        if node in self._up:
            self.notify(cell.name, PeerUp(node=node, identity=self._up[node]))
        if len(watchers) == 1:
            self._post.watch(node)

    def unwatch(self, cell: Cell, node: str) -> None:
        """Stop telling an actor."""
        if node not in cell.watches:
            return
        cell.watches.discard(node)
        watchers = self._watchers.get(node, {})
        watchers.pop(cell.name, None)
        if not watchers:
            self._watchers.pop(node, None)
            self._post.unwatch(node)
