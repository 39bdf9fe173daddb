"""A bounded cache without bookkeeping: two generations of dictionaries.

A lookup costs one dictionary access when it hits the young generation. When the young one is full it becomes the old
one and an entry that is used again moves up, so entries in use survive and others go within two fillings.

It begins small.  What is put into it leaves a mark; when more than a quarter of a filling had been there before, the
generations are too small for what is in use, and grow.  So what comes once and never again, as the lines of jobs that
end, takes little room, however much of it comes.
"""

from __future__ import annotations

from collections.abc import Hashable

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final, Generic, TypeVar

    K = TypeVar("K", bound=Hashable)
    V = TypeVar("V")
else:
    K = V = None
    Generic = {(None, None): object}

FIRST_CAPACITY: Final = 2_048


class Recent(Generic[K, V]):
    """Remember the pairs used most recently.

    Attributes:
        most: Pairs in a generation at most.
        capacity: Pairs in a generation now; it remembers up to twice as many.
        young: The generation being filled; hot paths may read it directly.
    """

    __slots__ = ("_again", "_marked", "_marks", "capacity", "most", "old", "young")

    def __init__(self, most: int) -> None:
        self.most = most
        self.capacity = min(most, FIRST_CAPACITY)
        self.young: dict[K, V] = {}
        self.old: dict[K, V] = {}
        self._marks = bytearray()
        self._marked = self._again = 0

    def get(self, key: K) -> V | None:
        """Look up a key.

        Args:
            key: The key.

        Returns:
            Its value, None when it is not remembered.
        """
        value = self.young.get(key)
        if value is None:
            value = self.old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Remember a pair.

        Args:
            key: The key.
            value: Its value, never None.
        """
        if len(self.young) >= self.capacity:
            self._turn()
        if self._marks:
            self._mark(hash(key))
        self.young[key] = value

    def _turn(self) -> None:
        """The young generation becomes the old one."""
        if self._again * 4 > self.capacity:
            self.capacity = min(2 * self.capacity, self.most)
        if not self._marks or self._marked >= 2 * self.most:
            self._marks, self._marked = bytearray(4 * self.most), 0
        self._again = 0
        self.old = self.young
        self.young = {}

    def _mark(self, number: int) -> None:
        """One of thirty-two bits for each pair: few are taken for others."""
        place, bit = divmod(number % (32 * self.most), 8)
        if self._marks[place] >> bit & 1:
            self._again += 1
        else:
            self._marks[place] |= 1 << bit
            self._marked += 1
