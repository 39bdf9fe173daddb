"""What must hold of every expression, value and ad, whatever they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.classads import (
    ERROR,
    UNDEFINED,
    AbsoluteTime,
    ClassAd,
    ClassAdSyntaxError,
    Expr,
    parse_expression,
    unparse,
)
from condor_actors.classads.evaluation.operators import BINARY
from condor_actors.classads.forms.any_form import FORMS, iter_ads, write_ads
from tests.conformance.classads.deliberate import _asks_itself
from tests.conformance.classads.expressions import Generator

if TYPE_CHECKING:
    from condor_actors.classads.forms.any_form import Form

NAMES = st.sampled_from(["a", "B", "Memory", "x_1", "is it", "parent", "true", "é"])
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(-1e308, 1e308),
    st.booleans(),
    TEXTS,
    st.just(UNDEFINED),
    st.just(ERROR),
    st.builds(AbsoluteTime, st.integers(-(2**34), 2**37), st.integers(-720, 720).map(lambda minutes: minutes * 60)),
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
ADS = st.dictionaries(NAMES, VALUES, max_size=6).map(ClassAd)
GENERATED = st.integers(0, 2**40).map(Generator)


@given(GENERATED)
def test_an_expression_reads_back_from_each_lossless_style(generator: Generator) -> None:
    node = parse_or_none(generator.expression())
    if node is None:
        return
    again = parse_expression(unparse(node, style="wire"))
    assert unparse(again) == unparse(node)
    settled = parse_expression(unparse(node))
    assert unparse(parse_expression(unparse(settled))) == unparse(settled)
    assert parse_expression(unparse(node, style="pretty")) == settled


def parse_or_none(text: str) -> Any:
    """The tree of a generated text, None for the few that are no expression."""
    try:
        return parse_expression(text)
    except ClassAdSyntaxError:
        return None


@given(ADS)
def test_the_wire_loses_nothing(ad: ClassAd) -> None:
    again = ClassAd.from_bytes(ad.to_bytes())
    assert again == ad
    assert list(again) == list(ad)


@given(ADS, st.sampled_from(FORMS))
def test_forms_keep_an_ad(ad: ClassAd, form: Form) -> None:
    if form == "long" and not all(tame(value) for value in ad.values()):
        return
    if form == "new" and not ad:
        return
    (again,) = list(iter_ads("".join(write_ads([ad], form)), form)) or [ClassAd()]
    assert [name.lower() for name in sorted(again)] == [name.lower() for name in sorted(ad)]
    for name in ad:
        assert close(again[name], ad[name])


def tame(value: Any) -> bool:
    """Whether the long form can carry a value: no string in it has a backslash, newline or quote of its own."""
    if isinstance(value, str):
        return not any(char in value for char in '\\\n\r"\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029')
    if isinstance(value, list):
        return all(tame(item) for item in value)
    if isinstance(value, ClassAd):
        return all(tame(item) for item in value.values()) and all(tame(name) for name in value)
    return True


def close(left: Any, right: Any) -> bool:
    """Equal, reals to the digits that a form keeps."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-14, abs_tol=0)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, ClassAd) and isinstance(right, ClassAd):
        return len(left) == len(right) and all(close(left[name], right[name]) for name in left)
    if isinstance(left, AbsoluteTime):
        return left == right
    return bool(type(left) is type(right) and left == right)


def record(text: str) -> ClassAd:
    """An ad of a generated text, empty for the few that are no ad."""
    try:
        return ClassAd.from_new(text)
    except ClassAdSyntaxError:
        return ClassAd()


@given(GENERATED, st.integers(0, 2**20))
def test_a_chain_is_like_one_ad(generator: Generator, cut: int) -> None:
    node = parse_or_none(generator.expression())
    if node is None:
        return
    my, target = record(generator.ad()), record(generator.ad(target=True))
    expected = unparse(node.evaluate(my, target, 1.0))
    my, target = chained(my, cut), chained(target, cut >> 10)
    assert unparse(node.evaluate(my, target, 1.0)) == expected


def chained(ad: ClassAd, cut: int) -> ClassAd:
    """The same ad as a chain of two, divided by the bits of a number."""
    parent = ClassAd()
    child = ClassAd(parent=parent)
    for number, (name, value) in enumerate(ad.stored_items()):
        (child if cut >> number & 1 else parent).store(name, value)
    return child


@given(GENERATED)
def test_flattening_keeps_the_value(generator: Generator) -> None:
    node = parse_or_none(generator.expression(3))
    my = record(generator.ad())
    if node is None or _asks_itself({"my": unparse(my), "target": None}):
        return  # an error of the whole, or of the part that is put in
    rest = node.flatten(my, 1.0)
    if isinstance(rest, Expr):
        rest = rest.evaluate(my, None, 1.0)
    value = node.evaluate(my, None, 1.0)
    if not (isinstance(value, str) and "{" in value):
        assert unparse(rest) == unparse(value)


@given(SCALARS, SCALARS)
def test_three_valued_logic(left: Any, right: Any) -> None:
    my = ClassAd({"l": left, "r": right})

    def value(text: str) -> Any:
        return parse_expression(text).evaluate(my)

    assert value("l && r") in (True, False, UNDEFINED, ERROR)
    if ERROR not in (value("l || false"), value("r || false")):
        assert value("l && r") is value("r && l")
        assert value("!(l && r)") is value("!l || !r")
        assert value("!!l") is value("l || false")
    assert value("l isnt r") is (not value("l is r"))


@given(SCALARS, SCALARS, st.sampled_from(sorted(BINARY)))
def test_operators_are_total(left: Any, right: Any, operator: str) -> None:
    result = BINARY[operator](left, right)
    if isinstance(result, int):
        assert -(2**63) <= result < 2**63


@settings(max_examples=300)
@given(st.text("()[]{}.,;\"'+-*/=<>!&|?:ab1 \\\n0eE~%^", max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    node = parse_or_none(text)
    if node is not None:
        unparse(node.evaluate())
        assert unparse(parse_expression(unparse(node, style="wire")), style="wire") == unparse(node, style="wire")


@given(st.binary(max_size=60))
def test_any_bytes_are_an_ad_or_refused(data: bytes) -> None:
    for read in (ClassAd.from_bytes, ClassAd.from_text, ClassAd.from_json, ClassAd.from_xml):
        try:
            ad = read(data)
        except ClassAdSyntaxError:
            continue
        ad.to_bytes()
