"""Custom print formats (``-print-format FILE``): a table described in a file.

::

    SELECT [FROM AUTOCLUSTER | UNIQUE] [NOTITLE] [NOHEADER] [NOSUMMARY] [BARE] [LABEL [SEPARATOR s]]
           [RECORDPREFIX s] [RECORDSUFFIX s] [FIELDPREFIX s] [FIELDSUFFIX s]
      EXPRESSION [AS head] [WIDTH n|AUTO] [LEFT|RIGHT] [TRUNCATE] [NOPREFIX] [NOSUFFIX]
                 [PRINTF form] [PRINTAS function] [OR mark]
    WHERE EXPRESSION
    GROUP BY EXPRESSION [ASCENDING|DESCENDING]
    SUMMARY [STANDARD|NONE]

Key words are upper case; ``#`` begins a comment line.  **Source**: the manual, "Print Format Tables".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from condor_actors import records
from condor_actors.classads import UNDEFINED, ClassAd, is_true
from condor_actors.tools.printing.formats import Field, Format, FormatError, shown
from condor_actors.tools.printing.functions import FUNCTIONS, Render
from condor_actors.written_text import read_written

_WORD = re.compile(r"""\s*("[^"]*"|'[^']*'|\S+)""")
_OPTIONS = frozenset({"AS", "WIDTH", "FIT", "TRUNCATE", "LEFT", "RIGHT", "NOPREFIX", "NOSUFFIX", "PRINTF", "PRINTAS",
                      "FORMATAS", "OR"})  # fmt: skip
_COUNTS = ("jobcount", "jobids")
"""What an aggregation adds to each of its lines."""


@records.frozen(kw_only=True)
class Column:
    """A column of the table."""

    field: Field
    head: str
    width: int | None = None  # negative: left-aligned; None: as wide as its widest cell
    is_left: bool = True
    is_cut: bool = False
    has_prefix: bool = True
    has_suffix: bool = True
    form: Format | None = None
    render: Render | None = None
    mark: str = ""

    def cell(self, ad: ClassAd) -> str:
        """What stands in the column for an ad."""
        value = self.field.value(ad)
        if self.render is not None and (value is not UNDEFINED or not self.mark):
            return self.render(ad, value)
        if value is UNDEFINED:
            return self.mark[:1] * abs(self.width or 1) if len(self.mark) == 2 else self.mark or "undefined"
        return self.form.text(ad) if self.form is not None else shown(value)


@records.define(kw_only=True)
class PrintTable:
    """A print format, read."""

    columns: list[Column] = records.Factory(list)
    has_title: bool = True
    has_header: bool = True
    has_summary: bool = True
    is_labelled: bool = False
    separator: str = " = "
    record_prefix: str = ""
    record_suffix: str = "\n"
    field_prefix: str = ""
    field_suffix: str = " "
    where: str = ""
    order: list[tuple[Field, bool]] = records.Factory(list)
    is_unique: bool = False
    is_of_autoclusters: bool = False

    @classmethod
    def read(cls, path: str) -> PrintTable:
        """Read a file.

        Raises:
            FormatError: it cannot be read, or a line makes no sense.
        """
        try:
            return cls.parse(read_written(path), path)
        except OSError as error:
            raise FormatError(f"cannot execute print-format file {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FormatError(f"cannot execute print-format file {path}: it is no text") from None

    @classmethod
    def parse(cls, text: str, source: str = "print format") -> PrintTable:
        """Read a text.

        Raises:
            FormatError: naming the line.
        """
        table = cls()
        place = ""
        for number, line in enumerate(text.splitlines(), 1):
            stripped = line.strip()
            if not stripped or stripped.startswith("#"):
                continue
            first, _, rest = stripped.partition(" ")
            try:
                if first in ("SELECT", "SUMMARY", "WHERE") or stripped.startswith("GROUP BY"):
                    place = "GROUP" if first == "GROUP" else first
                    table._clause(place, stripped[8:].strip() if place == "GROUP" else rest.strip())
                elif place == "SELECT":
                    table.columns.append(_column(stripped))
                elif place == "GROUP":
                    table._sort(stripped)
                else:
                    raise FormatError(f"expected SELECT before {stripped}")
            except FormatError as error:
                raise FormatError(f"{source}, line {number}: {error}") from None
        return table

    def _clause(self, word: str, rest: str) -> None:
        if word == "WHERE":
            self.where = rest
        elif word == "SUMMARY":
            self.has_summary = rest != "NONE"
        elif word == "GROUP":
            if rest:
                self._sort(rest)
        else:
            self._select(_words(rest))

    def _select(self, words: list[str]) -> None:
        separators = {"SEPARATOR": "separator", "RECORDPREFIX": "record_prefix", "RECORDSUFFIX": "record_suffix",
                      "FIELDPREFIX": "field_prefix", "FIELDSUFFIX": "field_suffix"}  # fmt: skip
        while words:
            word = words.pop(0)
            if word in ("BARE", "NOTITLE"):
                self.has_title = False
            if word in ("BARE", "NOHEADER"):
                self.has_header = False
            if word in ("BARE", "NOSUMMARY"):
                self.has_summary = False
            if word == "LABEL":
                self.is_labelled, self.has_header = True, False
            elif word in separators and words:
                setattr(self, separators[word], words.pop(0))
            elif word == "UNIQUE":
                self.is_unique = True
            elif word == "FROM":
                if words[:1] != ["AUTOCLUSTER"]:
                    raise FormatError(f"SELECT FROM {' '.join(words[:1])}: only AUTOCLUSTER can stand behind FROM")
                words.pop(0)
                self.is_of_autoclusters = True

    def _sort(self, text: str) -> None:
        expression = re.sub(r"(?<!\s)\s+(ASCENDING|DESCENDING)$", "", text)
        self.order.append((Field.of(expression), text.endswith("DESCENDING")))

    def rows(self, ads: Iterable[ClassAd]) -> Iterator[str]:
        """The table as text, of the ads that the format chooses, in its order."""
        yield from self.lines(self.chosen(ads))

    def lines(self, ads: Sequence[ClassAd], *, below_heads: str = "") -> Iterator[str]:
        """The table as text, of all these ads; without any there are the heads alone, or nothing (``below_heads``)."""
        cells = [[column.cell(ad) for column in self.columns] for ad in ads]
        if below_heads and not cells:
            return
        widths = [self._width(n, column, cells) for n, column in enumerate(self.columns)]
        if self.has_header and self.columns:
            yield self._line([column.head for column in self.columns], widths) + "\n" + below_heads
        for row in cells:
            yield self.record_prefix + self._line(row, widths) + self.record_suffix

    def chosen(self, ads: Iterable[ClassAd]) -> list[ClassAd]:
        """The ads for which WHERE is true, grouped by UNIQUE, in the order of GROUP BY.

        Raises:
            FormatError: WHERE cannot be read.
        """
        chosen = list(ads)
        if self.where:
            wanted = Field.of(self.where)
            chosen = [ad for ad in chosen if is_true(wanted.value(ad))]
        if self.is_unique:
            chosen = self._aggregated(chosen)
        for field, is_reversed in reversed(self.order):
            chosen.sort(key=lambda ad, field=field: _key(field.value(ad)), reverse=is_reversed)  # type: ignore[misc]  # field is bound now
        return chosen

    def _aggregated(self, ads: Iterable[ClassAd]) -> list[ClassAd]:
        """One ad for all that agree in what is shown and sorted by, with Id, JobCount and JobIds."""
        fields = [*(column.field for column in self.columns), *(field for field, _ in self.order)]
        names = {name.lower(): name for field in fields for name in field.names() if name.lower() not in _COUNTS}
        groups: dict[tuple[str, ...], list[ClassAd]] = {}
        for ad in ads:
            groups.setdefault(tuple(Field(name).raw(ad) for name in names), []).append(ad)
        found = []
        for number, members in enumerate(groups.values(), 1):
            line = members[0].project([name for name in names.values() if name in members[0]])
            line["Id"], line["JobCount"] = number, len(members)
            line["JobIds"] = ids_in_short([(ad.get_int("ClusterId"), ad.get_int("ProcId")) for ad in members])
            found.append(line)
        return found

    def _width(self, number: int, column: Column, cells: Sequence[Sequence[str]]) -> int:
        if self.is_labelled:
            return 0
        if column.width is not None:
            return column.width
        widest = max([len(column.head), *(len(row[number]) for row in cells)])
        return -widest if column.is_left else widest

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> str:
        parts = []
        for column, cell, width in zip(self.columns, row, widths, strict=True):
            text = f"{column.head}{self.separator}{cell}" if self.is_labelled else cell
            if column.is_cut and width:
                text = text[: abs(width)]
            text = text.ljust(-width) if width < 0 else text.rjust(width)
            parts.append((self.field_prefix if column.has_prefix else "") + text)
            parts.append(self.field_suffix if column.has_suffix else "")
        return "".join(parts).rstrip(" ")


def ids_in_short(ids: Sequence[tuple[int, int]]) -> str:
    """``3.0``, ``3.0 3.1``, or ``3.0 ... 5.2`` for more than two jobs."""
    names = [f"{cluster}.{proc}" for cluster, proc in sorted(ids)]
    return " ".join(names) if len(names) < 3 else f"{names[0]} ... {names[-1]}"


def _key(value: Any) -> tuple[int, float, str]:
    if isinstance(value, (int, float)):
        return (0, float(value), "")
    return (1, 0.0, value.lower()) if isinstance(value, str) else (2, 0.0, "")


def _words(text: str) -> list[str]:
    words = []
    for found in _WORD.finditer(text):
        word = found.group(1)
        if len(word) > 1 and word[0] in "\"'" and word[-1] == word[0]:
            word = word[1:-1]
        words.append(word.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r"))
    return words


def _column(line: str) -> Column:
    """A formatting line: the expression runs up to the first key word."""
    position, start = 0, len(line)
    while (found := _WORD.match(line, position)) is not None:
        if found.group(1) in _OPTIONS:
            start = found.start(1)
            break
        position = found.end()
    text = line[:start].strip()
    field = Field.of(text)
    values: dict[str, Any] = {"field": field, "head": text}
    form = ""
    words = _words(line[start:])
    while words:
        form = _option(words, values) or form
    if form:
        values["form"] = Format.of(form, text)
    if values.get("width") is None and "is_left" not in values and form.lstrip("%").startswith(tuple("123456789")):
        values["is_left"] = False
    return Column(**values)


def _option(words: list[str], values: dict[str, Any]) -> str:
    """Take one key word and what belongs to it; returns a printf format."""
    word = words.pop(0)
    if word in ("AS", "WIDTH", "PRINTF", "PRINTAS", "FORMATAS", "OR"):
        if not words:
            raise FormatError(f"{word} needs a value")
        value = words.pop(0)
        if word == "AS":
            values["head"] = value
        elif word == "OR":
            values["mark"] = value
        elif word == "PRINTF":
            return value
        elif word == "WIDTH":
            if value != "AUTO":
                if not value.lstrip("-").isdecimal():
                    raise FormatError(f"WIDTH {value}: expected a number or AUTO")
                values["width"] = int(value)
        elif value in FUNCTIONS:
            values["render"] = FUNCTIONS[value]
        else:
            raise FormatError(f"unknown function {value}; expected one of {', '.join(sorted(FUNCTIONS))}")
    elif word in ("LEFT", "RIGHT"):
        values["is_left"] = word == "LEFT"
    elif word == "TRUNCATE":
        values["is_cut"] = True
    elif word in ("NOPREFIX", "NOSUFFIX"):
        values["has_" + word[2:].lower()] = False
    elif word != "FIT":
        raise FormatError(f"unknown word {word}")
    return ""
