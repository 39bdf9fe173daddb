"""What operators do to values; total functions, so every pair of operands has a result.

Strictness comes first: ERROR in either operand gives ERROR, else UNDEFINED in either gives UNDEFINED (``is``, ``isnt``,
``&&`` and ``||`` excepted). Then types decide; what fits no rule is ERROR.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from condor_actors.classads.values import (
    ERROR,
    INT_MAX,
    INT_MIN,
    UNDEFINED,
    AbsoluteTime,
    ListValue,
    RelativeTime,
    Value,
    wrap,
)

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

Operation = Callable[[Value, Value], Value]

_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def fold(text: str) -> str:
    """Bring a string to the case in which ``==`` compares: ASCII letters only.

    Args:
        text: The string.

    Returns:
        The folded string.
    """
    return text.lower() if text.isascii() else text.translate(_LOWER)


_LOWER: Final = {code: code + 32 for code in range(65, 91)}


def _exceptional(left: Value, right: Value) -> Value:
    """The strict result when an operand is exceptional, None otherwise."""
    if left is ERROR or right is ERROR:
        return ERROR
    if left is UNDEFINED or right is UNDEFINED:
        return UNDEFINED
    return None


def _real(number: float) -> Value:
    """A result beyond the greatest real is ERROR; one below the least stays infinite."""
    return ERROR if number == math.inf else number


def _plain(left: Value, right: Value) -> bool:
    return isinstance(left, (int, float)) and isinstance(right, (int, float))


def add(left: Value, right: Value) -> Value:
    """``left + right``."""
    if type(left) is int and type(right) is int:
        return wrap(left + right)
    strict = _exceptional(left, right)
    if strict is not None:
        return strict
    if _plain(left, right):
        total = left + right
        return _real(total) if isinstance(total, float) else wrap(total)
    if isinstance(left, RelativeTime):
        if isinstance(right, RelativeTime):
            return RelativeTime(left.span_s + right.span_s)
        left, right = right, left
    if isinstance(left, AbsoluteTime) and isinstance(right, RelativeTime):
        return AbsoluteTime(left.epoch_s + int(right.span_s), left.offset_s)
    return ERROR


def subtract(left: Value, right: Value) -> Value:
    """``left - right``."""
    if type(left) is int and type(right) is int:
        return wrap(left - right)
    strict = _exceptional(left, right)
    if strict is not None:
        return strict
    if _plain(left, right):
        difference = left - right
        return _real(difference) if isinstance(difference, float) else wrap(difference)
    if isinstance(right, RelativeTime):
        if isinstance(left, RelativeTime):
            return RelativeTime(left.span_s - right.span_s)
        if isinstance(left, AbsoluteTime):
            return AbsoluteTime(left.epoch_s - int(right.span_s), left.offset_s)
    if isinstance(left, AbsoluteTime) and isinstance(right, AbsoluteTime):
        return RelativeTime(float(left.epoch_s - right.epoch_s))
    return ERROR


def multiply(left: Value, right: Value) -> Value:
    """``left * right``."""
    if type(left) is int and type(right) is int:
        return wrap(left * right)
    strict = _exceptional(left, right)
    if strict is not None:
        return strict
    if _plain(left, right):
        product = left * right
        return _real(product) if isinstance(product, float) else wrap(product)
    if isinstance(left, (int, float)):
        left, right = right, left
    if isinstance(left, RelativeTime) and type(right) in (int, float):
        return RelativeTime(left.span_s * right)
    return ERROR


def divide(left: Value, right: Value) -> Value:
    """``left / right``; integers truncate towards zero."""
    strict = _exceptional(left, right)
    if strict is not None:
        return strict
    if _plain(left, right):
        if isinstance(left, float) or isinstance(right, float):
            if right == 0:
                if left == 0 or math.isnan(left):
                    return math.nan
                return _real(math.copysign(math.inf, left) * math.copysign(1, right))
            return _real(left / right)
        if right == 0:
            return ERROR
        quotient = abs(left) // abs(right)
        return min(quotient, INT_MAX) if (left < 0) == (right < 0) else -quotient
    if isinstance(left, RelativeTime) and type(right) in (int, float):
        return ERROR if right == 0 else RelativeTime(left.span_s / right)
    return ERROR


def modulus(left: Value, right: Value) -> Value:
    """``left % right`` of integers; the result has the sign of `left`."""
    strict = _exceptional(left, right)
    if strict is not None:
        return strict
    if isinstance(left, int) and isinstance(right, int) and right != 0:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    return ERROR


def _bitwise(operation: Callable[[int, int], int]) -> Operation:
    def apply(left: Value, right: Value) -> Value:
        strict = _exceptional(left, right)
        if strict is not None:
            return strict
        if type(left) is int and type(right) is int:
            return wrap(operation(left, right))
        return ERROR

    return apply


def _shifted(number: int, count: int) -> int:
    """``>>``: the machine's shift, by the low six bits; of negative numbers bit by bit, as often as it says."""
    if number >= 0:
        return number >> (count & 63)
    return number >> min(max(count, 0), 63)


def _shifted_logically(number: int, count: int) -> int:
    """``>>>``: of negative numbers one bit to lose the sign, then the rest."""
    if number >= 0:
        return number >> (count & 63)
    return ((number & 0xFFFFFFFFFFFFFFFF) >> 1) >> ((count - 1) & 63)


def _comparison(operator: str) -> Operation:
    compare: Callable[[Value, Value], bool] = {
        "==": lambda a, b: a == b,
        "!=": lambda a, b: a != b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }[operator]

    def apply(left: Value, right: Value) -> Value:
        kind = type(left)
        if kind is type(right):
            if kind is int or kind is float or kind is bool:
                return compare(left, right)
            if kind is str:
                return compare(_ordered(left), _ordered(right))
            if kind is RelativeTime:
                return compare(left.span_s, right.span_s)
            if kind is AbsoluteTime:
                return compare(left.epoch_s, right.epoch_s)
        strict = _exceptional(left, right)
        if strict is not None:
            return strict
        if _plain(left, right):
            if kind is float or type(right) is float:
                return compare(float(left), float(right))
            return compare(left, right)
        return ERROR

    return apply


def _ordered(text: str) -> str | bytes:
    if text.isascii():
        return text.lower()
    return fold(text)


def identical(left: Value, right: Value) -> Value:
    """``left is right``: same type and same value; ERROR when a list or record is compared."""
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is ListValue and left.made is not right.made:
        return False
    if _compound(left):
        return ERROR
    return bool(left == right)


def different(left: Value, right: Value) -> Value:
    """``left isnt right``."""
    same = identical(left, right)
    return same if same is ERROR else not same


def _compound(value: Value) -> bool:
    return not isinstance(value, (int, float, str, AbsoluteTime, RelativeTime)) and (
        value is not UNDEFINED and value is not ERROR
    )


BINARY: Final[dict[str, Operation]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": modulus,
    "&": _bitwise(lambda a, b: a & b),
    "|": _bitwise(lambda a, b: a | b),
    "^": _bitwise(lambda a, b: a ^ b),
    "<<": _bitwise(lambda a, b: a << (b & 63)),
    ">>": _bitwise(_shifted),
    ">>>": _bitwise(_shifted_logically),
    "=?=": identical,
    "=!=": different,
} | {operator: _comparison(operator) for operator in ("==", "!=", "<", "<=", ">", ">=")}


def negate(value: Value) -> Value:
    """``- value``."""
    if type(value) is int:
        return wrap(-value)
    if type(value) is float:
        return -value
    if isinstance(value, RelativeTime):
        return RelativeTime(-value.span_s)
    return UNDEFINED if value is UNDEFINED else ERROR


def affirm(value: Value) -> Value:
    """``+ value``."""
    if type(value) is int or type(value) is float or isinstance(value, RelativeTime):
        return value
    return UNDEFINED if value is UNDEFINED else ERROR


def complement(value: Value) -> Value:
    """``~ value``."""
    if type(value) is int:
        return ~value
    return UNDEFINED if value is UNDEFINED else ERROR


def invert(value: Value) -> Value:
    """``! value``."""
    if value is True:
        return False
    if value is False:
        return True
    if isinstance(value, (int, float)):
        return value == 0
    return UNDEFINED if value is UNDEFINED else ERROR


UNARY: Final[dict[str, Callable[[Value], Value]]] = {
    "-": negate,
    "+": affirm,
    "~": complement,
    "!": invert,
}


def truth(value: Value) -> Value:
    """Bring a value into the three-valued world.

    Args:
        value: Any value.

    Returns:
        True, False, UNDEFINED, or ERROR for what is neither boolean nor number.
    """
    if value is True or value is False or value is UNDEFINED:
        return value
    if isinstance(value, (int, float)):
        return value != 0
    return ERROR


__all__ = ["BINARY", "INT_MIN", "UNARY", "fold", "identical", "truth"]
