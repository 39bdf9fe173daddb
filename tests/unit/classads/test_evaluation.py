"""Scopes, cycles, limits, the clock, flattening and references."""

from __future__ import annotations

import pytest

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.classads.builtins.choice import listen_to_debug
from condor_actors.classads.builtins.user_maps import define_user_map


def value(text: str, my: str = "[]", target: str | None = None) -> object:
    """The value of an expression in ads given as text."""
    other = None if target is None else ClassAd.from_new(target)
    return parse_expression(text).evaluate(ClassAd.from_new(my), other, 1000.0)


def test_names_are_looked_up_in_my_then_target() -> None:
    assert value("Memory", "[a=1]", "[Memory=5]") == 5
    assert value("MY.Memory", "[a=1]", "[Memory=5]") is UNDEFINED
    assert value("TARGET.Memory", "[Memory=1]", "[Memory=5]") == 5
    assert value("TARGET.x", "[k=10;x=7]", "[x=MY.y + TARGET.k;y=1]") == 11
    assert value("TARGET.k", "[k=1]") is UNDEFINED


def test_nested_records_see_what_is_around_them() -> None:
    assert value("[a=1;c=[d=a]].c.d") == 1
    assert value("[a=1;c=[a=2;d=parent.a]].c.d") == 1
    assert value("[n=MY.k;k=5].n", "[k=10]") == 5
    assert value("[n=MY.k].n", "[k=10]") == 10
    assert value("[a=1].b", "[b=3]") == 3
    assert value('[a=1]["b"]', "[b=3]") is UNDEFINED


def test_cycles_end() -> None:
    assert value("a", "[a=a]") is UNDEFINED
    assert value("a", "[a=b+1;b=a]") is UNDEFINED
    assert value("a", "[a=TARGET.b]", "[b=TARGET.a]") is UNDEFINED
    ad = ClassAd()
    ad.insert_text("a", "a + 1")
    assert ad.evaluate("a") is UNDEFINED


def test_chains_and_explosions_end() -> None:
    ad = ClassAd({"a1000": 7})
    for number in range(1000):
        ad.insert_text(f"a{number}", f"a{number + 1}")
    assert ad.evaluate("a700") == 7
    assert ad.evaluate("a0") is ERROR
    ad = ClassAd({"a300": 1})
    for number in range(300):
        ad.insert_text(f"a{number}", f"a{number + 1} + a{number + 1}")
    assert ad.evaluate("a0") is ERROR
    assert ad.evaluate("a290") == 1024
    ad = ClassAd({"a0": "x" * 1000})
    for number in range(40):
        ad.insert_text(f"a{number + 1}", f"strcat(a{number},a{number})")
    assert ad.evaluate("a40") is ERROR


@pytest.mark.parametrize(
    "make",
    [
        lambda n: "(" * n + "1" + ")" * n,
        lambda n: "-" * n + "1",
        lambda n: "{" * n + "}" * n,
        lambda n: "[a=" * n + "1" + "]" * n,
        lambda n: "a?1:" * n + "1",
        lambda n: "a?:" * n + "1",
        lambda n: "f(" * n + ")" * n,
        lambda n: "a" + ".b" * n,
        lambda n: "a" + "[0]" * n,
        lambda n: "1" + "+1" * n,
        lambda n: "a" + "||a&&b" * n,
    ],
)
def test_any_depth_parses_or_is_refused(make: object) -> None:
    assert callable(make)
    for depth in (5, 150, 199, 250, 1000, 20_000):
        text = make(depth)
        try:
            node = parse_expression(text)
        except ClassAdSyntaxError as why:
            refused = why.reason
        else:
            refused = ""
        if refused:
            assert "nested" in refused
            assert depth > 190
            continue
        node.evaluate()
        str(node)
        node.references()
        node.flatten()


def test_patterns_that_could_take_for_ever_do_not() -> None:
    assert value('regexp("(a+)+$", "' + "a" * 40 + 'b")') is False
    assert value('regexp("(x+x+)+y", "' + "x" * 60 + '")') is False
    assert value('regexps("(a*)*b", "' + "a" * 50 + 'b", "<\\\\0>")') == "<" + "a" * 50 + "b>"
    assert value('regexp("(a)\\\\1(a+)+$", "' + "a" * 40 + 'b")') is ERROR
    assert value('regexp(".*,.*,.*,.*;", "' + "," * 5000 + '")') is False


def test_the_clock_is_handed_in() -> None:
    assert value("time()") == 1000
    assert value("CurrentTime + 1") == 1001
    assert value("x", "[a=1]", "[x=time()]") == 1000


def test_lists_are_evaluated_for_callers_and_kept_open_inside() -> None:
    assert value("{a, {a + 1}, [b = a]}[1]", "[a=1]") == [2]
    assert unparse(value("evalInEachContext(a, {[a=1],[a=2]})")) == "{ 1,2 }"


def test_flatten() -> None:
    my = ClassAd.from_new("[a=1;b=a+1;s=Nope > b]")

    def flat(text: str) -> str:
        return unparse(parse_expression(text).flatten(my))

    assert flat("a + b") == "3"
    assert flat("x + a * b") == "x + 2"
    assert flat("x > MY.b && TARGET.y == a") == "x > 2 && TARGET.y == 1"
    assert flat("true && x > 1") == "x > 1"
    assert flat("false && x > 1") == "false"
    assert flat("s || a > 5") == "(Nope > 2)"
    assert flat("a > 0 ? x : y") == "x"
    assert flat("MY.nope") == "undefined"
    assert flat("time() > 0") == "time() > 0"


def test_references() -> None:
    node = parse_expression("A + MY.b + TARGET.c + [d=1;e=d].e + f(x.y)")
    assert node.references() == (frozenset({"a", "b", "x"}), frozenset({"c"}))
    my = ClassAd.from_new("[a=q + 1; b=2]")
    assert node.references(my) == (frozenset({"a", "b"}), frozenset({"c", "q", "x"}))


def test_debug_reports_each_part() -> None:
    heard: list[str] = []
    listen_to_debug(heard.append)
    try:
        assert value("debug(a + 1 > TARGET.b)", "[a=1]", "[b=5]") is False
    finally:
        listen_to_debug(None)
    assert heard == ["a + 1 > TARGET.b --> false", "a + 1 --> 2", "a --> 1", "TARGET.b --> 5"]
    assert value("debug(1)") == 1
    assert len(heard) == 4


def test_user_maps() -> None:
    define_user_map("Groups", {"alice": "physics, chemistry"})
    try:
        assert value('userMap("groups", "alice")') == "physics,chemistry"
        assert value('userMap("groups", "alice", "Chemistry")') == "chemistry"
        assert value('userMap("groups", "alice", "law")') == "physics"
        assert value('userMap("groups", "bob")') is UNDEFINED
        assert value('userMap("groups", "bob", "law", "none")') == "none"
    finally:
        define_user_map("Groups", None)
    assert value('userMap("groups", "alice")') is UNDEFINED


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("1 << 65", 2),
        ("1 << -1", -(2**63)),
        ("5 >> 65", 2),
        ("-64 >> 65", -1),
        ("-8 >> -1", -8),
        ("-5 >>> 1", 2**63 - 3),
        ("-5 >>> 64", 0),
        ("-1 >>> 0", 0),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("-9223372036854775808 / -1", 2**63 - 1),
        ("9223372036854775807 + 1", -(2**63)),
        ("pow(2, 100)", -(2**63)),
    ],
)
def test_integers_are_those_of_the_machine(text: str, result: int) -> None:
    assert value(text) == result


def test_an_empty_ad_is_an_ad() -> None:
    assert value("TARGET", "[a=1]", "[]") == ClassAd()
    assert value("isClassAd(TARGET)", "[]", "[]") is True
    assert value("[x = parent].x", "[]") == ClassAd()
    assert value("MY.x ?: TARGET.x ?: 5", "[]", "[]") == 5
