"""Trees and values to text, in four styles.

=========  =====================================================================================
``new``    the library's form: ``is``, ``1.500000000000000E+00``, every escape, bytes outside ASCII as ``\\ooo``
``tools``  what ``-long`` shows: ``=?=``, ``1.5``, strings with only the quote escaped
``pretty`` like ``new``, with a line for every element of lists and records: what the function ``unparse`` gives
``wire``   what crosses the wire: like ``tools``, but every escape and every digit, so that it reads back the same
=========  =====================================================================================
"""

from __future__ import annotations

import math

from condor_actors.classads.language.expressions import (
    Binary,
    Call,
    Conditional,
    Expr,
    ListExpr,
    Literal,
    RecordExpr,
    Reference,
    SpanLiteral,
    Subscript,
    Unary,
)
from condor_actors.classads.language.times import absolute_to_text, exact_span_text, relative_to_text, span_to_text
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, ListValue, RelativeTime, Value
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Any, Final
    from typing import Literal as Choice

    Style = Choice["new", "tools", "wire", "pretty"]

_PLAIN_NAME: Final = late(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUOTED_WORDS: Final = frozenset({"true", "false", "undefined", "error", "is", "isnt", "parent"})
_ESCAPES: Final = {
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
    "\\": "\\\\",
}
_SPECIAL: Final = late(r'[^ !#-\[\]-~]')
_CONTROL: Final = late(r'["\\\x00-\x1f\x7f\ud800-\udfff]')
_PLAIN_TIMES: Final = (-30_000_000_000, 253_000_000_000)
"""Instants of four-digit years, whatever the zone."""
_SPELLED: Final = {"=?=": "is", "=!=": "isnt"}


def _octal(match: re.Match[str]) -> str:
    char = match[0]
    short = _ESCAPES.get(char)
    if short is not None:
        return short
    if char in {'"', "'"}:
        return "\\" + char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def quote(text: str, style: Style = "new") -> str:
    """Write a string literal.

    Args:
        text: The string.
        style: ``new``, ``wire``, ``tools`` or ``pretty``, as the header of this module tells them apart.

    Returns:
        The literal with its quotes.
    """
    if style == "tools":
        return '"' + text.replace('"', '\\"') + '"'
    pattern = _CONTROL if style == "wire" else _SPECIAL
    return '"' + pattern.sub(_octal, text) + '"'


def real_text(number: float, style: Style = "new") -> str:
    """Write a real.

    Args:
        number: The number.
        style: ``new``, ``wire``, ``tools`` or ``pretty``, as the header of this module tells them apart.

    Returns:
        Its literal, or a call of ``real`` for what has none.
    """
    if math.isinf(number):
        return 'real("INF")' if number > 0 else 'real("-INF")'
    if math.isnan(number):
        return 'real("NaN")'
    if style in {"new", "pretty"}:
        if number == 0:
            return "-0.0" if math.copysign(1, number) < 0 else "0.0"
        return f"{number:.15E}"
    if style == "tools":
        text = f"{number:.16G}"
    else:
        text = repr(number)
    return text if "." in text or "E" in text or "e" in text else text + ".0"


def name_text(name: str, first: bool = True) -> str:
    """Write an attribute name, in single quotes where it needs them.

    Args:
        name: The name.
        first: Whether it starts a reference, where ``parent`` is special.

    Returns:
        Its text.
    """
    if _PLAIN_NAME.match(name):
        lower = name.lower()
        if lower not in _QUOTED_WORDS or (lower == "parent" and not first):
            return name
    return "'" + "".join(_name_char(char) for char in name) + "'"


def _name_char(char: str) -> str:
    if char == "'":
        return "\\'"
    return char if char == '"' else _SPECIAL.sub(_octal, char)


def unparse(value: Value, *, style: Style = "new") -> str:
    """Write a value or an expression.

    Args:
        value: Plain value, list, ClassAd or expression.
        style: ``new``, ``wire``, ``tools`` or ``pretty``, as the header of this module tells them apart.

    Returns:
        One line of text that reads back as the same tree (style ``tools`` only where strings allow it).
    """
    pieces: list[str] = []
    _Writer(style, pieces).write(value)
    return "".join(pieces)


def scalar_text(value: Value, style: Style) -> str | None:
    """Write a value that has no parts.

    Args:
        value: Anything.
        style: ``new``, ``wire``, ``tools`` or ``pretty``, as the header of this module tells them apart.

    Returns:
        Its text, None for a list, record or expression.
    """
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quote(value, style)
    if isinstance(value, float):
        return real_text(value, style)
    if value is UNDEFINED or value is None:
        return "undefined"
    if value is ERROR:
        return "error"
    if isinstance(value, AbsoluteTime):
        if style == "wire" and not (_PLAIN_TIMES[0] <= value.epoch_s < _PLAIN_TIMES[1] and value.offset_s % 60 == 0):
            return f"absTime({value.epoch_s},{value.offset_s})"
        return f'absTime("{absolute_to_text(value)}")'
    if isinstance(value, RelativeTime):
        if style == "wire":
            return f"relTime({real_text(value.span_s, 'wire')})"
        return f'relTime("{relative_to_text(value)}")'
    return None


class _Writer:
    """Appends the pieces of one text; left spines of operators are walked in a loop."""

    __slots__ = ("column", "pieces", "style")

    def __init__(self, style: Style, pieces: list[str]) -> None:
        self.style = style
        self.pieces = pieces
        self.column = 0

    def write(self, value: Any) -> None:
        if isinstance(value, Expr):
            if isinstance(value, Literal):
                value = value.value
            else:
                self.node(value)
                return
        text = scalar_text(value, self.style)
        if text is not None:
            self.pieces.append(text)
        elif isinstance(value, (list, tuple)):
            self.items(value)
        elif isinstance(value, ListValue):
            self.items(value.elements)
        else:
            self.pairs(value.stored_items())

    def items(self, values: Any) -> None:
        put = self.pieces.append
        if self.style == "pretty":
            self.column += 6
            inner = "\n" + " " * self.column
            put(inner[:-3] + "{")
            for number, item in enumerate(values):
                put("," + inner if number else inner)
                self.write(item)
            put(inner[:-3] + "}")
            self.column -= 6
            return
        put("{ ")
        for number, item in enumerate(values):
            if number:
                put(",")
            self.write(item)
        put(" }")

    def pairs(self, pairs: Any) -> None:
        put = self.pieces.append
        latest: dict[str, tuple[str, Any]] = {}
        for name, item in pairs:
            key = name.lower()
            latest[key] = (latest[key][0] if key in latest else name, item)
        opening, between, closing = "[ ", "; ", " ]"
        if self.style == "pretty":
            self.column += 8
            inner = "\n" + " " * self.column
            opening, between, closing = inner[:-4] + "[" + inner, "; " + inner, inner[:-4] + "]"
            if not latest:
                opening = inner[:-4] + "["
        put(opening)
        first = True
        for _, (name, item) in sorted(latest.items(), key=_length_then_name):
            if not first:
                put(between)
            first = False
            put(name_text(name))
            put(" = ")
            self.write(item)
        put(closing)
        if self.style == "pretty":
            self.column -= 8

    def node(self, node: Expr) -> None:
        put = self.pieces.append
        if isinstance(node, Binary):
            self.binary(node)
        elif isinstance(node, Reference):
            if node.scope is not None:
                self.write(node.scope)
                put(".")
            elif node.absolute:
                put(".")
            put(name_text(node.name, node.scope is None))
        elif isinstance(node, Unary):
            if node.operator == "(":
                put("(")
                self.write(node.operand)
                put(")")
            else:
                apart = self.style == "wire" and node.operator == "-" and isinstance(node.operand, Literal)
                put(" - " if apart else " " + node.operator)
                self.write(node.operand)
        elif isinstance(node, Conditional):
            self.write(node.test)
            if node.then is None:
                put(" ?: ")
            else:
                put(" ? ")
                self.write(node.then)
                put(" : ")
            self.write(node.otherwise)
        elif isinstance(node, Call):
            put(name_text(node.name) + "(")
            for number, argument in enumerate(node.arguments):
                if number:
                    put(",")
                self.write(argument)
            put(")")
        elif isinstance(node, Subscript):
            self.write(node.container)
            put("[")
            self.write(node.index)
            put("]")
        elif isinstance(node, ListExpr):
            self.items(node.elements)
        elif isinstance(node, RecordExpr):
            self.pairs(node.pairs)
        elif isinstance(node, SpanLiteral):
            text = exact_span_text(node.span) if self.style == "wire" else span_to_text(node.span)
            put(f'relTime("{text}")')

    def binary(self, node: Binary) -> None:
        spine: list[Binary] = []
        left: Expr = node
        while isinstance(left, Binary):
            spine.append(left)
            left = left.left
        self.write(left)
        for step in reversed(spine):
            operator = step.operator
            if self.style in {"new", "pretty"}:
                operator = _SPELLED.get(operator, operator)
            self.pieces.append(f" {operator} ")
            self.write(step.right)


def _length_then_name(item: tuple[str, tuple[str, Any]]) -> tuple[int, str]:
    return len(item[0]), item[0]
