"""The statements of a DAG file: its lines put together, each with its words and its place.

* ``#`` begins a comment line; a line that ends in a backslash goes on in the next.
* ``{`` behind the name in a JOB, FINAL, PROVISIONER, SERVICE or SUBMIT-DESCRIPTION line begins a submit description
  that ends at a line ``}``; ``@=TAG`` one that ends at a line ``@TAG``.

**Source**: the manual, "DAGMan Quick Reference".
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from condor_actors.dag.errors import DagError, Place

__all__ = ["Statement", "statements"]

_WITH_DESCRIPTION = frozenset({"JOB", "NODE", "FINAL", "PROVISIONER", "SERVICE", "SUBMIT-DESCRIPTION"})


@attrs.frozen(slots=True)
class Statement:
    """One command of a DAG file.

    Attributes:
        command: its first word in capitals.
        words: the others, as they are.
        text: everything behind the first word.
        place: where it begins.
        inline: the submit description that it holds; None: none.
    """

    command: str
    words: list[str]
    text: str
    place: Place
    inline: str | None = None

    def refuse(self, problem: str, remedy: str = "") -> DagError:
        """The error of this statement, to be raised."""
        return DagError(self.place, problem, remedy)


def statements(text: str, file: str) -> Iterator[Statement]:
    """The statements of a file.

    Args:
        text: the whole file.
        file: its name, for errors.

    Raises:
        DagError: a submit description does not end.
    """
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        first = number + 1
        line = lines[number].strip()
        number += 1
        if not line or line[0] == "#":
            continue
        while line[-1:] == "\\" and number < len(lines):
            line = f"{line[:-1].rstrip()} {lines[number].strip()}"
            number += 1
        line = line.strip()
        words = line.split()
        if not words:
            continue  # lines that only go on
        command = words[0].upper()
        place = (file, first)
        inline = None
        if command in _WITH_DESCRIPTION:
            at = _opening(words)
            if at:
                ending = "}" if words[at] == "{" else "@" + words[at][2:]
                inline, number, behind = _description(lines, number, ending, place)
                words = [*words[:at], *words[at + 1 :], *behind]
        rest = line[len(words[0]):].strip()
        yield Statement(command, words[1:], rest, place, inline)


def _opening(words: list[str]) -> int:
    """Which word opens a submit description; 0: none."""
    for at in range(2, len(words)):
        if words[at] == "{" or (words[at].startswith("@=") and len(words[at]) > 2):
            return at
    return 0


def _description(lines: list[str], number: int, ending: str, place: Place) -> tuple[str, int, list[str]]:
    """The lines up to the ending, the line behind it, and the words that stand behind the ending."""
    for at in range(number, len(lines)):
        words = lines[at].split()
        if words and words[0] == ending:
            return "\n".join(lines[number:at]) + "\n", at + 1, words[1:]
    raise DagError(place, "the submit description that begins here does not end", f"a line {ending} is missing")
