"""The queue statement: how many jobs, and over which rows of values.

``queue [COUNT] [VARIABLES in|from|matching [files|dirs|any] [SLICE] ITEMS]``

Theory: a row is what one item gives to the loop variables.  ``in`` takes a list of single values, ``from`` takes rows
of several (inline, from a file, from a program's output or from standard input), ``matching`` takes file names that
match patterns.  A slice then chooses among the items.  Each row is queued COUNT times; ``Step`` counts within a row,
``Row`` (``ItemIndex``) names the item.

**Source**: the manual, "Submitting many similar jobs with one queue command".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

from condor_actors import records
from condor_actors.patterns import late
from condor_actors.submit.errors import SubmitError
from condor_actors.written_text import text_problem

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Protocol
else:
    Protocol = object

MAX_COUNT = 10_000_000
_QUEUE = late(r"queue(?=\s|\(|$)\s*", "i")
_BETWEEN = late(r"[,\s]+")
_KEYWORD = late(r"(?:^|[\s,])(in|from|matching)(?=[\s(\[]|$)", "i")
_QUALIFIER = late(r"(files|dirs|any)(?=[\s(\[]|$)\s*", "i")
_SLICE = late(r"\[\s*+(-?\d*+)\s*+:\s*+(-?\d*+)\s*+(?::\s*+(-?\d*+)\s*+)?\]\s*|\[\s*+(-?\d+)\s*\]\s*")
_VARIABLES = late(r"(?:^|(?<=[\s)\]]))([A-Za-z_][\w.]*(?:(?:\s++,?|,)\s*+[A-Za-z_][\w.]*)*)\s*$")
_SEPARATORS = ", \t"
MOST_DIGITS = 15
"""Of a slice's numbers: more lie behind the end of any list."""


class Mode(enum.Enum):
    """How items are found."""

    NONE = "none"
    IN = "in"
    FROM = "from"
    MATCHING = "matching"


class Files(Protocol):
    """What a queue statement asks of the file system; paths are relative to the caller's folder."""

    def read_text(self, path: str) -> str:
        """The text of a file; ``-`` is standard input.  Raises OSError."""

    def run(self, command: str) -> str:
        """What a command prints.  Raises OSError."""

    def glob(self, pattern: str) -> Sequence[tuple[str, bool]]:
        """(path, is a folder) of what matches, sorted."""


@records.frozen(kw_only=True)
class QueueStatement:
    """A queue statement as read; nothing of the file system has been looked at.

    Attributes:
        count: jobs per row.
        variables: names that take the columns of a row.
        mode: where items come from.
        kind: ``files``, ``dirs``, ``any`` or empty, for ``matching``.
        slice: which of the items.
        items: items given in the statement itself (for ``matching``: patterns).
        source: file of rows, ``-``, or ``COMMAND |``; empty: the rows are in ``items``.
        open_list: the list goes on in the following lines, up to ``)``.
    """

    count: int = 1
    variables: tuple[str, ...] = ()
    mode: Mode = Mode.NONE
    kind: str = ""
    slice: slice = slice(None)
    items: tuple[str, ...] = ()
    source: str = ""
    open_list: bool = False

    def with_rows(self, rows: Sequence[str]) -> QueueStatement:
        """The same statement, its open list filled with the lines that followed."""
        more = rows if self.mode is Mode.FROM else [item for row in rows for item in split_items(row)]
        return records.evolve(self, items=(*self.items, *more), open_list=False)


def is_queue(text: str) -> bool:
    """Whether a logical line is a queue statement (and not ``queue = …``)."""
    word = _QUEUE.match(text)
    return word is not None and not text[word.end() :].startswith("=")


def parse_queue(arguments: str, evaluate: Callable[[str], object], *, file: str = "", line: int = 0) -> QueueStatement:
    """Read what stands behind the word ``queue``, macros expanded.

    Args:
        evaluate: the value of a ClassAd expression, for the count.

    Raises:
        SubmitError: a count that is no number, a bad slice, unknown words.
    """

    def wrong(problem: str) -> SubmitError:
        return SubmitError(problem, file=file, line=line, parsing=True)

    text = arguments.strip()
    keyword = _find_keyword(text)
    if keyword is None:
        return QueueStatement(count=_count(text, evaluate, wrong))
    mode = Mode(keyword.group(1).lower())
    before, after = text[: keyword.start(1)].rstrip(" \t,"), text[keyword.end(1) :].strip()
    names = _VARIABLES.search(before)
    variables = tuple(_BETWEEN.split(names.group(1).strip())) if names else ()
    twice = sorted({name for name in variables if [*map(str.lower, variables)].count(name.lower()) > 1})
    if twice:
        raise wrong(f"queue: the variable {twice[0]} is named more than once; each column needs a name of its own")
    count = _count(before[: names.start()] if names else before, evaluate, wrong)
    kind, chosen, rest = _qualifiers(after, mode, wrong)
    items: tuple[str, ...] = ()
    source, open_list = "", False
    if rest.startswith("("):
        inside = rest[1:].strip()
        if inside.endswith(")"):
            inside = inside[:-1].strip()
        else:
            open_list = True
        items = _inline(inside, mode)
    elif mode is Mode.FROM:
        source = rest
        if not source:
            raise wrong("queue … from: expected a file name, a list in parentheses, or a command followed by |")
    else:
        items = tuple(split_items(rest))
    return QueueStatement(
        count=count,
        variables=variables or ("Item",),
        mode=mode,
        kind=kind,
        slice=chosen,
        items=items,
        source=source,
        open_list=open_list,
    )


def _find_keyword(text: str) -> re.Match[str] | None:
    """The first in/from/matching outside parentheses."""
    for found in _KEYWORD.finditer(text):
        if "(" not in text[: found.start(1)] or text[: found.start(1)].count("(") == text[: found.start(1)].count(")"):
            return found
    return None


def _count(text: str, evaluate: Callable[[str], object], wrong: Callable[[str], SubmitError]) -> int:
    text = text.strip()
    if not text:
        return 1
    try:
        value = int(text) if text.lstrip("-").isdecimal() else evaluate(text)
    except ValueError as error:
        raise wrong(f"queue {text}: expected the number of jobs ({error})") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(f"queue {text}: expected the number of jobs, an integer expression")
    if not 0 <= value <= MAX_COUNT:
        raise wrong(f"queue {text}: expected a number of jobs from 0 to {MAX_COUNT}")
    return value


def _qualifiers(text: str, mode: Mode, wrong: Callable[[str], SubmitError]) -> tuple[str, slice, str]:
    kind, chosen = "", slice(None)
    while True:
        word = _QUALIFIER.match(text)
        if word and mode is Mode.MATCHING:
            kind, text = word.group(1).lower(), text[word.end() :]
            continue
        if text.startswith("["):
            found = _SLICE.match(text)
            if found is None:
                raise wrong(f"queue: {text}: expected a slice such as [1:10] or [::2]")
            if found.group(4) is not None:
                first = int(found.group(4)[:MOST_DIGITS])
                chosen = slice(first, first + 1 if first != -1 else None)
            else:
                chosen = slice(*(int(part[:MOST_DIGITS]) if part else None for part in found.group(1, 2, 3)))
                if chosen.step == 0:
                    raise wrong(f"queue: {found.group().strip()}: the step of a slice is at least 1, or less than 0")
            text = text[found.end() :]
            continue
        return kind, chosen, text


def _inline(text: str, mode: Mode) -> tuple[str, ...]:
    if not text:
        return ()
    return (text,) if mode is Mode.FROM else tuple(split_items(text))


def split_items(text: str) -> list[str]:
    """A list separated by commas and blanks."""
    return [item for item in _BETWEEN.split(text) if item]


def load_items(statement: QueueStatement, files: Files, *, file: str = "", line: int = 0) -> list[str]:
    """The items of a statement, from wherever they come, before slicing.

    Raises:
        SubmitError: a file that cannot be read, a command that fails.
    """
    if statement.mode is Mode.MATCHING:
        return list(_matching(statement, files))
    if not statement.source:
        return list(statement.items)
    source = statement.source
    try:
        text = files.run(source[:-1].strip()) if source.endswith("|") else files.read_text(source)
    except OSError as error:
        raise SubmitError(
            f"can't open '{source}': {error.strerror or error}", file=file, line=line, parsing=True
        ) from None
    problem, at = text_problem(text)
    if problem:
        raise SubmitError(f"queue … from {source}: {problem} (line {at} there)", file=file, line=line, parsing=True)
    rows = [row.strip() for row in text.splitlines()]
    return [row for row in rows if row and not row.startswith("#")]


def _matching(statement: QueueStatement, files: Files) -> Iterator[str]:
    seen = set()
    for pattern in statement.items:
        for path, is_folder in files.glob(pattern):
            if (statement.kind == "files" and is_folder) or (statement.kind == "dirs" and not is_folder):
                continue
            name = path.rstrip("/") + "/" if is_folder else path
            if name not in seen:
                seen.add(name)
                yield name


def split_row(row: str, columns: int) -> list[str]:
    """The values of a row for so many variables; the last takes what is left, missing ones are empty.

    A row that holds the unit separator (\\x1f) is split at it alone.
    """
    row = row.strip()
    if columns <= 1:
        return [row]
    separators = "\x1f" if "\x1f" in row else _SEPARATORS
    values: list[str] = []
    while len(values) < columns - 1:
        end = next((position for position, letter in enumerate(row) if letter in separators), -1)
        if end < 0:
            break
        values.append(row[:end].rstrip(" \t"))
        row = row[end + 1 :].lstrip(" \t")
    values.append(row)
    return values + [""] * (columns - len(values))
