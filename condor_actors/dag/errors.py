"""What is wrong with a DAG file: where, what was found, and what to do about it."""

from __future__ import annotations

__all__ = ["DagError", "Place"]

Place = tuple[str, int]
"""A file's name and a line in it, 1 for the first; line 0: the file as a whole."""


class DagError(ValueError):
    """A mistake in a DAG file.

    Attributes:
        file, line: where; line 0: the file as a whole.
        problem: what is wrong, with the value that was found.
        remedy: what to write instead; empty: that is plain.
    """

    def __init__(self, place: Place, problem: str, remedy: str = "") -> None:
        self.file, self.line = place
        self.problem = problem
        self.remedy = remedy
        where = f"{self.file}, line {self.line}" if self.line else self.file
        super().__init__(f"{where}: {problem}" + (f" ({remedy})" if remedy else ""))
