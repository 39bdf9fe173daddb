"""Ads of the first collector that answers, whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from condor_actors.daemons.collector_query import query_ads
from condor_actors.messages.advertise import AdKind, AdsPage, QueryAds
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Identity

QUESTION = QueryAds(ad_kind=AdKind.SLOT, constraint="true")
DOWN = AskFailed(reason="unreachable", text="no route")


class PlayedContext:
    """Collectors that give the pages in turn that a test has for each; one that has no more is down."""

    def __init__(self, **pages: list[Any]) -> None:
        self.pages = pages
        self.asked: list[tuple[str, str]] = []

    def ask(self, to: Address, message: QueryAds, *, timeout_s: float, then: Callable[[Delivery], None]) -> None:
        assert (message.ad_kind, message.constraint, timeout_s) == (AdKind.SLOT, "true", 7.0)
        self.asked.append((to.node, message.cursor))
        left = self.pages[to.node]
        then(Delivery(sender=to, identity=Identity(name=to.node), message=left.pop(0) if left else DOWN))


def asked(context: PlayedContext, *nodes: str) -> tuple[list[list[bytes]], list[str]]:
    """What was found, and what was said where nothing was."""
    found: list[list[bytes]] = []
    said: list[str] = []
    query_ads(context, nodes, QUESTION, timeout_s=7.0, then=found.append, failed=said.append)  # type: ignore[arg-type]
    return found, said


@pytest.mark.parametrize("first", [[], [AdsPage(ads=(b"half",), cursor="x")]])
def test_a_collector_that_fails_is_followed_by_the_next_from_the_beginning(first: list[AdsPage]) -> None:
    context = PlayedContext(one=first, two=[AdsPage(ads=(b"a", b"b"), cursor="c"), AdsPage(ads=(b"d",))])
    assert asked(context, "one", "two") == ([[b"a", b"b", b"d"]], [])
    assert context.asked[-2:] == [("two", ""), ("two", "c")]


def test_the_second_is_left_alone_where_the_first_answers() -> None:
    context = PlayedContext(one=[AdsPage(ads=())], two=[])
    assert asked(context, "one", "two") == ([[]], [])
    assert context.asked == [("one", "")]


@pytest.mark.parametrize(("nodes", "why"), [(("one", "two"), "no route"), ((), "COLLECTOR_HOST names no collector")])
def test_it_is_said_why_there_is_no_answer(nodes: tuple[str, ...], why: str) -> None:
    assert asked(PlayedContext(one=[], two=[]), *nodes) == ([], [why])
