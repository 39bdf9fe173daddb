"""A bounded cache without bookkeeping: two generations of dictionaries.

A lookup costs one dictionary access when it hits the young generation. When the young one is full it becomes the old
one and what is asked for again moves up, so what is in use survives and what is not goes within two fillings.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remember about the `capacity` to 2 × `capacity` most recently used pairs.

    Attributes:
        young: The generation being filled; hot paths may read it directly.
    """

    __slots__ = ("capacity", "old", "young")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.young: dict[K, V] = {}
        self.old: dict[K, V] = {}

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
            self.old = self.young
            self.young = {}
        self.young[key] = value
