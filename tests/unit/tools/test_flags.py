"""Flags by prefix, with one dash or two."""

from __future__ import annotations

import pytest

from condor_actors.tools.flags import MANY, Flag, MissingValue, UnknownFlag, parse
from condor_actors.tools.queue_question import FLAGS, understand

TABLE = (Flag("constraint", 1, 1), Flag("autoformat", 5, MANY, colon=True, alias="af"), Flag("af", 2, MANY, colon=True),
         Flag("all", 2), Flag("format", 1, 2))  # fmt: skip


@pytest.mark.parametrize("word", ["-c", "-cons", "--constraint", "-CONSTRAINT"])
def test_any_beginning_of_a_name_will_do(word: str) -> None:
    (given,) = parse([word, "x"], TABLE)
    assert (given.name, given.values) == ("constraint", ("x",))


def test_a_qualifier_and_many_values() -> None:
    first, second = parse(["-af:jh", "A", "B", "-all"], TABLE)
    assert (first.name, first.qualifier, first.values) == ("af", "jh", ("A", "B"))
    assert second.name == "all"


def test_operands_keep_their_place_and_negative_numbers_are_operands() -> None:
    given = parse(["12.3", "-5", "-", "-format", "%d", "-x-"], TABLE)
    assert [item.name for item in given] == ["", "", "", "format"]
    assert given[3].values == ("%d", "-x-")


def test_what_is_wrong_is_told_apart() -> None:
    with pytest.raises(UnknownFlag, match="-zap"):
        parse(["-zap"], TABLE)
    with pytest.raises(UnknownFlag):
        parse(["-all:x"], TABLE)
    with pytest.raises(MissingValue):
        parse(["-format", "%d"], TABLE)


@pytest.mark.parametrize(
    ("words", "field", "value"),
    [
        (["-nob"], "is_batch", False),
        (["-long"], "form", "long"),
        (["-l"], "form", "long"),
        (["-allusers"], "is_all", True),
        (["-all"], "is_all", True),
        (["-hold"], "view", "hold"),
        (["-held"], "view", "hold"),
        (["-run"], "view", "run"),
        (["-limit", "3"], "limit", 3),
        (["-submitter", "bob"], "users", ["bob"]),
        (["-sub", "bob"], "users", ["bob"]),
        (["12", "13.1"], "ids", [(12, -1), (13, 1)]),
        (["-json", "-attr", "A,B"], "attributes", ("A", "B")),
        (["-better"], "form", "analyze"),
        (["-analyze"], "form", "analyze"),
        (["-name", "x"], "name", "x"),
    ],
)
def test_condor_q_understands(words: list[str], field: str, value: object) -> None:
    assert getattr(understand(parse(words, FLAGS)), field) == value
