"""Lists inside strings: fields separated by commas and blanks, or by the characters one says."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from condor_actors.classads.builtins.conversions import real_from_text, truncated
from condor_actors.classads.builtins.pattern_engines import Unsupported
from condor_actors.classads.builtins.patterns import compiled_pattern
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.builtins.strings import cooked, raw
from condor_actors.classads.evaluation.budget import MAX_ELEMENTS, Exhausted
from condor_actors.classads.evaluation.operators import fold
from condor_actors.classads.evaluation.state import State
from condor_actors.classads.values import ERROR, UNDEFINED, Value

_WHOLE = re.compile(r"[-+0-9]+\Z")
"""What counts as a whole number in a list: of the text 2004-01-02 the 2004 counts, as one."""
_BROKEN = re.compile(r"[-+]?(?:0x(?![0-9a-f.])|inf(?=i)(?!inity))", re.IGNORECASE)
"""What begins like a number and is none, where a list of numbers is read: it is not cut short."""
_GREATEST = 3.4028234663852886e38
_LEAST = 1.1754943508222875e-38
"""Where the search for the least and the greatest begins: the bounds of single precision, the lower one above 0."""
_MEMBER_DELIMITERS = " ,\t\r\n"


def fields_of(text: str, delimiters: str = " ,") -> list[str]:
    """Split a string list.

    Args:
        text: The string.
        delimiters: Characters that separate.

    Returns:
        The fields without surrounding blanks, empty ones left out.
    """
    if not delimiters.isascii():  # what separates is bytes
        bytewise = [raw(part).decode("latin-1") for part in (text, delimiters)]
        return [cooked(field.encode("latin-1")) for field in _fields(*bytewise)]
    return _fields(text, delimiters)


def _fields(text: str, delimiters: str) -> list[str]:
    parts = re.split(f"[{re.escape(delimiters)}]", text, maxsplit=MAX_ELEMENTS) if delimiters else [text]
    if len(parts) > MAX_ELEMENTS:
        raise Exhausted(f"a list of more than {MAX_ELEMENTS} elements")
    return [field for field in (part.strip(" \t\n\r\v\f") for part in parts) if field]


def _tokens(text: str, delimiters: str) -> set[str]:
    """What stands between the characters that separate, with its blanks."""
    if delimiters.isascii():
        parts = re.split(f"[{re.escape(delimiters)}]", text)
    else:
        bytewise = raw(delimiters).decode("latin-1")
        whole = raw(text).decode("latin-1")
        parts = [cooked(part.encode("latin-1")) for part in re.split(f"[{re.escape(bytewise)}]", whole)]
    return {part for part in parts if part}


def _are_texts(*values: Value) -> bool:
    return all(isinstance(value, str) for value in values)


@eager("stringListSize", least=1, most=2)
def _size(text: Value, delimiters: Value = " ,") -> Value:
    return len(fields_of(text, delimiters)) if _are_texts(text, delimiters) else ERROR


def _numbers(text: str, delimiters: str) -> tuple[list[float], bool] | None:
    """The numbers in a string list, and whether all look like integers; None when one is no number."""
    numbers: list[float] = []
    whole = True
    for field in fields_of(text, delimiters):
        number = None if _BROKEN.match(field) else real_from_text(field)
        if number is None:
            return None
        whole = whole and _WHOLE.match(field) is not None
        numbers.append(number)
    return numbers, whole


def _extreme(numbers: list[float], found: float, better: Callable[[float, float], bool]) -> float:
    for number in numbers:
        if better(number, found):
            found = number
    return found


def _summary(name: str, summarise: Callable[[list[float]], float], empty: Value) -> None:
    @eager(name, least=1, most=2)
    def summary(text: Value, delimiters: Value = " ,") -> Value:
        if not _are_texts(text, delimiters):
            return ERROR
        found = _numbers(text, delimiters)
        if found is None:
            return ERROR
        numbers, whole = found
        if not numbers:
            return empty
        result = summarise(numbers)
        return truncated(result) if whole else result


_summary("stringListSum", sum, 0.0)
_summary("stringListAvg", lambda numbers: sum(numbers) / len(numbers), 0.0)
_summary("stringListMin", lambda numbers: _extreme(numbers, _GREATEST, operator.lt), UNDEFINED)
_summary("stringListMax", lambda numbers: _extreme(numbers, _LEAST, operator.gt), UNDEFINED)


def _is_member(item: Value, text: Value, delimiters: Value, folded: bool) -> Value:
    delimiters = _MEMBER_DELIMITERS if delimiters is UNDEFINED else delimiters
    if not _are_texts(*(value for value in (item, text, delimiters) if value is not UNDEFINED)):
        return ERROR
    if item is UNDEFINED or text is UNDEFINED:
        return UNDEFINED if item is text else False
    fields = fields_of(text, delimiters)
    return fold(item) in map(fold, fields) if folded else item in fields


@eager("stringListMember", least=2, most=3)
def _member(item: Value, text: Value, delimiters: Value = _MEMBER_DELIMITERS) -> Value:
    return _is_member(item, text, delimiters, False)


@eager("stringListIMember", least=2, most=3)
def _imember(item: Value, text: Value, delimiters: Value = _MEMBER_DELIMITERS) -> Value:
    return _is_member(item, text, delimiters, True)


@eager("stringListsIntersect", least=2, most=3)
def _intersect(left: Value, right: Value, delimiters: Value = " ,") -> Value:
    if left is ERROR or right is ERROR or delimiters is ERROR:
        return ERROR
    if left is UNDEFINED or right is UNDEFINED or delimiters is UNDEFINED:
        return UNDEFINED
    if not _are_texts(left, right, delimiters):
        return ERROR
    separators = delimiters or " ,"
    return bool(_tokens(left, separators) & _tokens(right, separators))


def _is_subset(left: Value, right: Value, delimiters: Value, folded: bool) -> Value:
    delimiters = _MEMBER_DELIMITERS if delimiters is UNDEFINED else delimiters
    if not _are_texts(*(value for value in (left, right, delimiters) if value is not UNDEFINED)):
        return ERROR
    if left is UNDEFINED and right is UNDEFINED:
        return UNDEFINED
    left = "" if left is UNDEFINED else left
    right = "" if right is UNDEFINED else right
    first, second = fields_of(left, delimiters), fields_of(right, delimiters)
    if left and not first:
        return False
    if folded:
        return set(map(fold, first)) <= set(map(fold, second))
    return set(first) <= set(second)


@eager("stringListSubsetMatch", least=2, most=3)
def _subset(left: Value, right: Value, delimiters: Value = _MEMBER_DELIMITERS) -> Value:
    return _is_subset(left, right, delimiters, False)


@eager("stringListISubsetMatch", least=2, most=3)
def _isubset(left: Value, right: Value, delimiters: Value = _MEMBER_DELIMITERS) -> Value:
    return _is_subset(left, right, delimiters, True)


@inside("stringList_regexpMember", least=2, most=4)
def _regexp_member(
    ad: Any, state: State, pattern: Value, text: Value, delimiters: Value = " ,", options: Value = ""
) -> Value:
    if not _are_texts(pattern, text, delimiters, options):
        return ERROR
    expression = compiled_pattern(pattern, options.lower(), state)
    if expression is None:
        return ERROR
    fields = fields_of(text, delimiters)
    if not fields:
        return UNDEFINED
    try:
        for field in fields:
            data = raw(field)
            state.charge(expression.cost(len(data)))
            if expression.matches(data):
                return True
        return False
    except Unsupported:
        return ERROR
