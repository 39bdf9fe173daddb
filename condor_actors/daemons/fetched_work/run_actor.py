"""The actor of a fetched job's run, to which its starter speaks as to a shadow.

It bears a shadow's name, ``shadow/<run id>``: for the starter that is what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from condor_actors.actors import CoreActor
from condor_actors.cores.fetched_work.fetched_run import FetchedClaim, FetchedRun, State, TellOver
from condor_actors.effects import Effect
from condor_actors.messages.envelope import Address, Delivery, Refused

if TYPE_CHECKING:
    from condor_actors.daemons.startd import Startd

__all__ = ["FetchedRunActor"]


class FetchedRunActor(CoreActor):
    """Runs a fetched job on its claim.

    Args:
        startd: the daemon.
        claim: of the job.
        listener: the actor that is told of its end.
        starter: where the starter host is.
    """

    core: FetchedRun

    def __init__(self, startd: Startd, claim: FetchedClaim, listener: Address,
                 starter: Callable[[], Address | None]) -> None:
        super().__init__(FetchedRun(claim, starter))
        self._startd = startd
        self._listener = listener

    def started(self) -> None:
        """Begin the run, or look for it."""
        self.context.perform(self.core.start())

    def receive(self, delivery: Delivery) -> None:
        """Words of the starter and of the startd; those of other users of this machine do not count."""
        identity = delivery.identity
        if identity.method != "self" and not (
                identity.method == "local" and identity.uid in {0, *self._startd.own_uids}):
            self.context.reply(delivery, Refused(code="denied", text="only this machine's own processes say that"))
            return
        super().receive(delivery)
        if self.core.state is State.OVER:
            self.context.stop_actor(self.context.address.actor)

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Tell the slot's machine."""
        if isinstance(effect, TellOver):
            self.context.tell(self._listener, effect.over)
        else:
            super().perform_own(effect, delivery)
