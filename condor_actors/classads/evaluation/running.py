"""Evaluation from outside: the doors through which ads and expressions are evaluated.

Deep expressions need more Python frames than the interpreter allows by default; they get them for the one evaluation,
and what goes deeper still is ERROR.
"""

from __future__ import annotations

import sys

from condor_actors.classads.evaluation.budget import BUDGET, Exhausted
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.language.expressions import Expr
from condor_actors.classads.language.python_nodes import late, spare
from condor_actors.classads.native import core
from condor_actors.classads.values import ERROR, ListValue, Value

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

    from condor_actors.classads.ad import ClassAd

_FRAMES: Final = 20_000


def evaluate_raw(node: Expr, my: ClassAd | None, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate and leave lists unevaluated inside.

    Args:
        node: The expression.
        my: The ad asked.
        target: The other ad.
        now_s: The time, None for the clock.

    Returns:
        An internal value.
    """
    from condor_actors.classads.ad import ClassAd

    state = State(my if my is not None else ClassAd(), target, now_s)
    return settle(node, state)


def settle(node: Expr, state: State) -> Value:
    """Run an expression on the asked ad of an evaluation, with the frames that deep ones need.

    Args:
        node: The expression.
        state: The evaluation.

    Returns:
        An internal value; ERROR when it goes too deep.
    """
    try:
        state.charge(_size(node))
        return node.run(state.my, state)
    except RecursionError:
        return _with_more_frames(node, state)
    except Exhausted:
        return ERROR


def _size(node: Expr) -> int:
    return node.size if core is None else 0  # the core counts by itself


def ended(state: State) -> None:
    """Keep the state of an evaluation that has ended for another.

    Args:
        state: The state, of the engine in Python.
    """
    BUDGET.spent += state.steps
    state.depth = state.steps = state.made_bytes = 0
    spare.append(state)


def _with_more_frames(node: Expr, state: State) -> Value:
    limit = sys.getrecursionlimit()
    if limit >= _FRAMES:
        return ERROR
    sys.setrecursionlimit(_FRAMES)
    try:
        return node.run(state.my, State(state.my, state.target, state.now_s))
    except (RecursionError, Exhausted):
        return ERROR
    finally:
        sys.setrecursionlimit(limit)


def plain(value: Value, state: State, depth: int = 0) -> Value:
    """Make a value fit for callers: lists become Python lists of evaluated elements.

    Args:
        value: An internal value.
        state: The evaluation it came from.
        depth: Nesting so far.

    Returns:
        A value as in `values`.
    """
    if not isinstance(value, ListValue):
        return value
    if depth > 100:
        return ERROR
    return [plain(_of_list(item, value.ad, state), state, depth + 1) for item in value.elements]


def _of_list(item: Value, ad: ClassAd | None, state: State) -> Value:
    try:
        return element(item, ad, state)
    except RecursionError:
        if core is None:  # the core leaves nothing behind
            state.busy.clear()
            state.depth = 0
        return ERROR
    except Exhausted:
        return ERROR


def evaluate(node: Expr, my: ClassAd | None, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate for a caller.

    Args:
        node: The expression.
        my: The ad asked.
        target: The other ad.
        now_s: The time, None for the clock.

    Returns:
        A value as in `values`.
    """
    return node.evaluate(my, target, now_s)


def _deep(node: Expr, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    return _plain(_with_more_frames(node, State(my, target, now_s)), my, target, now_s)


def _plain(value: Value, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    return plain(value, State(my, target, now_s))


def run_on(node: Expr, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate an expression of an ad and leave lists unevaluated inside.

    Args:
        node: The expression.
        my: The ad asked.
        target: The other ad.
        now_s: The time, None for the clock.

    Returns:
        An internal value.
    """
    return settle(node, State(my, target, now_s))


def run_attribute(node: Expr, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate an expression that an ad keeps under a name, so that a reference to itself is a cycle.

    Args:
        node: The expression.
        my: The ad that keeps it.
        target: The other ad.
        now_s: The time, None for the clock.

    Returns:
        An internal value.
    """
    state = spare.pop() if spare else State(my, target, now_s)
    state.my = my
    state.target = target
    state.now_s = now_s
    state.depth = node.height
    state.busy.append((my, node))
    try:
        state.charge(node.size)
        value = node.run(my, state)
    except RecursionError:
        return _with_more_frames(node, State(my, target, now_s))
    except Exhausted:
        return ERROR
    state.busy.clear()
    ended(state)
    return value


if core is not None and not TYPE_CHECKING:
    run_attribute = core.run_attribute

late["State"] = State
late["Exhausted"] = Exhausted
late["ERROR"] = ERROR
late["ended"] = ended
late["deep"] = _deep
late["plain"] = _plain
