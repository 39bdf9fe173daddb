"""The nodes in use: those of the C core, or those in Python where the core is not built."""

from __future__ import annotations

from condor_actors.classads.language import python_nodes
from condor_actors.classads.native import core
from condor_actors.classads.values import UNDEFINED, Value

TYPE_CHECKING = False  # typing is not loaded

if TYPE_CHECKING or core is None:
    from condor_actors.classads.language.python_nodes import (
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
        setattr(Expr, _method, vars(python_nodes.Expr)[_method])
    for _kind in (Expr, Binary, Call, Conditional, ListExpr, RecordExpr, Reference, Subscript, Unary):
        _kind.children = vars(vars(python_nodes)[_kind.__name__])["children"]


def stored(node: Expr) -> Value:
    """What an ad keeps for an expression: the bare value of a literal, the expression itself otherwise.

    Args:
        node: Any expression.

    Returns:
        Value or expression.
    """
    return node.value if type(node) is Literal else node


def as_expr(value: Value) -> Expr:
    """Make a node of anything that an ad accepts.

    Args:
        value: Expression, plain value, list or ClassAd; None counts as undefined.

    Returns:
        The node.

    Raises:
        TypeError: For anything else.
    """
    if isinstance(value, Expr):
        return value
    if value is None:
        return Literal(UNDEFINED)
    if isinstance(value, (list, tuple)):
        return ListExpr(tuple(as_expr(item) for item in value))
    from condor_actors.classads.ad import ClassAd
    from condor_actors.classads.stored_values import checked

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
