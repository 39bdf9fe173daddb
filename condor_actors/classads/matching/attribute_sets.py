"""Sets of ads as the bits of one integer, by the value of one attribute."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, Final

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.evaluation.operators import fold
from condor_actors.classads.evaluation.state import PLAIN
from condor_actors.classads.values import UNDEFINED, Value

EXACT: Final = 2**53
"""Up to here integers and reals compare alike whichever is converted."""


class AttributeSets:
    """The sets of ads by the value of one attribute.

    Attributes:
        open: Ads in which it is an expression or a record: nothing is known of them.
        absent: Ads without it.
    """

    __slots__ = ("absent", "booleans", "from_above", "from_below", "numbers", "open", "others", "sorted", "strings")

    def __init__(self, key: str, ads: list[ClassAd | None]) -> None:
        exact: dict[Any, bytearray] = {}
        size = len(ads) // 8 + 1
        for position, ad in enumerate(ads):
            if ad is None:
                continue
            stored = ad.own.get(key) if ad.parent is None else ad.find(key)
            name: Any
            if stored is None:
                name = (0, "absent")
            elif type(stored) is str:
                name = (1, stored)
            elif type(stored) in (int, float):
                name = (2, stored) if -EXACT <= stored <= EXACT else (0, "open")
            elif type(stored) is bool:
                name = (3, stored)
            else:
                name = (4, "other") if stored.__class__ in PLAIN else (0, "open")
            bits = exact.get(name)
            if bits is None:
                bits = exact[name] = bytearray(size)
            bits[position >> 3] |= 1 << (position & 7)
        sets = {name: int.from_bytes(bits, "little") for name, bits in exact.items()}
        self.open = sets.get((0, "open"), 0)
        self.absent = sets.get((0, "absent"), 0)
        self.others = sets.get((4, "other"), 0)
        self.booleans = {value: sets.get((3, value), 0) for value in (True, False)}
        self.strings: dict[str, int] = {}
        for (kind, value), members in sets.items():
            if kind == 1:
                self.strings[fold(value)] = self.strings.get(fold(value), 0) | members
        self.numbers = {value: members for (kind, value), members in sets.items() if kind == 2}
        self.sorted = sorted(self.numbers)
        self.from_below = _running(self.numbers[value] for value in self.sorted)
        self.from_above = _running(self.numbers[value] for value in reversed(self.sorted))

    def compared(self, operator: str, value: Value) -> int:
        """The ads for which ``attribute operator value`` can be true.

        Args:
            operator: A comparison.
            value: A plain value.

        Returns:
            Their set.
        """
        if operator == "=?=":
            return self.identical(value)
        if isinstance(value, str):
            return self.open | (self.strings.get(fold(value), 0) if operator == "==" else self.ordered(operator, value))
        if isinstance(value, (int, float)):
            truths = [bits for known, bits in self.booleans.items() if _holds(float(known), operator, float(value))]
            return self.open | self.numeric(operator, value) | _union(truths)
        return self.open | self.others

    def ordered(self, operator: str, value: str) -> int:
        folded = fold(value)
        return _union(bits for known, bits in self.strings.items() if _holds(known, operator, folded))

    def numeric(self, operator: str, value: float) -> int:
        if operator == "==":
            return self.numbers.get(value, 0)
        if operator in ("<", "<="):
            count = (bisect_left if operator == "<" else bisect_right)(self.sorted, value)
            return self.from_below[count]
        count = (bisect_right if operator == ">" else bisect_left)(self.sorted, value)
        return self.from_above[len(self.sorted) - count]

    def identical(self, value: Value) -> int:
        if value is UNDEFINED:
            return self.open | self.absent | self.others
        if isinstance(value, str):
            return self.open | self.strings.get(fold(value), 0)
        if isinstance(value, bool):
            return self.open | self.booleans[value]
        if isinstance(value, (int, float)):
            return self.open | self.numbers.get(value, 0)
        return self.open | self.others

    def true(self) -> int:
        """The ads in which it can count as true.

        Returns:
            Their set.
        """
        numbers = self.from_below[-1] & ~self.numbers.get(0, 0)
        return self.open | self.booleans[True] | numbers

    def false(self) -> int:
        """The ads in which its negation can count as true.

        Returns:
            Their set.
        """
        return self.open | self.booleans[False] | self.numbers.get(0, 0)


def _running(sets: Iterable[int]) -> list[int]:
    unions = [0]
    for bits in sets:
        unions.append(unions[-1] | bits)
    return unions


def _union(sets: Iterable[int]) -> int:
    union = 0
    for bits in sets:
        union |= bits
    return union


def _holds(left: Any, operator: str, right: Any) -> bool:
    if operator == "==":
        return bool(left == right)
    if operator == "<":
        return bool(left < right)
    if operator == "<=":
        return bool(left <= right)
    return bool(left > right) if operator == ">" else bool(left >= right)


def bits_of(members: Iterable[int]) -> int:
    ordered = list(members)
    data = bytearray(max(ordered) // 8 + 1)
    for position in ordered:
        data[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(data, "little")


def positions(bits: int) -> Iterator[int]:
    """The positions in a set.

    Args:
        bits: The set.

    Returns:
        An iterator of positions, ascending.
    """
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for index, byte in enumerate(data):
        if byte:
            start = index * 8
            while byte:
                low = byte & -byte
                yield start + low.bit_length() - 1
                byte ^= low
