"""From the text of a value to what it stands for: numbers, truth, lists, expressions; with the table's limits.

A number or a truth may be written as any ClassAd expression of constants (``5 * 60``). The plain forms are read without
the ClassAd package, so that a tool that only needs those does not load it.
"""

from __future__ import annotations

import math

from condor_actors.config.errors import ConfigError, nearest_word
from condor_actors.config.parameter import LARGEST_SIZE, Kind, Parameter
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

    from condor_actors.classads import Expr

__all__ = ["Value", "constant_text", "constant_value", "convert", "split_words"]

Value = object
"""What a parameter is converted to: str, bool, int, float, tuple of str, or a ClassAd expression."""

_BETWEEN: Final = late(r"[,\s]+")
_INTEGER: Final = late(r"[-+]?\d{1,18}")
_REAL: Final = late(r"[-+]?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_SIZE: Final = late(r"(.*?[\d)])\s*([KMGT]?i?B?|bytes?)", "i")
_TRUTH: Final = {
    "TRUE": True,
    "YES": True,
    "T": True,
    "FALSE": False,
    "NO": False,
    "F": False,
    "1": True,
    "0": False,
}
_POWERS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def convert(parameter: Parameter, text: str) -> Value:
    """What ``text`` stands for under the row ``parameter``.

    Args:
        parameter: the row that says which kind and limits.
        text: the expanded value, not empty.

    Raises:
        ConfigError: the text does not stand for such a value; file and line are the caller's to add.
    """
    text = text.strip()
    kind = parameter.kind
    if kind in (Kind.TEXT, Kind.PATH):
        return text
    if kind is Kind.TRANSFORM:
        from condor_actors.config.transforms import PREFIX, read_transform

        read_transform(parameter.name.removeprefix(PREFIX), text)
        return text
    if kind is Kind.BOOLEAN:
        return _boolean(parameter, text)
    if kind is Kind.WORDS:
        return split_words(text)
    if kind is Kind.CHOICE:
        return _choice(parameter, text)
    if kind is Kind.EXPRESSION:
        return _expression(parameter, text)
    return _in_range(
        parameter, text, _size(parameter, text) if kind is Kind.SIZE else _number(parameter, text)
    )


def split_words(text: str) -> tuple[str, ...]:
    """The words of a list; commas, blanks or both part them."""
    return tuple(word for word in _BETWEEN.split(text) if word)


def _wrong(parameter: Parameter, text: str, nearest: str | None = None, *, expected: str = "") -> ConfigError:
    shown = "(hidden)" if parameter.sensitive else text
    return ConfigError(
        f"{parameter.name} = {shown} is not possible",
        name=parameter.name,
        value=shown,
        expected=expected or parameter.expected,
        nearest=nearest,
    )


def _boolean(parameter: Parameter, text: str) -> bool:
    plain = _TRUTH.get(text.upper())
    if plain is not None:
        return plain
    value = constant_value(text)
    if isinstance(value, (bool, int, float)):
        return bool(value)
    raise _wrong(parameter, text, nearest_word(text, ("True", "False")))


def _number(parameter: Parameter, text: str) -> float | int:
    value = constant_value(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(parameter, text)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong(parameter, text)
        if parameter.kind is Kind.INTEGER or (parameter.kind is Kind.SECONDS and value.is_integer()):
            return int(value)
    return float(value) if parameter.kind is Kind.REAL else value


def _size(parameter: Parameter, text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise _wrong(parameter, text)
    unit = match[2].upper()
    power = 0 if unit.startswith("BYTE") else _POWERS[unit.replace("I", "").replace("B", "")]
    value = constant_value(match[1])
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise _wrong(parameter, text)
    large = value * 1024**power
    return int(large) if math.isfinite(large) else LARGEST_SIZE + 1


def _in_range(parameter: Parameter, text: str, value: float | int) -> float | int:
    largest = parameter.largest
    if (parameter.low is not None and value < parameter.low) or (parameter.high is not None and value > largest):
        raise _wrong(parameter, text)
    if not -largest <= value <= largest:
        shown = f"{largest:.15g}" if isinstance(largest, float) else largest
        limit = f"at most {shown}" if value > 0 else f"at least -{shown}"
        raise _wrong(parameter, text, expected=f"{parameter.expected}, and as any of them {limit}")
    return value


def _choice(parameter: Parameter, text: str) -> str:
    for word in parameter.choices:
        if word.upper() == text.upper():
            return word
    raise _wrong(parameter, text, nearest_word(text, parameter.choices, farthest=3))


def _expression(parameter: Parameter, text: str) -> Expr:
    from condor_actors.classads import ClassAdSyntaxError, parse_expression

    try:
        return parse_expression(text)
    except ClassAdSyntaxError as error:
        raise ConfigError(
            f"{parameter.name} is not a ClassAd expression: {error}",
            name=parameter.name,
            value=text,
            expected=parameter.expected,
        ) from None


def constant_value(text: str) -> object:
    """What an expression of constants comes to: int, float, bool, str or another ClassAd value; None if it is none."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    truth = _TRUTH.get(text.upper())
    if truth is not None and len(text) > 1:
        return truth
    from condor_actors.classads import ERROR, UNDEFINED, ClassAdSyntaxError, parse_expression

    try:
        value = parse_expression(text).evaluate()
    except ClassAdSyntaxError:
        return None
    return None if value is UNDEFINED or value is ERROR else value


def constant_text(value: object, written: str) -> str:
    """A constant as it shows when printed: a string bare, anything else as ClassAd text, nothing as it was written."""
    if value is None:
        return written
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    from condor_actors.classads import unparse
    from condor_actors.classads.language.expressions import as_expr

    return unparse(as_expr(value))
