"""Operators by which the older ``classad`` puts expressions together."""

from __future__ import annotations

from typing import Any, Self

from condor_actors import classads
from condor_actors.classads import unparse

__all__ = ["Operators"]


class Operators:
    """Of an expression and another one, or a number, text or truth value.

    What it is mixed into is made of the text of an expression, and ``repr`` of it is that text.
    """

    __slots__ = ()

    def and_(self, other: Any) -> Self:
        """Both."""
        return self._with("&&", other)

    def or_(self, other: Any) -> Self:
        """One of the two."""
        return self._with("||", other)

    def is_(self, other: Any) -> Self:
        """Whether they are the same."""
        return self._with("=?=", other)

    def isnt_(self, other: Any) -> Self:
        """Whether they are not."""
        return self._with("=!=", other)

    def _with(self, operator: str, other: Any) -> Self:
        text = repr(other) if isinstance(other, Operators) else unparse(classads.as_expr(other))
        made: Self = type(self)(f"({self!r}) {operator} ({text})")  # type: ignore[call-arg]
        return made
