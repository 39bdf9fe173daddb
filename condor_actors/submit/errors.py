"""What is wrong with a submit description, said so that its author can put it right."""

from __future__ import annotations

MOST_QUOTED = 300
"""Letters of a line that a message quotes."""
MOST_SHOWN = 2000
"""Letters of a message: what is wrong may be megabytes."""
_KEPT = str.maketrans({letter: repr(chr(letter))[1:-1] for letter in (*range(9), *range(11, 32), *range(127, 160))})


def printable(text: str, most: int = MOST_SHOWN) -> str:
    """A text of anybody's for a terminal: no control characters, and bytes that are no UTF-8 as ``\\xe9``."""
    if len(text) > most:
        text = f"{text[: most // 2]} … ({len(text) - most:,} letters) … {text[-most // 2 :]}"
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return plain.translate(_KEPT)


class SubmitError(ValueError):
    """A description that cannot become jobs.

    Args:
        problem: what is wrong and what would be right, one sentence.
        file: where it stands; empty: not from a file.
        line: counted from 1; 0: no line (the mistake shows only when a job is made).
        parsing: whether the description could not even be read (then no job of it exists).
        command: the command that is to blame, where one is; it has a place in the description.
        remedy: what to do about it.
    """

    def __init__(self, problem: str, *, file: str = "", line: int = 0, parsing: bool = False, command: str = "",
                 remedy: str = "") -> None:
        problem = self.problem = printable(problem)
        self.file = file
        self.line = line
        self.parsing = parsing
        self.command = command
        self.remedy = remedy
        super().__init__(f"{file}, line {line}: {problem}" if line else problem)
