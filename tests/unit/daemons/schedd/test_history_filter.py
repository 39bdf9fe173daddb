"""Reading only what a question needs of an ad finds what reading all of it finds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from condor_actors.classads import parse_expression
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.daemons.schedd.history import history_page
from condor_actors.daemons.schedd.history_filter import NeededLines
from condor_actors.messages.queue import QueryJobs
from condor_actors.store.queue_store import HistoryRow

ALL = 'eval("true") && '
"""Before a condition: the whole ad is read."""
CONDITIONS = (
    "A > 3", "a == 3 || B == \"x\"", "isUndefined(C)", "A =?= undefined", "Chain > 2", "MY.A >= 5", "TARGET.A >= 5",
    "ifThenElse(isString(B), size(B), A) > 0", "stringListMember(\"x\", B)", "D && A", "'odd name' == 1", "E.F == 2",
    "Secret == 5", "ChainToSecret == 5", "sum({A, 1}) > 3", "[A = 9].A == 9", "undefined || A > 1", "Chain2 == Chain",
)
FIND_NOTHING = ("Secret == 5", "ChainToSecret == 5", "TARGET.A >= 5")
"""No ad has a 5, and there is no other ad."""
VALUES = ("1", "3", "7", "-2", "0.5", '"x"', '"x,y"', '""', "true", "undefined", "error", "A + 1", "[ F = 2 ]",
          "{ 1,2 }", '"a\\\\b"', "Secret", "TARGET.B")
NAMES = ("A", "a", "B", "C", "Chain", "CHAIN", "Chain2", "D", "E", "Secret", "'odd name'", "ChainToSecret", "Other")


def text_of(draw: random.Random) -> bytes:
    """Lines of an ad: names in any case, some twice, the later counts."""
    return "".join(f"{draw.choice(NAMES)} = {draw.choice(VALUES)}\n" for _ in range(draw.randrange(12))).encode()


class Rows:
    """A history of random ads; some clusters have the same lines."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        shared = [text_of(draw) for _ in range(4)]
        self._rows = [HistoryRow(entry, entry, 0, draw.choice(("ann", "bob")), float(entry), draw.choice(shared),
                                 text_of(draw) + b"ClusterId = %d\n" % entry) for entry in range(60, 0, -1)]

    def rows(self, ids: Sequence[tuple[int, int]], owner: str, before: int) -> Iterator[HistoryRow]:
        """As of a reader."""
        return iter(self._rows)

    def close(self) -> None:
        """Nothing."""


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("projection", [(), ("A", "chain", "E", "ClusterId", "Secret")])
def test_it_finds_what_the_whole_ads_have(condition: str, projection: tuple[str, ...]) -> None:
    sight = JobSight(frozenset({"secret"}), lambda owner: owner == "ann")
    found = 0
    for seed in range(20):
        asked: dict[str, Any] = {"source": "history", "projection": projection}
        little = history_page(Rows(seed), QueryJobs(constraint=condition, **asked), sight)
        whole = history_page(Rows(seed), QueryJobs(constraint=ALL + f"({condition})", **asked), sight)
        assert little == whole, seed
        found += len(little.ads)
        ended = history_page(Rows(seed), QueryJobs(since=condition, **asked), sight)
        assert ended == history_page(Rows(seed), QueryJobs(since=ALL + f"({condition})", **asked), sight)
    assert (found > 0) == (condition not in FIND_NOTHING)


def test_only_what_is_needed_is_read_where_that_is_certain() -> None:
    needed = NeededLines([parse_expression("A > 3 && !isUndefined(B)")], ("C",))
    assert not needed.is_all
    ad = needed.ad(b"A = 1\nOther = 2\nb = 5\n", b"a = 4\nC = Other\nMore = 3\n")
    assert (ad.get_int("A"), ad.get_int("B"), sorted(ad.own)) == (4, 5, ["a", "b", "c"])
    chained = needed.ad(b"Other = 2\n", b"A = Other\n")
    assert chained.evaluate("A") == 2, "an expression is evaluated where all is"
    for certain_of_nothing in ('eval("A")', "size(MY) > 2", "self.A == 1 && self", "unresolved(A)", "'odd name' == 1"):
        assert NeededLines([parse_expression(certain_of_nothing)], ()).is_all, certain_of_nothing
