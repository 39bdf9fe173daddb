"""The door of an actor system: what comes in from other processes.

Theory: before an actor sees a message from outside, the door has checked that its kind is known, that its sender has
the level the kind demands, that the body is what the kind says, that it is no repeat, that the actor exists and its
mailbox has room.  Each failure is answered with a ``Refused``.  An answer is let in only when it comes over the very
link on which the question went out.

A question to a full mailbox is refused as ``busy``.  What is told is never dropped for that: a Post grants its peers
no further credit while many messages wait (see :attr:`Inbound.backlog`), so what waits stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.actors.outbound import Outbound
from condor_actors.actors.questions import Questions
from condor_actors.actors.watches import Watches
from condor_actors.messages.codec import MalformedMessage, decode, message_class
from condor_actors.messages.envelope import Address, Delivery, Envelope, Identity, Level, Refused

__all__ = ["Inbound"]

SEEN_PER_IDENTITY = 8_000
"""More than a peer may have under way (its window), so that whatever it sends again is known."""

BUSY_RETRY_S = 1.0


class Inbound:
    """What a :class:`~condor_actors.actors.post.Post` talks to.

    Args:
        clock: for deadlines.
        mailboxes: get what is let in.
        questions: get the answers.
        watches: hear of links.
        outbound: sends refusals.
        authorize: whether an identity has a level.
        log: of what is refused.
    """

    def __init__(self, clock: IReactorTime, mailboxes: Mailboxes, questions: Questions, watches: Watches,
                 outbound: Outbound, authorize: Callable[[Identity, Level], bool], log: Logger) -> None:
        self._clock = clock
        self._mailboxes = mailboxes
        self._questions = questions
        self._watches = watches
        self._outbound = outbound
        self._authorize = authorize
        self._log = log
        self._seen: dict[Hashable, dict[str, None]] = {}

    @property
    def backlog(self) -> int:
        """Turns that wait in all mailboxes."""
        return self._mailboxes.backlog

    def arrived(self, node: str, identity: Identity, envelope: Envelope) -> None:
        """An envelope came in over the link to ``node``."""
        if self._mailboxes.closed:
            return
        if envelope.in_reply_to:
            self._answer_arrived(node, identity, envelope)
            return
        if self._is_repeat(identity, envelope.message_id):
            return
        delivery_or_refusal = self.admit(node, identity, envelope)
        if isinstance(delivery_or_refusal, Refused):
            self._refuse_arrival(node, identity, envelope, delivery_or_refusal)
            return
        cell = self._mailboxes.get(envelope.to)
        assert cell is not None
        expiry = self._clock.seconds() + envelope.deadline_s if envelope.deadline_s > 0.0 else 0.0
        self._mailboxes.put(cell, (None, delivery_or_refusal, expiry))

    def admit(self, node: str, identity: Identity, envelope: Envelope) -> Delivery | Refused:
        """What an actor is given of an envelope, or why it is not."""
        cls = message_class(envelope.kind, envelope.version)
        if cls is None:
            return Refused(code="malformed", text=f"unknown message {envelope.kind!r} version {envelope.version}")
        level: Any = cls.LEVEL  # type: ignore[attr-defined]  # every registered message has one
        if not self._authorize(identity, Level(level)):
            return Refused(code="denied", text=f"{identity.name} may not send {envelope.kind}: it needs {level}")
        cell = self._mailboxes.get(envelope.to)
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
        seen = self._seen.setdefault(identity.bearer, {})
        if message_id in seen:
            return True
        seen[message_id] = None
        if len(seen) > SEEN_PER_IDENTITY:
            del seen[next(iter(seen))]
        return False

    def _refuse_arrival(self, node: str, identity: Identity, envelope: Envelope, refusal: Refused) -> None:
        self._log.warn("{kind} for {to} from {who} refused: {text}",  # noqa: G010 - Twisted's name for it
                      kind=envelope.kind, to=envelope.to, who=identity.name, text=refusal.text)
        if envelope.deadline_s > 0.0 and envelope.reply_to:
            delivery = Delivery(message=None, sender=Address(node, envelope.reply_to), identity=identity,
                                message_id=envelope.message_id, trace_id=envelope.trace_id)
            self._outbound.answer_remote(delivery, refusal)

    def _answer_arrived(self, node: str, identity: Identity, envelope: Envelope) -> None:
        if self._questions.asked_over(envelope.in_reply_to) != node:
            self._log.debug("late or foreign answer {kind} from {who}", kind=envelope.kind, who=identity.name)
            return
        try:
            message = decode(envelope.kind, envelope.version, envelope.body)
        except MalformedMessage as error:
            message = Refused(code="malformed", text=f"the answer: {error}")
        self._questions.settle(envelope.in_reply_to, message, Address(node, envelope.reply_to), identity,
                               envelope.trace_id)

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        """An envelope that this process sent was not delivered."""
        if envelope.deadline_s > 0.0:
            self._questions.fail(envelope.message_id, reason, text)
        else:
            self._log.debug("{kind} for {to}@{node} lost: {text}", kind=envelope.kind, to=envelope.to, node=node,
                           text=text)

    def link_up(self, node: str, identity: Identity) -> None:
        """A link is up: tell those who watch the node."""
        self._watches.link_up(node, identity)

    def link_down(self, node: str, reason: str) -> None:
        """A link was lost: fail the questions that went over it and tell those who watch the node."""
        self._questions.link_lost(node, reason)
        self._watches.link_down(node, reason)
