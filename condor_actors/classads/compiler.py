"""Trees to Python closures, and the evaluation of those.

Every node becomes one function ``run(ad, state) -> value``: `ad` is the record whose names the expression sees, `state`
the evaluation (the two ads of a match, the clock, how deep and how long it has gone on). A tree is compiled once and
remembers the result; literals on either side of an operator are folded.

A name is looked up in `ad` (own attributes, then the chained ad), in the records around it, and, when `ad` is one of the
two ads of the match, in the other one, where what is found sees the names of its own ad.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .expr import (
    HOT,
    Binary,
    Call,
    Conditional,
    Expr,
    ListExpr,
    Literal,
    RecordExpr,
    Reference,
    Run,
    SpanLiteral,
    Subscript,
    Unary,
    _late,
)
from .operators import BINARY, UNARY, truth
from .values import ERROR, UNDEFINED, AbsoluteTime, ListValue, RelativeTime, Value

if TYPE_CHECKING:
    from .ad import ClassAd

MAX_DEPTH: Final = 400
MAX_STEPS: Final = 1_000_000
_FRAMES: Final = 20_000

_MISSING: Final = object()
PLAIN: Final = frozenset({int, str, bool, float, type(UNDEFINED), type(ERROR), AbsoluteTime, RelativeTime})


class State:
    """One evaluation.

    :ivar my: the ad asked.
    :ivar target: the other ad of a match, or None.
    :ivar now_s: what ``time()`` gives, None for the clock.
    :ivar depth: levels entered so far.
    :ivar steps: attributes evaluated so far.
    :ivar busy: what is being evaluated: identities of record and expression, one under the other.
    """

    __slots__ = ("busy", "depth", "my", "now_s", "steps", "target")

    busy: list[tuple[ClassAd, Expr]]

    def __init__(self, my: ClassAd, target: ClassAd | None, now_s: float | None) -> None:
        self.my = my
        self.target = target
        self.now_s = now_s
        self.depth = 0
        self.steps = 0
        self.busy = []

    def now(self) -> int:
        """The time of this evaluation, read from the clock once.

        :returns: seconds since 1970.
        """
        if self.now_s is None:
            self.now_s = time.time()
        return int(self.now_s)

    def other(self, ad: ClassAd) -> ClassAd | None:
        """The opposite ad of a match.

        :param ad: one of the two.
        :returns: the other one, None when `ad` takes no part.
        """
        if ad is self.my:
            return self.target
        if ad is self.target:
            return self.my
        return None


def enter(value: Value, ad: ClassAd, state: State) -> Value:
    """Evaluate what an ad keeps under a name.

    :param value: value, expression or record.
    :param ad: the record it was found in.
    :param state: the evaluation.
    :returns: its value; UNDEFINED when it is being evaluated already; ERROR past a limit.
    """
    if value.__class__ in PLAIN:
        return value
    if not isinstance(value, Expr):
        return value.within(ad)
    busy = state.busy
    for record, node in busy:
        if node is value and record is ad:
            return UNDEFINED
    state.depth += value.height
    state.steps += 1
    if state.depth > MAX_DEPTH or state.steps > MAX_STEPS:
        state.depth -= value.height
        return ERROR
    busy.append((ad, value))
    value.uses = uses = value.uses + 1
    run = value._run
    if run is None or uses == HOT:
        run = value.heat()
    result = run(ad, state)
    busy.pop()
    state.depth -= value.height
    return result


def look_up(ad: ClassAd, key: str, state: State, selected: bool = False) -> Value:
    """Find a name from a record outwards and evaluate what it stands for.

    :param ad: the record to begin with.
    :param key: the name in lower case.
    :param state: the evaluation.
    :param selected: whether the record was named (``record.name``), so that the other ad of a match is not asked.
    :returns: its value, UNDEFINED when there is none.
    """
    scope: ClassAd | None = ad
    root = ad
    while scope is not None:
        value = scope.find(key)
        if value is not None:
            return enter(value, scope, state)
        root = scope
        scope = scope.scope
    special = _SPECIAL.get(key)
    if special is not None:
        return special(ad, root, state)
    if root is ad and not selected:
        other = state.other(ad)
        if other is not None:
            value = other.find(key)
            if value is not None:
                return enter(value, other, state)
    if key == "currenttime":
        return state.now()
    return UNDEFINED


def _my(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return root


def _target(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return state.other(root) or UNDEFINED


def _self(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return ad


def _parent(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return ad.scope or UNDEFINED


_SPECIAL: Final[dict[str, Any]] = {
    "my": _my,
    "target": _target,
    "self": _self,
    "toplevel": _my,
    "root": _my,
    "parent": _parent,
}
SPECIAL_NAMES: Final = frozenset(_SPECIAL)


def select(value: Value, key: str, state: State) -> Value:
    """Take a named part: ``value.name``.

    :param value: a record, or a list whose elements are asked one by one.
    :param key: the name in lower case.
    :param state: the evaluation.
    :returns: the part; UNDEFINED when a record lacks it; ERROR for what has no parts.
    """
    from .ad import ClassAd

    if isinstance(value, ClassAd):
        return look_up(value, key, state, selected=True)
    if isinstance(value, ListValue):
        return ListValue(tuple(select(element(item, value.ad, state), key, state) for item in value.elements), value.ad)
    return UNDEFINED if value is UNDEFINED else ERROR


def element(item: Value, ad: ClassAd | None, state: State) -> Value:
    """Evaluate an element of a list.

    :param item: expression or value.
    :param ad: the record whose names it sees.
    :param state: the evaluation.
    :returns: its value.
    """
    if type(item) in PLAIN:
        return item
    return enter(item, ad if ad is not None else state.my, state) if isinstance(item, Expr) else item


def compile_expr(node: Expr) -> Run:
    """Make the closure of a tree.

    :param node: the tree.
    :returns: its function.
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


def bare(ad: ClassAd, key: str, state: State) -> Value:
    """``name``.

    :param ad: the record the name stands in.
    :param key: the name in lower case.
    :param state: the evaluation.
    :returns: its value.
    """
    value = ad.own.get(key)
    if isinstance(value, Expr):
        return enter(value, ad, state)
    return look_up(ad, key, state)


def mine(ad: ClassAd, key: str, state: State) -> Value:
    """``MY.name``.

    :param ad: the record the reference stands in.
    :param key: the name in lower case.
    :param state: the evaluation.
    :returns: its value.
    """
    if ad.scope is None and "my" not in ad.own:
        value = ad.own.get(key)
        if value.__class__ in PLAIN:
            return value
        if isinstance(value, Expr):
            return enter(value, ad, state)
    return select(look_up(ad, "my", state), key, state)


def theirs(ad: ClassAd, key: str, state: State) -> Value:
    """``TARGET.name``.

    :param ad: the record the reference stands in.
    :param key: the name in lower case.
    :param state: the evaluation.
    :returns: its value.
    """
    other = state.other(ad)
    if other is not None and "target" not in ad.own:
        value = other.own.get(key)
        if value.__class__ in PLAIN:
            return value
        if isinstance(value, Expr):
            return enter(value, other, state)
    return select(look_up(ad, "target", state), key, state)


def absolute(ad: ClassAd, key: str, state: State) -> Value:
    """``.name``, looked up from the outermost record, which in a match is the match itself and has no attributes.

    :param ad: the record the reference stands in.
    :param key: the name in lower case.
    :param state: the evaluation.
    :returns: its value.
    """
    if state.target is not None:
        return UNDEFINED
    while ad.scope is not None:
        ad = ad.scope
    return look_up(ad, key, state)


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
    if operator == "&&" or operator == "||":
        return _logical(node, operator)
    spine: list[Binary] = []
    left: Expr = node
    while isinstance(left, Binary) and left.operator not in ("&&", "||"):
        spine.append(left)
        left = left.left
    if len(spine) > 8:
        return _long_chain(left.run, [(BINARY[step.operator], step.right.run) for step in reversed(spine)])
    return _pair(BINARY[operator], node.left, node.right)


def _pair(apply: Any, left: Expr, right: Expr) -> Run:
    if isinstance(right, Literal):
        value = right.value
        if isinstance(left, Literal):
            known = apply(left.value, value)
            return lambda ad, state: known
        first = left.run
        return lambda ad, state: apply(first(ad, state), value)
    first, second = left.run, right.run
    return lambda ad, state: apply(first(ad, state), second(ad, state))


def _long_chain(first: Run, steps: list[tuple[Any, Run]]) -> Run:
    def run(ad: Any, state: State) -> Value:
        value = first(ad, state)
        for apply, operand in steps:
            value = apply(value, operand(ad, state))
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


def subscript(container: Value, index: Value, state: State) -> Value:
    """``container[index]``.

    :param container: a list or a record.
    :param index: a position from 0, or a name.
    :param state: the evaluation.
    :returns: the element; ERROR where there is none, UNDEFINED where a record lacks the name.
    """
    from .ad import ClassAd

    if container is ERROR or index is ERROR:
        return ERROR
    if container is UNDEFINED or index is UNDEFINED:
        return UNDEFINED
    if isinstance(container, ListValue) and type(index) is int:
        index = (index + 2**31) % 2**32 - 2**31
        if 0 <= index < len(container.elements):
            return element(container.elements[index], container.ad, state)
        return ERROR
    if isinstance(container, ClassAd) and isinstance(index, str):
        return look_up(container, index.lower(), state, selected=True)
    return ERROR


def _list(node: ListExpr) -> Run:
    elements = tuple(item.value if type(item) is Literal else item for item in node.elements)
    return lambda ad, state: ListValue(elements, ad)


def _record(node: RecordExpr) -> Run:
    from .ad import ClassAd

    pairs = node.pairs

    def run(ad: Any, state: State) -> Value:
        return ClassAd.from_pairs(pairs, ad)

    return run


def _call(node: Call) -> Run:
    from .builtins import compile_call

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


def evaluate_raw(node: Expr, my: ClassAd | None, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate and leave lists unevaluated inside.

    :param node: the expression.
    :param my: the ad asked.
    :param target: the other ad.
    :param now_s: the time, None for the clock.
    :returns: an internal value.
    """
    from .ad import ClassAd

    state = State(my if my is not None else ClassAd(), target, now_s)
    return settle(node, state)


def settle(node: Expr, state: State) -> Value:
    """Run an expression on the asked ad of an evaluation, with the frames that deep ones need.

    :param node: the expression.
    :param state: the evaluation.
    :returns: an internal value; ERROR when it goes too deep.
    """
    node.uses = uses = node.uses + 1
    run = node._run
    try:
        if run is None or uses == HOT:
            run = node.heat()
        return run(state.my, state)
    except RecursionError:
        return _with_more_frames(node, state)


def _with_more_frames(node: Expr, state: State) -> Value:
    limit = sys.getrecursionlimit()
    if limit >= _FRAMES:
        return ERROR
    sys.setrecursionlimit(_FRAMES)
    try:
        state.depth = 0
        state.busy.clear()
        return node.heat()(state.my, state)
    except RecursionError:
        return ERROR
    finally:
        sys.setrecursionlimit(limit)


def plain(value: Value, state: State, depth: int = 0) -> Value:
    """Make a value fit for callers: lists become Python lists of evaluated elements.

    :param value: an internal value.
    :param state: the evaluation it came from.
    :param depth: nesting so far.
    :returns: a value as in `values`.
    """
    if not isinstance(value, ListValue):
        return value
    if depth > 100:
        return ERROR
    return [plain(element(item, value.ad, state), state, depth + 1) for item in value.elements]


_spare: Final[list[State]] = []


def evaluate(node: Expr, my: ClassAd | None, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate for a caller.

    :param node: the expression.
    :param my: the ad asked.
    :param target: the other ad.
    :param now_s: the time, None for the clock.
    :returns: a value as in `values`.
    """
    if my is None:
        my = _late["ClassAd"]()
    value = run_on(node, my, target, now_s)
    return plain(value, State(my, target, now_s)) if value.__class__ is ListValue else value


def run_on(node: Expr, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate an expression of an ad; the shortest way there is.

    :param node: the expression.
    :param my: the ad asked.
    :param target: the other ad.
    :param now_s: the time, None for the clock.
    :returns: an internal value.
    """
    if _spare:
        state = _spare.pop()
        state.my = my
        state.target = target
        state.now_s = now_s
    else:
        state = State(my, target, now_s)
    node.uses = uses = node.uses + 1
    run = node._run
    try:
        if run is None or uses == HOT:
            run = node.heat()
        value = run(my, state)
    except RecursionError:
        return _with_more_frames(node, State(my, target, now_s))
    state.depth = state.steps = 0
    _spare.append(state)
    return value


def run_attribute(node: Expr, my: ClassAd, target: ClassAd | None, now_s: float | None) -> Value:
    """Evaluate an expression that an ad keeps under a name, so that a reference to itself is a cycle.

    :param node: the expression.
    :param my: the ad that keeps it.
    :param target: the other ad.
    :param now_s: the time, None for the clock.
    :returns: an internal value.
    """
    state = _spare.pop() if _spare else State(my, target, now_s)
    state.my = my
    state.target = target
    state.now_s = now_s
    state.depth = node.height
    state.busy.append((my, node))
    node.uses = uses = node.uses + 1
    run = node._run
    try:
        if run is None or uses == HOT:
            run = node.heat()
        value = run(my, state)
    except RecursionError:
        return _with_more_frames(node, State(my, target, now_s))
    state.busy.clear()
    state.depth = state.steps = 0
    _spare.append(state)
    return value


_late["evaluate"] = evaluate
