"""An evaluation in progress: where names are found, how deep it has gone, and when it must stop.

A name is looked up in the record it stands in (own attributes, then the chained ad), in the records around that, and,
when the record is one of the two ads of a match, in the other one, where what is found sees the names of its own ad.
"""

from __future__ import annotations

import functools
import time

from condor_actors.classads.evaluation.budget import BUDGET, ITEM_BYTES, Exhausted, weight
from condor_actors.classads.language.expressions import Expr
from condor_actors.classads.native import core
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, ListValue, RelativeTime, Value

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

    from condor_actors.classads.ad import ClassAd

MAX_DEPTH: Final = 400

PLAIN: Final = frozenset({int, str, bool, float, type(UNDEFINED), type(ERROR), AbsoluteTime, RelativeTime})


class State:
    """One evaluation.

    Attributes:
        my: The ad asked.
        target: The other ad of a match, or None.
        now_s: What ``time()`` gives, None for the clock.
        depth: Levels entered so far.
        steps: Steps taken so far (see `budget`).
        made_bytes: Bytes of what functions made so far.
        contexts: Calls of ``evalInEachContext`` and the like in progress; inside, records see the other ad too.
        busy: What is being evaluated: identities of record and expression, one under the other.
    """

    __slots__ = ("busy", "contexts", "depth", "made_bytes", "my", "now_s", "steps", "target")

    busy: list[tuple[ClassAd, Expr]]

    def __init__(self, my: ClassAd, target: ClassAd | None, now_s: float | None) -> None:
        self.my = my
        self.target = target
        self.now_s = now_s
        self.depth = 0
        self.steps = 0
        self.contexts = 0
        self.made_bytes = 0
        self.busy = []

    def now(self) -> int:
        """The time of this evaluation, read from the clock once.

        Returns:
            Seconds since 1970.
        """
        if self.now_s is None:
            self.now_s = time.time()
        return int(self.now_s)

    def charge(self, steps: int) -> None:
        """Note what something costs.

        Args:
            steps: The cost.

        Raises:
            Exhausted: The evaluation has spent too much.
        """
        self.steps += steps
        if self.steps > BUDGET.steps:
            self.exhaust()

    def made(self, value: Value) -> Value:
        """Note what a function made.

        Args:
            value: Its result.

        Returns:
            The same.

        Raises:
            Exhausted: The evaluation has spent too much.
        """
        if value.__class__ is str or value.__class__ is ListValue:
            cost = weight(value)
            self.made_bytes += len(value) if value.__class__ is str else cost * ITEM_BYTES
            self.charge(cost)
            if self.made_bytes > BUDGET.bytes:
                self.exhaust()
        return value

    def exhaust(self) -> None:
        """End the evaluation.

        Raises:
            Exhausted: Always.
        """
        BUDGET.exceeded += 1
        BUDGET.spent += self.steps
        raise Exhausted("the evaluation has spent too much")

    def takes_part(self, ad: ClassAd) -> bool:
        """Say whether an ad is one of a match.

        Args:
            ad: The ad.

        Returns:
            True for the two ads of a match.
        """
        return self.target is not None and (ad is self.my or ad is self.target)

    def other(self, ad: ClassAd) -> ClassAd | None:
        """The opposite ad of a match.

        Args:
            ad: One of the two.

        Returns:
            The other one, None when `ad` takes no part.
        """
        if ad is self.my:
            return self.target
        if ad is self.target:
            return self.my
        return None


def enter(value: Value, ad: ClassAd, state: State) -> Value:
    """Evaluate what an ad keeps under a name.

    Args:
        value: Value, expression or record.
        ad: The record it was found in.
        state: The evaluation.

    Returns:
        Its value; UNDEFINED when it is being evaluated already; ERROR past a limit.
    """
    if value.__class__ in PLAIN:
        return value
    if not isinstance(value, Expr):
        return value if value is state.my or value is state.target else value.within(ad)
    busy = state.busy
    for record, node in busy:
        if node is value and record is ad:
            return UNDEFINED
    state.depth += value.height
    if state.depth > MAX_DEPTH:
        state.depth -= value.height
        return ERROR
    state.charge(value.size)
    busy.append((ad, value))
    result = value.run(ad, state)
    busy.pop()
    state.depth -= value.height
    return result


def look_up(ad: ClassAd, key: str, state: State, selected: bool = False) -> Value:
    """Find a name from a record outwards and evaluate what it stands for.

    Args:
        ad: The record to begin with.
        key: The name in lower case.
        state: The evaluation.
        selected: Whether the record was named (``record.name``), so that the other ad of a match is not asked.

    Returns:
        Its value, UNDEFINED when there is none.
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
    if (root is ad or state.contexts) and not selected:
        other = state.other(root)
        if other is not None:
            value = other.find(key)
            if value is not None:
                return enter(value, other, state)
    if key == "currenttime":
        return state.now()
    if key in MATCH_NAMES and state.takes_part(root):
        return look_up(match_scope(root, state), key, state, selected=True)
    return UNDEFINED


def match_scope(ad: ClassAd, state: State) -> ClassAd:
    """Make the record around an ad of a match, which has names for both ads and stands in the record of the match.

    Args:
        ad: One of the two ads.
        state: The evaluation.

    Returns:
        The record; its scope is the outermost record of the evaluation.
    """
    from condor_actors.classads.ad import ClassAd

    match = ClassAd.from_pairs(_match_pairs())
    assert state.target is not None
    match.store("LEFT", state.my)
    match.store("RIGHT", state.target)
    side = match.own["rctx" if ad is state.target else "lctx"]
    return ClassAd.from_pairs(side.pairs, match)


@functools.cache
def _match_pairs() -> tuple[tuple[str, Expr], ...]:
    from condor_actors.classads.language.parser import parse_record

    return parse_record(_MATCH).pairs


def _match_root(ad: ClassAd, state: State) -> Value:
    """The outermost record where an ad is one of a match: the match itself."""
    return match_scope(ad, state).scope


def _root(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return _match_root(root, state) if state.takes_part(root) else root


def _target(ad: ClassAd, root: ClassAd, state: State) -> Value:
    other = state.other(root)
    return UNDEFINED if other is None else other


def _self(ad: ClassAd, root: ClassAd, state: State) -> Value:
    return ad


def _parent(ad: ClassAd, root: ClassAd, state: State) -> Value:
    if ad.scope is None:
        return match_scope(ad, state) if state.takes_part(ad) else UNDEFINED
    return ad.scope


_SPECIAL: Final[dict[str, Any]] = {
    "my": _self,
    "target": _target,
    "self": _self,
    "toplevel": _root,
    "root": _root,
    "parent": _parent,
}
SPECIAL_NAMES: Final = frozenset(_SPECIAL)

_MATCH: Final = """[
    LEFT = undefined; RIGHT = undefined;
    lCtx = [ ad = .LEFT; my = .LEFT; other = .RIGHT; target = .RIGHT ];
    rCtx = [ ad = .RIGHT; my = .RIGHT; other = .LEFT; target = .LEFT ];
    symmetricMatch = RIGHT.requirements && LEFT.requirements;
    leftMatchesRight = RIGHT.requirements; rightMatchesLeft = LEFT.requirements;
    leftRankValue = LEFT.rank; rightRankValue = RIGHT.rank
]"""
MATCH_NAMES: Final = frozenset(
    ["ad", "other", "left", "right", "lctx", "rctx", "symmetricmatch", "leftmatchesright", "rightmatchesleft"]
    + ["leftrankvalue", "rightrankvalue"]
)
"""Names that mean something in a match where neither ad has them: those of the records around the two."""


def select(value: Value, key: str, state: State) -> Value:
    """Take a named part: ``value.name``.

    Args:
        value: A record, or a list whose elements are asked one by one.
        key: The name in lower case.
        state: The evaluation.

    Returns:
        The part; UNDEFINED when a record lacks it; ERROR for what has no parts.
    """
    from condor_actors.classads.ad import ClassAd

    if isinstance(value, ClassAd):
        return look_up(value, key, state, selected=True)
    if isinstance(value, ListValue):
        state.charge(len(value.elements))
        return ListValue(tuple(select(element(item, value.ad, state), key, state) for item in value.elements), value.ad)
    return UNDEFINED if value is UNDEFINED else ERROR


def element(item: Value, ad: ClassAd | None, state: State) -> Value:
    """Evaluate an element of a list: no attribute, so a list that asks itself for its parts has no end and is ERROR.

    Args:
        item: Expression or value.
        ad: The record whose names it sees.
        state: The evaluation.

    Returns:
        Its value.
    """
    if type(item) in PLAIN or not isinstance(item, Expr):
        state.charge(weight(item))
        return item
    state.charge(item.size)
    value = item.run(ad if ad is not None else state.my, state)
    state.charge(weight(value))
    return value


def bare(ad: ClassAd, key: str, state: State) -> Value:
    """``name``.

    Args:
        ad: The record the name stands in.
        key: The name in lower case.
        state: The evaluation.

    Returns:
        Its value.
    """
    value = ad.own.get(key)
    if isinstance(value, Expr):
        return enter(value, ad, state)
    return look_up(ad, key, state)


def mine(ad: ClassAd, key: str, state: State) -> Value:
    """``MY.name``.

    Args:
        ad: The record the reference stands in.
        key: The name in lower case.
        state: The evaluation.

    Returns:
        Its value.
    """
    if "my" not in ad.own:
        value = ad.own.get(key)
        if value.__class__ in PLAIN:
            return value
        if isinstance(value, Expr):
            return enter(value, ad, state)
    return select(look_up(ad, "my", state), key, state)


def theirs(ad: ClassAd, key: str, state: State) -> Value:
    """``TARGET.name``.

    Args:
        ad: The record the reference stands in.
        key: The name in lower case.
        state: The evaluation.

    Returns:
        Its value.
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
    """``.name``, looked up from the outermost record, which in a match is the match itself.

    Args:
        ad: The record the reference stands in.
        key: The name in lower case.
        state: The evaluation.

    Returns:
        Its value.
    """
    while ad.scope is not None:
        ad = ad.scope
    if state.takes_part(ad):
        ad = _match_root(ad, state)
    return look_up(ad, key, state)


def subscript(container: Value, index: Value, state: State) -> Value:
    """``container[index]``.

    Args:
        container: A list or a record.
        index: A position from 0, or a name.
        state: The evaluation.

    Returns:
        The element; ERROR where there is none, UNDEFINED where a record lacks the name.
    """
    from condor_actors.classads.ad import ClassAd

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
        found = container.find(index.lower())
        return UNDEFINED if found is None else enter(found, container, state)
    return ERROR


if core is not None and not TYPE_CHECKING:  # the functions above are its oracle; these are what builtins call
    State, enter, element = core.State, core.enter, core.element
