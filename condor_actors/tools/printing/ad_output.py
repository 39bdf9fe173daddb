"""What condor_q, condor_status and condor_history share: which ads are wanted, and in which form they are printed.

========================  ============================================================================
``-constraint EXPR``       several: all must be true
``-long -json -xml``       whole ads (``-jsonl``: each on a line), with ``-attributes A,B`` those only
``-af[:letters] A …``      values; ``-format FMT A`` printf's; ``-print-format FILE`` a table of a file
``-limit N``               at most so many
========================  ============================================================================

The least letters of a flag differ from tool to tool, as in HTCondor; each gives them to `flags`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from condor_actors import records
from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.classads.forms.long_form import iter_long, old_to_new
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import LIST, Flag, Given
from condor_actors.written_text import open_written

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import TypeVar

    from condor_actors.tools.printing.formats import Row

    _T = TypeVar("_T")


WHOLE = ("long", "json", "jsonl", "xml")
"""The forms that print whole ads."""


def flags(**least: int) -> tuple[Flag, ...]:
    """The flags of the selection and of the forms.

    Args:
        least: how many letters each needs, where that is not the first that tells it from the others.
    """
    wanted = {"long": 1, "json": 2, "xml": 1, "limit": 3, "attributes": 2, "format": 1, "constraint": 1,
              "print_format": 2, **least}  # fmt: skip
    return (
        Flag("long", wanted["long"], colon=True), Flag("json", wanted["json"], colon=True), Flag("xml", wanted["xml"]),
        Flag("limit", wanted["limit"], 1), Flag("attributes", wanted["attributes"], 1),
        Flag("autoformat", 5, LIST, colon=True, alias="af"), Flag("af", 2, LIST, colon=True),
        Flag("format", wanted["format"], 2), Flag("constraint", wanted["constraint"], 1),
        Flag("print-format", wanted["print_format"], 1),
    )  # fmt: skip


def _form(item: Given) -> str:
    """The form that ``-long``, ``-json`` … asks for, whose qualifier may name another one.

    Raises:
        ToolError: the qualifier is none.
    """
    forms = [item.name]
    for word in item.qualifier.replace(",", " ").split():
        if word in WHOLE:
            forms.append(word)
        elif word not in ("auto", "nosort"):  # what is printed is not read, and has its order
            raise ToolError(f"Error: {item.word}: {word} is no form of ads; there are {', '.join(WHOLE)}")
    return forms[-1]


@records.define
class AdQuestion:
    """The common part of a command line.

    Attributes:
        constraints: expressions in the new form.
        form: ``long``, ``json``, ``jsonl``, ``xml``, ``row``, ``table`` (of a file) or empty: the tool's own table.
        columns: what a row is made of: (``af``, letters, attributes) or (``format``, format, attribute) each.
        limit: 0: no limit.
    """

    constraints: list[str] = records.Factory(list)
    form: str = ""
    attributes: tuple[str, ...] = ()
    columns: list[tuple[str, str, tuple[str, ...]]] = records.Factory(list)
    table_file: str = ""
    limit: int = 0

    def take(self, item: Given) -> bool:
        """Take a flag into account; False: it is none of the common ones.

        Raises:
            ToolError: its value makes no sense.
        """
        value = item.values[0] if item.values else ""
        if item.name == "constraint":
            self.constraints.append(checked(value))
        elif item.name in WHOLE:
            self.form = _form(item)
        elif item.name in ("af", "format"):
            self.form = "row"
            how = (item.qualifier, item.values) if item.name == "af" else (value, item.values[1:])
            self.columns.append((item.name, *how))
        elif item.name == "print-format":
            self.form, self.table_file = "table", value
        elif item.name == "attributes":
            self.attributes += tuple(value.replace(",", " ").split())
        elif item.name == "limit":
            if not value.lstrip("-").isdecimal():
                raise ToolError(f"Error: Argument {item.word} requires a number, not {value}")
            self.limit = max(int(value), 0)
        else:
            return False
        return True

    def conjunction(self, *more: str) -> str:
        """All constraints and ``more`` as one expression, empty when there is none."""
        parts = [*self.constraints, *(part for part in more if part)]
        return parts[0] if len(parts) == 1 else " && ".join(f"({part})" for part in parts)

    def names(self) -> tuple[str, ...] | None:
        """The attributes that the form prints or is computed from; empty: all; None: the tool's own table.

        Raises:
            ToolError: an expression of the form cannot be read.
        """
        if self.form in WHOLE:
            return self.attributes
        if self.form == "row":
            return self.row().projection()
        return () if self.form == "table" else None

    def row(self) -> Row:
        """What ``-af`` and ``-format`` ask for.

        Raises:
            ToolError: one of them cannot be read.
        """
        from condor_actors.tools.printing.formats import Row

        return understood(lambda: Row.of(self.columns))

    def rows(
        self, ads: Iterable[ClassAd], *, when_empty: str = "", target: ClassAd | None = None
    ) -> Iterable[str] | None:
        """The ads in the form asked for; None: the tool's own table.

        Args:
            when_empty: what ``-json`` prints when there is no ad.
            target: what TARGET means in the expressions of ``-af`` and ``-format``.

        Raises:
            ToolError: the form cannot be read.
        """
        if self.form in WHOLE:
            return projected_rows(self.form, ads, self.attributes, when_empty=when_empty)
        return self.row().rows(ads, target) if self.form == "row" else None


def projected_rows(
    form: str, ads: Iterable[ClassAd], attributes: Sequence[str] = (), *, when_empty: str = ""
) -> Iterator[str]:
    """Whole ads, or some attributes of them, in one of the forms `WHOLE`."""
    from condor_actors.tools.printing import formats as forms

    if form == "long":
        return forms.long_rows(ads, attributes)
    if form == "xml":
        return forms.xml_rows(ads, attributes)
    if form == "jsonl":
        return forms.json_lines(ads, attributes)
    return forms.json_rows(ads, attributes, when_empty=when_empty)


def understood(read: Callable[[], _T]) -> _T:
    """What ``read`` returns; a format that says nothing printable becomes a `ToolError`."""
    from condor_actors.tools.printing.formats import FormatError

    try:
        return read()
    except FormatError as error:
        raise ToolError(f"Error: {error}") from None


def checked(text: str) -> str:
    """An expression of the command line, in the new form.

    Raises:
        ToolError: it is none.
    """
    text = old_to_new(text)
    try:
        parse_expression(text)
    except ClassAdSyntaxError as error:
        raise ToolError(f'\n-- Parse error in constraint expression "{text}": {error.reason}') from None
    return text


def ads_of_log(path: str) -> list[ClassAd]:
    """Read the jobs of a user log as ads.

    Raises:
        ToolError: the log cannot be read.
    """
    from condor_actors.userlog.jobs_of_log import UnreadableLog, jobs_of_log

    try:
        return jobs_of_log(path)
    except UnreadableLog as error:
        raise ToolError(str(error)) from None


def ads_of_file(path: str, kind: str = "ads file") -> list[ClassAd]:
    """The ads of a file in the long form, ``-`` is standard input.

    Raises:
        ToolError: it cannot be read, or is something else.
    """
    try:
        if path == "-":
            return list(iter_long(sys.stdin))
        with open(open_written(path), encoding="utf-8", errors="surrogateescape") as file:
            return list(iter_long(file))
    except OSError as error:
        raise ToolError(f"Error: Can't open {kind} {path}: {error.strerror}") from None
    except ClassAdSyntaxError as error:
        raise ToolError(f"Error: {path}: {error}") from None


def fitting(ads: Iterable[ClassAd], constraint: str) -> Iterator[ClassAd]:
    """The ads for which a constraint is true; empty: all."""
    wanted: Expr | None = parse_expression(constraint) if constraint else None
    return (ad for ad in ads if wanted is None or is_true(wanted.evaluate(ad)))


def is_named(ad: ClassAd, ids: Sequence[tuple[int, int]]) -> bool:
    """Whether a job is one of ``ids`` (proc -1: the whole cluster); without any it is."""
    job = (ad.get_int("ClusterId"), ad.get_int("ProcId"))
    return not ids or job in ids or (job[0], -1) in ids


def write(rows: Iterable[str]) -> int:
    """Print rows as they come; the exit status."""
    out = sys.stdout
    for row in rows:
        out.write(row)
    out.flush()
    return 0


__all__ = ["WHOLE", "AdQuestion", "ads_of_file", "checked", "fitting", "flags", "is_named", "projected_rows",
           "understood", "write"]
