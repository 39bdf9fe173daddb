"""Two engines with one face: this package and HTCondor's own, each giving the unparsed result of an expression."""

from __future__ import annotations

import htcondor2  # isort: skip  # noqa: F401  # first: it puts the library into the mode that the tools use
import classad2  # isort: skip

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.classads.evaluation.running import evaluate_raw
from condor_actors.classads.language.parser import parse_records

SYNTAX = "(syntax error)"


def ours(expr: str, my: str, target: str | None) -> str:
    """Evaluate with this package.

    Args:
        expr: the expression.
        my: the ad, in the new form.
        target: the other ad, or None.

    Returns:
        the unparsed value, or `SYNTAX`.
    """
    try:
        node = parse_expression(expr)
        own = ClassAd.from_new(my)
        other = ClassAd.from_new(target) if target is not None else None
    except ClassAdSyntaxError:
        return SYNTAX
    return unparse(evaluate_raw(node, own, other, 1.0))


def theirs(expr: str, my: str, target: str | None) -> str:
    """Evaluate with HTCondor's engine.

    Args:
        expr: the expression.
        my: the ad, in the new form.
        target: the other ad, or None.

    Returns:
        the unparsed value, or `SYNTAX`.
    """
    try:
        node = classad2.ExprTree(expr)
        own = classad2.ClassAd(my)
        other = classad2.ClassAd(target) if target is not None else None
    except classad2.ClassAdException:
        return SYNTAX
    try:
        value = node.simplify(own, other) if other is not None else node.simplify(own)
    except classad2.ClassAdException:
        return "error"
    return written(value)


def written(value: object) -> str:
    """The new form of one of HTCondor's Python values.

    Args:
        value: the value.

    Returns:
        its text.
    """
    box = classad2.ClassAd()
    box["v"] = value
    return repr(box)[len("[ v = ") : -len(" ]")]


def our_text(expr: str) -> str:
    """Read and write with this package, inside a record as the other engine does.

    Args:
        expr: the expression.

    Returns:
        its unparsed form, or `SYNTAX`.
    """
    try:
        return unparse(next(parse_records(f"[ v = {expr} ]")).pairs[-1][1])
    except ClassAdSyntaxError:
        return SYNTAX


def their_text(expr: str) -> str:
    """Read and write with HTCondor's engine.

    Args:
        expr: the expression.

    Returns:
        its unparsed form, or `SYNTAX`.
    """
    try:
        return repr(classad2.ClassAd(f"[ v = {expr} ]"))[len("[ v = ") : -len(" ]")]
    except classad2.ClassAdException:
        return SYNTAX
