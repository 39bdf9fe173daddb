"""What is to leave one after the other, some at a time: many more come in a moment than can leave in one turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["Backlog"]

_T = TypeVar("_T")


class Backlog(Generic[_T]):
    """First in, first out; what was gathered elsewhere joins as a whole, at no cost however much it is."""

    def __init__(self) -> None:
        self._pieces: deque[deque[_T]] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __iter__(self) -> Iterator[_T]:
        for piece in self._pieces:
            yield from piece

    def add(self, each: _T) -> None:
        """One more."""
        if not self._pieces:
            self._pieces.append(deque())
        self._pieces[-1].append(each)

    def join(self, piece: deque[_T]) -> None:
        """These come behind all others; they belong to the backlog from now on."""
        if piece:
            self._pieces.append(piece)

    def take(self, most: int) -> list[_T]:
        """The first ones, which have left then."""
        taken: list[_T] = []
        while self._pieces and len(taken) < most:
            piece = self._pieces[0]
            taken += [piece.popleft() for _ in range(min(most - len(taken), len(piece)))]
            if not piece:
                self._pieces.popleft()
        return taken

    def take_those(self, chosen: Callable[[_T], bool]) -> list[_T]:
        """Those that are chosen leave before their time, in their order."""
        taken = [each for each in self if chosen(each)]
        if taken:
            pieces = [deque(each for each in piece if not chosen(each)) for piece in self._pieces]
            self._pieces = deque(piece for piece in pieces if piece)
        return taken
