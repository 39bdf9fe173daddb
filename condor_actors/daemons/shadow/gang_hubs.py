"""The hubs of a shadow host: one for each gang whose members have asked for it.

Theory: the shadows of a gang's members are actors of one process, and meet at its host; each tells which member it is.
A hub is forgotten with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.actors.context import Context
from condor_actors.cores.schedd.gangs.gang import gang_of, node_of
from condor_actors.cores.shadow.gang_hub import GangHub
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST
from condor_actors.messages.codes import Universe
from condor_actors.messages.envelope import AskFailed, Delivery, Refused
from condor_actors.messages.run import GangCall, GangResult

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["GANGS", "AskGang", "GangHubs", "pass_on"]

HUB_ANSWER_S = 45.0

TICK_S = 5.0
GANGS = "gangs"
"""Key of the timer."""


@attrs.frozen
class AskGang:
    """A shadow passes on what its member wants; the answer is a :class:`GangResult`.

    Attributes:
        gang: the run of node 0, which all have in common.
        node, size: which member it is, and of how many.
    """

    gang: str
    node: int
    size: int
    call: GangCall


class GangHubs:
    """All of them.

    Args:
        context: the shadow host's.
    """

    def __init__(self, context: Callable[[], Context]) -> None:
        self._context = context
        self._hubs: dict[str, GangHub] = {}
        self._ticks = False

    def receive(self, delivery: Delivery) -> None:
        """A member wants something."""
        asked: AskGang = delivery.message
        now_s = self._context().now_s()
        hub = self._hubs.get(asked.gang)
        if hub is None:
            hub = self._hubs[asked.gang] = GangHub(asked.size, now_s, self._answer)
        hub.handle(asked.node, asked.call, delivery, now_s)
        if hub.is_empty:
            del self._hubs[asked.gang]
        self._wind()

    def leave(self, run_id: str) -> None:
        """A run is over, maybe a member's."""
        gang = gang_of(run_id) if self._hubs else ""
        hub = self._hubs.get(gang)
        if hub is not None:
            hub.leave(node_of(run_id))
            hub.tick(self._context().now_s())
            if hub.is_empty:
                del self._hubs[gang]

    def timer(self) -> None:
        """A while has passed."""
        self._ticks = False
        for hub in self._hubs.values():
            hub.tick(self._context().now_s())
        self._wind()

    def _answer(self, ticket: Any, result: GangResult) -> None:
        self._context().reply(ticket, result)

    def _wind(self) -> None:
        if not self._ticks and any(hub.is_waited_for for hub in self._hubs.values()):
            self._ticks = True
            self._context().set_timer(GANGS, TICK_S)


def pass_on(shadow: Shadow, delivery: Delivery) -> None:
    """A member's call, of its shadow, to the hub: which member it is, is what the order of its run says."""
    call: GangCall = delivery.message
    run_id, job = shadow.core.order.run_id, shadow.core.job
    if call.run_id != run_id or shadow.core.state is ShadowState.ENDED:
        shadow.context.reply(delivery, Refused(code="invalid", text=f"run {call.run_id} is over, or another's"))
        return
    if job.get_int("JobUniverse") != Universe.PARALLEL:
        shadow.context.reply(delivery, Refused(code="denied", text=f"run {run_id} is no member of a gang"))
        return

    def answered(answer: Delivery) -> None:
        message = answer.message
        shadow.context.reply(delivery, message if not isinstance(message, AskFailed) else Refused(
            code="busy", text="the other members' shadows do not answer"))

    shadow.context.ask(SHADOW_HOST, AskGang(gang_of(run_id), node_of(run_id), max(1, job.get_int("Nodes", 1)), call),
                       timeout_s=HUB_ANSWER_S, then=answered)
