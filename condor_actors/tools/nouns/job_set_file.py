"""Job set files: a name, the rows of a table, and the descriptions of jobs that are made for each row.

Theory: a set file is read whole before anything is queued.  Each job becomes a submit description of its own with the
set's name and one queue statement over the table's rows; queue statements of its own count for nothing, and its lines
keep their numbers, so that what is wrong is reported where it stands.

**Source**: HTCondor's manual, "Job Sets".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import attrs

from condor_actors.tools.lib.command import ToolError
from condor_actors.written_text import read_written

__all__ = ["JobSetFile", "SetJob", "read_set"]

_QUEUE = re.compile(r"\s*queue(\s|$)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*")


@attrs.frozen
class SetJob:
    """One job of a set: its description without a queue statement, the file that it stands in, and its line there."""

    text: str
    source: str
    line: int


@attrs.frozen(kw_only=True)
class JobSetFile:
    """A set as read.

    Attributes:
        name: of the set.
        columns: names of the table's columns.
        rows: its rows, as they stand.
        jobs: at least one.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    jobs: tuple[SetJob, ...]

    def description(self, job: SetJob) -> str:
        """The whole submit description of a job; its lines have the numbers of the file that it stands in."""
        quoted = self.name.replace('"', '""')
        rows = "\n".join(self.rows)
        return (f"{job.text}\nMY.JobSetName = \"{quoted}\"\nMY.InJobSet = true\n"
                f"queue {','.join(self.columns)} from (\n{rows}\n)\n")


def read_set(path: str) -> JobSetFile:
    """Read a set file, and the files that it names, beside it or by their whole path.

    Raises:
        ToolError: something in it is wrong; says in which line.
        OSError: it cannot be read.
    """
    return _Reader(path, read_written(path)).read()


class _Reader:
    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._lines = text.split("\n")
        self._at = 0
        self._name = ""
        self._columns: tuple[str, ...] = ()
        self._rows: tuple[str, ...] = ()
        self._jobs: list[SetJob] = []

    def read(self) -> JobSetFile:
        for line in self._commands():
            word = re.split(r"[\s=]", line, maxsplit=1)[0].lower()
            command = {"name": self._take_name, "iterator": self._take_table, "job": self._take_job}.get(word)
            if command is None:
                raise self._wrong(f"{word!r} is no command of a job set: expected name, iterator or job")
            command(line[len(word):].strip())
        for missing, what in ((self._name, "name = NAME"), (self._columns, "iterator = table NAMES FILE, or { rows }"),
                              (self._jobs, "job FILE, or job { description }")):
            if not missing:
                raise ToolError(f"{self._path}: a job set needs a line {what}")
        if not self._rows:
            raise ToolError(f"{self._path}: the table has no rows, so that there would be no jobs")
        return JobSetFile(name=self._name, columns=self._columns, rows=self._rows, jobs=tuple(self._jobs))

    def _commands(self) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at].strip()
            self._at += 1
            if line and not line.startswith("#"):
                yield line

    def _wrong(self, text: str) -> ToolError:
        return ToolError(f"{self._path}, line {self._at}: {text}")

    def _value(self, rest: str) -> str:
        if not rest.startswith("="):
            raise self._wrong("expected = behind the word")
        return rest[1:].partition(" #")[0].strip()

    def _take_name(self, rest: str) -> None:
        if self._name:
            raise self._wrong(f"the set has a name already, {self._name}")
        self._name = self._value(rest)
        if not self._name:
            raise self._wrong("the name is empty")

    def _take_table(self, rest: str) -> None:
        if self._columns:
            raise self._wrong("a job set has one iterator")
        words = self._value(rest).replace(",", " ").split()
        if not words or words[0].lower() != "table":
            raise self._wrong(f"iterator = {words[0] if words else ''}: expected table, the only kind there is")
        names = words[1:-1]
        if not names or len(set(map(str.lower, names))) < len(names) or not all(map(_NAME.fullmatch, names)):
            raise self._wrong("iterator = table: expected different names of columns, then a file or {")
        begin = self._at
        if words[-1] == "{":
            lines, source = self._block(), self._path
        else:
            source, begin = self._beside(words[-1]), 0
            lines = self._file(source).split("\n")
        rows = []
        for number, line in enumerate(lines, begin + 1):
            row = line.split("#", 1)[0].strip()
            if row.startswith(")") or (row and len(row.split(",")) != len(names)):
                raise ToolError(f"{source}, line {number}: {row!r} is no row of {len(names)} values, with commas, for "
                                f"{', '.join(names)}")
            rows += [row] if row else []
        self._columns, self._rows = tuple(names), tuple(rows)

    def _take_job(self, rest: str) -> None:
        words = rest.partition(" #")[0].replace(",", " ").split()
        if not words:
            raise self._wrong("job: expected the file of its description, or {")
        names = {}
        for word in words[:-1]:
            ours, _, theirs = word.partition("=")
            if not _NAME.fullmatch(ours) or not _NAME.fullmatch(theirs):
                raise self._wrong(f"job {word}: expected NAME=COLUMN, for what the description calls the column")
            names[ours.lower()] = theirs
        line = self._at
        if words[-1] == "{":
            source, text = self._path, "\n" * line + "\n".join(self._block())
        else:
            source = self._beside(words[-1])
            text, line = self._file(source), 0
        self._jobs.append(SetJob(_renamed(_unqueued(text), names), source, line + 1))

    def _beside(self, name: str) -> str:
        return os.path.join(os.path.dirname(self._path), name)

    def _file(self, path: str) -> str:
        try:
            return read_written(path)
        except (OSError, UnicodeDecodeError) as error:
            raise self._wrong(f"{path}: {getattr(error, 'strerror', None) or error}") from None

    def _block(self) -> list[str]:
        begin = self._at
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if line.split("#", 1)[0].strip() == "}":
                return self._lines[begin:self._at - 1]
        self._at = begin
        raise self._wrong("no line } ends what begins here with {")


def _unqueued(text: str) -> str:
    """A description without its queue statements, and with as many lines."""
    lines = text.split("\n")
    is_open = is_continued = False
    for index, line in enumerate(lines):
        if is_open or is_continued or _QUEUE.match(line):
            is_continued = line.rstrip().endswith("\\")
            is_open = not line.strip().startswith(")") if is_open else line.rstrip().endswith("(")
            lines[index] = ""
    return "\n".join(lines)


def _renamed(text: str, names: dict[str, str]) -> str:
    """A description that calls the columns by the table's names."""
    if not names:
        return text
    return re.sub(r"\$\((" + "|".join(map(re.escape, names)) + r")\)",
                  lambda found: f"$({names[found[1].lower()]})", text, flags=re.IGNORECASE)
