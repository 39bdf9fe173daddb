"""The C core beside its oracle, the implementation in Python: the same trees, the same values, the same matches."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import condor_actors.classads
from condor_actors.classads.evaluation import running
from condor_actors.classads.language.parser import fresh
from condor_actors.classads.native import core
from tests.conformance.classads.expressions import Generator
from tests.harness.pure_classads import pure, shape

SEEDS = st.integers(0, 2**40)
PIECES = st.sampled_from(
    [*" \t\n()[]{}.,;:?!~'\"\\", "a", "MY.", "TARGET.b", "is", "ISNT", "true", "undefined", "error", "0", "07", "1"]
    + ["2.5", "9223372036854775808", "123456789012345678", "1e3", ".5", "1.", '"x"', '"\\"y"', '"\\101"', '"é"', "é"]
    + ["absTime(", 'relTime("1")', "strcat(", "member(", "-", "-1", "=", "==", "=?=", "=!=", "!=", "?:", "&&", "||"]
    + ["<<", ">>", ">>>", "<=", "&", "|", "^", "*", "/", "%", "//", "/*", "[a=1;b=a]", "{1,a}", "'q'", "\0"]
)


@pytest.mark.skipif(os.environ.get("CONDOR_CLASSADS") == "python", reason="without it on purpose")
def test_the_core_is_built() -> None:
    assert core is not None


def read(package: Any, text: str) -> Any:
    """The shape of a text's tree, None where it is refused."""
    try:
        return shape(package.language.parser.fresh(text))
    except package.ClassAdSyntaxError:
        return None


def record(package: Any, text: str) -> Any:
    """An ad of a generated text, empty for the few that are no ad."""
    try:
        return package.ClassAd.from_new(text)
    except package.ClassAdSyntaxError:
        return package.ClassAd()


@given(SEEDS)
def test_generated_texts_give_the_same_trees(seed: int) -> None:
    generator = Generator(seed)
    for text in (generator.expression(6), generator.ad(), generator.damaged()):
        assert read(condor_actors.classads, text) == read(pure, text)


@given(st.lists(PIECES, max_size=24).map("".join))
def test_any_text_gives_the_same_tree_or_is_refused_by_both(text: str) -> None:
    assert read(condor_actors.classads, text) == read(pure, text)


@given(SEEDS)
def test_generated_expressions_give_the_same_values(seed: int) -> None:
    generator = Generator(seed)
    text, my, target = generator.expression(5), generator.ad(), generator.ad(target=True) if seed % 3 else None
    if "random" in (text + my + str(target)).lower():
        return
    values = []
    for package, run in ((condor_actors.classads, running), (pure, pure.evaluation.running)):
        try:
            node = package.language.parser.fresh(text)
        except package.ClassAdSyntaxError:
            return
        own, other = record(package, my), None if target is None else record(package, target)
        raw = package.unparse(run.evaluate_raw(node, own, other, 1.0))
        shown = package.unparse(package.as_expr(node.evaluate(own, other, 1.0)))
        attributes = [package.unparse(package.as_expr(own.evaluate(name, other, now_s=1.0))) for name in own]
        values.append((raw, shown, attributes, attributes_matched(package, own, other)))
    assert values[0] == values[1]


def attributes_matched(package: Any, own: Any, other: Any) -> Any:
    """What matching says of two ads, each attribute of the first taken for its demand and its rank."""
    found = []
    for name in own:
        node = own.expression(name)
        for demand in ("Requirements", "Rank"):
            own[demand] = node
        target = package.ClassAd() if other is None else other
        found.append((package.requirements_hold(own, target, 1.0), repr(package.rank(own, target, 1.0))))
        found.append((package.match_ads(own, target, 1.0), package.match_ads(target, own, 1.0)))
        del own["Requirements"], own["Rank"]
    return found


def test_a_hundred_thousand_operators_in_a_row() -> None:
    for operator in ("+", "||"):
        node = fresh(f" {operator} ".join(["1"] * 100_000))
        assert node.evaluate() == (100_000 if operator == "+" else True)
        assert node.height == 2
        del node


def test_what_the_core_refuses() -> None:
    node = fresh("a + 1")
    ad = condor_actors.classads.ClassAd()
    calls: list[tuple[Any, tuple[Any, ...]]] = [
        (node.evaluate, (1,)),
        (node.evaluate, (ad, ad, 1.0, 2)),
        (node.run, (ad, ad)),
        (core.enter, (node, ad)),
        (core.element, (node, 1, 2)),
        (core.run_attribute, (1, ad, None, None)),
        (core.match_ads, (ad,)),
        (core.match_ads, (ad, 1)),
        (core.rank, (1, ad)),
        (core.State, (1, None, None)),
        (core.Expr, ()),
        (core.Unary, ("-", 1)),
        (core.Binary, ("+", node, 2)),
        (core.Conditional, (node, 1, node)),
        (core.Subscript, (node, 1)),
        (core.Call, ("f", (1,))),
        (core.ListExpr, ((1,),)),
        (core.RecordExpr, (((1, node),),)),
        (core.Reference, ("a", 1)),
        (core.parse, (b"a",)),
    ]
    for function, arguments in calls:
        with pytest.raises(TypeError):
            function(*arguments)
    with pytest.raises(ValueError, match="no operator"):
        core.Binary("<>", node, node)
    with pytest.raises(TypeError):
        node.evaluate(other=ad)
    with pytest.raises(AttributeError):
        node.left = node
