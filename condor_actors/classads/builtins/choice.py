"""Functions that choose what to evaluate, or look at an expression instead of its value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.conversions import text_of
from condor_actors.classads.builtins.pattern_engines import Unsupported
from condor_actors.classads.builtins.patterns import compiled_pattern
from condor_actors.classads.builtins.registry import inside, lazy
from condor_actors.classads.builtins.strings import raw
from condor_actors.classads.evaluation.operators import truth
from condor_actors.classads.evaluation.state import SPECIAL_NAMES, State, enter
from condor_actors.classads.language.expressions import Expr, Literal, Reference, as_expr
from condor_actors.classads.language.unparse import unparse
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, Value


@lazy("ifThenElse", least=3)
def _if_then_else(ad: Any, state: State, test: Expr, then: Expr, otherwise: Expr) -> Value:
    value = truth(test.run(ad, state))
    if value is True:
        return then.run(ad, state)
    if value is False:
        return otherwise.run(ad, state)
    return value


PARSED_AT_ONCE: Final = 4
"""Characters that are parsed in the time of a step."""


@inside("eval", least=1)
def _eval(ad: Any, state: State, text: Value) -> Value:
    from condor_actors.classads.errors import ClassAdSyntaxError
    from condor_actors.classads.language.parser import parse_expression

    if isinstance(text, (AbsoluteTime, RelativeTime)):
        text = text_of(text)
    if not isinstance(text, str):
        return ERROR if text is UNDEFINED else text
    state.charge(len(text) // PARSED_AT_ONCE)
    try:
        node = parse_expression(text)
    except ClassAdSyntaxError:
        return ERROR
    return enter(node, ad, state)


_listeners: list[Callable[[str], None]] = []


def listen_to_debug(listener: Callable[[str], None] | None) -> None:
    """Say who hears what ``debug()`` reports; a daemon gives its log.

    Args:
        listener: Called with one line for each part of the expression; None for nobody.
    """
    _listeners[:] = [] if listener is None else [listener]


@lazy("debug", least=1)
def _debug(ad: Any, state: State, node: Expr) -> Value:
    value = node.run(ad, state)
    if _listeners:
        waiting = [node]
        while waiting:
            part = waiting.pop()
            if isinstance(part, Literal):
                continue
            if not isinstance(part, Reference):
                waiting.extend(reversed(part.children()))
            _listeners[0](f"{unparse(part)} --> {unparse(part.run(ad, state))}")
    return value


def named_expression(ad: Any, state: State, node: Reference) -> tuple[Expr, ClassAd] | None:
    """Find the expression that an attribute reference stands for.

    Args:
        ad: The record whose names it sees.
        state: The evaluation.
        node: The reference.

    Returns:
        What is stored under the name, as an expression, and the record it was found in; None when there is nothing.
    """
    start = ad if node.scope is None else node.scope.run(ad, state)
    if node.absolute:
        while start.scope is not None:
            start = start.scope
        if state.target is not None and (start is state.my or start is state.target):
            return None
    scope = start if isinstance(start, ClassAd) else None
    while scope is not None:
        value = scope.find(node.key)
        if value is not None:
            return as_expr(value), scope
        scope = scope.scope
    if node.scope is None and not node.absolute:
        if node.key in SPECIAL_NAMES:
            meant = node.run(ad, state)
            return (as_expr(meant), meant) if isinstance(meant, ClassAd) else None
        other = state.other(ad)
        value = None if other is None else other.find(node.key)
        if value is not None and other is not None:
            return as_expr(value), other
    return None


@lazy("unparse", least=1)
def _unparse(ad: Any, state: State, node: Expr) -> Value:
    if not isinstance(node, Reference):
        return ERROR
    found = ad.find(node.key) if node.scope is None and not node.absolute else None
    return "" if found is None else unparse(as_expr(found), style="pretty")


@lazy("unresolved", least=1, most=2)
def _unresolved(ad: Any, state: State, node: Expr, pattern: Expr | None = None) -> Value:
    if not isinstance(node, Reference):
        return ERROR
    found = named_expression(ad, state, node)
    if found is None:
        return UNDEFINED
    from condor_actors.classads.language.references import open_names

    names = open_names(*found)
    if pattern is None:
        return ",".join(names)
    wanted = pattern.run(ad, state)
    if not isinstance(wanted, str):
        return ERROR
    expression = compiled_pattern(wanted, "i", state)
    if expression is None:
        return ERROR
    try:
        for name in map(raw, names):
            state.charge(expression.cost(len(name)))
            match = expression.search(name)
            if match is not None and match.end() > match.start():
                return True
    except Unsupported:
        return ERROR
    return False
