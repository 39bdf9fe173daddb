"""From one type to another: ``int``, ``real``, ``string``, ``bool``, and the tests of type."""

from __future__ import annotations

import math
import re
from typing import Final

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.registry import eager
from condor_actors.classads.evaluation.operators import truth
from condor_actors.classads.language.times import absolute_to_text, relative_to_text
from condor_actors.classads.language.unparse import unparse
from condor_actors.classads.values import (
    ERROR,
    INT_MIN,
    UNDEFINED,
    AbsoluteTime,
    ListValue,
    RelativeTime,
    Value,
)

_REAL: Final = re.compile(
    r"[ \t\n\v\f\r]*([-+]?)(?:(0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)(?:[pP][-+]?\d+)?)"
    r"|((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|(inf(?:inity)?)|(nan))",
    re.IGNORECASE | re.ASCII,
)


def text_of(value: Value) -> Value:
    """``string(value)``: a string as it is, anything else as it is written.

    Args:
        value: Any value.

    Returns:
        A string, or UNDEFINED or ERROR as they are.
    """
    if isinstance(value, str) or value is UNDEFINED or value is ERROR:
        return value
    if isinstance(value, AbsoluteTime):
        return absolute_to_text(value)
    if isinstance(value, RelativeTime):
        return relative_to_text(value)
    return unparse(value)


def real_from_text(text: str) -> float | None:
    """Read a real from the start of a string, as C does.

    Args:
        text: The string.

    Returns:
        The number, None when it starts with none.
    """
    match = _REAL.match(text)
    if match is None:
        return None
    if match[2]:
        number = float.fromhex(match[2])
    elif match[3]:
        number = float(match[3])
    else:
        number = math.inf if match[4] else math.nan
    return -number if match[1] == "-" else number


def real_of(value: Value) -> Value:
    """``real(value)``.

    Args:
        value: Any value.

    Returns:
        A float; UNDEFINED of UNDEFINED; ERROR where there is no number.
    """
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        return float(value)
    if isinstance(value, str):
        number = real_from_text(value)
        return ERROR if number is None else number
    if isinstance(value, RelativeTime):
        return float(truncated(value.span_s))
    if isinstance(value, AbsoluteTime):
        return float(value.epoch_s)
    return UNDEFINED if value is UNDEFINED else ERROR


def truncated(number: float) -> int:
    """Cut a real to an integer as the machine does.

    Args:
        number: Any real.

    Returns:
        Rounded towards zero; the least integer for what does not fit.
    """
    if not -9.223372036854775808e18 <= number < 9.223372036854775808e18:
        return INT_MIN
    return int(number)


@eager("int", least=1)
def _int(value: Value) -> Value:
    if type(value) is int:
        return value
    number = real_of(value)
    return truncated(number) if isinstance(number, float) else number


@eager("real", least=1)
def _real(value: Value) -> Value:
    return real_of(value)


@eager("string", least=1)
def _string(value: Value) -> Value:
    return text_of(value)


@eager("bool", least=1)
def _bool(value: Value) -> Value:
    if isinstance(value, str):
        lower = value.lower()
        return True if lower == "true" else False if lower == "false" else UNDEFINED
    if isinstance(value, RelativeTime):
        return value.span_s != 0
    return truth(value)


@eager("isUndefined", least=1)
def _is_undefined(value: Value) -> Value:
    return value is UNDEFINED


@eager("isError", least=1)
def _is_error(value: Value) -> Value:
    return value is ERROR


@eager("isString", least=1)
def _is_string(value: Value) -> Value:
    return isinstance(value, str)


@eager("isInteger", least=1)
def _is_integer(value: Value) -> Value:
    return type(value) is int


@eager("isReal", least=1)
def _is_real(value: Value) -> Value:
    return isinstance(value, float)


@eager("isBoolean", least=1)
def _is_boolean(value: Value) -> Value:
    return isinstance(value, bool)


@eager("isList", least=1)
def _is_list(value: Value) -> Value:
    return isinstance(value, ListValue)


@eager("isClassAd", least=1)
def _is_classad(value: Value) -> Value:
    return isinstance(value, ClassAd)


@eager("isAbstime", least=1)
def _is_abstime(value: Value) -> Value:
    return isinstance(value, AbsoluteTime)


@eager("isReltime", least=1)
def _is_reltime(value: Value) -> Value:
    return isinstance(value, RelativeTime)
