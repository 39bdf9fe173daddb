"""Lists inside strings: fields separated by commas and blanks, or by the characters one says."""

from __future__ import annotations

import re
from collections.abc import Callable

from condor_actors.classads.builtins.conversions import real_from_text
from condor_actors.classads.builtins.pattern_engines import Unsupported
from condor_actors.classads.builtins.patterns import compiled_pattern
from condor_actors.classads.builtins.registry import eager
from condor_actors.classads.builtins.strings import cooked, raw
from condor_actors.classads.evaluation.operators import fold
from condor_actors.classads.values import ERROR, UNDEFINED, Value, wrap

_INTEGER = re.compile(r"[-+]?\d+\Z")


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
    parts = re.split(f"[{re.escape(delimiters)}]", text) if delimiters else [text]
    return [field for field in (part.strip(" \t\n\r\v\f") for part in parts) if field]


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
        if _INTEGER.match(field):
            numbers.append(wrap(int(field)))
            continue
        number = real_from_text(field)
        if number is None:
            return None
        whole = False
        numbers.append(number)
    return numbers, whole


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
        result = summarise([float(number) for number in numbers])
        return int(result) if whole else float(result)


_summary("stringListSum", sum, 0.0)
_summary("stringListAvg", lambda numbers: sum(numbers) / len(numbers), 0.0)
_summary("stringListMin", min, UNDEFINED)
_summary("stringListMax", max, UNDEFINED)


def _is_member(item: Value, text: Value, delimiters: Value, folded: bool) -> Value:
    delimiters = " ," if delimiters is UNDEFINED else delimiters
    if not _are_texts(*(value for value in (item, text, delimiters) if value is not UNDEFINED)):
        return ERROR
    if item is UNDEFINED or text is UNDEFINED:
        return UNDEFINED if item is text else False
    fields = fields_of(text, delimiters)
    return fold(item) in map(fold, fields) if folded else item in fields


@eager("stringListMember", least=2, most=3)
def _member(item: Value, text: Value, delimiters: Value = " ,") -> Value:
    return _is_member(item, text, delimiters, False)


@eager("stringListIMember", least=2, most=3)
def _imember(item: Value, text: Value, delimiters: Value = " ,") -> Value:
    return _is_member(item, text, delimiters, True)


@eager("stringListsIntersect", least=2, most=3)
def _intersect(left: Value, right: Value, delimiters: Value = " ,") -> Value:
    if left is ERROR or right is ERROR or delimiters is ERROR:
        return ERROR
    if left is UNDEFINED or right is UNDEFINED or delimiters is UNDEFINED:
        return UNDEFINED
    if not _are_texts(left, right, delimiters):
        return ERROR
    return bool(set(fields_of(left, delimiters)) & set(fields_of(right, delimiters)))


def _is_subset(left: Value, right: Value, delimiters: Value, folded: bool) -> Value:
    delimiters = " ," if delimiters is UNDEFINED else delimiters
    if not _are_texts(*(value for value in (left, right, delimiters) if value is not UNDEFINED)):
        return ERROR
    if left is UNDEFINED and right is UNDEFINED:
        return UNDEFINED
    left = "" if left is UNDEFINED else left
    right = "" if right is UNDEFINED else right
    first, second = fields_of(left, delimiters), fields_of(right, delimiters)
    if folded:
        return set(map(fold, first)) <= set(map(fold, second))
    return set(first) <= set(second)


@eager("stringListSubsetMatch", least=2, most=3)
def _subset(left: Value, right: Value, delimiters: Value = " ,") -> Value:
    return _is_subset(left, right, delimiters, False)


@eager("stringListISubsetMatch", least=2, most=3)
def _isubset(left: Value, right: Value, delimiters: Value = " ,") -> Value:
    return _is_subset(left, right, delimiters, True)


@eager("stringList_regexpMember", least=2, most=4)
def _regexp_member(pattern: Value, text: Value, delimiters: Value = " ,", options: Value = "") -> Value:
    if not _are_texts(pattern, text, delimiters, options):
        return ERROR
    expression = compiled_pattern(pattern, options)
    if expression is None:
        return ERROR
    fields = fields_of(text, delimiters)
    if not fields:
        return UNDEFINED
    try:
        return any(expression.matches(raw(field)) for field in fields)
    except Unsupported:
        return ERROR
