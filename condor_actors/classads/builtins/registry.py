"""The table of built-in functions, and the three ways one can take its arguments.

==========  =========================================  =======================================
declared    is called with                             for
==========  =========================================  =======================================
`eager`     the evaluated arguments                    almost everything
`inside`    record, evaluation, evaluated arguments    what evaluates list elements or asks the time
`lazy`      record, evaluation, argument expressions   what chooses, or looks at names
==========  =========================================  =======================================

A wrong number of arguments is ERROR, decided when the call is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

import attrs

Kind = Literal["eager", "inside", "lazy"]
Function = Callable[..., Any]
UNLIMITED: Final = 1_000_000


@attrs.frozen(kw_only=True)
class Builtin:
    """One function of the language."""

    name: str
    kind: Kind
    least: int
    most: int
    apply: Function


TABLE: Final[dict[str, Builtin]] = {}


def _declare(kind: Kind, least: int, most: int | None, names: tuple[str, ...]) -> Callable[[Function], Function]:
    def add(function: Function) -> Function:
        for name in names:
            TABLE[name.lower()] = Builtin(
                name=name, kind=kind, least=least, most=least if most is None else most, apply=function
            )
        return function

    return add


def eager(*names: str, least: int, most: int | None = None) -> Callable[[Function], Function]:
    """Declare a function of values.

    Args:
        names: What it is called in the language.
        least: Fewest arguments.
        most: Most arguments, as many as `least` when not given.

    Returns:
        The decorator.
    """
    return _declare("eager", least, most, names)


def inside(*names: str, least: int, most: int | None = None) -> Callable[[Function], Function]:
    """Declare a function that needs the record and the evaluation too.

    Args:
        names: What it is called in the language.
        least: Fewest arguments.
        most: Most arguments, as many as `least` when not given.

    Returns:
        The decorator.
    """
    return _declare("inside", least, most, names)


def lazy(*names: str, least: int, most: int | None = None) -> Callable[[Function], Function]:
    """Declare a function of unevaluated arguments.

    Args:
        names: What it is called in the language.
        least: Fewest arguments.
        most: Most arguments, as many as `least` when not given.

    Returns:
        The decorator.
    """
    return _declare("lazy", least, most, names)
