"""One expression, many records: ``evalInEachContext`` and ``countMatches``."""

from __future__ import annotations

from typing import Any

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.registry import lazy
from condor_actors.classads.evaluation.state import SPECIAL_NAMES, State, element, enter
from condor_actors.classads.language.expressions import Expr, Literal, Reference, as_expr
from condor_actors.classads.values import ERROR, UNDEFINED, ListValue, Value, is_true


def _looked_up(ad: Any, state: State, node: Expr) -> Expr:
    """What an attribute's name stands for where the call is; the expression itself when it is none, or unknown."""
    if not isinstance(node, Reference):
        return node
    if node.absolute and state.target is not None and node.scope is None:
        return node
    scope = ad if node.scope is None else node.scope.run(ad, state)
    if isinstance(scope, ListValue):
        return Literal(node.run(ad, state))
    found = scope if isinstance(scope, ClassAd) else None
    while found is not None:
        value = found.find(node.key)
        if value is not None:
            return as_expr(value)
        found = found.scope
    if node.scope is None and node.key in SPECIAL_NAMES:
        value = node.run(ad, state)
        return node if value is UNDEFINED else Literal(value)
    other = state.other(ad)
    if node.scope is None and other is not None and other.find(node.key) is not None:
        return Literal(node.run(ad, state))
    return node


def _results(ad: Any, state: State, node: Expr, items: ListValue) -> list[Value]:
    found = _looked_up(ad, state, node)
    values: list[Value] = []
    for item in items.elements:
        record = element(item, items.ad, state)
        if not isinstance(record, ClassAd):
            values.append(UNDEFINED if record is UNDEFINED else ERROR)
            continue
        state.contexts += 1
        try:
            values.append(enter(found, record, state))
        finally:
            state.contexts -= 1
    return values


@lazy("evalInEachContext", least=2)
def _eval_in_each_context(ad: Any, state: State, node: Expr, contexts: Expr) -> Value:
    items = contexts.run(ad, state)
    if items is UNDEFINED:
        return UNDEFINED
    if not isinstance(items, ListValue):
        return ERROR
    return ListValue(tuple(_results(ad, state, node, items)), ad, made=True)


@lazy("countMatches", least=2)
def _count_matches(ad: Any, state: State, node: Expr, contexts: Expr) -> Value:
    items = contexts.run(ad, state)
    if items is UNDEFINED:
        return 0
    if not isinstance(items, ListValue):
        return ERROR
    return sum(1 for value in _results(ad, state, node, items) if is_true(value))
