"""Flags by prefix, with one dash or two."""

from __future__ import annotations

import importlib

import pytest

from condor_actors.tools.lib.flags import LIST, MANY, Flag, LongNumber, MissingValue, UnknownFlag, match, parse
from condor_actors.tools.lib.queue_question import FLAGS, understand

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


def test_a_lone_dash_ends_a_list() -> None:
    first, second = parse(["-af", "A", "B", "-", "5.0"], (Flag("af", 2, LIST),))
    assert (first.values, second.values) == (("A", "B"), ("5.0",))
    (all_of_it,) = parse(["-queue", "x", "from", "-"], (Flag("queue", 1, MANY),))
    assert all_of_it.values == ("x", "from", "-")


@pytest.mark.parametrize(
    ("tool", "word", "name"),
    [
        ("lib.queue_question", "-u", "userlog"), ("lib.queue_question", "-j", "jobads"),
        ("lib.queue_question", "-a", "addr"),
        ("lib.queue_question", "-analyse", "better-analyze"), ("lib.queue_question", "-v", "version"),
        ("lib.queue_question", "-h", "help"), ("lib.queue_question", "-s", "submitter"),
        ("jobs.submit", "-s", "spool"), ("jobs.submit", "-b", "batch-name"), ("jobs.submit", "-address", "address"),
        ("jobs.history", "-for", "format"), ("jobs.history", "-forw", "forwards"), ("jobs.history", "-jsonl", "jsonl"),
        ("pool.status", "-r", "run"), ("pool.status", "-li", "limit"), ("pool.status", "-stat", "state"),
        ("pool.status", "-at", "attributes"),
        ("admin.config_val", "-d", "dump"), ("admin.config_val", "-us", "used"), ("admin.config_val", "-co", "config"),
        ("admin.drain", "-r", "resume-on-completion"),
    ],
)  # fmt: skip
def test_the_shortest_words_of_htcondor_mean_the_same(tool: str, word: str, name: str) -> None:
    flags = importlib.import_module(f"condor_actors.tools.{tool}").FLAGS
    found = match(word, flags)
    assert found is not None
    assert (found[0].alias or found[0].name) == name


def test_operands_keep_their_place_and_negative_numbers_are_operands() -> None:
    given = parse(["12.3", "-5", "-", "-format", "%d", "-x-"], TABLE)
    assert [item.name for item in given] == ["", "", "", "format"]
    assert given[3].values == ("%d", "-x-")


@pytest.mark.parametrize("word", ["9" * 5000, f"-{'1' * 301}"])
def test_a_number_of_thousands_of_digits_is_no_error_of_python(word: str) -> None:
    with pytest.raises(LongNumber, match="digits is more than anything here can be"):
        parse([word], TABLE)
    assert parse(["9" * 300], TABLE)[0].values == ("9" * 300,)


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
        (["-long:json"], "form", "json"),
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
