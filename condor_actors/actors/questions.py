"""Questions of the actors of one process: what was asked, and the one answer that each gets.

Theory: an ask is a message and a timer.  Whatever comes first settles it: the answer, a refusal, the loss of the link
on which it went out, the end of its time; everything later is dropped.  The answer is a turn of the actor that asked,
unless that was rebuilt meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime

from condor_actors.actors.cell import Cell, Question
from condor_actors.actors.lanes import OWN
from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.messages.envelope import SELF, Address, AskFailed, Delivery, Identity

__all__ = ["Questions"]


class Questions:
    """What was asked and has no answer yet.

    Args:
        clock: for timeouts.
        mailboxes: get the answers.
    """

    def __init__(self, clock: IReactorTime, mailboxes: Mailboxes) -> None:
        self._clock = clock
        self._mailboxes = mailboxes
        self._questions: dict[str, Question] = {}

    def asked_over(self, message_id: str) -> str | None:
        """The node at which a question was put; None: it has its answer, or nobody asked."""
        question = self._questions.get(message_id)
        return None if question is None else question.node

    def expect(self, cell: Cell, message_id: str, node: str, message: Any, timeout_s: float,
               then: Callable[[Delivery], None]) -> None:
        """Note a question; its actor gets exactly one answer."""
        if timeout_s <= 0.0:
            raise ValueError("a question needs a timeout")
        question = Question(message_id, cell, node, message, then)
        question.timer = self._clock.callLater(timeout_s, self._timed_out, question)
        self._questions[message_id] = cell.questions[message_id] = question

    def _timed_out(self, question: Question) -> None:
        self.fail(question.message_id, "timeout", "no answer in time")

    def fail(self, message_id: str, reason: str, text: str, lane: str = OWN) -> None:
        """Answer a question with ``AskFailed``; one that is settled already is left alone."""
        question = self._questions.get(message_id)
        if question is not None:
            failed = AskFailed(reason=reason, text=text, question=question.message)
            self.settle(message_id, failed, Address(question.node, ""), lane=lane)

    def settle(self, message_id: str, message: Any, sender: Address, identity: Identity = SELF,
               trace_id: str = "", lane: str = OWN, size_bytes: int = 0) -> None:
        """Give a question its answer, behind what waits of its sender; the second and later ones are dropped."""
        question = self._questions.get(message_id)
        if question is None:
            return
        self._drop(question)
        answer = Delivery(message=message, sender=sender, identity=identity, in_reply_to=message_id,
                          trace_id=trace_id, answerable=False)
        self._mailboxes.put(question.cell, (question.then, answer, 0.0), lane, size_bytes)

    def answer(self, delivery: Delivery) -> None:
        """An actor of this process answers one."""
        question = self._questions.get(delivery.in_reply_to)
        if question is not None and question.node == delivery.sender.node:
            self.settle(delivery.in_reply_to, delivery.message, delivery.sender, delivery.identity, delivery.trace_id)

    def link_lost(self, node: str, reason: str, lane: str = OWN) -> None:
        """Fail what was asked over a link that is lost, behind what still came over it."""
        for question in [each for each in self._questions.values() if each.node == node]:
            self.fail(question.message_id, "link-lost", reason, lane)

    def forget(self, cell: Cell) -> None:
        """Nobody waits for the answers to an actor's questions any more."""
        for question in tuple(cell.questions.values()):
            self._drop(question)

    def _drop(self, question: Question) -> None:
        self._questions.pop(question.message_id, None)
        question.cell.questions.pop(question.message_id, None)
        if question.timer is not None and question.timer.active():
            question.timer.cancel()
