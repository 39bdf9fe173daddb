"""Questions of the actors of one process: what was asked, and the one answer that each gets.

Theory: an ask is a message and a timer.  Whatever comes first settles it: the answer, a refusal, the loss of the link
on which it went out, the end of its time; everything later is dropped.  The answer is a turn of the actor that asked,
unless that was rebuilt meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.interfaces import IReactorTime

from condor_actors.actors.cell import Cell, Question
from condor_actors.messages.envelope import SELF, Address, AskFailed, Delivery, Identity

NOBODY = Address("", "")


class Questions:
    """The part of :class:`ActorSystem` that knows what was asked."""

    clock: IReactorTime

    if TYPE_CHECKING:
        def _make_ready(self, cell: Cell) -> None: ...

    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}

    def expect(self, cell: Cell, message_id: str, node: str, message: Any, timeout_s: float,
               then: Callable[[Delivery], None]) -> None:
        """Note a question; its actor gets exactly one answer."""
        if timeout_s <= 0.0:
            raise ValueError("a question needs a timeout")
        question = Question(message_id, cell, node, message, then)
        question.timer = self.clock.callLater(timeout_s, self._timed_out, question)
        self._questions[message_id] = cell.questions[message_id] = question

    def _timed_out(self, question: Question) -> None:
        self.fail_question(question.message_id, "timeout", "no answer in time")

    def fail_question(self, message_id: str, reason: str, text: str) -> None:
        """Answer a question with ``AskFailed``; one that is settled already is left alone."""
        question = self._questions.get(message_id)
        if question is not None:
            failed = AskFailed(reason=reason, text=text, question=question.message)
            self.settle(message_id, failed, Address(question.node, ""))

    def settle(self, message_id: str, message: Any, sender: Address, identity: Identity = SELF,
               trace_id: str = "") -> None:
        """Give a question its answer; the second and later ones are dropped."""
        question = self._questions.get(message_id)
        if question is None:
            return
        self._drop_question(question)
        answer = Delivery(message=message, sender=sender, identity=identity, in_reply_to=message_id,
                          trace_id=trace_id, answerable=False)
        question.cell.inbox.append((question.then, answer, 0.0))
        self._make_ready(question.cell)

    def _answer(self, delivery: Delivery) -> None:
        question = self._questions.get(delivery.in_reply_to)
        if question is not None and question.node == delivery.sender.node:
            self.settle(delivery.in_reply_to, delivery.message, delivery.sender, delivery.identity, delivery.trace_id)

    def _drop_question(self, question: Question) -> None:
        self._questions.pop(question.message_id, None)
        question.cell.questions.pop(question.message_id, None)
        if question.timer is not None and question.timer.active():
            question.timer.cancel()
