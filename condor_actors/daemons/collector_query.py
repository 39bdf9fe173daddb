"""All ads that a question finds, page by page, from the first collector that answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from condor_actors.actors import Context
from condor_actors.daemons.advertiser import COLLECTOR
from condor_actors.messages.advertise import AdsPage, QueryAds
from condor_actors.messages.envelope import Address

__all__ = ["query_ads"]


def query_ads(context: Context, collectors: Sequence[str], question: QueryAds, *, timeout_s: float,
              then: Callable[[list[bytes]], None], failed: Callable[[str], None]) -> None:
    """Ask in turns of an actor; a collector that fails between two pages is followed by the next one's first page.

    Args:
        context: of the actor that asks.
        collectors: their nodes, the preferred one first.
        question: without a cursor.
        timeout_s: for each page.
        then: gets the texts of the ads.
        failed: gets what the last collector said instead.
    """
    found: list[bytes] = []

    def ask(number: int, cursor: str) -> None:
        context.ask(Address(collectors[number], COLLECTOR), attrs.evolve(question, cursor=cursor),
                    timeout_s=timeout_s, then=lambda answer: take(answer.message, number))

    def take(page: Any, number: int) -> None:
        if not isinstance(page, AdsPage):
            found.clear()
            if number + 1 < len(collectors):
                ask(number + 1, "")
            else:
                failed(getattr(page, "text", "") or str(page))
            return
        found.extend(page.ads)
        if page.cursor:
            ask(number, page.cursor)
        else:
            then(found)

    if collectors:
        ask(0, "")
    else:
        failed("COLLECTOR_HOST names no collector")
