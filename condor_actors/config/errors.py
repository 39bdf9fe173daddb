"""What is wrong with a configuration, said so that its author can put it right.

A configuration error names the place (file and line), the name, the value found, what was expected instead
and, when the mistake looks like a slip of the finger, the nearest word that would have been right.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["ConfigError", "UnknownParameterError", "nearest_word"]


class ConfigError(ValueError):
    """A configuration that cannot be used.

    Args:
        problem: what is wrong, one sentence without its final stop.
        file: where it stands, a path or ``<Environment>``, ``<Default>`` or similar; None when not known.
        line: counted from 1; None when the place has no lines.
        name: the macro concerned, as its author wrote it.
        value: the offending value, expanded.
        expected: what would have been right, as a noun phrase: ``an integer from 1 to 65535``.
        nearest: the known word nearest to the one given.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        line: int | None = None,
        name: str | None = None,
        value: str | None = None,
        expected: str | None = None,
        nearest: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.name = name
        self.value = value
        self.expected = expected
        self.nearest = nearest
        super().__init__(self._sentence())

    @property
    def place(self) -> str:
        """``file, line N``, or as much of it as is known."""
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}, line {self.line}"

    def _sentence(self) -> str:
        parts = [self.problem]
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.nearest:
            parts.append(f"did you mean {self.nearest}?")
        text = "; ".join(parts)
        return f"{self.place}: {text}" if self.place else text


class UnknownParameterError(LookupError):
    """The program asked for a typed parameter that the table does not have: a mistake of ours, not the user's."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is not in the parameter table; add its row to the module of condor_actors.config.parameters"
            " that belongs to the daemon that reads it"
        )


def nearest_word(word: str, known: Iterable[str], *, farthest: int | None = None) -> str | None:
    """The known word at the least edit distance from ``word``, letter case aside.

    Args:
        word: what the user wrote.
        known: what they might have meant.
        farthest: the greatest distance that still counts as a slip; by default a quarter of the length, at least 2.

    Returns:
        The nearest word in its own spelling, or None when none is near.
    """
    wanted = word.upper()
    limit = max(2, len(wanted) // 4) if farthest is None else farthest
    if len(wanted) <= 3:
        limit = min(limit, 1)
    best: str | None = None
    best_distance = limit + 1
    for candidate in known:
        if abs(len(candidate) - len(wanted)) >= best_distance:
            continue
        distance = _distance(wanted, candidate.upper(), best_distance)
        if distance < best_distance:
            best, best_distance = candidate, distance
    return best


def _distance(left: str, right: str, enough: int) -> int:
    """Edits (insert, drop, change, swap of neighbours) from one word to the other, given up at ``enough``."""
    before: list[int] = []
    above = list(range(len(right) + 1))
    for row, letter in enumerate(left, 1):
        here = [row]
        for column, other in enumerate(right, 1):
            cost = min(above[column] + 1, here[column - 1] + 1, above[column - 1] + (letter != other))
            swapped = row > 1 and column > 1 and letter == right[column - 2] and left[row - 2] == other
            if swapped:
                cost = min(cost, before[column - 2] + 1)
            here.append(cost)
        if min(here) >= enough:
            return enough
        before, above = above, here
    return above[-1]
