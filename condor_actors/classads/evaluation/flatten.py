"""Partial evaluation: what one ad alone can tell about an expression is put in, the rest stays to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from condor_actors.classads.evaluation.operators import truth
from condor_actors.classads.evaluation.running import plain, settle
from condor_actors.classads.evaluation.state import PLAIN, State
from condor_actors.classads.language.expressions import (
    Binary,
    Call,
    Conditional,
    Expr,
    ListExpr,
    Literal,
    RecordExpr,
    Reference,
    Subscript,
    Unary,
)
from condor_actors.classads.values import ERROR, UNDEFINED, Value

if TYPE_CHECKING:
    from condor_actors.classads.ad import ClassAd

_MAX_SIZE: Final = 20_000
_CHANGING: Final = frozenset({"time", "random", "debug", "formattime", "abstime", "eval", "unparse", "unresolved"})


class _Flattener:
    """One flattening: the ad, and what is being replaced, so that cycles end."""

    def __init__(self, ad: ClassAd, now_s: float | None) -> None:
        self.ad = ad
        self.now_s = now_s
        self.busy: set[str] = set()
        self.size = 0

    def value(self, node: Expr) -> Value:
        state = State(self.ad, None, self.now_s)
        return plain(settle(node, state), state)

    def flat(self, node: Expr) -> Expr:
        self.size += 1
        if self.size > _MAX_SIZE or isinstance(node, Literal):
            return node
        if isinstance(node, Reference):
            return self.reference(node)
        if isinstance(node, Unary):
            return self.unary(node)
        if isinstance(node, Binary):
            return self.binary(node)
        if isinstance(node, Conditional):
            return self.conditional(node)
        if isinstance(node, Subscript):
            return self.known(Subscript(self.flat(node.container), self.flat(node.index)))
        if isinstance(node, Call):
            return self.known(Call(node.name, tuple(self.flat(argument) for argument in node.arguments)))
        if isinstance(node, ListExpr):
            return ListExpr(tuple(self.flat(item) for item in node.elements))
        return node

    def known(self, node: Expr) -> Expr:
        if isinstance(node, Call) and node.name.lower() in _CHANGING:
            return node
        if all(isinstance(child, Literal) for child in node.children()):
            value = self.value(node)
            if type(value) in PLAIN:
                return Literal(value)
        return node

    def reference(self, node: Reference) -> Expr:
        scope = node.scope
        if scope is not None:
            if isinstance(scope, Reference) and scope.scope is None and scope.key in ("my", "self"):
                return self.found(node.key, node, own=True)
            return node
        return self.found(node.key, node, own=node.absolute)

    def found(self, key: str, node: Expr, own: bool) -> Expr:
        stored = self.ad.find(key)
        if stored is None:
            return Literal(UNDEFINED) if own else node
        if type(stored) in PLAIN:
            return Literal(stored)
        if not isinstance(stored, Expr) or key in self.busy:
            return node
        self.busy.add(key)
        result = self.flat(stored)
        self.busy.discard(key)
        if isinstance(result, (Binary, Conditional)):
            return Unary("(", result)
        return result

    def unary(self, node: Unary) -> Expr:
        operand = self.flat(node.operand)
        if isinstance(operand, Literal):
            return operand if node.operator == "(" else self.known(Unary(node.operator, operand))
        if node.operator == "(" and not isinstance(operand, (Binary, Conditional)):
            return operand
        return Unary(node.operator, operand)

    def binary(self, node: Binary) -> Expr:
        spine: list[Binary] = []
        left: Expr = node
        while isinstance(left, Binary):
            spine.append(left)
            left = left.left
        result = self.flat(left)
        for step in reversed(spine):
            result = self.joined(step.operator, result, step.right)
        return result

    def joined(self, operator: str, left: Expr, right_node: Expr) -> Expr:
        if operator not in ("&&", "||"):
            return self.known(Binary(operator, left, self.flat(right_node)))
        deciding = operator == "||"
        if isinstance(left, Literal):
            value = truth(left.value)
            if value is deciding or value is ERROR:
                return Literal(value)
            right = self.flat(right_node)
            if isinstance(right, Literal):
                return self.known(Binary(operator, left, right))
            if value is not UNDEFINED and _is_boolean(right):
                return right
            return Binary(operator, left, right)
        right = self.flat(right_node)
        if isinstance(right, Literal) and truth(right.value) is (not deciding) and _is_boolean(left):
            return left
        return Binary(operator, left, right)

    def conditional(self, node: Conditional) -> Expr:
        test = self.flat(node.test)
        if isinstance(test, Literal):
            if node.then is None:
                return self.flat(node.otherwise) if test.value is UNDEFINED else test
            value = truth(test.value)
            if value is True:
                return self.flat(node.then)
            return self.flat(node.otherwise) if value is False else Literal(value)
        then = None if node.then is None else self.flat(node.then)
        return Conditional(test, then, self.flat(node.otherwise))


def _is_boolean(node: Expr) -> bool:
    """Whether an expression can only give a boolean, undefined or error."""
    while isinstance(node, Unary) and node.operator == "(":
        node = node.operand
    if isinstance(node, Binary):
        return node.operator in ("&&", "||", "==", "!=", "<", "<=", ">", ">=", "=?=", "=!=")
    return isinstance(node, Unary) and node.operator == "!"


def flatten(node: Expr, my: ClassAd | None, now_s: float | None = None) -> Value:
    """Put in what an ad knows.

    Args:
        node: The expression.
        my: The ad; an empty one by default.
        now_s: The time for what needs it.

    Returns:
        A plain value when nothing stays open, an expression otherwise.
    """
    from condor_actors.classads.ad import ClassAd

    try:
        result = _Flattener(my if my is not None else ClassAd(), now_s).flat(node)
    except RecursionError:
        return node
    return result.value if isinstance(result, Literal) else result


__all__ = ["RecordExpr", "flatten"]
