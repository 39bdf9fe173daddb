"""What looks wrong in an expression or an ad although it parses."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import attrs

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.evaluation.flatten import flatten
from condor_actors.classads.language.expressions import Binary, Call, Expr, Literal, Reference, Unary, as_expr
from condor_actors.classads.language.unparse import unparse
from condor_actors.classads.values import ERROR, UNDEFINED

_ORDER = ("<", "<=", ">", ">=", "==", "!=")


@attrs.frozen(kw_only=True)
class Remark:
    """One thing to look at.

    Attributes:
        place: The attribute, empty for a bare expression.
        text: The part of the expression.
        message: What is odd about it and what to do.
    """

    place: str
    text: str
    message: str


def lint_ad(ad: ClassAd) -> Iterator[Remark]:
    """Look at every attribute of an ad.

    Args:
        ad: The ad.

    Returns:
        An iterator of remarks.
    """
    for name, value in ad.stored_items():
        yield from lint(as_expr(value), name)


def lint(node: Expr, place: str = "") -> Iterator[Remark]:
    """Look at an expression.

    Args:
        node: The expression.
        place: The attribute it belongs to.

    Returns:
        An iterator of remarks.
    """
    waiting = [node]
    while waiting:
        current = waiting.pop()
        waiting.extend(reversed(current.children()))
        message = _about(current)
        if message:
            yield Remark(place=place, text=unparse(current, style="wire"), message=message)
    if not isinstance(node, Literal):
        known = flatten(node, None)
        if known is ERROR:
            yield Remark(place=place, text=unparse(node, style="wire"), message="it is always an error")


def _about(node: Expr) -> str:
    if isinstance(node, Call):
        return _about_call(node)
    if isinstance(node, Binary):
        return _about_binary(node)
    if isinstance(node, Unary) and node.operator == "!" and isinstance(node.operand, Literal):
        return "a constant: write its value"
    return ""


def _about_call(node: Call) -> str:
    from condor_actors.classads.builtins.calls import TABLE, function_names

    builtin = TABLE.get(node.name.lower())
    if builtin is None:
        near = difflib.get_close_matches(node.name.lower(), [name.lower() for name in function_names()], 1)
        hint = f"; did you mean {TABLE[near[0]].name}?" if near else ""
        return f"there is no function {node.name}: it gives error{hint}"
    count = len(node.arguments)
    if not builtin.least <= count <= builtin.most:
        takes = str(builtin.least) if builtin.least == builtin.most else f"{builtin.least} to {builtin.most}"
        return f"{builtin.name} takes {takes} arguments, not {count}: it gives error"
    return ""


def _about_binary(node: Binary) -> str:
    left, right = _plain(node.left), _plain(node.right)
    literals = [side.value for side in (left, right) if isinstance(side, Literal)]
    if node.operator in _ORDER and UNDEFINED in literals:
        better = "=?=" if node.operator == "==" else "=!="
        return f"comparing with undefined gives undefined; use {better} undefined"
    if node.operator in _ORDER and ERROR in literals:
        return "comparing with error gives error; use isError()"
    if node.operator in ("&", "|") and (_is_test(left) or _is_test(right)):
        return f"'{node.operator}' joins bits and gives error for booleans; use '{node.operator * 2}'"
    if node.operator in ("==", "!=") and any(isinstance(value, bool) for value in literals):
        return "comparing with a boolean: the other side alone, or its negation, says the same"
    if isinstance(left, Reference) and isinstance(right, Reference) and str(left).lower() == str(right).lower():
        return "both sides are the same attribute; MY. or TARGET. is probably missing"
    if any(isinstance(value, str) for value in literals) and node.operator in ("+", "-", "*", "/"):
        return "arithmetic on a string gives error; strcat() joins strings"
    return ""


def _plain(node: Expr) -> Expr:
    while isinstance(node, Unary) and node.operator == "(":
        node = node.operand
    return node


def _is_test(node: Expr) -> bool:
    if isinstance(node, Binary):
        return node.operator in (*_ORDER, "&&", "||", "=?=", "=!=")
    return isinstance(node, Literal) and isinstance(node.value, bool)
