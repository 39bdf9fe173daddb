"""Why an ad refuses another: each clause of the requirements, what it saw, and what would satisfy it.

A requirement is taken apart at its top-level ``&&``; clauses that are names of own attributes (``START``) are opened
too. A clause is explained by the side of its comparison that belongs to the other ad: that is what has to change.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.evaluation.operators import truth
from condor_actors.classads.evaluation.running import run_on
from condor_actors.classads.language.expressions import (
    Binary,
    Call,
    Conditional,
    Expr,
    Literal,
    Reference,
    Unary,
    as_expr,
)
from condor_actors.classads.language.references import references
from condor_actors.classads.language.unparse import unparse
from condor_actors.classads.values import ERROR, UNDEFINED, Value, is_true

_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!=", "=?=": "=?=", "=!=": "=!="}
_NEGATED: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "=?=": "=!=", "=!=": "=?="}
_MAX_CLAUSES: Final = 200


@attrs.frozen(kw_only=True)
class Clause:
    """One clause of a requirement, tried against another ad.

    Attributes:
        text: The clause as written.
        value: What it evaluated to.
        facts: The attributes it looked at: name with its scope, and value as text.
        remedy: What would make it true, empty when it is true or nothing simple would.
    """

    text: str
    value: Value
    facts: tuple[tuple[str, str], ...]
    remedy: str

    @property
    def holds(self) -> bool:
        """Whether it is true."""
        return is_true(self.value)


@attrs.frozen(kw_only=True)
class Tally:
    """One clause, tried against many ads.

    Attributes:
        text: The clause as written.
        accepted: How many ads it accepts taken alone.
        left: How many ads are left when it and all clauses before it are applied.
        without: How many ads would match if it were dropped.
        remedy: What the nearest refused ad would need, or how the clause would have to change.
    """

    text: str
    accepted: int
    left: int
    without: int
    remedy: str


def clauses_of(node: Expr, my: ClassAd) -> list[Expr]:
    """Take a requirement apart.

    Args:
        node: The requirement.
        my: The ad it belongs to.

    Returns:
        Its clauses in the order they are written.
    """
    found: list[Expr] = []
    opened: set[str] = set()
    waiting = [node]
    while waiting and len(found) < _MAX_CLAUSES:
        current = waiting.pop()
        inner = _bare(current)
        if isinstance(inner, Binary) and inner.operator == "&&":
            waiting.extend((inner.right, inner.left))
            continue
        if isinstance(inner, Reference) and _own_name(inner, my) and inner.key not in opened:
            stored = my.find(inner.key)
            if isinstance(stored, Expr):
                opened.add(inner.key)
                waiting.append(stored)
                continue
        found.append(inner)
    return found


def _bare(node: Expr) -> Expr:
    while isinstance(node, Unary) and node.operator == "(":
        node = node.operand
    return node


def _own_name(node: Expr, my: ClassAd) -> bool:
    if not isinstance(node, Reference) or node.absolute:
        return False
    if node.scope is None:
        return my.find(node.key) is not None
    return isinstance(node.scope, Reference) and node.scope.scope is None and node.scope.key == "my"


def _other_name(node: Expr, my: ClassAd) -> Reference | None:
    """The reference to the other ad that a side of a comparison is, if it is one."""
    node = _bare(node)
    if not isinstance(node, Reference) or node.absolute:
        return None
    if node.scope is None:
        return node if my.find(node.key) is None else None
    scope = node.scope
    return node if isinstance(scope, Reference) and scope.scope is None and scope.key == "target" else None


def explain(my: ClassAd, target: ClassAd, attribute: str = "Requirements", now_s: float | None = None) -> list[Clause]:
    """Try every clause of a requirement against another ad.

    Args:
        my: The ad whose requirement it is.
        target: The other ad.
        attribute: The requirement.
        now_s: The time, the clock's by default.

    Returns:
        The clauses in order; a single false one when there is no such attribute.
    """
    stored = my.find(attribute.lower())
    if stored is None:
        return [
            Clause(text=attribute, value=UNDEFINED, facts=(), remedy=f"set {attribute}: without it nothing is accepted")
        ]
    return [explain_clause(node, my, target, now_s) for node in clauses_of(as_expr(stored), my)]


def explain_clause(node: Expr, my: ClassAd, target: ClassAd, now_s: float | None = None) -> Clause:
    """Try one clause against another ad.

    Args:
        node: The clause.
        my: The ad it belongs to.
        target: The other ad.
        now_s: The time, the clock's by default.

    Returns:
        What came of it.
    """
    value = run_on(node, my, target, now_s)
    return Clause(
        text=unparse(node, style="wire"),
        value=value,
        facts=tuple(_facts(node, my, target, now_s)),
        remedy="" if is_true(value) else _remedy(node, my, target, now_s, True),
    )


def _facts(node: Expr, my: ClassAd, target: ClassAd, now_s: float | None) -> Iterator[tuple[str, str]]:
    internal, external = references(node, my)
    for key in sorted(internal):
        stored = my.find(key)
        value = UNDEFINED if stored is None else run_on(as_expr(stored), my, target, now_s)
        yield f"MY.{my.spelling(key)}", unparse(value, style="wire")
    for key in sorted(external):
        stored = target.find(key)
        if stored is not None:
            value = run_on(as_expr(stored), target, my, now_s)
            yield f"TARGET.{target.spelling(key)}", unparse(value, style="wire")


def _remedy(node: Expr, my: ClassAd, target: ClassAd, now_s: float | None, wanted: bool) -> str:
    """What would give a clause the wanted truth."""
    node = _bare(node)
    if isinstance(node, Unary) and node.operator == "!":
        return _remedy(node.operand, my, target, now_s, not wanted)
    if isinstance(node, Binary):
        if node.operator in ("&&", "||"):
            return _joined(node, my, target, now_s, wanted)
        if node.operator in _FLIPPED:
            return _compared(node, my, target, now_s, wanted)
    other = _other_name(node, my)
    if other is not None:
        return _absent(f"TARGET.{other.name} were {_word(wanted)}", other, target)
    if isinstance(node, Reference) and _own_name(node, my):
        return f"MY.{node.name} were {_word(wanted)}"
    if isinstance(node, Literal):
        return "it were an attribute instead of a constant"
    if isinstance(node, (Call, Conditional)):
        return f"{unparse(node, style='wire')} were {_word(wanted)}"
    return ""


def _word(wanted: bool) -> str:
    return "true" if wanted else "false"


def _absent(wish: str, other: Reference, target: ClassAd) -> str:
    """Add to a wish that the attribute is missing, and the name that may have been meant."""
    if target.find(other.key) is not None:
        return wish
    near = difflib.get_close_matches(other.key, [name.lower() for name in target], 1, 0.75)
    hint = f"; did you mean {target.spelling(near[0])}?" if near else ""
    return f"{wish} (there is no {other.name}{hint})"


def _joined(node: Binary, my: ClassAd, target: ClassAd, now_s: float | None, wanted: bool) -> str:
    every = (node.operator == "&&") is wanted
    parts: list[str] = []
    for side in (node.left, node.right):
        value = truth(run_on(side, my, target, now_s))
        if value is wanted and every:
            continue
        text = _remedy(side, my, target, now_s, wanted)
        if text and text not in parts:
            parts.append(text)
    return (" and " if every else " or ").join(parts)


def _compared(node: Binary, my: ClassAd, target: ClassAd, now_s: float | None, wanted: bool) -> str:
    operator = node.operator if wanted else _NEGATED[node.operator]
    left, right = _other_name(node.left, my), _other_name(node.right, my)
    if left is not None and right is None:
        other, side = left, node.right
    elif right is not None and left is None:
        other, side, operator = right, node.left, _FLIPPED[operator]
    else:
        return _own_compared(node, operator, my, target, now_s)
    value = run_on(side, my, target, now_s)
    if value is UNDEFINED or value is ERROR:
        return f"{unparse(side, style='wire')} had a value (it is {unparse(value)})"
    wish = f"TARGET.{other.name} {operator} {unparse(value, style='wire')}"
    has = run_on(other, my, target, now_s)
    if has is UNDEFINED:
        return _absent(wish, other, target)
    seen = f"{wish} (it is {unparse(has, style='wire')})"
    own = _bare(side)
    if isinstance(own, Reference) and _own_name(own, my):
        return f"{seen} or MY.{own.name} {_FLIPPED[operator]} {unparse(has, style='wire')}"
    return seen


def _own_compared(node: Binary, operator: str, my: ClassAd, target: ClassAd, now_s: float | None) -> str:
    """A comparison in which the other ad stands on neither side, or on both."""
    left, right = unparse(node.left, style="wire"), unparse(node.right, style="wire")
    facts = [
        f"{unparse(side, style='wire')} is {unparse(run_on(side, my, target, now_s), style='wire')}"
        for side in (node.left, node.right)
        if not isinstance(side, Literal)
    ]
    return f"{left} {operator} {right} ({', '.join(facts)})" if facts else "it were an attribute instead of a constant"


def explain_many(my: ClassAd, targets: Iterable[ClassAd], attribute: str = "Requirements") -> list[Tally]:
    """Try every clause of a requirement against many ads.

    Args:
        my: The ad whose requirement it is.
        targets: The other ads.
        attribute: The requirement.

    Returns:
        The clauses in order, each with how many ads it lets through.
    """
    stored = my.find(attribute.lower())
    if stored is None:
        return []
    nodes = clauses_of(as_expr(stored), my)
    rows: list[tuple[ClassAd, list[bool]]] = []
    for target in targets:
        rows.append((target, [is_true(run_on(node, my, target, None)) for node in nodes]))
    tallies: list[Tally] = []
    for number, node in enumerate(nodes):
        failing = [target for target, row in rows if not row[number]]
        nearest = next((target for target, row in rows if row.count(False) == 1 and not row[number]), None)
        shown = nearest if nearest is not None else (failing[0] if failing else None)
        tallies.append(
            Tally(
                text=unparse(node, style="wire"),
                accepted=len(rows) - len(failing),
                left=sum(all(row[: number + 1]) for _, row in rows),
                without=sum(all(row[:number]) and all(row[number + 1 :]) for _, row in rows),
                remedy="" if shown is None else _remedy(node, my, shown, None, True),
            )
        )
    return tallies
