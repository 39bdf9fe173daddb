"""XML: ``<c><a n="Name"><i>3</i></a></c>``.

====== =====================  ====== =====================
``i``  integer                ``b``  boolean, ``v="t"``
``r``  real                   ``un`` undefined
``s``  string                 ``er`` error
``e``  expression             ``at`` absolute time
``l``  list                   ``rt`` relative time
``c``  record
====== =====================  ====== =====================
"""

from __future__ import annotations

import math
import xml.parsers.expat
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.errors import ClassAdSyntaxError
from condor_actors.classads.language.expressions import Expr, ListExpr, Literal, RecordExpr, as_expr
from condor_actors.classads.language.parser import parse_expression
from condor_actors.classads.language.times import (
    absolute_from_text,
    absolute_to_text,
    relative_from_text,
    relative_to_text,
)
from condor_actors.classads.language.unparse import unparse
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, Value, wrap
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

HEADER: Final = '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
FOOTER: Final = "</classads>\n"
_MAX_DEPTH: Final = 100
_CONTROL: Final = late(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def write_xml(ad: ClassAd) -> str:
    """Write an ad.

    Args:
        ad: The ad.

    Returns:
        One ``<c>`` element, an attribute a line.
    """
    lines = [f"    <a n={_attribute(name)}>{_element(value)}</a>\n" for name, value in ad.stored_items()]
    return "<c>\n" + "".join(lines) + "</c>\n"


def write_xml_list(ads: Iterable[ClassAd]) -> Iterator[str]:
    """Write a whole document piece by piece.

    Args:
        ads: The ads.

    Returns:
        An iterator of pieces.
    """
    yield HEADER
    for ad in ads:
        yield write_xml(ad)
    yield FOOTER


def _attribute(name: str) -> str:
    return '"' + escape(_clean(name), {'"': "&quot;"}) + '"'


def _clean(text: str) -> str:
    return _CONTROL.sub("?", text)


def _element(value: Any) -> str:
    if isinstance(value, Literal):
        value = value.value
    if value is True or value is False:
        return f'<b v="{"t" if value else "f"}"/>'
    if isinstance(value, int):
        return f"<i>{value}</i>"
    if isinstance(value, float):
        return f"<r>{_real(value)}</r>"
    if isinstance(value, str):
        if _CONTROL.search(value):
            return f"<e>{escape(unparse(value))}</e>"
        return f"<s>{escape(value)}</s>".replace("\r", "&#13;")
    if value is UNDEFINED:
        return "<un/>"
    if value is ERROR:
        return "<er/>"
    if isinstance(value, AbsoluteTime):
        return f"<at>{absolute_to_text(value)}</at>"
    if isinstance(value, RelativeTime):
        return f"<rt>{relative_to_text(value)}</rt>"
    if isinstance(value, (ListExpr, list, tuple)):
        items = value.elements if isinstance(value, ListExpr) else value
        return f"<l>{''.join(_element(item) for item in items)}</l>"
    if isinstance(value, (RecordExpr, ClassAd)):
        pairs: Any = value.pairs if isinstance(value, RecordExpr) else value.stored_items()
        latest = {name.lower(): (name, item) for name, item in pairs}
        inner = "".join(f"<a n={_attribute(name)}>{_element(item)}</a>" for name, item in latest.values())
        return f"<c>{inner}</c>"
    return f"<e>{escape(unparse(value))}</e>"


def _real(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return f"{number:.15E}"


class _Reader:
    """Collects finished ads from the events of the XML parser."""

    def __init__(self) -> None:
        self.done: list[ClassAd] = []
        self.stack: list[tuple[str, str, list[Any]]] = []
        self.text: list[str] = []
        self.parser = xml.parsers.expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.EntityDeclHandler = self.entity

    def entity(self, *_details: Any) -> None:
        self.fail("entity declarations are not part of the format")

    def fail(self, reason: str) -> None:
        line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber
        raise ClassAdSyntaxError(reason, "\n" * (line - 1) + " " * column, line - 1 + column)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "classads":
            return
        if tag not in _TAGS:
            self.fail(f"<{tag}> is no element of a ClassAd")
        if len(self.stack) > 2 * _MAX_DEPTH:
            self.fail(f"nested more than {_MAX_DEPTH} levels deep")
        self.stack.append((tag, attributes.get("n", attributes.get("v", "")), []))
        self.text.clear()

    def end(self, tag: str) -> None:
        if tag == "classads":
            return
        _, mark, children = self.stack.pop()
        if tag == "a":
            if not mark or len(children) != 1 or not self.stack:
                self.fail("<a> needs a name n and one value")
            self.stack[-1][2].append((mark, children[0]))
            return
        if any(isinstance(child, tuple) is not (tag == "c") for child in children) or (children and tag not in "cl"):
            self.fail(f"<{tag}> holds elements that it cannot hold")
        value = self.value(tag, mark, children)
        self.text.clear()
        if self.stack:
            self.stack[-1][2].append(value)
        elif isinstance(value, RecordExpr):
            self.done.append(ClassAd.from_pairs(value.pairs))
        else:
            self.fail(f"<{tag}> outside an ad")

    def value(self, tag: str, mark: str, children: list[Any]) -> Value:
        text = "".join(self.text)
        if tag == "c":
            return RecordExpr(tuple((name, as_expr(item)) for name, item in children))
        if tag == "l":
            return ListExpr(tuple(as_expr(item) for item in children))
        if tag == "s":
            return text
        if tag == "e":
            return parse_expression(text)
        if tag == "b":
            return mark.lower().startswith("t")
        if tag == "un":
            return UNDEFINED
        if tag == "er":
            return ERROR
        found = self.parsed(tag, text.strip())
        if found is None:
            self.fail(f"{text!r:.60} is no value for <{tag}>")
        return found

    def parsed(self, tag: str, text: str) -> Value:
        if tag == "at":
            return absolute_from_text(text)
        if tag == "rt":
            return relative_from_text(text)
        try:
            return wrap(int(text)) if tag == "i" else float(text)
        except ValueError:
            return None


_TAGS: Final = frozenset({"c", "a", "i", "r", "s", "e", "l", "b", "un", "er", "at", "rt"})


def iter_xml(pieces: Iterable[str | bytes]) -> Iterator[ClassAd]:
    """Read ads from a document that arrives in pieces.

    Args:
        pieces: The text, for example an open file.

    Returns:
        An iterator of ads, each as soon as it is complete.

    Raises:
        ClassAdSyntaxError: When the faulty place is reached.
    """
    reader = _Reader()
    try:
        for piece in pieces:
            reader.parser.Parse(piece, False)
            yield from reader.done
            reader.done.clear()
        reader.parser.Parse(b"", True)
    except xml.parsers.expat.ExpatError as why:
        reason = xml.parsers.expat.errors.messages.get(why.code, "malformed XML")
        at = why.lineno - 1 + why.offset
        raise ClassAdSyntaxError(reason, "\n" * (why.lineno - 1) + " " * why.offset, at) from None
    except UnicodeEncodeError as error:
        raise ClassAdSyntaxError("bytes that are no text", error.object, error.start) from None
    yield from reader.done


def read_xml(text: str | bytes) -> ClassAd:
    """Read one ad.

    Args:
        text: A ``<c>`` element, alone or inside ``<classads>``.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: When there is none.
    """
    for ad in iter_xml([text]):
        return ad
    raise ClassAdSyntaxError("no <c> element", "", 0)


__all__ = ["Expr", "iter_xml", "read_xml", "write_xml", "write_xml_list"]
