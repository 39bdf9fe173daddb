"""A regular expression matcher whose time grows with text times pattern, whatever the pattern.

Python's matcher tries alternatives one after another and can take for ever on ``(a+)+$``. Patterns that could do so are
run here instead: all alternatives at once, one pass over the text, the threads kept in order of preference so that the
result is the one that the other matcher would find. What needs memory of what was matched (back references,
look-around, atomic groups) cannot be done this way and is refused.

============  ============================================
instruction   meaning
============  ============================================
``take``      the next character must pass a test
``split``     go on at two places, the first preferred
``jump``      go on elsewhere
``save``      note the position as an end of a group
``at``        the position must be of a kind
``done``      a match
============  ============================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import _constants as constants  # type: ignore[attr-defined]  # the tree of a pattern has no public door
from re import _parser as pattern_parser  # type: ignore[attr-defined]  # as above
from typing import Any, Final

import attrs

MAX_PROGRAM: Final = 20_000
_MANY: Final = 10
_WORD: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_CATEGORIES: Final[dict[Any, Callable[[str], bool]]] = {
    constants.CATEGORY_DIGIT: lambda char: char in "0123456789",
    constants.CATEGORY_NOT_DIGIT: lambda char: char not in "0123456789",
    constants.CATEGORY_SPACE: lambda char: char in " \t\n\r\f\v",
    constants.CATEGORY_NOT_SPACE: lambda char: char not in " \t\n\r\f\v",
    constants.CATEGORY_WORD: lambda char: char in _WORD,
    constants.CATEGORY_NOT_WORD: lambda char: char not in _WORD,
}


def _between(low: int, high: int) -> Callable[[str], bool]:
    return lambda char: low <= ord(char) <= high


class Unsupported(ValueError):
    """A pattern that cannot be matched in one pass, or is too large."""


@attrs.frozen
class Span:
    """Where a match and its groups lie.

    Attributes:
        text: The text searched.
        ends: Start and end of the match, then of each group; None where a group took no part.
    """

    text: str
    ends: tuple[int | None, ...]

    def start(self) -> int:
        """Where the match begins."""
        return self.ends[0] or 0

    def end(self) -> int:
        """Where the match ends."""
        return self.ends[1] or 0

    def group(self, number: int) -> str:
        """The text of a group.

        Args:
            number: 0 for the whole match.

        Returns:
            The text, empty when the group took no part or does not exist.
        """
        if 2 * number + 1 >= len(self.ends):
            return ""
        start, end = self.ends[2 * number], self.ends[2 * number + 1]
        return "" if start is None or end is None else self.text[start:end]


def cost(pattern: str, flags: int) -> tuple[bool, int]:
    """Judge what a pattern could cost a matcher that tries one way after another.

    Args:
        pattern: The regular expression.
        flags: Of `re`.

    Returns:
        Whether repetitions are nested, and how many open-ended ones there are.
    """
    nested = False
    count = 0

    def visit(items: Any, inside: bool) -> None:
        nonlocal nested, count
        for operation, argument in items:
            if operation in _REPEATS:
                least, most, body = argument
                many = most > _MANY and most != least
                if many:
                    count += 1
                    nested = nested or inside
                visit(body, inside or most > 1)
            elif operation is constants.BRANCH:
                nested = nested or inside
                for branch in argument[1]:
                    visit(branch, inside)
            elif operation is constants.SUBPATTERN:
                visit(argument[3], inside)
            elif operation in (constants.ASSERT, constants.ASSERT_NOT):
                visit(argument[1], inside)
            elif operation is constants.ATOMIC_GROUP:
                visit(argument, inside)
            elif operation is constants.GROUPREF:
                nested = nested or inside

    visit(pattern_parser.parse(pattern, flags), False)
    return nested, count


_REPEATS: Final = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)


class LinearPattern:
    """A compiled pattern.

    Args:
        pattern: The regular expression.
        flags: Of `re`.

    Raises:
        Unsupported: When it cannot be matched in one pass.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        tree = pattern_parser.parse(pattern, flags)
        self.flags = tree.state.flags
        self.slots = 2 * tree.state.groups
        self.program: list[tuple[Any, ...]] = []
        self._emit(("save", 0))
        self._sequence(tree)
        self._emit(("save", 1))
        self._emit(("done",))

    # -- compiling

    def _emit(self, instruction: tuple[Any, ...]) -> int:
        if len(self.program) >= MAX_PROGRAM:
            raise Unsupported("pattern too large")
        self.program.append(instruction)
        return len(self.program) - 1

    def _sequence(self, items: Any) -> None:
        for operation, argument in items:
            if operation in _REPEATS[:2]:
                least, most, body = argument
                self._repeat(least, most, body, lazy=operation is constants.MIN_REPEAT)
            elif operation is constants.BRANCH:
                self._branch(argument[1])
            elif operation is constants.SUBPATTERN:
                self._group(*argument)
            elif operation is constants.AT:
                self._emit(("at", argument))
            else:
                self._emit(("take", self._test(operation, argument)))

    def _group(self, number: int | None, added: int, removed: int, body: Any) -> None:
        if added or removed:
            raise Unsupported("flags inside the pattern")
        if number is not None:
            self._emit(("save", 2 * number))
        self._sequence(body)
        if number is not None:
            self._emit(("save", 2 * number + 1))

    def _branch(self, branches: list[Any]) -> None:
        leaving: list[int] = []
        for branch in branches[:-1]:
            split = self._emit(())
            self._sequence(branch)
            leaving.append(self._emit(()))
            self.program[split] = ("split", split + 1, len(self.program))
        self._sequence(branches[-1])
        for at in leaving:
            self.program[at] = ("jump", len(self.program))

    def _repeat(self, least: int, most: int, body: Any, lazy: bool) -> None:
        for _ in range(least):
            self._sequence(body)
        if most == constants.MAXREPEAT:
            split = self._emit(())
            self._sequence(body)
            self._emit(("jump", split))
            self._choose(split, len(self.program), lazy)
            return
        splits: list[int] = []
        for _ in range(most - least):
            splits.append(self._emit(()))
            self._sequence(body)
        for split in splits:
            self._choose(split, len(self.program), lazy)

    def _choose(self, split: int, after: int, lazy: bool) -> None:
        self.program[split] = ("split", after, split + 1) if lazy else ("split", split + 1, after)

    def _test(self, operation: Any, argument: Any) -> Callable[[str], bool]:
        fold = bool(self.flags & re.IGNORECASE)
        if operation is constants.ANY:
            if self.flags & re.DOTALL:
                return lambda char: True
            return lambda char: char != "\n"
        if operation in (constants.LITERAL, constants.NOT_LITERAL):
            wanted = chr(argument)
            plain = operation is constants.LITERAL
            if fold:
                wanted = wanted.lower()
                return lambda char: (char.lower() == wanted) is plain
            return lambda char: (char == wanted) is plain
        if operation is constants.IN:
            return self._set(argument, fold)
        raise Unsupported(f"{operation} needs more than one pass")

    def _set(self, items: list[Any], fold: bool) -> Callable[[str], bool]:
        negated = bool(items) and items[0][0] is constants.NEGATE
        tests: list[Callable[[str], bool]] = []
        for operation, argument in items[1:] if negated else items:
            if operation is constants.CATEGORY:
                tests.append(_CATEGORIES[argument])
            else:
                low, high = argument if operation is constants.RANGE else (argument, argument)
                tests.append(_between(low, high))

        def test(char: str) -> bool:
            found = any(one(char) for one in tests)
            if fold and not found:
                found = any(one(char.swapcase()) for one in tests if len(char.swapcase()) == 1)
            return found is not negated

        return test

    # -- matching

    def search(self, text: str, start: int = 0) -> Span | None:
        """Find the first match.

        Args:
            text: Where to look.
            start: From where.

        Returns:
            The match, None when there is none.
        """
        best: Span | None = None
        threads: list[tuple[int, tuple[int | None, ...]]] = []
        empty: tuple[int | None, ...] = (None,) * self.slots
        for position in range(start, len(text) + 1):
            seen: set[int] = set()
            ready: list[tuple[int, tuple[int | None, ...]]] = []
            for at, ends in threads:
                self._follow(at, ends, text, position, seen, ready)
            if best is None:
                self._follow(0, empty, text, position, seen, ready)
            threads = []
            char = text[position : position + 1]
            for at, ends in ready:
                instruction = self.program[at]
                if instruction[0] == "done":
                    best = Span(text, ends)
                    break
                if char and instruction[1](char):
                    threads.append((at + 1, ends))
            if not threads and best is not None:
                break
        return best

    def _follow(
        self, at: int, ends: tuple[int | None, ...], text: str, position: int, seen: set[int], ready: list[Any]
    ) -> None:
        """Go on to every instruction that takes a character, in order of preference."""
        waiting = [(at, ends)]
        while waiting:
            at, ends = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self.program[at]
            kind = instruction[0]
            if kind == "split":
                waiting.append((instruction[2], ends))
                waiting.append((instruction[1], ends))
            elif kind == "jump":
                waiting.append((instruction[1], ends))
            elif kind == "save":
                slot = instruction[1]
                waiting.append((at + 1, (*ends[:slot], position, *ends[slot + 1 :])))
            elif kind == "at":
                if self._stands(instruction[1], text, position):
                    waiting.append((at + 1, ends))
            else:
                ready.append((at, ends))

    def _stands(self, kind: Any, text: str, position: int) -> bool:
        size = len(text)
        many = bool(self.flags & re.MULTILINE)
        if kind is constants.AT_BEGINNING:
            return position == 0 or (many and text[position - 1] == "\n")
        if kind is constants.AT_BEGINNING_STRING:
            return position == 0
        if kind is constants.AT_END:
            last = position == size or (position == size - 1 and text[position] == "\n")
            return last or (many and text[position] == "\n")
        if kind is constants.AT_END_STRING:
            return position == size
        before = position > 0 and text[position - 1] in _WORD
        after = position < size and text[position] in _WORD
        return (before != after) is (kind is constants.AT_BOUNDARY)

    def finditer(self, text: str) -> Iterator[Span]:
        """Find all matches.

        Args:
            text: Where to look.

        Returns:
            An iterator of matches that do not overlap.
        """
        position = 0
        while position <= len(text):
            found = self.search(text, position)
            if found is None:
                return
            yield found
            position = found.end() if found.end() > found.start() else found.end() + 1
