"""Expressions as trees of frozen nodes, in Python.

A tree is built by the parser (or by code), never changed, shared freely between ads, and keeps three things it
computes once: its text, the names it refers to and its compiled form. Parentheses are nodes, so that an expression is
shown the way it was written.

The nodes in use are those of the C core where that is built (see `expr`); these are its oracle and its stand-in, and
the methods that both share.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from condor_actors.classads.values import ListValue, RelativeTime, Value

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

    from condor_actors.classads.ad import ClassAd
else:
    Any = object

Run = Callable[[Any, Any], Any]

late: Final[dict[str, Any]] = {}
"""What modules that need the nodes put here for the nodes to use."""
spare: Final[list[Any]] = []
"""States of evaluations that have ended."""


class Expr:
    """One node, and with it the expression below it.

    Attributes:
        height: Levels of the tree below and including this node.
        size: Nodes of the tree, this one too.
    """

    __slots__ = ("_run", "height", "memory", "size")

    height: int
    size: int
    memory: dict[str, Any] | None
    _run: Run | None

    def children(self) -> tuple[Expr, ...]:
        """The nodes directly below.

        Returns:
            In the order they are written.
        """
        return ()

    def _key(self) -> tuple[Any, ...]:
        raise NotImplementedError

    @property
    def run(self) -> Run:
        """The compiled form: a function of the ad whose names it sees and the state of the evaluation."""
        run = self._run
        if run is None:
            from condor_actors.classads.evaluation.compiler import compile_expr

            run = self._run = compile_expr(self)
        return run

    def evaluate(self, my: ClassAd | None = None, target: ClassAd | None = None, now_s: float | None = None) -> Value:
        """Evaluate against an ad and, where it is a match, the other one.

        Args:
            my: The ad whose names come first; an empty one by default.
            target: The other ad, seen as ``TARGET`` and behind `my`.
            now_s: Seconds since 1970 that ``time()`` gives; the clock's by default.

        Returns:
            A plain value (see `values`), lists with their elements evaluated.
        """
        if my is None:
            my = late["ClassAd"]()
        state = spare.pop() if spare else late["State"](my, target, now_s)
        state.my = my
        state.target = target
        state.now_s = now_s
        try:
            state.charge(self.size)
            value = self.run(my, state)
        except RecursionError:
            return late["deep"](self, my, target, now_s)
        except late["Exhausted"]:
            return late["ERROR"]
        late["ended"](state)
        return late["plain"](value, my, target, now_s) if value.__class__ is ListValue else value

    def references(self, my: ClassAd | None = None) -> tuple[frozenset[str], frozenset[str]]:
        """The attributes this expression names.

        Args:
            my: Where given, only what this ad defines counts as internal when written without a scope, and what those
                attributes refer to counts too.

        Returns:
            Lower-case names: of the own ad (internal), of the other one (external).
        """
        from condor_actors.classads.language.references import references

        return references(self, my)

    def flatten(self, my: ClassAd | None = None, now_s: float | None = None) -> Value:
        """Evaluate what can be evaluated knowing only `my`.

        Args:
            my: The ad; names that it lacks stay in the result.

        Returns:
            A plain value when nothing is left open, an expression otherwise.
        """
        from condor_actors.classads.evaluation.flatten import flatten

        return flatten(self, my, now_s)

    def remembered(self, what: str, make: Callable[[Expr], Any]) -> Any:
        """What was computed of this expression before, or is now.

        Args:
            what: Its name.
            make: Computes it.

        Returns:
            The result.
        """
        memory = self.memory
        if memory is None:
            memory = self.memory = {}
        elif what in memory:
            return memory[what]
        found = memory[what] = make(self)
        return found

    def __str__(self) -> str:
        from condor_actors.classads.language.unparse import unparse

        text: str = self.remembered("text", unparse)
        return text

    def __repr__(self) -> str:
        return f"parse_expression({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and str(self) == str(other))

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        from condor_actors.classads.language.parser import parse_expression

        return parse_expression, (str(self),)


def _height(*nodes: Expr) -> int:
    return 1 + max((node.height for node in nodes), default=0)


class Literal(Expr):
    """A value written out: number, string, boolean, undefined, error, or a time."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self._run = self.memory = None
        self.height = 1
        self.size = 1
        self.value = value


class SpanLiteral(Expr):
    """``relTime("...")`` of a literal string: written as a time, evaluated to its seconds as a real."""

    __slots__ = ("span",)

    def __init__(self, span: RelativeTime) -> None:
        self._run = self.memory = None
        self.height = 1
        self.size = 1
        self.span = span


class Reference(Expr):
    """A name, looked up: ``a``, ``.a`` (from the outermost record) or ``scope.a``."""

    __slots__ = ("absolute", "key", "name", "scope")

    def __init__(self, name: str, scope: Expr | None = None, absolute: bool = False) -> None:
        self._run = self.memory = None
        self.height = 1 if scope is None else 1 + scope.height
        self.size = 1 if scope is None else 1 + scope.size
        self.name = name
        self.key = sys.intern(name.lower())
        self.scope = scope
        self.absolute = absolute

    def children(self) -> tuple[Expr, ...]:
        return () if self.scope is None else (self.scope,)


class Unary(Expr):
    """``- + ! ~`` before an operand, or ``(`` for a pair of parentheses around one."""

    __slots__ = ("operand", "operator")

    def __init__(self, operator: str, operand: Expr) -> None:
        self._run = self.memory = None
        self.height = 1 + operand.height
        self.size = 1 + operand.size
        self.operator = operator
        self.operand = operand

    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)


class Binary(Expr):
    """An operator between two operands; in a row, operators do not count as levels."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, operator: str, left: Expr, right: Expr) -> None:
        self._run = self.memory = None
        self.height = max(left.height if type(left) is Binary else left.height + 1, right.height + 1)
        self.size = 1 + left.size + right.size
        self.operator = operator
        self.left = left
        self.right = right

    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)


class Conditional(Expr):
    """``test ? then : otherwise``, or ``test ?: otherwise`` when `then` is None."""

    __slots__ = ("otherwise", "test", "then")

    def __init__(self, test: Expr, then: Expr | None, otherwise: Expr) -> None:
        self._run = self.memory = None
        self.height = 1 + max(test.height, otherwise.height, then.height if then is not None else 0)
        self.size = 1 + test.size + otherwise.size + (then.size if then is not None else 0)
        self.test = test
        self.then = then
        self.otherwise = otherwise

    def children(self) -> tuple[Expr, ...]:
        if self.then is None:
            return (self.test, self.otherwise)
        return (self.test, self.then, self.otherwise)


class Subscript(Expr):
    """``container[index]``."""

    __slots__ = ("container", "index")

    def __init__(self, container: Expr, index: Expr) -> None:
        self._run = self.memory = None
        self.height = 1 + max(container.height, index.height)
        self.size = 1 + container.size + index.size
        self.container = container
        self.index = index

    def children(self) -> tuple[Expr, ...]:
        return (self.container, self.index)


class Call(Expr):
    """A function applied to arguments."""

    __slots__ = ("arguments", "name")

    def __init__(self, name: str, arguments: tuple[Expr, ...]) -> None:
        self._run = self.memory = None
        self.height = _height(*arguments)
        self.size = 1 + sum(node.size for node in arguments)
        self.name = name
        self.arguments = arguments

    def children(self) -> tuple[Expr, ...]:
        return self.arguments


class ListExpr(Expr):
    """``{ a,b,c }``."""

    __slots__ = ("elements",)

    def __init__(self, elements: tuple[Expr, ...]) -> None:
        self._run = self.memory = None
        self.height = _height(*elements)
        self.size = 1 + sum(node.size for node in elements)
        self.elements = elements

    def children(self) -> tuple[Expr, ...]:
        return self.elements


class RecordExpr(Expr):
    """``[ a = 1; b = 2 ]``: pairs of spelling and expression; of equal names the last counts."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: tuple[tuple[str, Expr], ...]) -> None:
        self._run = self.memory = None
        self.height = _height(*(node for _, node in pairs))
        self.size = 1 + sum(node.size for _, node in pairs)
        self.pairs = pairs

    def children(self) -> tuple[Expr, ...]:
        return tuple(node for _, node in self.pairs)
