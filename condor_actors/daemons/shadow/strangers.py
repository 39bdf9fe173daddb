"""Who may speak to a shadow host and its shadows: the schedd that started them, and each run's starter.

Theory: a shadow host has links to its schedd and to the machines on which its owner's jobs run.  Each of these machines
could say anything to any actor behind its link, so an actor looks whence a word comes: only the schedd gives orders,
and of a run only its own starter speaks.
"""

from __future__ import annotations

from condor_actors.actors import Context
from condor_actors.messages.envelope import Delivery, Refused

__all__ = ["refuse_stranger"]


def refuse_stranger(context: Context, delivery: Delivery, about: str) -> None:
    """Refuse a message whose sender has no right to send it.

    Args:
        context: of the actor spoken to.
        delivery: the message.
        about: what he speaks of, for the log.
    """
    kind, node = type(delivery.message).__name__, delivery.sender.node
    context.log.warn("{kind} for {about} from {who} at {node} refused", kind=kind, about=about,
                     who=delivery.identity.name, node=node)
    context.reply(delivery, Refused(code="denied", text=f"{node} has no say in {about}"))
