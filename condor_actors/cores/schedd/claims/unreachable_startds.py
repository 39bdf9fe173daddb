"""Startds that do not answer a schedd, or not credibly, with which it does not want to be matched.

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

A startd whose grant is not believed (:mod:`.checked_grant`) does answer, and what it answers is no reason to trust it.
It is *set aside* for a minute, and twice as long each time that the next grant is no better, up to an hour.  A grant
that is believed clears it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.claim import RenewClaims
from condor_actors.messages.envelope import Address, AskFailed

__all__ = ["UnreachableStartds"]

PROBE_S = 30.0
PROBE_PATIENCE_S = 10.0
PROBES = 30
"""As long as an ad may outlive its machine; then the negotiator does not know it any more either."""
MOST_NAMED = 1000
ASIDE_S, LONGEST_ASIDE_S = 60.0, 3600.0
"""So long a startd is set aside the first time, and at most."""
MOST_ASIDE = 5000
"""So many are remembered: those that were set aside last."""


@attrs.define
class _Aside:
    """A startd that is set aside: how many times in a row, and until when."""

    times: int = 0
    until_s: float = 0.0


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
        self._aside: dict[str, _Aside] = {}

    def __contains__(self, startd: object) -> bool:
        return startd in self._probes

    def named(self) -> tuple[str, ...]:
        """The nodes of those that are doubted, at most :data:`MOST_NAMED`."""
        return tuple(self._probes)[:MOST_NAMED]

    def set_aside(self) -> tuple[str, ...]:
        """The nodes of those whose grants are not believed now, at most :data:`MOST_NAMED`."""
        now_s = self._context.now_s
        return tuple(startd for startd, aside in self._aside.items() if now_s < aside.until_s)[:MOST_NAMED]

    def disbelieve(self, startd: str, why: str) -> None:
        """What it has granted is not to be believed: no matches with it for a while that grows."""
        aside = self._aside.pop(startd, _Aside())
        now_s = self._context.now_s
        if now_s > aside.until_s + LONGEST_ASIDE_S:
            aside.times = 0
        span_s = min(ASIDE_S * 2.0 ** min(aside.times, 10), LONGEST_ASIDE_S)
        aside.times, aside.until_s = aside.times + 1, now_s + span_s
        self._aside[startd] = aside
        while len(self._aside) > MOST_ASIDE:
            del self._aside[next(iter(self._aside))]
        self._context.note(f"{startd}: {why}; no matches with it are wanted for {span_s:.0f} s", "warn")
        self._context.timer(("aside-startd", startd), span_s)

    def aside_over(self, startd: str) -> None:
        """It may be tried again."""
        if startd in self._aside:
            self.wish_cycle()

    def believe(self, startd: str) -> None:
        """It has granted what was asked for."""
        self._aside.pop(startd, None)

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
