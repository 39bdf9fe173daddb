"""Lists: members, comparisons and sums."""

from __future__ import annotations

from typing import Any

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.registry import inside
from condor_actors.classads.evaluation.operators import BINARY, divide
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.values import ERROR, UNDEFINED, ListValue, Value

_COMPARISONS = {op: BINARY[op] for op in ("<", "<=", "==", ">", ">=", "!=")} | {
    "is": BINARY["=?="],
    "isnt": BINARY["=!="],
}


def values_of(items: ListValue, ad: Any, state: State) -> list[Value]:
    """Evaluate the elements of a list where a function looks at them: in the scope of the call.

    Args:
        items: The list.
        ad: The record that the call is in.
        state: The evaluation.

    Returns:
        Their values.
    """
    return [element(item, ad, state) for item in items.elements]


def _member(sought: Value, items: Value, ad: Any, state: State, operator: str) -> Value:
    if items is UNDEFINED or (sought is UNDEFINED and operator == "=="):
        return UNDEFINED
    if sought is ERROR and operator == "==":
        return ERROR
    if not isinstance(items, ListValue) or isinstance(sought, (ListValue, ClassAd)):
        return ERROR
    compare = BINARY[operator]
    return any(compare(element(item, ad, state), sought) is True for item in items.elements)


@inside("member", least=2)
def _plain_member(ad: Any, state: State, sought: Value, items: Value) -> Value:
    return _member(sought, items, ad, state, "==")


@inside("identicalMember", least=2)
def _identical_member(ad: Any, state: State, sought: Value, items: Value) -> Value:
    return _member(sought, items, ad, state, "=?=")


def _compare_each(operator: Value, items: Value, value: Value, where: tuple[Any, State], stop: bool) -> Value:
    if operator is UNDEFINED:
        return UNDEFINED
    compare = _COMPARISONS.get(operator) if isinstance(operator, str) else None
    if compare is None:
        return ERROR
    if not isinstance(items, ListValue):
        return UNDEFINED if items is UNDEFINED else ERROR
    for item in items.elements:
        result = compare(element(item, *where), value)
        if result is ERROR:
            return ERROR
        if result is UNDEFINED:
            return False
        if (result is True) is stop:
            return stop
    return not stop


@inside("anyCompare", least=3)
def _any_compare(ad: Any, state: State, operator: Value, items: Value, value: Value) -> Value:
    return _compare_each(operator, items, value, (ad, state), True)


@inside("allCompare", least=3)
def _all_compare(ad: Any, state: State, operator: Value, items: Value, value: Value) -> Value:
    return _compare_each(operator, items, value, (ad, state), False)


def _numbers(items: Value, ad: Any, state: State) -> Value:
    """The defined elements of a list of numbers, or the exceptional result."""
    if items is UNDEFINED:
        return UNDEFINED
    if not isinstance(items, ListValue):
        return ERROR
    values = [value for value in values_of(items, ad, state) if value is not UNDEFINED]
    return values if all(isinstance(value, (int, float)) for value in values) else ERROR


def _total(values: list[Value]) -> Value:
    total: Value = values[0] if values else 0
    for value in values[1:]:
        total = BINARY["+"](total, value)
    return total


@inside("sum", least=1)
def _sum(ad: Any, state: State, items: Value) -> Value:
    values = _numbers(items, ad, state)
    return _total(values) if isinstance(values, list) else values


@inside("avg", least=1)
def _avg(ad: Any, state: State, items: Value) -> Value:
    values = _numbers(items, ad, state)
    if not isinstance(values, list):
        return values
    return divide(_total(values), float(len(values))) if values else 0


def _extreme(items: Value, ad: Any, state: State, operator: str) -> Value:
    values = _numbers(items, ad, state)
    if not isinstance(values, list):
        return values
    if len(values) < 2:
        return values[0] if values else UNDEFINED
    best = values[0]
    for value in values[1:]:
        if BINARY[operator](value, best) is True:
            best = value
    if any(isinstance(value, float) for value in values):
        return float(best)
    return int(best)


@inside("min", least=1)
def _min(ad: Any, state: State, items: Value) -> Value:
    return _extreme(items, ad, state, "<")


@inside("max", least=1)
def _max(ad: Any, state: State, items: Value) -> Value:
    return _extreme(items, ad, state, ">")
