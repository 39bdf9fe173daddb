"""Who sees what becomes of the messages of others: the audit log's eye in an actor system.

Theory: actors do not speak of what they were asked.  The system does: a message with an audited action
(:mod:`condor_actors.messages.audited_actions`) is witnessed with the answer that left for it, when that leaves, which
is after the commit; one that was only told, when its turn is over; one that the door refused, there.
"""

from __future__ import annotations

from typing import Any, Protocol

from condor_actors.messages.envelope import Delivery, Identity, Refused

__all__ = ["Witness"]


class Witness(Protocol):
    """Is told of the messages of other processes; raises nothing and takes no time."""

    def sees(self, delivery: Delivery) -> bool:
        """Tell whether the message has an action there."""

    def answered(self, delivery: Delivery, answer: Any) -> None:
        """The answer to a message has left; None: it was told, and its turn is over."""

    def refused_at_door(self, node: str, identity: Identity, kind: str, refusal: Refused) -> None:
        """A message was let in to no actor."""
