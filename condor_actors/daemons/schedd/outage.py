"""What a schedd does while nothing can be stored: a full, unwritable or broken SPOOL.

Theory: a decision that cannot be made durable was never made, so the actor is built anew from what the store has, and
this class stands between it and the world until the store takes something again.  Questions about the queue are
answered from what is stored; whatever would change it is refused with the reason; the leases of claims go on, so that
running jobs do.  A schedd that starts without being able to open its queue knows nothing of it, and says so to
those who ask.  Then the schedd begins as after a restart: the shadow hosts are asked to say hello, and tell again
what nobody has committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.cores.schedd.queue_operations import SaveCounter
from condor_actors.messages.envelope import Delivery, Refused, TimerFired
from condor_actors.messages.queue import QueryJobs, QueryTotals
from condor_actors.messages.watch import QueryChanges

if TYPE_CHECKING:
    from condor_actors.actors.context import Context
    from condor_actors.cores.schedd.schedd_core import ScheddCore

__all__ = ["StoreOutage"]

FIRST_LOOK_S: Final = 1.0
LONGEST_LOOK_S: Final = 30.0
LOOK: Final = ("store",)
RENEW: Final = ("renew",)


class Store(Protocol):
    """What makes batches durable."""

    problem: str

    def commit(self, operations: Sequence[Any]) -> None:
        """All or none; raises ``StoreUnavailable`` or ``OSError`` when nothing can be stored."""


class StoreOutage:
    """The store of a schedd, and whether it takes anything now.

    Args:
        store: makes batches durable.
        where: the store's folder, for people.
        has_room: writes and removes something; raises ``OSError`` when that fails.

    Attributes:
        problem: why nothing can be stored; empty while all is well.
    """

    def __init__(self, store: Store, where: str, has_room: Callable[[], None]) -> None:
        self.problem = ""
        self._store = store
        self._where = where
        self._has_room = has_room
        self._looks = 0

    @property
    def is_ignorant(self) -> bool:
        """The queue could not be opened or read: nobody knows what is in it."""
        if self._store.problem and not self.problem:
            self.problem = f"{self._where} cannot be written: {self._store.problem}"
        return bool(self._store.problem)

    def commit(self, operations: Sequence[Any]) -> None:
        """Make a batch durable.

        Raises:
            StoreUnavailable: the store takes nothing now.
        """
        try:
            self._store.commit(operations)
        except (OSError, StoreUnavailable) as error:
            self.problem = f"{self._where} cannot be written: {error}"
            raise StoreUnavailable(self.problem) from error
        self._looks = 0

    def begin(self, context: Context) -> None:
        """The actor was built anew because of it: wait, longer each time."""
        context.log.error("{problem}; the queue cannot change until that is mended", problem=self.problem)
        self._wait(context)
        context.set_timer(RENEW, 0.0)

    def _wait(self, context: Context) -> None:
        context.set_timer(LOOK, min(FIRST_LOOK_S * 2.0 ** min(self._looks, 10), LONGEST_LOOK_S))
        self._looks += 1

    def receive(self, context: Context, core: ScheddCore, delivery: Delivery) -> bool:
        """A message that comes meanwhile; returns whether the outage is over."""
        message = delivery.message
        if isinstance(message, TimerFired) and message.key == LOOK:
            return self._try_store(context)
        if isinstance(message, TimerFired) and message.key == RENEW:
            context.perform(core.keep_claims(context.now_s()))
        elif isinstance(message, (QueryJobs, QueryTotals, QueryChanges)) and not self.is_ignorant:
            context.reply(delivery, core.look_up(message, delivery.identity, context.now_s()))
        else:
            context.reply(delivery, Refused(
                code="busy", retry_after_s=LONGEST_LOOK_S,
                text=f"{self.problem}; nothing was changed: make room there or mend it, and try again"))
        return False

    def _try_store(self, context: Context) -> bool:
        try:
            self._has_room()
            self._store.commit([SaveCounter("store_looks", self._looks)])
        except (OSError, StoreUnavailable) as error:
            self.problem = f"{self._where} cannot be written: {error}"
            self._wait(context)
            return False
        context.log.info("{where} can be written again", where=self._where)
        self.problem = ""
        return True
