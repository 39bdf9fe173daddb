"""The statements of a DAG file: its lines put together, each with its words and its place.

* ``#`` or ``//`` begins a comment line; a line that ends in a backslash goes on in the next that is no comment.
* ``-`` and ``_`` are the same in the words of the language.
* What stands in quotation marks, of either kind, is one word or a part of one; there a backslash takes the next
  character as it is.  The marks themselves are left out of the names of files and directories only.
* ``{`` behind the name in a JOB, FINAL, PROVISIONER, SERVICE or SUBMIT-DESCRIPTION line begins a submit description
  that ends at a line ``}``; ``@=TAG`` one that ends at a line ``@TAG``.

**Source**: the manual, "DAGMan Quick Reference".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from condor_actors.dag.errors import DagError, Place

__all__ = ["Statement", "keyword", "statements"]

_FILES = {"JOB": 1, "NODE": 1, "FINAL": 1, "PROVISIONER": 1, "SERVICE": 1, "SUBDAG": 2, "SPLICE": 1, "INCLUDE": 0,
          "CONFIG": 0, "DOT": 0, "JOBSTATE_LOG": 0, "NODE_STATUS_FILE": 0, "SAVE_POINT_FILE": 1}  # fmt: skip
"""Commands with names of files and directories, and which of their words may be the first of these."""
_AS_IT_STANDS = frozenset({"SCRIPT", "VARS", "ENV", "SET_JOB_ATTR"})
"""Commands whose quotation marks have a meaning of their own."""
_BY_HYPHEN = {"ABORT_DAG_ON": "ABORT-DAG-ON", "SUBMIT_DESCRIPTION": "SUBMIT-DESCRIPTION"}
_BY_UNDERSCORE = frozenset({"PRE_SKIP", "SAVE_POINT_FILE", "PIN_IN", "PIN_OUT", "SET_JOB_ATTR", "JOBSTATE_LOG",
                            "NODE_STATUS_FILE"})
_PLAIN = re.compile(r"[^\s\"']+")
_INSIDE = {'"': re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL), "'": re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL)}
"""What may stand between two quotation marks."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_WITH_DESCRIPTION = frozenset({"JOB", "NODE", "FINAL", "PROVISIONER", "SERVICE", "SUBMIT-DESCRIPTION"})


@attrs.frozen(slots=True)
class Statement:
    """One command of a DAG file.

    Attributes:
        command: its first word in capitals.
        words: the others.
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
        DagError: a submit description, or a quotation, does not end.
    """
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        first = number + 1
        line = lines[number].strip()
        number += 1
        if _is_comment(line):
            continue
        while line[-1:] == "\\" and number < len(lines):
            more = lines[number].strip()
            number += 1
            if not _is_comment(more):
                line = f"{line[:-1].rstrip()} {more}"
        line = line.removesuffix("\\").strip()
        words = line.split()
        if not words:
            continue  # lines that only go on
        command = _command(words[0])
        place = (file, first)
        if ("\"" in line or "'" in line) and command not in _AS_IT_STANDS:
            words = _quoted_words(line, place, _FILES.get(command))
        inline = None
        if command in _WITH_DESCRIPTION:
            at = _opening(words)
            if at:
                ending = "}" if words[at] == "{" else "@" + words[at][2:]
                inline, number, behind = _description(lines, number, ending, place)
                words = [*words[:at], *words[at + 1 :], *behind]
        rest = line[len(words[0]):].strip()
        yield Statement(command, words[1:], rest, place, inline)


def keyword(word: str) -> str:
    """A word of the language behind its command, in capitals and with hyphens."""
    return word.upper().replace("_", "-")


def _is_comment(line: str) -> bool:
    return not line or line[0] == "#" or line.startswith("//")


def _command(word: str) -> str:
    upper = word.upper()
    plain = upper.replace("-", "_")
    return plain if plain in _BY_UNDERSCORE else _BY_HYPHEN.get(plain, upper)


def _quoted_words(line: str, place: Place, files: int | None) -> list[str]:
    """The words of a line with quotation marks; ``files``: behind the command so many are no names of files."""
    words: list[str] = []
    at, begins = 0, True
    while at < len(line):
        mark = line[at]
        if mark.isspace():
            at, begins = at + 1, True
            continue
        if begins:
            words.append("")
            begins = False
        if (inside := _INSIDE.get(mark)) is None:
            end = _end(_PLAIN, line, at)
            words[-1] += line[at:end]
        else:
            end = _end(inside, line, at + 1) + 1
            if line[end - 1 : end] != mark:
                raise DagError(place, f"a quotation does not end: {line[at:][:60]}", "add the quotation mark")
            is_file = files is not None and len(words) > files + 1
            words[-1] += _ESCAPED.sub(r"\1", line[at + 1 : end - 1]) if is_file else line[at:end]
        at = end
    return words


def _end(pattern: re.Pattern[str], line: str, at: int) -> int:
    found = pattern.match(line, at)
    return found.end() if found is not None else at


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
