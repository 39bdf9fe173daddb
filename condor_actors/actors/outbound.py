"""What leaves an actor: messages for others of the process and for the network, and refusals in its place."""

from __future__ import annotations

from random import Random
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors.cell import LocalPost, RemotePost
from condor_actors.actors.mailboxes import NOBODY, Mailboxes
from condor_actors.actors.post import Post
from condor_actors.actors.questions import Questions
from condor_actors.actors.witness import Witness
from condor_actors.messages.codec import decode, encode
from condor_actors.messages.envelope import Address, Delivery, Envelope, Refused

__all__ = ["Outbound"]


class Outbound:
    """Brings messages to their addressees; nothing waits here for a commit.

    Args:
        clock: for deadlines.
        post: the network.
        mailboxes: of this process.
        questions: get the answers of this process's actors.
        random: makes this process's message ids its own.
        log: of what is dropped.
        encode_every: every so many messages within the process go through the codec all the same, for tests; 0: none.
    """

    def __init__(self, clock: IReactorTime, post: Post, mailboxes: Mailboxes, questions: Questions, random: Random,
                 log: Logger, encode_every: int = 0) -> None:
        self._clock = clock
        self._post = post
        self._mailboxes = mailboxes
        self._questions = questions
        self._log = log
        self._encode_every = encode_every
        self._until_encode = encode_every
        self.witness: Witness | None = None
        self._prefix = f"{random.getrandbits(64):x}."
        self._sequence = 0

    def next_id(self) -> str:
        """A message_id that no other process uses."""
        self._sequence += 1
        return f"{self._prefix}{self._sequence:x}"

    def release(self, item: LocalPost | RemotePost) -> None:
        """Deliver a message that has nothing to wait for any more."""
        if type(item) is RemotePost:
            self._post.send(item.to, item.envelope)
            return
        assert type(item) is LocalPost
        if item.delivery.in_reply_to:
            self._questions.answer(item.delivery)
            return
        target = self._mailboxes.get(item.name)
        if target is None or target.stopping:
            self.refuse(item.delivery, Refused(code="unknown-actor", text=f"there is no actor {item.name!r}"))
        else:
            expiry = self._clock.seconds() + item.timeout_s if item.timeout_s else 0.0
            self._mailboxes.put(target, (None, item.delivery, expiry))

    def tell(self, to: Address, message: Any, trace_id: str = "") -> None:
        """Send ``message`` one way on behalf of the process itself."""
        if not to.node:
            delivery = Delivery(message=message, sender=NOBODY, message_id=self.next_id(), answerable=False,
                                trace_id=trace_id)
            self.release(LocalPost(to.actor, delivery, 0.0))
            return
        envelope = Envelope(kind=message.KIND, version=message.VERSION, body=encode(message),
                            message_id=self.next_id(), to=to.actor, trace_id=trace_id)
        self._post.send(to, envelope)

    def refuse(self, delivery: Delivery, refusal: Refused) -> None:
        """Answer for an actor that cannot; a message that was only told is logged."""
        if delivery.in_reply_to or not delivery.message_id:
            return
        if not delivery.answerable:
            self._log.debug("{kind} from {sender} dropped: {text}", kind=type(delivery.message).__name__,
                            sender=delivery.sender, text=refusal.text)
        elif delivery.sender.node:
            self.answer_remote(delivery, refusal)
        else:
            self._questions.settle(delivery.message_id, refusal, NOBODY)

    def answer_remote(self, delivery: Delivery, message: Any) -> None:
        """Answer a question from another process on behalf of the system."""
        if self.witness is not None and delivery.message is not None:
            self.witness.answered(delivery, message)
        envelope = Envelope(kind=message.KIND, version=message.VERSION, body=encode(message),
                            message_id=self.next_id(), to=delivery.sender.actor, in_reply_to=delivery.message_id,
                            trace_id=delivery.trace_id)
        self._post.send(delivery.sender, envelope)

    def flush(self) -> None:
        """Have the network let go of what it was given."""
        self._post.flush()

    def maybe_recoded(self, message: Any) -> Any:
        """The message itself, or now and then (in tests) what the codec makes of it."""
        if not self._encode_every or not hasattr(message, "KIND"):
            return message
        self._until_encode -= 1
        if self._until_encode > 0:
            return message
        self._until_encode = self._encode_every
        return decode(message.KIND, message.VERSION, encode(message))
