"""One input of the fuzzer: any bytes, read in every way, evaluated, written and read again.

Nothing but `ClassAdSyntaxError` may come out of reading, nothing at all out of the rest; and the C core must read and
evaluate as its oracle in Python does.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, parse_expression, unparse
from condor_actors.classads.evaluation.running import evaluate_raw
from condor_actors.classads.forms.any_form import FORMS, write_ads
from condor_actors.classads.language.lint import lint
from condor_actors.classads.language.parser import fresh
from condor_actors.classads.matching.explain import explain
from tests.harness.pure_classads import pure, shape

MY_TEXT = '[a=1;b="x";c={a,[d=a]};e=[f=b];g=g+1;Requirements=Memory > a]'
TARGET_TEXT = '[Memory=5;a=2.5;h=TARGET.a;l="a,b"]'
MY, TARGET = ClassAd.from_new(MY_TEXT), ClassAd.from_new(TARGET_TEXT)
PURE_MY, PURE_TARGET = pure.ClassAd.from_new(MY_TEXT), pure.ClassAd.from_new(TARGET_TEXT)


def one_input(data: bytes) -> None:
    """Try one input.

    Args:
        data: any bytes.
    """
    text = data.decode("utf-8", "surrogateescape")
    try:
        oracle = pure.language.parser.fresh(text)
    except pure.ClassAdSyntaxError:
        oracle = None
    try:
        node = fresh(text)
    except ClassAdSyntaxError as why:
        assert oracle is None
        str(why)
    else:
        assert shape(node) == shape(oracle)
        if "random" not in text.lower():
            value = pure.unparse(pure.evaluation.running.evaluate_raw(oracle, PURE_MY, PURE_TARGET, 1.0))
            assert unparse(evaluate_raw(node, MY, TARGET, 1.0)) == value
        expression(node)
    for read in (ClassAd.from_bytes, ClassAd.from_text, ClassAd.from_json, ClassAd.from_xml):
        try:
            ad = read(data)
        except ClassAdSyntaxError as why:
            str(why)
        else:
            record(ad)


def expression(node: Expr) -> None:
    """Do everything that can be done with an expression.

    Args:
        node: the expression.
    """
    written = unparse(node, style="wire")
    assert unparse(parse_expression(written), style="wire") == written
    unparse(evaluate_raw(node, MY, TARGET, 1.0))
    unparse(node.evaluate())
    node.flatten(MY, 1.0)
    node.references(MY)
    list(lint(node))


def record(ad: ClassAd) -> None:
    """Do everything that can be done with an ad.

    Args:
        ad: the ad.
    """
    assert ClassAd.from_bytes(ad.to_bytes()) == ad
    for form in FORMS:
        list(write_ads([ad], form))
    for name in ad:
        ad.evaluate(name, TARGET, now_s=1.0)
    explain(ad, TARGET)
