"""Two ways of saying the same have the same value, whatever the operands are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.classads.evaluation.running import evaluate_raw
from tests.conformance.classads.expressions import Generator

PAIRS = (
    ("({a}) && ({b})", "!(!({a}) || !({b}))"),
    ("({a}) || ({b})", "!(!({a}) && !({b}))"),
    ("({a}) < ({b})", "({b}) > ({a})"),
    ("({a}) <= ({b})", "({b}) >= ({a})"),
    ("({a}) == ({b})", "({b}) == ({a})"),
    ("({a}) =?= ({b})", "({b}) is ({a})"),
    ("({a}) =!= ({b})", "!(({a}) =?= ({b}))"),
    ("({a}) ? ({b}) : ({c})", "ifThenElse(({a}), ({b}), ({c}))"),
    ("({a}) ?: ({b})", "isUndefined({a}) ? ({b}) : ({a})"),
    ("({a}) + ({b})", "({b}) + ({a})"),
    ("(({a}))", "{{({a}), 1}}[0]"),
    ("(({a}))", "Z9"),
)


@given(st.integers(0, 2**40), st.sampled_from(PAIRS))
def test_two_ways_of_saying_it(seed: int, pair: tuple[str, str]) -> None:
    generator = Generator(seed)
    texts = {"a": generator.expression(3), "b": generator.expression(2), "c": generator.expression(2)}
    my_text, target_text = generator.ad(), generator.ad(target=True) if seed % 2 else None
    if "random" in f"{texts}{my_text}{target_text}".lower():
        return
    try:
        my = ClassAd.from_new(my_text)
        target = None if target_text is None else ClassAd.from_new(target_text)
        my.insert_text("Z9", texts["a"])
        left, right = (parse_expression(text.format(**texts)) for text in pair)
    except ClassAdSyntaxError:
        return
    assert value(left, my, target) == value(right, my, target)


def value(node: Any, my: ClassAd, target: ClassAd | None) -> str:
    return unparse(evaluate_raw(node, my, target, 1.0))
