"""One expression, many records: ``evalInEachContext`` and ``countMatches``."""

from __future__ import annotations

from typing import Any

from ..ad import ClassAd
from ..evaluation import State, element, enter
from ..expr import Expr, Literal, Reference
from ..values import ERROR, UNDEFINED, ListValue, Value, is_true
from .choice import named_expression
from .registry import lazy


def _results(ad: Any, state: State, node: Expr, items: ListValue) -> list[Value]:
    found = named_expression(ad, node) or node
    other = state.other(ad)
    if found is node and other is not None and isinstance(node, Reference) and other.find(node.key) is not None:
        found = Literal(node.run(ad, state))
    values: list[Value] = []
    for item in items.elements:
        record = element(item, items.ad, state)
        if isinstance(record, ClassAd):
            values.append(enter(found, record, state))
        else:
            values.append(UNDEFINED if record is UNDEFINED else ERROR)
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
