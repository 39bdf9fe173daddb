"""The nodes in use: those of the C core, or those in Python where the core is not built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.classads import nodes
from condor_actors.classads.native import core
from condor_actors.classads.values import UNDEFINED, Value

if TYPE_CHECKING or core is None:
    from condor_actors.classads.nodes import (
        Binary,
        Call,
        Conditional,
        Expr,
        ListExpr,
        Literal,
        RecordExpr,
        Reference,
        SpanLiteral,
        Subscript,
        Unary,
    )
else:
    from condor_actors.classads._core import (
        Binary,
        Call,
        Conditional,
        Expr,
        ListExpr,
        Literal,
        RecordExpr,
        Reference,
        SpanLiteral,
        Subscript,
        Unary,
    )

    for _method in ("references", "flatten", "remembered", "__str__", "__repr__", "__eq__", "__hash__", "__reduce__"):
        setattr(Expr, _method, vars(nodes.Expr)[_method])
    for _kind in (Expr, Binary, Call, Conditional, ListExpr, RecordExpr, Reference, Subscript, Unary):
        _kind.children = vars(vars(nodes)[_kind.__name__])["children"]


def stored(node: Expr) -> Value:
    """What an ad keeps for an expression: the bare value of a literal, the expression itself otherwise.

    :param node: any expression.
    :returns: value or expression.
    """
    return node.value if type(node) is Literal else node


def as_expr(value: Value) -> Expr:
    """Make a node of anything that an ad accepts.

    :param value: expression, plain value, list or ClassAd; None counts as undefined.
    :returns: the node.
    :raises TypeError: for anything else.
    """
    if isinstance(value, Expr):
        return value
    if value is None:
        return Literal(UNDEFINED)
    if isinstance(value, (list, tuple)):
        return ListExpr(tuple(as_expr(item) for item in value))
    from condor_actors.classads.ad import ClassAd, checked

    if isinstance(value, ClassAd):
        return RecordExpr(tuple((name, as_expr(item)) for name, item in value.stored_items()))
    return Literal(checked(value))


__all__ = [
    "Binary",
    "Call",
    "Conditional",
    "Expr",
    "ListExpr",
    "Literal",
    "RecordExpr",
    "Reference",
    "SpanLiteral",
    "Subscript",
    "Unary",
    "as_expr",
    "stored",
]
