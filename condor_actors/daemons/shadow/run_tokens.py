"""Brings a run the tokens that its job wants, from the credential daemon of this machine.

Theory: this process is the owner's, and the credential daemon knows it by its user id.  What a starter gets follows
from the job's ad as it is here, not from anything that the starter says; nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.cores.job_tokens import BadTokenRequest, wanted_tokens
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.messages.credentials import FetchRunTokens, FetchTokens, RunTokens, TokensFetched
from condor_actors.messages.envelope import Address, Delivery, Refused

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["bring_tokens"]

ACTOR = "credd"
PATIENCE_S = 90.0
"""How long a service may take."""


def bring_tokens(shadow: Shadow, question: Delivery) -> None:
    """Answer a starter that asks for its job's tokens."""
    asked: FetchRunTokens = question.message
    context, core = shadow.context, shadow.core
    if asked.run_id != core.order.run_id or core.state is ShadowState.ENDED:
        context.reply(question, Refused(code="invalid", text="the run is over, or another's"))
        return
    try:
        wanted = wanted_tokens(core.job)
    except BadTokenRequest as error:
        context.reply(question, Refused(code="invalid", text=str(error)))
        return

    def fetched(answer: Delivery) -> None:
        message = answer.message
        if isinstance(message, TokensFetched):
            context.reply(question, RunTokens(tokens=message.tokens, renew_after_s=message.renew_after_s))
        elif isinstance(message, Refused):
            context.reply(question, Refused(code=message.code, text=message.text))
        else:
            context.reply(question, Refused(
                code="busy", text=f"the credential daemon of the submit machine does not answer ({message.reason}); "
                                  "an administrator starts it by adding CREDD to DAEMON_LIST"))

    context.ask(Address(shadow.edges.credd, ACTOR), FetchTokens(wanted=wanted), timeout_s=PATIENCE_S, then=fetched)
