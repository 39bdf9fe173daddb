"""What an ad stores: names and Python values are checked on their way in, lists and records shown on their way out."""

from __future__ import annotations

from collections.abc import Mapping

from condor_actors.classads.evaluation.state import PLAIN
from condor_actors.classads.language.expressions import Expr, ListExpr, Literal, RecordExpr, as_expr, stored
from condor_actors.classads.language.python_nodes import late
from condor_actors.classads.language.spellings import lower_name
from condor_actors.classads.values import UNDEFINED, Value, wrap

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final


def checked(value: Value) -> Value:
    """Bring a Python value into the language.

    Args:
        value: What is to be stored.

    Returns:
        What an ad stores: None as UNDEFINED, integers within 64 bits, lists as expressions.

    Raises:
        TypeError: For what the language has no value for.
        ValueError: For a string with a NUL.
    """
    kind = type(value)
    if kind is int:
        return wrap(value)
    if kind is str:
        if "\0" in value:
            raise ValueError("a ClassAd string cannot hold a NUL character")
        return value
    if kind in PLAIN:
        return value
    if value is None:
        return UNDEFINED
    if isinstance(value, Expr):
        return stored(value)
    if isinstance(value, late["ClassAd"]):
        return value
    if isinstance(value, (list, tuple)):
        return as_expr(list(value))
    if isinstance(value, Mapping):
        return late["ClassAd"](value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return wrap(int(value))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return checked(str.__str__(value))
    raise TypeError(f"a ClassAd cannot hold a {kind.__name__} ({value!r:.60})")


_MAX_NAMES: Final = 20_000
fit_names: Final[dict[str, str]] = {}
"""Names that were given before and are fit to be stored under, with their keys."""


def fit_key(name: str) -> str:
    """The key of an attribute name.

    Args:
        name: As spelled.

    Returns:
        In lower case.

    Raises:
        ValueError: For a name that no attribute can have.
    """
    if not isinstance(name, str) or not name or "\0" in name or "\n" in name:
        raise ValueError(f"not an attribute name: {name!r}")
    key = lower_name(name)
    if len(fit_names) < _MAX_NAMES:
        fit_names[name] = key
    return key


def shown(value: ListExpr | RecordExpr) -> Value:
    """Show a stored list or record to Python.

    Args:
        value: The list or record as an ad stores it.

    Returns:
        A list or ClassAd when it has no open expressions; the expression otherwise.
    """
    if isinstance(value, RecordExpr):
        return late["ClassAd"].from_pairs(value.pairs)
    items = []
    for item in value.elements:
        if isinstance(item, Literal):
            items.append(item.value)
        elif isinstance(item, (ListExpr, RecordExpr)):
            items.append(shown(item))
        else:
            return value
    return items
