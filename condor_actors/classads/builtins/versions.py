"""Version strings: like strings, but digits compare as numbers."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import Final

from ..values import ERROR, UNDEFINED, Value
from .registry import eager

_RUNS: Final = re.compile(r"\d+|\D")


def compare_versions(left: str, right: str) -> int:
    """Compare two versions.

    :param left: one.
    :param right: the other.
    :returns: -1, 0 or 1; among equal numbers the one with more leading zeros is less.
    """
    for a, b in zip_longest(_RUNS.findall(left), _RUNS.findall(right), fillvalue=""):
        if a == b:
            continue
        if a[:1].isdigit() and b[:1].isdigit():
            zeros_a = len(a) - len(a.lstrip("0"))
            zeros_b = len(b) - len(b.lstrip("0"))
            if zeros_a != zeros_b:
                return -1 if zeros_a > zeros_b else 1
            return -1 if int(a) < int(b) else 1
        return -1 if a.encode("utf-8", "surrogateescape") < b.encode("utf-8", "surrogateescape") else 1
    return 0


def _ordered(*versions: Value) -> Value:
    if any(version is UNDEFINED for version in versions):
        return UNDEFINED
    return None if all(isinstance(version, str) for version in versions) else ERROR


@eager("versioncmp", least=2)
def _versioncmp(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) if strict is None else strict


@eager("versionGT", "version_gt", least=2)
def _gt(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) > 0 if strict is None else strict


@eager("versionGE", "version_ge", least=2)
def _ge(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) >= 0 if strict is None else strict


@eager("versionLT", "version_lt", least=2)
def _lt(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) < 0 if strict is None else strict


@eager("versionLE", "version_le", least=2)
def _le(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) <= 0 if strict is None else strict


@eager("versionEQ", "version_eq", least=2)
def _eq(left: Value, right: Value) -> Value:
    strict = _ordered(left, right)
    return compare_versions(left, right) == 0 if strict is None else strict


@eager("version_in_range", "versionInRange", least=3)
def _in_range(version: Value, least: Value, most: Value) -> Value:
    strict = _ordered(version, least, most)
    if strict is not None:
        return strict
    return compare_versions(least, version) <= 0 and compare_versions(version, most) <= 0
