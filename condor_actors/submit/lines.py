r"""Logical lines of a submit description.

Theory: what people write is folded twice before it means anything.

* A line that ends in a backslash goes on in the next one, whose leading blanks do not count.  Comment lines within
  such a run are skipped, so that one argument of many can be commented out.
* ``NAME @=tag`` takes everything up to a line ``@tag`` as its value, line breaks included.

Comments (``#``) and empty lines are dropped here; each logical line keeps the number of its first physical line.
"""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors import records
from condor_actors.patterns import late
from condor_actors.submit.errors import SubmitError
from condor_actors.written_text import text_problem

MOST_NESTED = 1000
"""Conditions within one another."""
MOST_LINE_CHARS = 1 << 20
"""Of a logical line; a queue statement's list may be longer."""
_BLOCK = late(r"^\s*([+\w.]+)\s*@=\s*(\S+)\s*$")


@records.frozen
class Line:
    """A logical line: its text without surrounding blanks, and where it began.

    ``block`` is the value of a ``NAME @=tag`` definition (then ``text`` is the name), else None.
    """

    text: str
    number: int
    block: str | None = None


@records.frozen
class Branch:
    """Of an ``if``: its line, whether it is read, whether one of them was read already, whether it is the last."""

    line: Line
    taken: bool
    done: bool
    is_else: bool = False


class LineReader:
    """Iterates over logical lines; `raw_rows` reads the lines of a queue statement's list instead."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        problem, line = text_problem(text)
        if problem:
            raise SubmitError(problem, file=source, line=line, parsing=True)
        self._lines = text.split("\n")
        self._next = 0

    def __iter__(self) -> Iterator[Line]:
        while (line := self.next_line()) is not None:
            yield line

    def next_line(self) -> Line | None:
        """The next logical line that says something, None at the end."""
        while self._next < len(self._lines):
            number = self._next + 1
            text = self._physical()
            stripped = text.strip()
            if not stripped or stripped.startswith("#"):
                continue
            opening = _BLOCK.match(text)
            if opening:
                return Line(opening.group(1), number, self._block(opening.group(2), number))
            if text.endswith("\\"):
                text = self._continued(text)
            if len(text) > MOST_LINE_CHARS and not text.lstrip()[:5].lower() == "queue":
                raise SubmitError(f"the line has {len(text):,} letters, and {MOST_LINE_CHARS:,} are the most: "
                                  f"{text[:60]} …", file=self.source, line=number, parsing=True)
            return Line(text.rstrip("\\").strip() if text.endswith("\\") else text.strip(), number)
        return None

    def _continued(self, text: str) -> str:
        """A line with those that go on from it."""
        pieces = [text]
        while pieces[-1].endswith("\\") and self._next < len(self._lines):
            following = self._physical().strip()
            if not following.startswith("#"):
                pieces[-1] = pieces[-1][:-1]
                pieces.append(following)
        return "".join(pieces)

    def raw_rows(self, first_line: int) -> list[str]:
        """The rows up to a line that begins with ``)``; comments are skipped.

        Raises:
            SubmitError: the text ends before that line.
        """
        rows: list[str] = []
        while self._next < len(self._lines):
            row = self._physical().strip()
            if row.startswith(")"):
                return rows
            if row and not row.startswith("#"):
                rows.append(row)
        raise SubmitError(
            f"Reached end of file without finding closing brace ')' for Queue command on line {first_line}",
            file=self.source,
            line=first_line,
            parsing=True,
        )

    def rest(self) -> str:
        """The text behind the line that was read last."""
        return "\n".join(self._lines[self._next :]).strip("\n")

    def _physical(self) -> str:
        text = self._lines[self._next]
        self._next += 1
        return text.rstrip("\r").rstrip()

    def _block(self, tag: str, first_line: int) -> str:
        end = "@" + tag
        rows: list[str] = []
        while self._next < len(self._lines):
            row = self._lines[self._next].rstrip("\r")
            self._next += 1
            if row.strip() == end:
                return "\n".join(rows)
            rows.append(row)
        raise SubmitError(
            f"the value that begins with @={tag} never ends: a line {end} is missing",
            file=self.source,
            line=first_line,
            parsing=True,
        )
