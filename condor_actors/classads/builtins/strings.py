"""Strings: joining, cutting, comparing. Positions and sizes count bytes of UTF-8, as the language always has."""

from __future__ import annotations

import re
from typing import Any

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.conversions import text_of
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.evaluation.budget import MAX_ELEMENTS, Exhausted
from condor_actors.classads.evaluation.operators import fold
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.values import ERROR, MAX_STRING, UNDEFINED, ListValue, Value


def raw(text: str) -> bytes:
    """The bytes of a string.

    Args:
        text: The string.

    Returns:
        Its UTF-8.
    """
    return text.encode("utf-8", "surrogateescape")


def cooked(data: bytes) -> str:
    """The string of some bytes.

    Args:
        data: The bytes.

    Returns:
        The string; what is no UTF-8 is kept as surrogate escapes.
    """
    return data.decode("utf-8", "surrogateescape")


def worst(*values: Value) -> Value:
    """The exceptional value among several.

    Args:
        values: Any values.

    Returns:
        ERROR if there is one, else UNDEFINED if there is one, else None.
    """
    if any(value is ERROR for value in values):
        return ERROR
    return UNDEFINED if any(value is UNDEFINED for value in values) else None


@eager("strcat", least=0, most=1_000_000)
def _strcat(*values: Value) -> Value:
    texts = []
    for value in values:
        text = text_of(value)
        if not isinstance(text, str):
            return text
        texts.append(text)
    return "".join(texts) if sum(map(len, texts)) <= MAX_STRING else ERROR


@inside("join", least=0, most=1_000_000)
def _join(ad: Any, state: State, *values: Value) -> Value:
    separator: Value = ""
    items: list[Value] = list(values)
    if len(values) == 1 and isinstance(values[0], ListValue):
        items = [element(item, ad, state) for item in values[0].elements]
    elif values:
        separator = text_of(values[0])
        items = items[1:]
        if not items:
            return "" if isinstance(separator, str) else separator
        if len(items) == 1:
            only = items[0]
            if isinstance(only, ListValue):
                items = [element(item, ad, state) for item in only.elements]
    if separator is ERROR:
        return ERROR
    texts = [text_of(item) for item in items if item is not UNDEFINED]
    if any(text is ERROR for text in texts):
        return ERROR
    if not texts and (items or separator is UNDEFINED):
        return UNDEFINED
    pieces: list[str] = []
    size = 0
    for text in texts:
        if size and isinstance(separator, str):
            pieces.append(separator)
            size += len(separator)
        pieces.append(text)
        size += len(text)
        if size > MAX_STRING:
            return ERROR
    return "".join(pieces)


@eager("substr", least=2, most=3)
def _substr(text: Value, offset: Value, length: Value = None) -> Value:
    if text is UNDEFINED or offset is UNDEFINED or length is UNDEFINED:
        return UNDEFINED
    if not isinstance(text, str) or type(offset) is not int or (length is not None and type(length) is not int):
        return ERROR
    offset = _short(offset)
    length = None if length is None else _short(length)
    data: Any = text if text.isascii() else raw(text)
    size = len(data)
    start = max(0, size + offset) if offset < 0 else min(offset, size)
    if length is None:
        end = size
    elif length < 0:
        end = max(start, size + length)
    else:
        end = min(size, start + length)
    part = data[start:end]
    return part if isinstance(part, str) else cooked(part)


def _short(number: int) -> int:
    """Positions have 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def _compared(left: Value, right: Value, folded: bool) -> Value:
    first, second = text_of(left), text_of(right)
    if first is UNDEFINED or second is UNDEFINED:
        return UNDEFINED
    if first is ERROR or second is ERROR:
        return ERROR
    if folded:
        first, second = fold(first), fold(second)
    a, b = raw(first), raw(second)
    return (a > b) - (a < b)


@eager("strcmp", least=2)
def _strcmp(left: Value, right: Value) -> Value:
    return _compared(left, right, False)


@eager("stricmp", least=2)
def _stricmp(left: Value, right: Value) -> Value:
    return _compared(left, right, True)


_UPPER = {code: code - 32 for code in range(97, 123)}


@eager("toUpper", least=1)
def _to_upper(value: Value) -> Value:
    text = text_of(value)
    return text.translate(_UPPER) if isinstance(text, str) else text


@eager("toLower", least=1)
def _to_lower(value: Value) -> Value:
    text = text_of(value)
    return fold(text) if isinstance(text, str) else text


@eager("size", least=1)
def _size(value: Value) -> Value:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(raw(value))
    if isinstance(value, ListValue):
        return len(value.elements)
    if isinstance(value, ClassAd):
        return len(value)
    return UNDEFINED if value is UNDEFINED else ERROR


@eager("split", least=1, most=2)
def _split(text: Value, delimiters: Value = None) -> Value:
    if not isinstance(text, str) or not (delimiters is None or isinstance(delimiters, str)):
        return ERROR
    return ListValue(tuple(split_fields(text, delimiters)), None, made=True)


def split_fields(text: str, delimiters: str | None) -> list[str]:
    """Split as ``split`` does.

    Args:
        text: The string.
        delimiters: Characters that separate; blanks, tabs and commas when None.

    Returns:
        The fields; blanks that separate count as one, with another separator beside them too; no empty field before the
        first separator nor behind the last.
    """
    if delimiters is None:
        delimiters = ", \t"
    if not delimiters:
        return [text] if text else []
    if not delimiters.isascii():  # what separates is bytes
        bytewise = [raw(part).decode("latin-1") for part in (text, delimiters)]
        return [cooked(field.encode("latin-1")) for field in _fields(*bytewise)]
    return _fields(text, delimiters)


def _fields(text: str, delimiters: str) -> list[str]:
    members = re.escape(delimiters)
    found: list[str] = []
    for part in re.finditer(f"([{members}]*)([^{members}]*)", text):
        gap, field = part.groups()
        last = ""
        for char in gap:
            if char in " \t":
                continue
            if char == last:
                found.append("")
            last = char
        if field:
            found.append(field)
        if len(found) > MAX_ELEMENTS:
            raise Exhausted(f"a list of more than {MAX_ELEMENTS} elements")
    return found


def _at_sign(name: Value, lone_first: bool) -> Value:
    if not isinstance(name, str):
        return ERROR
    before, at, after = name.partition("@")
    if not at:
        before, after = (name, "") if lone_first else ("", name)
    return ListValue((before, after), None, made=True)


@eager("splitUserName", least=1)
def _split_user_name(name: Value) -> Value:
    return _at_sign(name, True)


@eager("splitSlotName", least=1)
def _split_slot_name(name: Value) -> Value:
    return _at_sign(name, False)
