"""Version strings: like strings, but digits compare as numbers."""

from __future__ import annotations

from typing import Final

from condor_actors.classads.builtins.conversions import text_of
from condor_actors.classads.builtins.registry import eager
from condor_actors.classads.values import ERROR, UNDEFINED, Value

_DIGITS: Final = frozenset(b"0123456789")


def compare_versions(left: str, right: str) -> int:
    """Compare two versions.

    Args:
        left: One.
        right: The other.

    Returns:
        Less than 0, 0 or more than 0; among numbers the one with more leading zeros is less, then the shorter.
    """
    a, b = left.encode("utf-8", "surrogateescape") + b"\0", right.encode("utf-8", "surrogateescape") + b"\0"
    if a == b:
        return 0
    at = next(index for index, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
    start = at
    while start and a[start - 1] in _DIGITS:
        start -= 1
    run_a, run_b = _run(a, start), _run(b, start)
    if run_a and run_b and run_a != run_b:
        zeros_a, zeros_b = _zeros(run_a), _zeros(run_b)
        if zeros_a != zeros_b:
            return zeros_b - zeros_a
        if not zeros_a and len(run_a) != len(run_b):
            return len(run_a) - len(run_b)
    return _signed(a[at]) - _signed(b[at])


def _run(data: bytes, start: int) -> bytes:
    end = start
    while data[end] in _DIGITS:
        end += 1
    return data[start:end]


def _zeros(run: bytes) -> int:
    """Leading zeros, the last digit not counted."""
    return len(run[:-1]) - len(run[:-1].lstrip(b"0"))


def _signed(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _ordered(*versions: Value) -> Value:
    """The versions as strings, or the exceptional result."""
    texts = [text_of(version) for version in versions]
    if any(text is UNDEFINED for text in texts):
        return UNDEFINED
    return ERROR if any(text is ERROR for text in texts) else texts


@eager("versioncmp", least=2)
def _versioncmp(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) if isinstance(found, list) else found


@eager("versionGT", least=2)
def _gt(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) > 0 if isinstance(found, list) else found


@eager("versionGE", least=2)
def _ge(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) >= 0 if isinstance(found, list) else found


@eager("versionLT", least=2)
def _lt(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) < 0 if isinstance(found, list) else found


@eager("versionLE", least=2)
def _le(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) <= 0 if isinstance(found, list) else found


@eager("versionEQ", least=2)
def _eq(left: Value, right: Value) -> Value:
    found = _ordered(left, right)
    return compare_versions(*found) == 0 if isinstance(found, list) else found


@eager("version_in_range", least=3)
def _in_range(version: Value, least: Value, most: Value) -> Value:
    found = _ordered(version, least, most)
    if found is UNDEFINED and least is not UNDEFINED and most is not UNDEFINED:
        return ERROR
    if not isinstance(found, list):
        return found
    return compare_versions(found[1], found[0]) <= 0 and compare_versions(found[0], found[2]) <= 0
