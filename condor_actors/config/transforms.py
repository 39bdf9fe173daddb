"""The language of job transforms: what stands in a JOB_TRANSFORM_<NAME>.

A transform is a list of statements that are carried out in order on the ad of a new job:

==========================  ======================================================================================
``NAME text``                what the transform is called in the log
``REQUIREMENTS expr``        it is for the jobs of which this is true
``var = text``               a macro, for ``$(var)`` further down
``EVALMACRO var expr``       a macro, with the value of an expression about the job
``SET attr expr``            the attribute becomes the expression
``DEFAULT attr expr``        the same, where the job has no such attribute or an undefined one
``EVALSET attr expr``        the attribute becomes the value of the expression
``COPY attr attr``           or ``COPY /regex/ pattern``: ``\\0`` is the whole name, ``\\1`` what the first group took
``RENAME``, ``DELETE``       likewise
``if … elif … else endif``   as in the configuration; ``defined MY.attr`` asks for an attribute of the job
==========================  ======================================================================================

``$(MY.attr)`` is what stands in the ad, strings without their quotes.  Reading checks everything that does not depend
on a job.  **Source**: the manual, "ClassAd Transforms".
"""

from __future__ import annotations

from condor_actors.classads import ClassAdSyntaxError, parse_expression
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.config.errors import ConfigError
from condor_actors.config.lines import LogicalLine
from condor_actors.patterns import late
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Final

__all__ = ["Assignment", "JobTransform", "Step", "is_job_transform", "read_transform"]

PREFIX: Final = "JOB_TRANSFORM_"
FORBIDDEN: Final = frozenset({"clusterid", "procid", "owner", "user", "globaljobid", "qdate", "mytype", "targettype"})
"""Attributes that only the schedd gives a job, lower case."""

_ASSIGNMENT: Final = late(r"([A-Za-z_][\w.]*)\s*=(?!=)\s*(.*)", "s")
_CONDITION: Final = late(r"(if|elif|else|endif)\b(?!\s*[=:])", "i")
_NAME: Final = late(r"[A-Za-z_]\w*")
_FIRST_WORD: Final = late(r"([^\s=,]+)\s*[=,]?\s*")
_WITH_EXPRESSION: Final = ("SET", "DEFAULT", "EVALSET", "EVALMACRO")
_ON_NAMES: Final = ("COPY", "RENAME", "DELETE")
_KEYWORDS: Final = ("NAME", "REQUIREMENTS", *_WITH_EXPRESSION, *_ON_NAMES)


class Step(NamedTuple):
    """One statement that changes the job or makes a macro.

    Attributes:
        keyword: in capitals.
        target: attribute or macro; empty where ``pattern`` says which.
        text: the expression or the new name, not expanded.
        pattern: which attributes, None for one.
        line: the statement as written, for messages.
    """

    keyword: str
    target: str
    text: str
    pattern: re.Pattern[str] | None
    line: str


class Assignment(NamedTuple):
    """``name = value``, not expanded."""

    name: str
    value: str


class JobTransform(NamedTuple):
    """A transform, read.

    Attributes:
        name: what the configuration calls it; ``title``: what its NAME says, else the same.
        requirements: not expanded; empty: every job.
        statements: in order; conditions as their lines.
    """

    name: str
    title: str
    requirements: str
    statements: tuple[Step | Assignment | LogicalLine, ...]


def is_job_transform(name: str) -> bool:
    """Whether a name of the configuration holds a transform: its macros are those of a job, not of the file."""
    upper = name.upper().rpartition(".")[2]
    return upper.startswith(PREFIX) and upper != "JOB_TRANSFORM_NAMES"


def read_transform(name: str, raw: str) -> JobTransform:
    """Read the text of ``JOB_TRANSFORM_<name>``.

    Raises:
        ConfigError: a statement that is none; it is quoted.
    """
    title, requirements = name, ""
    statements: list[Step | Assignment | LogicalLine] = []
    opened: list[str] = []
    if raw.lstrip().startswith("["):
        raise ConfigError(
            "a transform in the form of a ClassAd; HTCondor has given that form up too", value=raw[:60],
            expected=f"statements: {', '.join(_KEYWORDS)}")  # fmt: skip
    for number, line in enumerate(raw.split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if (found := _CONDITION.match(text)) is not None:
            _nest(opened, found[1].lower(), text)
            statements.append(LogicalLine(text, f"{PREFIX}{name}", number))
        elif (assigned := _ASSIGNMENT.fullmatch(text)) is not None and not _is_statement(assigned):
            statements.append(Assignment(assigned[1], assigned[2].strip()))
        else:
            keyword, rest = _keyword(text)
            if keyword == "NAME":
                title = rest
            elif keyword == "REQUIREMENTS":
                requirements = _expression(rest, text)
            else:
                statements.append(_step(keyword, rest, text))
    if opened:
        raise ConfigError(f"the transform {name} has an if without endif", value=opened[-1], expected="endif")
    return JobTransform(name, title, requirements, tuple(statements))


def _is_statement(assigned: re.Match[str]) -> bool:
    """``REQUIREMENTS = x`` and ``NAME = x`` are taken for the statements that they look like."""
    return assigned[1].upper() in ("REQUIREMENTS", "NAME")


def _nest(opened: list[str], word: str, text: str) -> None:
    if word == "if":
        opened.append(text)
    elif not opened:
        raise ConfigError(f"{word} without an if before it", value=text)
    elif word == "endif":
        opened.pop()


def _keyword(text: str) -> tuple[str, str]:
    word, _, rest = text.partition(" ") if " " in text else text.partition("\t")
    keyword = word.upper()
    if keyword not in _KEYWORDS:
        raise ConfigError(
            f"{word} is no statement of a transform", value=text,
            expected=f"NAME = VALUE, if, or one of {', '.join(_KEYWORDS)}")  # fmt: skip
    rest = rest.strip()
    if keyword in ("NAME", "REQUIREMENTS"):
        rest = rest.removeprefix("=").strip()
    if not rest:
        raise ConfigError(f"{keyword} with nothing behind it", value=text)
    return keyword, rest


def _step(keyword: str, rest: str, line: str) -> Step:
    pattern = None
    if keyword in _ON_NAMES and rest.startswith("/"):
        pattern, rest = _pattern(rest, line)
        target = ""
    else:
        found = _FIRST_WORD.match(rest)
        target, rest = (found[1], rest[found.end():]) if found is not None else ("", rest)
        if not _NAME.fullmatch(target):
            raise ConfigError(f"{keyword} needs the name of an attribute", value=line)
        if keyword not in ("COPY", "EVALMACRO"):
            _may_change(target, line)
    if keyword == "DELETE":
        if rest:
            raise ConfigError("DELETE takes one attribute", value=line)
    elif not rest:
        raise ConfigError(f"{keyword} needs two arguments", value=line)
    elif keyword in _WITH_EXPRESSION:
        rest = _expression(rest, line)
    elif "$" not in rest:
        if pattern is None and not _NAME.fullmatch(rest):
            raise ConfigError(f"{rest} is no name of an attribute", value=line)
        _may_change(rest, line)
    return Step(keyword, target, rest, pattern, line)


def _may_change(name: str, line: str) -> None:
    if name.lower() in FORBIDDEN:
        raise ConfigError(f"a transform cannot change {name}: only the schedd gives it to a job", value=line)


def _expression(text: str, line: str) -> str:
    """The text itself; one without macros is known to be an expression."""
    if "$" not in text:
        try:
            parse_expression(old_to_new(text))
        except ClassAdSyntaxError as error:
            raise ConfigError(
                f"{text} is no expression: {error.reason}", value=line,
                expected="a ClassAd expression (strings in quotes)",
            ) from None  # fmt: skip
    return text


def _pattern(rest: str, line: str) -> tuple[re.Pattern[str], str]:
    """``/regex/options`` at the beginning, and what follows it."""
    import re

    end = 1
    while end < len(rest) and rest[end] != "/":
        end += 2 if rest[end] == "\\" else 1
    if end >= len(rest):
        raise ConfigError("a regular expression without its closing slash", value=line, expected="/regex/")
    letters, _, after = rest[end + 1 :].partition(" ")
    flags = re.IGNORECASE
    for letter in letters.strip():
        known = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
        if letter.lower() not in known:
            raise ConfigError(f"{letter} is no option of a regular expression", value=line, expected="i, m, s or x")
        flags |= known[letter.lower()]
    try:
        return re.compile(rest[1:end].replace("\\/", "/"), flags), after.lstrip(" \t=,")
    except re.error as error:
        raise ConfigError(f"{rest[: end + 1]} is no regular expression: {error}", value=line) from None
