"""Trees to Python closures.

Every node becomes one function ``run(ad, state) -> value``: `ad` is the record whose names the expression sees, `state`
the evaluation (the two ads of a match, the clock, how deep and how long it has gone on). A tree is compiled once and
remembers the result; literals on either side of an operator are folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from condor_actors.classads.evaluation.budget import LONG_TEXT, STEP_SHIFT
from condor_actors.classads.evaluation.operators import BINARY, UNARY, truth
from condor_actors.classads.evaluation.state import PLAIN, State, absolute, bare, mine, select, subscript, theirs
from condor_actors.classads.language.expressions import (
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
from condor_actors.classads.language.python_nodes import Run
from condor_actors.classads.values import ERROR, UNDEFINED, ListValue, Value


def compile_expr(node: Expr) -> Run:
    """Make the closure of a tree.

    Args:
        node: The tree.

    Returns:
        Its function.
    """
    if isinstance(node, Literal):
        value = node.value
        return lambda ad, state: value
    make: Callable[[Any], Run] = _COMPILERS[type(node)]
    return make(node)


def _reference(node: Reference) -> Run:
    key = node.key
    scope = node.scope
    if scope is None:
        if node.absolute:
            return lambda ad, state: absolute(ad, key, state)
        return _bare_reference(key)
    if isinstance(scope, Reference) and scope.scope is None and not scope.absolute:
        if scope.key == "my":
            return lambda ad, state: mine(ad, key, state)
        if scope.key == "target":
            return lambda ad, state: theirs(ad, key, state)
    inner = scope.run
    return lambda ad, state: select(inner(ad, state), key, state)


def _bare_reference(key: str) -> Run:
    known = PLAIN

    def run(ad: Any, state: State) -> Value:
        value = ad.own.get(key)
        return value if value.__class__ in known else bare(ad, key, state)

    return run


def _unary(node: Unary) -> Run:
    inner = node.operand.run
    if node.operator == "(":
        return inner
    apply = UNARY[node.operator]
    if isinstance(node.operand, Literal):
        value = apply(node.operand.value)
        return lambda ad, state: value
    return lambda ad, state: apply(inner(ad, state))


def _binary(node: Binary) -> Run:
    operator = node.operator
    if operator in ("&&", "||"):
        return _logical(node, operator)
    spine: list[Binary] = []
    left: Expr = node
    while isinstance(left, Binary) and left.operator not in ("&&", "||"):
        spine.append(left)
        left = left.left
    if len(spine) > 8:
        return _long_chain(left.run, [(BINARY[step.operator], step.right.run) for step in reversed(spine)])
    return _pair(BINARY[operator], node.left, node.right)


def _charged(apply: Any, left: Value, right: Value, state: State) -> Value:
    """Apply an operator; long texts cost more."""
    if left.__class__ is str and right.__class__ is str and (len(left) >= LONG_TEXT or len(right) >= LONG_TEXT):
        state.charge((len(left) + len(right)) >> STEP_SHIFT)
    return apply(left, right)


def _pair(apply: Any, left: Expr, right: Expr) -> Run:
    if isinstance(right, Literal):
        value = right.value
        if isinstance(left, Literal):
            known = apply(left.value, value)
            return lambda ad, state: known
        first = left.run
        if value.__class__ is not str:
            return lambda ad, state: apply(first(ad, state), value)
        return lambda ad, state: _charged(apply, first(ad, state), value, state)
    first, second = left.run, right.run
    return lambda ad, state: _charged(apply, first(ad, state), second(ad, state), state)


def _long_chain(first: Run, steps: list[tuple[Any, Run]]) -> Run:
    def run(ad: Any, state: State) -> Value:
        value = first(ad, state)
        for apply, operand in steps:
            value = _charged(apply, value, operand(ad, state), state)
        return value

    return run


def _logical(node: Binary, operator: str) -> Run:
    operands: list[Expr] = []
    left: Expr = node
    while isinstance(left, Binary) and left.operator == operator:
        operands.append(left.right)
        left = left.left
    operands.append(left)
    runs = tuple(operand.run for operand in reversed(operands))
    return _all_of(runs) if operator == "&&" else _any_of(runs)


def _all_of(runs: tuple[Run, ...]) -> Run:
    def run(ad: Any, state: State) -> Value:
        result: Value = True
        for operand in runs:
            value = operand(ad, state)
            if value is True:
                continue
            value = truth(value)
            if value is False or value is ERROR:
                return value
            if value is UNDEFINED:
                result = UNDEFINED
        return result

    return run


def _any_of(runs: tuple[Run, ...]) -> Run:
    def run(ad: Any, state: State) -> Value:
        result: Value = False
        for operand in runs:
            value = operand(ad, state)
            if value is False:
                continue
            value = truth(value)
            if value is True or value is ERROR:
                return value
            if value is UNDEFINED:
                result = UNDEFINED
        return result

    return run


def _conditional(node: Conditional) -> Run:
    test, otherwise = node.test.run, node.otherwise.run
    if node.then is None:

        def fallback(ad: Any, state: State) -> Value:
            value = test(ad, state)
            return otherwise(ad, state) if value is UNDEFINED else value

        return fallback
    then = node.then.run

    def run(ad: Any, state: State) -> Value:
        value = truth(test(ad, state))
        if value is True:
            return then(ad, state)
        if value is False:
            return otherwise(ad, state)
        return value

    return run


def _subscript(node: Subscript) -> Run:
    container, index = node.container.run, node.index.run

    def run(ad: Any, state: State) -> Value:
        return subscript(container(ad, state), index(ad, state), state)

    return run


def _list(node: ListExpr) -> Run:
    elements = tuple(item.value if type(item) is Literal else item for item in node.elements)
    return lambda ad, state: ListValue(elements, ad)


def _record(node: RecordExpr) -> Run:
    from condor_actors.classads.ad import ClassAd

    pairs = node.pairs

    def run(ad: Any, state: State) -> Value:
        return ClassAd.from_pairs(pairs, ad)

    return run


def _call(node: Call) -> Run:
    from condor_actors.classads.builtins.calls import compile_call

    return compile_call(node)


def _span(node: SpanLiteral) -> Run:
    value = node.span.span_s
    return lambda ad, state: value


_COMPILERS: Final[dict[type[Expr], Any]] = {
    SpanLiteral: _span,
    Reference: _reference,
    Unary: _unary,
    Binary: _binary,
    Conditional: _conditional,
    Subscript: _subscript,
    ListExpr: _list,
    RecordExpr: _record,
    Call: _call,
}
