"""The long form: one ``Name = expression`` a line.

Two dialects share it. What tools print and people keep in files escapes only the quote inside a string; a backslash
stands for itself (``read_long``, ``write_long``). What crosses the wire has every escape, so that any string survives
(``read_wire``, ``write_wire``). Lines read before are not parsed again: most of an ad that a daemon sends is what it
sent five minutes ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.attribute_map import DELETED
from condor_actors.classads.errors import ClassAdSyntaxError
from condor_actors.classads.language.expressions import Expr, Reference, stored
from condor_actors.classads.language.parser import fresh, parse_assignment, parse_expression
from condor_actors.classads.language.recent import Recent
from condor_actors.classads.language.spellings import first_spelling, lower_name
from condor_actors.classads.language.unparse import name_text, quote, real_text, unparse
from condor_actors.classads.native import core
from condor_actors.classads.values import Value
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final
else:
    Any = object

Entry = tuple[str, str, Any]
"""What a line says: the name's key, its spelling where that is not the one on record, the value."""

_LINE: Final = late(r"\s*([A-Za-z_][A-Za-z0-9_]*|'(?:[^'\\]|\\.)*')\s*=\s*(\S(?:.*\S)?)\s*\Z", "s")
_WIRE_LINES: Final[Recent[bytes, Entry]] = Recent(50_000)
_NAMES: Final[Recent[bytes, tuple[str, str]]] = Recent(10_000)
_NUMBER_LINES: Final[Recent[bytes, Entry]] = Recent(30_000)
_QUOTED: Final[Recent[str, str]] = Recent(20_000)
_LONG_LINES: Final[Recent[str, tuple[str, str, Any]]] = Recent(20_000)


def read_wire(data: bytes) -> ClassAd:
    """Read the wire dialect.

    Args:
        data: UTF-8 lines.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: With the line of the ad.
    """
    ad = ClassAd()
    own = ad.own = {}
    ad.spellings = _read_lines(own, data, _WIRE_LINES.young, _NUMBER_LINES.young, _wire_line)
    return ad


def _lines_into(own: dict[str, Any], data: bytes, known: dict[bytes, Entry], numbers: dict[bytes, Entry],
                miss: Callable[[bytes, bytes], Entry]) -> dict[str, str] | None:
    """Put lines into an ad's own attributes.

    Args:
        own: The attributes.
        data: The lines.
        known: Lines that were read lately; numbers: those with a whole number.
        miss: Reads a line that is in neither.

    Returns:
        Spellings that differ from those on record.
    """
    spellings: dict[str, str] | None = None
    for line in data.split(b"\n"):
        if not line:
            continue
        key, spelling, value = known.get(line) or numbers.get(line) or miss(line, data)
        own[key] = value
        if spelling:
            spellings = spellings or {}
            spellings[key] = spelling
    return spellings


_read_lines: Final = getattr(core, "read_lines", _lines_into)


def _wire_line(line: bytes, data: bytes) -> Entry:
    name, _, text = line.partition(b" = ")
    is_quoted = b"'" in name  # then it may have anything in it, an equals sign too
    if not is_quoted and text.isdigit() and len(text) < 18 and (text[0] != 48 or len(text) == 1):
        named = _NAMES.get(name)
        if named is not None:
            number = (*named, int(text))
            _NUMBER_LINES.put(line, number)
            return number
    entry = _WIRE_LINES.get(line)
    if entry is None:
        known = None if is_quoted else _NAMES.get(name)
        try:
            if known is None:
                spelling, node = parse_assignment(line.decode("utf-8", "surrogateescape"))
                known = _named(spelling)
                if not is_quoted:
                    _NAMES.put(name, known)
            else:
                node = fresh(text.decode("utf-8", "surrogateescape"))
        except ClassAdSyntaxError as why:
            before = 0 if known is None else len(name) + 3
            raise _placed(why, data.decode("utf-8", "surrogateescape"), data.find(line) + before) from None
        entry = (*known, stored(node))
        _WIRE_LINES.put(line, entry)
    return entry


def _named(name: str) -> tuple[str, str]:
    """Key of a name, and its spelling where that is not the one on record."""
    key = lower_name(name)
    return key, "" if ClassAd().spelling(key) == name else name


def _placed(why: ClassAdSyntaxError, text: str, start: int) -> ClassAdSyntaxError:
    return ClassAdSyntaxError(why.reason, text, max(start, 0) + why.position)


def write_wire(ad: ClassAd) -> bytes:
    """Write the wire dialect.

    Args:
        ad: The ad.

    Returns:
        UTF-8 lines.
    """
    written = None
    if _write_lines is not None:
        written = _write_lines(ad, _lefts, _QUOTED.young, _left, _name, _value_text)
    return _lines_of(ad) if written is None else written


def _lines_of(ad: ClassAd) -> bytes:
    lefts = _lefts
    values, spelled = ad.merged()
    lines = []
    for key, value in values.items():
        if value is DELETED:  # of a view on an ad without its parent
            continue
        left = _name(spelled[key]) if key in spelled else lefts.get(key) or _left(key)
        lines.append(f"{left} = {_value_text(value)}")
    lines.append("")
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _value_text(value: Value) -> str:
    """The text of a value in the wire dialect; strings and expressions remember theirs."""
    kind = value.__class__
    if kind is int:
        return str(value)
    if kind is str:
        text = _QUOTED.get(value)
        if text is None:
            text = quote(value, "wire")
            _QUOTED.put(value, text)
        return text
    if kind is float:
        return real_text(value, "wire")
    if isinstance(value, Expr):
        memory = value.memory
        known: str | None = memory.get("wire") if memory is not None else None
        return known if known is not None else value.remembered("wire", _wire_text)
    return unparse(value, style="wire")


_write_lines: Final = getattr(core, "write_lines", None)


def _wire_text(value: Expr) -> str:
    return unparse(value, style="wire")


def _left(key: str) -> str:
    """The text of a name given in lower case, spelled as at first and remembered."""
    left = _name(first_spelling.get(key, key))
    if key in first_spelling:
        _lefts[key] = left
    return left


def _name(name: str) -> str:
    written = _names.get(name)
    if written is None:
        written = name_text(name)
        if len(_names) < 100_000:
            _names[name] = written
    return written


_names: dict[str, str] = {}
_lefts: dict[str, str] = {}


def write_long(ad: ClassAd) -> str:
    """Write the tools' dialect.

    Args:
        ad: The ad.

    Returns:
        Lines.
    """
    return "".join(f"{_name(name)} = {unparse(value, style='tools')}\n" for name, value in ad.stored_items())


def read_long(text: str) -> ClassAd:
    """Read the tools' dialect.

    Args:
        text: Lines of one ad; blank ones and those starting with ``#`` are skipped.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: With line and column.
    """
    ad = ClassAd()
    start = 0
    lines = text.split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        here = start
        start += len(line) + 1
        bare = line.strip()
        if not bare or bare[0] == "#":
            continue
        parts = [line]
        is_open = _open_string(line)
        while is_open and number < len(lines):
            parts.append(lines[number])
            start += len(lines[number]) + 1
            is_open = _open_string(lines[number], inside=True)
            number += 1
        _take_line(ad, "\n".join(parts), text, here)
    return ad


def _open_string(line: str, *, inside: bool = False) -> bool:
    """Whether a string literal runs on into the next line; ``inside``: one has run on into this."""
    if '"' not in line:
        return inside
    at = 0
    size = len(line.rstrip())
    while at < size:
        char = line[at]
        if char == '"':
            inside = not inside
        elif inside and char == "\\" and at + 1 < size and line[at + 1] == '"' and at + 2 < size:
            at += 1
        at += 1
    return inside


def _take_line(ad: ClassAd, line: str, text: str, start: int) -> None:
    entry = _LONG_LINES.get(line)
    if entry is None:
        match = _LINE.match(line)
        if match is None:
            raise ClassAdSyntaxError("expected 'Name = expression'", text, start)
        name = match[1]
        try:
            quoted = parse_expression(name) if name[0] == "'" else None
            if isinstance(quoted, Reference):
                name = quoted.name
            node = parse_expression(old_to_new(match[2]))
        except ClassAdSyntaxError as why:
            raise _placed(why, text, start + match.start(2)) from None
        entry = (name, "", stored(node))
        _LONG_LINES.put(line, entry)
    ad.store(entry[0], entry[2])


def old_to_new(text: str) -> str:
    """Turn an expression of the long form into the new form: backslashes become literal ones.

    Args:
        text: An expression in which only ``\\"`` is an escape.

    Returns:
        The same with new-form escapes.
    """
    if "\\" not in text and "\n" not in text:
        return text
    out: list[str] = []
    inside = False
    at, size = 0, len(text)
    while at < size:
        char = text[at]
        if char == '"':
            inside = not inside
        elif inside and char == "\\":
            following = text[at + 1] if at + 1 < size else ""
            if following == '"' and text[at + 2 :].strip():
                out.append('\\"')
                at += 2
                continue
            char = "\\\\"
        out.append(char)
        at += 1
    return "".join(out)


def parse_long_expression(text: str) -> Expr:
    """Read one expression of the long form, as configuration, submit files and command lines have it.

    Args:
        text: An expression in which a backslash stands for itself unless a quote follows.

    Returns:
        The tree.

    Raises:
        ClassAdSyntaxError: With line and column.
    """
    return parse_expression(old_to_new(text))


def iter_long(lines: Iterable[str]) -> Iterator[ClassAd]:
    """Read ads that are separated by blank lines, one at a time.

    Args:
        lines: The lines, for example an open file.

    Returns:
        An iterator of ads.

    Raises:
        ClassAdSyntaxError: When the faulty ad is reached.
    """
    held: list[str] = []
    for line in lines:
        if line.strip() and not line.startswith(("***", "---")):
            held.append(line if line.endswith("\n") else line + "\n")
        elif held:
            yield read_long("".join(held))
            held = []
    if held:
        yield read_long("".join(held))
