"""What one evaluation may spend: every way to make it long or large ends soon, as an error, in both engines."""

from __future__ import annotations

import functools
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import condor_actors.classads
from condor_actors.classads import ERROR, UNDEFINED, ClassAd, match_ads, parse_expression
from condor_actors.classads.evaluation import budget
from condor_actors.cores.collector.ad_table import AdTable
from condor_actors.messages.advertise import AdKind
from tests.harness.pure_classads import pure

LONG = "x" * 900_000
ATTACKS = {
    "join and split of repeated texts": (
        "v",
        f's = "{"a," * 200_000}"; v = size(join(",", split(strcat(s, s, s))))',
    ),
    "texts that double": (
        "a0",
        "; ".join(f"a{n} = strcat(a{n + 1}, a{n + 1})" for n in range(40)) + '; a40 = "xxxxxxxx"',
    ),
    "names that double": ("a0", "; ".join(f"a{n} = a{n + 1} + a{n + 1}" for n in range(60)) + "; a60 = time()"),
    "lists that double": ("a0", "; ".join(f"a{n} = {{ a{n + 1},a{n + 1} }}" for n in range(60)) + "; a60 = { 1 }"),
    "a long text, joined often": ("v", f's = "{LONG}"; v = join(",", {{ {",".join(["s"] * 3000)} }})'),
    "a long text, compared often": ("v", f's = "{LONG}"; v = {" && ".join(["s == s"] * 3000)}'),
    "a long text, sought often": ("v", f's = "{LONG}"; v = member("y", {{ {",".join(["s"] * 3000)} }})'),
    "a long text, changed often": ("v", f's = "{LONG}"; v = {" || ".join(["toLower(s) is toUpper(s)"] * 3000)}'),
    "a large expression, named often": (
        "v",
        f"s = {' + '.join(['a'] * 20_000)}; a = 1; v = {' + '.join(['s'] * 5000)}",
    ),
    "a list, selected from by lists": (
        "a0",
        "; ".join(f"a{n} = {{ a{n + 1},a{n + 1} }}.b" for n in range(40)),
    ),
    "contexts in contexts": (
        "v",
        f"L = {{ {','.join(f'[ i = {n} ]' for n in range(10))} }}; v = {'countMatches(' * 8} true {', L)' * 8}",
    ),
    "patterns that try much": ("v", f's = "{"ab" * 100_000}"; v = ' + " || ".join(['regexp("(a|b)*c", s)'] * 500)),
    "patterns that only one engine can do": (
        "v",
        f's = "{"a" * 140}"; v = ' + " || ".join([f'regexp("a*a*{n}(?=c)", s)' for n in range(3000)]),
    ),
    "replacing everywhere, looking far": ("v", f's = "{"a" * 400_000}"; v = size(replaceAll("a.*z|a", s, "b"))'),
    "new patterns": ("v", "v = " + " || ".join(f'regexp("{"(a|b)" * 200}{n}", "c")' for n in range(500))),
    "parsing": ("v", f's = "{"1+" * 200_000}1"; v = ' + " + ".join(["eval(s)"] * 200)),
    "a list of everything": ("v", f's = "{"a " * 400_000}"; v = size(split(s)) + stringListSize(s)'),
    "eval of eval": ("v2", "; ".join(f'v{n} = eval("v{n + 1} + v{n + 1}")' for n in range(2, 40))),
}


@pytest.fixture(params=["core", "python"])
def engine(request: pytest.FixtureRequest) -> Any:
    return condor_actors.classads if request.param == "core" else pure


@pytest.mark.parametrize("name", ATTACKS)
def test_no_evaluation_takes_long(engine: Any, name: str) -> None:
    attribute, text = ATTACKS[name]
    ad = engine.ClassAd.from_new(f"[ {text} ]")
    start = time.process_time()
    ad.evaluate(attribute)
    assert time.process_time() - start < 5  # several times what it takes


LARGE = [name for name in ATTACKS if name.startswith(("join", "texts that", "lists that", "a long", "a list of"))]


@pytest.mark.parametrize("name", LARGE)
def test_no_evaluation_takes_much(name: str) -> None:
    attribute, text = ATTACKS[name]
    ad = ClassAd.from_new(f"[ {text} ]")
    budget.set_limits(steps=100_000)
    tracemalloc.start()
    try:
        ad.evaluate(attribute)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        budget.set_limits()
    assert peak < 100 * 1024 * 1024


@pytest.fixture
def small() -> Iterator[None]:
    budget.set_limits(steps=1000, made_bytes=2000)
    pure.evaluation.budget.set_limits(steps=1000, made_bytes=2000)
    yield
    budget.set_limits()
    pure.evaluation.budget.set_limits()


@pytest.mark.usefixtures("small")
def test_the_whole_evaluation_is_an_error(engine: Any) -> None:
    ad = engine.ClassAd.from_new(f"[ a = {' + '.join(['b'] * 200)}; b = 1 + 1 + 1; c = isError(a); d = a ?: 1; e = 5 ]")
    for name in "acd":
        assert ad.evaluate(name) is engine.ERROR
        assert engine.parse_expression(name).evaluate(ad) is engine.ERROR
    assert ad.evaluate("e") == 5
    assert ad.evaluate("b") == 3


@pytest.mark.usefixtures("small")
def test_bytes_count_too(engine: Any) -> None:
    text = '"' + "x" * 900 + '"'
    assert engine.parse_expression(f"size(strcat({text}, 1))").evaluate() == 901
    twice = " + ".join([f"size(strcat({text}, 1))"] * 3)
    assert engine.parse_expression(twice).evaluate() is engine.ERROR


@pytest.mark.usefixtures("small")
def test_both_engines_spend_the_same() -> None:
    for count in range(80, 120):
        text = " + ".join(["b"] * count) + ' + size(strcat("a", "b"))'
        record = f"[ a = {text}; b = 1 + 1 + 1 ]"
        found = [package.ClassAd.from_new(record).evaluate("a") for package in (condor_actors.classads, pure)]
        assert repr(found[0]) == repr(found[1]), count


@pytest.mark.usefixtures("small")
def test_a_meter_says_what_was_too_much() -> None:
    ad = ClassAd.from_new(f"[ a = 1; b = {' + '.join(['a'] * 300)} ]")
    costly = parse_expression("b + b + b")
    meter = budget.Meter("the constraint", costly, 10_000)
    assert parse_expression("a + 1").evaluate(ad) == 2
    assert not meter.is_spent()
    for _ in range(20):
        assert costly.evaluate(ad) is ERROR  # the ad's fault, not the question's
    assert meter.is_spent()
    with pytest.raises(budget.TooCostly, match="the constraint takes more than 10000 steps in all"):
        meter.refuse_when_spent()
    with pytest.raises(budget.TooCostly, match="the constraint takes more than 1000 steps"):
        budget.Meter("the constraint", parse_expression(" + ".join(["1 + x"] * 900)))


def test_limits_are_at_least_one() -> None:
    with pytest.raises(ValueError, match="not 0"):
        budget.set_limits(steps=0)


def test_a_match_with_a_costly_requirement_is_none() -> None:
    job = ClassAd.from_new(f"[ Requirements = {' && '.join(['TARGET.m'] * 3000)} ]")
    machine = ClassAd.from_new(f"[ m = {' + '.join(['1'] * 2000)} ]")
    assert not match_ads(job, machine)
    assert machine.evaluate("m") == 2000
    assert machine.evaluate("nothing") is UNDEFINED


def test_a_costly_query_is_refused_and_a_long_one_waits_for_its_next_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    table = AdTable()
    for number in range(50):
        data = ClassAd({"Name": f"slot{number}", "s": "a," * 20_000}).to_bytes()
        table.update(AdKind.SLOT, data, b"", now_s=1.0, lifetime_s=100.0)
    bomb = parse_expression('size(join("x", split(strcat(' + ",".join(["s"] * 60) + ")))) > 0")
    assert table.page(AdKind.SLOT, bomb, (), 0, "").cursor  # expensive on these ads: a page of few
    text = '"' + "a," * 20_000 + '"'
    alone = parse_expression('size(join("x", split(strcat(' + ",".join([text] * 20) + ")))) > 0")
    with pytest.raises(budget.TooCostly, match="CLASSAD_EVALUATION_MAX_STEPS"):
        table.page(AdKind.SLOT, alone, (), 0, "")
    monkeypatch.setattr(budget.Meter, "__init__", functools.partialmethod(budget.Meter.__init__, steps=5000))
    page = table.page(AdKind.SLOT, parse_expression("size(toUpper(s)) > 0"), ("Name",), 0, "")
    assert 0 < len(page.ads) < 50
    assert page.cursor
