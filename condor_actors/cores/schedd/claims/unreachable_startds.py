"""Startds that do not answer a schedd, which it does not want to be matched with.

Theory: a machine that lost its power says no word; its ads outlive it by many minutes, and to the negotiator it looks
as good as before.  Its schedds find out first: a question stays without an answer, or a run is lost whose starter was
out of reach.  From then on the startd is *doubted*: the schedd names it with its requests, and the negotiator gives it
slots of others.  Nobody else is told, since the fault may be of the wire between these two.

===========  ===========================================================================================
state        leaves it by
===========  ===========================================================================================
trusted      a question without an answer, a run lost → doubted
doubted      any answer, ``ClaimsKept`` → trusted, and a cycle is asked for; asked again every
             :data:`PROBE_S`, and after :data:`PROBES` times without an answer forgotten
===========  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.claim import RenewClaims
from condor_actors.messages.envelope import Address, AskFailed

__all__ = ["UnreachableStartds"]

PROBE_S = 30.0
PROBE_PATIENCE_S = 10.0
PROBES = 30
"""As long as an ad may outlive its machine; then the negotiator does not know it any more either."""
MOST_NAMED = 1000


class UnreachableStartds:
    """Keeps the startds that did not answer, so that no match with them is wanted until they do.

    Args:
        context: what the parts of the schedd's core share.

    Attributes:
        wish_cycle: asks the negotiator for a cycle.
    """

    def __init__(self, context: ScheddContext) -> None:
        self.wish_cycle: Callable[[], None] = lambda: None
        self._context = context
        self._probes: dict[str, int] = {}

    def __contains__(self, startd: object) -> bool:
        return startd in self._probes

    def named(self) -> tuple[str, ...]:
        """The nodes of those that are doubted, at most :data:`MOST_NAMED`."""
        return tuple(self._probes)[:MOST_NAMED]

    def mark_unreachable(self, startd: str) -> None:
        """It may be gone."""
        if startd not in self._probes:
            self._probes[startd] = 0
            self._context.note(f"the startd at {startd} does not answer: no matches with it are wanted until it does")
            self._context.timer(("probe-startd", startd), PROBE_S)

    def trust(self, startd: str) -> None:
        """It is there."""
        if self._probes.pop(startd, None) is not None:
            self.wish_cycle()

    def on_reply(self, startd: str, answer: Any) -> None:
        """It has answered a question, or not."""
        if isinstance(answer, AskFailed):
            self.mark_unreachable(startd)
        else:
            self.trust(startd)

    def probe(self, startd: str) -> None:
        """Time to ask it again."""
        if startd in self._probes:
            self._context.ask(Address(startd, "startd"), RenewClaims(claims=(), schedd_node=self._context.my_address),
                           PROBE_PATIENCE_S, ("probed", startd))

    def probed(self, startd: str, answer: Any) -> None:
        """What came of it."""
        if not isinstance(answer, AskFailed):
            self.trust(startd)
        elif startd in self._probes:
            self._probes[startd] += 1
            if self._probes[startd] < PROBES:
                self._context.timer(("probe-startd", startd), PROBE_S)
            else:
                del self._probes[startd]
