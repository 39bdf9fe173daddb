"""One input of the fuzzer: any bytes, read in every way, evaluated, written and read again.

Nothing but `ClassAdSyntaxError` may come out of reading, nothing at all out of the rest.
"""

from __future__ import annotations

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, parse_expression, unparse
from condor_actors.classads.codegen import generate
from condor_actors.classads.evaluation import State
from condor_actors.classads.explain import explain
from condor_actors.classads.forms import FORMS, write_ad
from condor_actors.classads.lint import lint
from condor_actors.classads.running import evaluate_raw

MY = ClassAd.from_new('[a=1;b="x";c={a,[d=a]};e=[f=b];g=g+1;Requirements=Memory > a]')
TARGET = ClassAd.from_new('[Memory=5;a=2.5;h=TARGET.a;l="a,b"]')


def one_input(data: bytes) -> None:
    """Try one input.

    :param data: any bytes.
    """
    text = data.decode("utf-8", "surrogateescape")
    try:
        node = parse_expression(text)
    except ClassAdSyntaxError as why:
        str(why)
    else:
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

    :param node: the expression.
    """
    written = unparse(node, style="wire")
    assert unparse(parse_expression(written), style="wire") == written
    value = unparse(evaluate_raw(node, MY, TARGET, 1.0))
    assert unparse(generate(node)(MY, State(MY, TARGET, 1.0))) == value
    unparse(node.evaluate())
    node.flatten(MY, 1.0)
    node.references(MY)
    list(lint(node))


def record(ad: ClassAd) -> None:
    """Do everything that can be done with an ad.

    :param ad: the ad.
    """
    assert ClassAd.from_bytes(ad.to_bytes()) == ad
    for form in FORMS:
        write_ad(ad, form)
    for name in ad:
        ad.evaluate(name, TARGET, now_s=1.0)
    explain(ad, TARGET)
