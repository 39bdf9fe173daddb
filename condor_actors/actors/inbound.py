"""The door of an actor system: what comes in from other processes.

Theory: before an actor sees a message from outside, the door has checked that its kind is known, that its sender has
the level the kind demands, that the body is what the kind says, that it is no repeat, that the actor exists and its
mailbox has room.  Each failure is answered with a ``Refused``.  An answer is let in only when it comes over the very
link on which the question went out.

What is let in waits in its sender's lane (:mod:`condor_actors.actors.lanes`): each identity has one, and its tools have
one beside that of its other processes.  A question is refused as ``busy`` when too much of its sender waits, or the
mailbox is full and its sender has its share of it.  What is told is never dropped for that: a Post grants its peers no
further credit while much of theirs waits (:meth:`Inbound.congested`), so what waits stays bounded.  The questions of
those who have hung up are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors.cell import Cell
from condor_actors.actors.lanes import OWN, Turn
from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.actors.outbound import Outbound
from condor_actors.actors.questions import Questions
from condor_actors.actors.watches import Watches
from condor_actors.messages.codec import MalformedMessage, decode, message_class, unknown_message
from condor_actors.messages.envelope import TOOL, Address, Delivery, Envelope, Identity, Level, Refused

__all__ = ["Inbound"]

SEEN_PER_IDENTITY = 8_000
"""More than a peer may have under way (its window), so that whatever it sends again is known."""

BUSY_RETRY_S = 1.0

IDENTITIES_REMEMBERED = 4_096
"""Senders whose last messages are remembered; beyond that, those who came first are forgotten."""

LANE_MESSAGES = 1_000
LANE_BYTES = 16 << 20
"""How much of one sender may wait in all mailboxes before its questions are refused; half of it, before its credit
ends."""

MOST_WAITING = 20_000
"""How many messages may wait in all before nobody gets further credit."""


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
        self._seen: dict[str, dict[str, None]] = {}
        self._lanes: dict[str, tuple[Identity, str, str]] = {}

    def congested(self, node: str) -> bool:
        """Whether a Post should grant the peer at ``node`` no further credit."""
        count, size_bytes = self._mailboxes.ledger.waiting(self._lane_of(node))
        return count > LANE_MESSAGES // 2 or size_bytes > LANE_BYTES // 2 or self._mailboxes.backlog > MOST_WAITING

    def _lane_of(self, node: str, identity: Identity | None = None) -> str:
        """The lane of what comes over a link; the process's own for a node without one."""
        known = self._lanes.get(node)
        if known is not None and (identity is None or known[0] is identity):
            return known[2]
        if identity is None:
            return OWN
        process = known[1] if known is not None else ""
        lane = _lane(identity, process)
        self._lanes[node] = identity, process, lane
        return lane

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
        lane, size_bytes = self._lane_of(node, identity), len(envelope.body)
        if envelope.deadline_s > 0.0 and self._has_its_share(cell, lane, size_bytes):
            self._refuse_arrival(node, identity, envelope, Refused(
                code="busy", text=f"{len(cell.inbox)} messages wait for {envelope.to}, and as many of yours as may",
                retry_after_s=BUSY_RETRY_S))
            return
        expiry = self._clock.seconds() + envelope.deadline_s if envelope.deadline_s > 0.0 else 0.0
        self._mailboxes.put(cell, (None, delivery_or_refusal, expiry), lane, size_bytes)

    def _has_its_share(self, cell: Cell, lane: str, size_bytes: int) -> bool:
        """Whether so much of a sender waits that it may not ask more now."""
        ledger = self._mailboxes.ledger
        waiting, waiting_bytes = ledger.waiting(lane)
        if not waiting:
            return False
        if waiting >= LANE_MESSAGES or waiting_bytes + size_bytes > LANE_BYTES:
            return True
        return len(cell.inbox) >= cell.spec.inbox_limit and waiting >= cell.spec.inbox_limit // len(ledger)

    def admit(self, node: str, identity: Identity, envelope: Envelope) -> Delivery | Refused:
        """What an actor is given of an envelope, or why it is not."""
        cls = message_class(envelope.kind, envelope.version)
        if cls is None:
            return Refused(code="malformed", text=unknown_message(envelope.kind, envelope.version))
        level: Any = cls.LEVEL  # type: ignore[attr-defined]  # every registered message has one
        if not self._authorize(identity, Level(level)):
            return Refused(code="denied", text=f"{identity.name} may not send {envelope.kind}: it needs {level}")
        cell = self._mailboxes.get(envelope.to)
        if cell is None or cell.stopping:
            return Refused(code="unknown-actor", text=f"there is no actor {envelope.to!r}")
        try:
            message = decode(envelope.kind, envelope.version, envelope.body)
        except MalformedMessage as error:
            return Refused(code="malformed", text=str(error))
        return Delivery(
            message=message, sender=Address(node, envelope.reply_to), identity=identity,
            message_id=envelope.message_id, trace_id=envelope.trace_id, answerable=envelope.deadline_s > 0.0,
        )

    def _is_repeat(self, identity: Identity, message_id: str) -> bool:
        seen = self._seen.get(whole_name(identity))
        if seen is None:
            seen = self._seen[whole_name(identity)] = {}
            if len(self._seen) > IDENTITIES_REMEMBERED:
                del self._seen[next(iter(self._seen))]
        if message_id in seen:
            return True
        seen[message_id] = None
        if len(seen) > SEEN_PER_IDENTITY:
            del seen[next(iter(seen))]
        return False

    def _refuse_arrival(self, node: str, identity: Identity, envelope: Envelope, refusal: Refused) -> None:
        if self._outbound.witness is not None:
            self._outbound.witness.refused_at_door(node, identity, envelope.kind, refusal)
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
                               envelope.trace_id, self._lane_of(node, identity), len(envelope.body))

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        """An envelope that this process sent was not delivered."""
        if envelope.deadline_s > 0.0:
            self._questions.fail(envelope.message_id, reason, text)
        else:
            self._log.debug("{kind} for {to}@{node} lost: {text}", kind=envelope.kind, to=envelope.to, node=node,
                           text=text)

    def link_up(self, node: str, identity: Identity, process: str = "") -> None:
        """A link is up: tell those who watch the node."""
        self._lanes[node] = identity, process, _lane(identity, process)
        self._watches.link_up(node, identity, self._lane_of(node, identity))

    def reidentified(self, node: str, identity: Identity) -> None:
        """A peer is another user from now on: it has that one's lane, and who watches it later hears of that one."""
        known = self._lanes.get(node)
        if known is not None:
            self._lanes[node] = identity, known[1], _lane(identity, known[1])
            self._watches.reidentified(node, identity, self._lanes[node][2])

    def link_down(self, node: str, reason: str) -> None:
        """A link was lost: forget what was asked over it, fail the questions that went over it and tell those who watch
        the node."""
        lane = self._lane_of(node)
        self._lanes.pop(node, None)
        if node.startswith("in:"):
            for _, delivery, _ in self._mailboxes.ledger.drop(lane, lambda turn: _asked_over(turn, node)):
                self._seen.get(whole_name(delivery.identity), {}).pop(delivery.message_id, None)
        self._questions.link_lost(node, reason, lane)
        self._watches.link_down(node, reason, lane)


def whole_name(identity: Identity) -> str:
    """Tells senders apart: machines have one name in common, and hosts of their own."""
    return f"{identity.name} {identity.host}" if identity.host else identity.name


def _lane(identity: Identity, process: str) -> str:
    return f"{whole_name(identity)} {TOOL}" if process == TOOL else whole_name(identity)


def _asked_over(turn: Turn, node: str) -> bool:
    delivery = turn[1]
    return turn[0] is None and isinstance(delivery, Delivery) and delivery.answerable and delivery.sender.node == node
