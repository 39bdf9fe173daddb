r"""How tools print ads: ``-autoformat``, ``-format``, ``-long``, ``-json``, ``-xml``.

================  ==============================================================================================
``-af[:opts] A…``  values with a space between; ``j`` job id first, ``l`` labels, ``h`` headings, ``r`` raw,
                  ``V`` quoted strings, ``T`` elapsed time, ``Y`` date, ``,`` ``t`` ``n`` ``g`` separators
``-format F A``   C's printf with one conversion: ``%s %d %i %f %g %e %x %c %v %V %r %T``; ``\n`` as text is a line
                  break; nothing is printed when the attribute is missing (``%v`` prints ``undefined``); text
                  without a conversion is always printed; ``%s`` of an attribute that is no string prints what stands
                  in the ad, as ``%r`` does
================  ==============================================================================================

A missing attribute prints ``undefined`` in autoformat.  Several options make one row together.
**Source**: the manual, condor_q, "Print Format Tables".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from condor_actors import records
from condor_actors.classads import UNDEFINED, ClassAd, ClassAdSyntaxError, Expr, parse_expression, unparse
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Any, ClassVar

KNOWN_LINES = 20_000
"""Lines that are kept in the form in which they are printed."""

_NAME = late(r"[A-Za-z_]\w*\Z")
_ESCAPED = late(r"\\(\D)")
_CONVERSION = late(r"%([-+ #0]*)(\d*)(?:\.(\d+))?(?:hh|h|ll|l|L|q|j|z|t)?([A-Za-z])")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"', "'": "'"}


class FormatError(ValueError):
    """An option that says nothing printable: names the option and what is wrong."""


@records.frozen
class Field:
    """What to print: an attribute or any expression, as written by the user."""

    text: str
    expression: Expr | None = None

    @classmethod
    def of(cls, text: str) -> Field:
        """Read an attribute name or an expression.

        Raises:
            FormatError: it is neither.
        """
        if _NAME.match(text):
            return cls(text)
        try:
            return cls(text, parse_expression(old_to_new(text)))
        except ClassAdSyntaxError as error:
            raise FormatError(f"Could not parse expression '{text}': {error.reason}") from None

    def value(self, ad: ClassAd, target: ClassAd | None = None) -> Any:
        """Its value in an ad; UNDEFINED when there is none."""
        if self.expression is None:
            if self.text.lower() in ("true", "false") and self.text not in ad:
                return self.text.lower() == "true"
            return ad.evaluate(self.text, target)
        return self.expression.evaluate(ad, target)

    def stands_in(self, ad: ClassAd) -> bool:
        """Whether it is an attribute that the ad has."""
        return self.expression is None and self.text in ad

    def raw(self, ad: ClassAd) -> str:
        """What stands in the ad, not evaluated."""
        tree: Any = self.expression if self.expression is not None else ad.expression(self.text)
        return "undefined" if tree is None else unparse(tree, style="tools")

    def names(self) -> tuple[str, ...]:
        """Attributes that an ad must have for this to be printed."""
        if self.expression is None:
            return (self.text,)
        internal, external = self.expression.references()
        return tuple(sorted(internal | external))


def shown(value: Any) -> str:
    """A value as people read it: strings without quotes, numbers short."""
    return value if isinstance(value, str) else unparse(value, style="tools")


def quoted(value: Any) -> str:
    """A value as ``-long`` shows it."""
    return unparse(value, style="tools")


def elapsed(value: Any) -> str:
    """Seconds as ``D+HH:MM:SS``; anything else as it is shown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return shown(value)
    seconds = max(int(value), 0)
    return f"{seconds // 86400}+{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def instant(value: Any) -> str:
    """Seconds since 1970 as a local date and time; anything else as it is shown."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return shown(value)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(value))


def date(value: Any) -> str:
    """Seconds since 1970 as ``MM/DD HH:MM``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        return "???"
    return time.strftime("%m/%d %H:%M", time.localtime(value))


@records.frozen(kw_only=True)
class AutoFormat:
    """An ``-autoformat`` option."""

    fields: tuple[Field, ...]
    job_id: bool = False
    labels: bool = False
    headings: bool = False
    render: Callable[[Any], str] = shown
    is_raw: bool = False
    separator: str = " "
    suffix: str = ""
    record_prefix: str = ""

    @classmethod
    def of(cls, qualifier: str, names: Sequence[str]) -> AutoFormat:
        """Read the letters behind the colon and the attributes.

        Raises:
            FormatError: an unknown letter, letters that exclude each other, no attribute.
        """
        unknown = set(qualifier) - set("jlhVrTYo,tng")
        if unknown:
            raise FormatError(f"-autoformat:{qualifier}: unknown qualifier '{sorted(unknown)[0]}'")
        if not names:
            raise FormatError("Argument -autoformat requires at last one attribute parameter")
        render = quoted if "V" in qualifier else elapsed if "T" in qualifier else instant if "Y" in qualifier else shown
        separator = "\t" if "t" in qualifier else " "
        return cls(
            fields=tuple(Field.of(name) for name in names),
            job_id="j" in qualifier,
            labels="l" in qualifier,
            headings="h" in qualifier and "l" not in qualifier,
            render=render,
            is_raw="r" in qualifier,
            separator="" if "g" in qualifier else separator,
            suffix="\n" if "n" in qualifier else "," if "," in qualifier else "",
            record_prefix="\n" if "g" in qualifier else "",
        )

    def projection(self) -> set[str]:
        """Attributes to ask a daemon for."""
        names = {name for field in self.fields for name in field.names()}
        return names | {"ClusterId", "ProcId"} if self.job_id else names

    @property
    def heads(self) -> list[str]:
        """What stands above its columns."""
        return [*([" ID"] if self.job_id else []), *(field.text for field in self.fields)]

    @property
    def between(self) -> str:
        """What stands between two columns."""
        return self.suffix + self.separator

    def texts(self, ad: ClassAd, target: ClassAd | None = None) -> list[str]:
        """The columns of one ad; ``target`` is what TARGET means in them."""
        out = []
        if self.job_id:
            cluster, proc = ad.get_int("ClusterId"), ad.get_int("ProcId")
            if self.headings:
                out.append(f"{cluster:4}.{proc:<3}")
            else:
                out.append(f"ID = {cluster}.{proc}" if self.labels else f"{cluster}.{proc}")
        for field in self.fields:
            text = field.raw(ad) if self.is_raw else self.render(field.value(ad, target))
            out.append(f"{field.text} = {text}" if self.labels else text)
        return out


@records.frozen
class Format:
    """One ``-format`` option: text with at most one conversion, and what it shows."""

    before: str
    conversion: str
    after: str
    field: Field

    @classmethod
    def of(cls, form: str, text: str) -> Format:
        """Read a printf format and an attribute or expression.

        Raises:
            FormatError: the expression is none.
        """
        form = _unescape(form)
        found = _first_conversion(form)
        field = Field.of(text)
        if found is None:
            return cls(form.replace("%%", "%"), "", "", field)
        return cls(
            form[: found.start()].replace("%%", "%"), found.group(0), form[found.end() :].replace("%%", "%"), field
        )

    heads: ClassVar[list[str]] = [""]

    def projection(self) -> set[str]:
        """Attributes to ask a daemon for."""
        return set(self.field.names())

    def texts(self, ad: ClassAd, target: ClassAd | None = None) -> list[str]:
        """Its only column."""
        return [self.text(ad, target)]

    def text(self, ad: ClassAd, target: ClassAd | None = None) -> str:
        """What it prints for an ad; nothing when the value does not fit."""
        if not self.conversion:
            return self.before  # the idiom of old scripts: -format "\\n" ALWAYS
        value = self.field.value(ad, target)
        shape = _CONVERSION.match(self.conversion)
        assert shape is not None
        letter = shape.group(4)
        converted = self._converted(letter, value, ad)
        if converted is None:
            return ""
        flags, width, precision = shape.group(1), shape.group(2), shape.group(3)
        kind = "s" if isinstance(converted, str) else "d" if letter in "iu" else letter
        form = f"%{flags}{width}" + (f".{precision}" if precision is not None else "") + kind
        return self.before + form % converted + self.after

    def _converted(self, letter: str, value: Any, ad: ClassAd) -> str | int | float | None:
        if letter in "vV":
            return quoted(value) if letter == "V" else shown(value)
        if letter == "r" or (letter == "s" and self.field.stands_in(ad) and not isinstance(value, str)):
            return self.field.raw(ad)
        if value is UNDEFINED:
            return None
        if letter == "s":
            return shown(value)
        if letter == "T":
            return elapsed(value)
        if isinstance(value, (bool, int, float)):
            return float(value) if letter in "fFeEgGaA" else int(value)
        return None


@records.frozen
class Row:
    """All ``-autoformat`` and ``-format`` options of a command line, in their order: together they make one row an ad.

    What stands between the columns, and at the ends of a row, is what the last ``-autoformat`` wants; without any,
    nothing does.
    """

    parts: tuple[AutoFormat | Format, ...]

    @classmethod
    def of(cls, options: Sequence[tuple[str, str, tuple[str, ...]]]) -> Row:
        """Read options: ``af``, its letters and attributes, or ``format``, the format and its one attribute.

        Raises:
            FormatError: one of them says nothing printable.
        """
        return cls(tuple(
            AutoFormat.of(how, names) if kind == "af" else Format.of(how, names[0]) for kind, how, names in options
        ))  # fmt: skip

    @property
    def is_raw(self) -> bool:
        """Whether nothing is evaluated."""
        return all(isinstance(part, AutoFormat) and part.is_raw for part in self.parts)

    def projection(self) -> tuple[str, ...]:
        """Attributes to ask a daemon for."""
        return tuple(sorted({name for part in self.parts for name in part.projection()}))

    def rows(self, ads: Iterable[ClassAd], target: ClassAd | None = None) -> Iterator[str]:
        """All ads as text; with headings the columns are as wide as their widest value."""
        autos = [part for part in self.parts if isinstance(part, AutoFormat)]
        texts = ([text for part in self.parts for text in part.texts(ad, target)] for ad in ads)
        if not autos:
            yield from ("".join(row) for row in texts)
            return
        last = autos[-1]
        if any(part.headings for part in autos) and (held := list(texts)):
            held.insert(0, [head for part in self.parts for head in part.heads])
            widths = [max(map(len, column)) for column in zip(*held, strict=True)]
            texts = ([text.ljust(width) for text, width in zip(row, widths, strict=True)] for row in held)
        for row in texts:
            yield f"{last.record_prefix}{last.between.join(row)}\n"


def _first_conversion(form: str) -> re.Match[str] | None:
    position = 0
    while (percent := form.find("%", position)) >= 0:
        if form.startswith("%%", percent):
            position = percent + 2
            continue
        found = _CONVERSION.match(form, percent)
        if found is not None:
            return found
        position = percent + 1
    return None


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found.group(1), found.group(1)), text)


def projected(ad: ClassAd, attributes: Sequence[str]) -> ClassAd:
    """The ad, or the wanted attributes of it, sorted by name as all whole-ad forms print it."""
    names = attributes or list(ad)
    return ad.project(sorted(names, key=str.lower))


def long_rows(ads: Iterable[ClassAd], attributes: Sequence[str] = ()) -> Iterator[str]:
    """``-long``: one ``Name = expression`` a line, an empty line behind each ad."""
    for ad in ads:
        yield projected(ad, attributes).to_text() + "\n"


class _Lines:
    """Lines of wire text in another form, each made once: most lines of a queue are those of other jobs.

    What an ad has in common with the one before, at its beginning (the lines of its cluster) and at its end, is looked
    at once, and stands joined between the lines of its own.

    Args:
        form: what an ad of one line is in the other form.
        attributes: the wanted ones; empty: all.
        between: what stands between two lines.
        is_wire: whether the other form of a plain line is that line with a line break.
    """

    def __init__(self, form: Callable[[ClassAd], str], attributes: Sequence[str], between: str = "", *,
                 is_wire: bool = False) -> None:
        self._form = form
        self._wanted = frozenset(name.lower() for name in attributes)
        self._between = between
        self._is_wire = is_wire
        self._known: dict[bytes, tuple[str, str]] = {}
        self._before = self._prefix = self._suffix = b""
        self._first: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._orders: dict[tuple[str, ...], list[str | int]] = {}

    def of(self, text: bytes) -> str:
        """The lines of an ad, sorted by attribute."""
        if len(text) > 2 * (len(self._prefix) + len(self._suffix)) or not (
                text.startswith(self._prefix) and text.endswith(self._suffix)
                and len(self._prefix) + len(self._suffix) <= len(text)):
            self._find_common(text)
        self._before = text
        own = self._rows(text[len(self._prefix) : len(text) - len(self._suffix)])
        names = tuple([key for key, _ in own])
        order = self._orders.get(names)
        if order is None:
            if len(self._orders) == KNOWN_ORDERS:
                self._orders.clear()
            order = self._orders[names] = self._order(names)
        return self._between.join([own[place][1] if type(place) is int else place for place in order])  # type: ignore

    def _find_common(self, text: bytes) -> None:
        prefix = _common_lines(self._before, text)
        suffix = _common_last_lines(self._before, text, min(len(self._before), len(text)) - len(prefix))
        if prefix == self._prefix and suffix == self._suffix:
            return
        self._prefix, self._suffix = prefix, suffix
        self._first, self._last = dict(self._rows(prefix)), dict(self._rows(suffix))
        self._orders.clear()

    def _order(self, names: tuple[str, ...]) -> list[str | int]:
        """What stands between the own lines of an ad, joined, and their places; of equal names the last counts."""
        found: dict[str, str | int] = {**self._first, **{key: place for place, key in enumerate(names)}, **self._last}
        order: list[str | int] = []
        run: list[str] = []
        for key in sorted(found):
            piece = found[key]
            if self._wanted and key not in self._wanted:
                continue
            if isinstance(piece, str):
                run.append(piece)
                continue
            if run:
                order.append(self._between.join(run))
                run = []
            order.append(piece)
        if run:
            order.append(self._between.join(run))
        return order

    def _rows(self, text: bytes) -> list[tuple[str, str]]:
        rows = []
        for line in text.split(b"\n"):
            known = self._known.get(line)
            if known is None:
                if not line:
                    continue
                known = self._row(line)
                if len(self._known) < KNOWN_LINES:
                    self._known[line] = known
            rows.append(known)
        return rows

    def _row(self, line: bytes) -> tuple[str, str]:
        plain = _PLAIN_LINE.fullmatch(line) if self._is_wire else None
        if plain is not None:
            return plain[1].decode("ascii").lower(), line.decode("ascii") + "\n"
        ad = ClassAd.from_bytes(line)
        return next(iter(ad)).lower(), self._form(ad)


_PLAIN_LINE = late(rb"""([A-Za-z_]\w*)[ ]=[ ](?:0|-?[1-9][0-9]{0,17}|"[ !#-\[\]-~]*")""", "ax")
"""A whole number or a text without escapes: it is written as it is in every form of lines."""
KNOWN_ORDERS = 1000


def _common_lines(one: bytes, other: bytes) -> bytes:
    """The whole lines with which both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return one[: one.rfind(b"\n", 0, low) + 1]


def _common_last_lines(one: bytes, other: bytes, most: int) -> bytes:
    """The whole lines with which both end, with the line break before them; of so many bytes at the most."""
    low, high = 0, max(most, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    begin = one.find(b"\n", len(one) - low)
    return one[begin:] if low and begin >= 0 else b""


def long_rows_of_texts(texts: Iterable[bytes], attributes: Sequence[str] = ()) -> Iterator[str]:
    """``-long`` of ads as they came over the wire."""
    lines = _Lines(ClassAd.to_text, attributes, is_wire=True)
    for text in texts:
        yield lines.of(text) + "\n"


def json_rows_of_texts(texts: Iterable[bytes], attributes: Sequence[str] = ()) -> Iterator[str]:
    """``-json`` of ads as they came over the wire; nothing when there is none."""
    lines = _Lines(lambda ad: ad.to_json()[2:-2], attributes, ",\n")
    opening = "[\n"
    for text in texts:
        found = lines.of(text)
        yield f"{opening}{{\n{found}\n}}\n" if found else f"{opening}{{\n}}\n"
        opening = ",\n"
    if opening == ",\n":
        yield "]\n"


def json_rows(ads: Iterable[ClassAd], attributes: Sequence[str] = (), *, when_empty: str = "") -> Iterator[str]:
    """``-json``: a list of objects; ``when_empty`` when there is no ad at all."""
    opening = "[\n"
    for ad in ads:
        yield opening + projected(ad, attributes).to_json() + "\n"
        opening = ",\n"
    yield "]\n" if opening == ",\n" else when_empty


def json_lines(ads: Iterable[ClassAd], attributes: Sequence[str] = ()) -> Iterator[str]:
    """``-jsonl``: an object a line."""
    for ad in ads:
        yield " ".join(line.strip() for line in projected(ad, attributes).to_json().splitlines()) + "\n"


def xml_rows(ads: Iterable[ClassAd], attributes: Sequence[str] = ()) -> Iterator[str]:
    """``-xml``: a document of ads."""
    yield '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
    for ad in ads:
        yield projected(ad, attributes).to_xml().rstrip("\n") + "\n"
    yield "</classads>\n"
