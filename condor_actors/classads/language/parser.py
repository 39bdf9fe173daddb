"""Tokens to trees: a Pratt parser.

From loosest to tightest: ``? :`` (to the right), ``||``, ``&&``, ``|``, ``^``, ``&``, ``== != =?= =!= is isnt``,
``< <= > >=``, ``<< >> >>>``, ``+ -``, ``* / %``, the signs ``- + ! ~``, then ``.name``, ``[index]`` and ``?:``, which
takes one operand with its own postfixes on its right. Chains of one operator are built in a loop, so only true nesting
counts against the depth limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from condor_actors.classads.errors import ClassAdSyntaxError
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
from condor_actors.classads.language.lexer import Token, as_the_library, fold_number, tokenize
from condor_actors.classads.language.recent import Recent
from condor_actors.classads.language.times import absolute_from_text, relative_from_text
from condor_actors.classads.native import core
from condor_actors.classads.values import ERROR, UNDEFINED

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final, NoReturn, TypeVar

    T = TypeVar("T")

MAX_DEPTH: Final = 200
MAX_REMEMBERED: Final = 16_384
"""Characters of the longest text that is remembered with its tree."""

_BINDING: Final = {
    "||": 20,
    "&&": 30,
    "|": 40,
    "^": 50,
    "&": 60,
    "==": 70,
    "!=": 70,
    "=?=": 70,
    "=!=": 70,
    "<": 80,
    "<=": 80,
    ">": 80,
    ">=": 80,
    "<<": 90,
    ">>": 90,
    ">>>": 90,
    "+": 100,
    "-": 100,
    "*": 110,
    "/": 110,
    "%": 110,
}
_POSTFIX: Final = frozenset({".", "[", "?:", "?"})
_WORDS: Final = {"is": "=?=", "isnt": "=!="}
_CONSTANTS: Final = {
    "true": Literal(True),
    "false": Literal(False),
    "undefined": Literal(UNDEFINED),
    "error": Literal(ERROR),
}
KEYWORDS: Final = frozenset(_CONSTANTS) | frozenset(_WORDS)


class _Parser:
    """A cursor over the tokens of one text."""

    __slots__ = ("at", "depth", "text", "tokens")

    def __init__(self, text: str, library: bool = False) -> None:
        self.text = text
        self.tokens: list[Token] = as_the_library(tokenize(text), text) if library else tokenize(text)
        self.at = 0
        self.depth = 0

    def fail(self, reason: str, token: Token | None = None) -> NoReturn:
        token = token or self.tokens[self.at]
        raise ClassAdSyntaxError(reason, self.text, token[2])

    def found(self) -> str:
        kind, value, _ = self.tokens[self.at]
        if kind == "end":
            return "the end"
        return f"a string {value!r}" if kind == "str" else repr(str(value))

    def take(self, operator: str) -> bool:
        token = self.tokens[self.at]
        if token[0] == "op" and token[1] == operator:
            self.at += 1
            return True
        return False

    def take_apart(self, first: str, second: str) -> bool:
        """Take an operator whose two characters stand apart."""
        here = self.tokens[self.at]
        if here[0] != "op" or here[1] != first:
            return False
        there = self.tokens[self.at + 1]
        if there[0] != "op" or there[1] != second:
            return False
        self.at += 2
        return True

    def second_dot(self) -> None:
        """Pass over a dot that stands directly behind one: two count as one."""
        if self.tokens[self.at][2] == self.tokens[self.at - 1][2] + 1:
            self.take(".")

    def expect(self, operator: str, after: str) -> None:
        if not self.take(operator):
            self.fail(f"expected '{operator}' {after}, found {self.found()}")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested more than {MAX_DEPTH} levels deep")

    def expression(self) -> Expr:
        self.deeper()
        result = self.binary(0)
        if self.tokens[self.at][1] == "?" and self.take("?"):
            then = self.expression()
            self.expect(":", "between the two results of '?'")
            result = Conditional(result, then, self.expression())
        self.depth -= 1
        return result

    def binary(self, limit: int) -> Expr:
        left = self.unary()
        while True:
            kind, value, _ = self.tokens[self.at]
            if kind == "op":
                operator = str(value)
            elif kind == "name":
                operator = _WORDS.get(str(value).lower(), "")
            else:
                return left
            binding = _BINDING.get(operator, 0)
            if binding <= limit:
                return left
            self.at += 1
            self.depth += 1
            if self.depth > MAX_DEPTH:
                self.deeper()
            right = self.binary(binding)
            self.depth -= 1
            left = Binary(operator, left, right)

    def unary(self) -> Expr:
        kind, value, position = self.tokens[self.at]
        if kind != "op":
            return self.operand()
        if value in ("-", "+", "!", "~"):
            self.at += 1
            following = self.tokens[self.at]
            if value == "-" and following[0] in ("num", "octal") and following[2] == position + 1:
                self.at -= 1
                return self.operand()
            self.deeper()
            operand = self.unary()
            self.depth -= 1
            return Unary(str(value), operand)
        return self.operand()

    def operand(self) -> Expr:
        """An operand with its postfixes; ``?:`` is one of them, and takes another operand behind it."""
        node = self.primary()
        while True:
            kind, value, _ = self.tokens[self.at]
            if kind != "op" or value not in _POSTFIX:
                return node
            if node.height > 2 * MAX_DEPTH:
                self.fail(f"nested more than {2 * MAX_DEPTH} levels deep")
            if self.take("?:") or self.take_apart("?", ":"):
                self.deeper()
                node = Conditional(node, None, self.operand())
                self.depth -= 1
            elif self.take("."):
                self.second_dot()
                node = Reference(self.name("after '.'"), node)
            elif self.take("["):
                index = self.expression()
                self.expect("]", "after the subscript")
                node = Subscript(node, index)
            else:
                return node

    def name(self, place: str) -> str:
        kind, value, _ = self.tokens[self.at]
        if kind == "quoted" or (kind == "name" and str(value).lower() not in KEYWORDS):
            self.at += 1
            text = str(value)
            while self.tokens[self.at][0] == "quoted" and kind == "quoted":
                text += str(self.tokens[self.at][1])
                self.at += 1
            return text
        return self.fail(f"expected an attribute name {place}, found {self.found()}")

    def primary(self) -> Expr:
        token = self.tokens[self.at]
        kind, value, _ = token
        if kind == "num":
            self.at += 1
            assert not isinstance(value, str)
            return Literal(fold_number(value, False))
        if kind == "str":
            return Literal(self.string())
        if kind == "octal":
            self.fail("octal numbers are not part of the language; drop the leading 0")
        if kind in {"name", "quoted"}:
            return self.named()
        if kind == "op":
            if value == "-":
                return self.negative()
            if self.take("("):
                inner = self.expression()
                self.expect(")", "to close '('")
                return Unary("(", inner)
            if self.take("."):
                self.second_dot()
                return Reference(self.name("after '.'"), None, absolute=True)
            if self.take("{"):
                return ListExpr(self.sequence("}", "the list"))
            if self.take("["):
                return self.record()
        return self.fail(f"expected an operand, found {self.found()}")

    def negative(self) -> Expr:
        """A minus that stands directly before a number belongs to it."""
        _, _, position = self.tokens[self.at]
        kind, number, start = self.tokens[self.at + 1]
        if kind not in ("num", "octal") or start != position + 1 or isinstance(number, str):
            self.fail(f"expected an operand, found {self.found()}")
        if kind == "octal" and set("89") & set(str(number)):
            self.fail("a number with a leading 0 that is not octal")
        self.at += 2
        return Literal(fold_number(number, True))

    def string(self) -> str:
        text = str(self.tokens[self.at][1])
        self.at += 1
        while self.tokens[self.at][0] == "str":
            text += str(self.tokens[self.at][1])
            self.at += 1
        return text

    def named(self) -> Expr:
        token = self.tokens[self.at]
        if token[0] == "name":
            lower = str(token[1]).lower()
            constant = _CONSTANTS.get(lower)
            if constant is not None:
                self.at += 1
                return constant
            if lower in _WORDS:
                self.fail(f"expected an operand, found the operator {str(token[1])!r}")
        name = self.name("")
        if self.take("("):
            arguments = self.sequence(")", f"the arguments of {name}")
            timed = _timed(name, arguments)
            if timed is None:
                self.fail(f"{name} cannot read this string as a time", token)
            return timed
        return Reference(name)

    def sequence(self, closing: str, what: str) -> tuple[Expr, ...]:
        if self.take(closing):
            return ()
        items = [self.expression()]
        while self.take(",") or (closing == ")" and self.take(";")):
            items.append(self.expression())
        self.expect(closing, f"or ',' in {what}")
        return tuple(items)

    def record(self) -> RecordExpr:
        pairs: list[tuple[str, Expr]] = []
        if self.take("]"):
            return RecordExpr(())
        while True:
            name = self.name("or ']' in the record")
            self.expect("=", f"after the attribute name {name}")
            pairs.append((name, self.expression()))
            if self.take("]"):
                return RecordExpr(tuple(pairs))
            self.expect(";", f"or ']' after the value of {name}")
            while self.take(";"):
                pass
            if self.take("]"):
                return RecordExpr(tuple(pairs))


def _timed(name: str, arguments: tuple[Expr, ...]) -> Expr | None:
    """Calls of absTime and relTime on a literal string are literals themselves; None when the string is no time."""
    if len(arguments) == 1 and type(arguments[0]) is Literal and isinstance(arguments[0].value, str):
        lower = name.lower()
        if lower == "abstime":
            instant = absolute_from_text(arguments[0].value)
            return None if instant is None else Literal(instant)
        if lower == "reltime":
            span = relative_from_text(arguments[0].value)
            return None if span is None else SpanLiteral(span)
    return Call(name, arguments)


def _deep(read: Callable[[], T]) -> T:
    """Parse with as many frames as the deepest text that is allowed needs."""
    try:
        return read()
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, 20_000))
        try:
            return read()
        finally:
            sys.setrecursionlimit(limit)


_parsed: Recent[str, Expr] = Recent(20_000)
_core_parse: Final = None if core is None else core.parse


def parse_expression(text: str, *, library_numbers: bool = False) -> Expr:
    """Read one expression.

    Args:
        text: The expression in the new form (backslash escapes in strings, any layout, comments).
        library_numbers: Read ``010`` as 10 and ``0x10`` as 0, as the bare library does; the tools refuse them.

    Returns:
        The tree; equal texts give the same object as long as it is remembered.

    Raises:
        ClassAdSyntaxError: With line and column.
    """
    if library_numbers:
        return _deep(lambda: _whole(text, True))
    node = _parsed.get(text)
    if node is None:
        node = fresh(text)
        if len(text) <= MAX_REMEMBERED:
            _parsed.put(text, node)
    return node


def fresh(text: str) -> Expr:
    """Read one expression that is not remembered, and do not remember it.

    Args:
        text: The expression.

    Returns:
        Its tree.

    Raises:
        ClassAdSyntaxError: With line and column.
    """
    node: Expr | None = None if _core_parse is None else _core_parse(text)
    return _deep(lambda: _whole(text)) if node is None else node


def _whole(text: str, library: bool = False) -> Expr:
    parser = _Parser(text, library)
    node = parser.expression()
    if parser.tokens[parser.at][0] != "end":
        parser.fail(f"expected the end of the expression, found {parser.found()}")
    return node


def parse_record(text: str) -> RecordExpr:
    """Read one record ``[ a = 1; ... ]``.

    Args:
        text: The record alone.

    Returns:
        Its tree.

    Raises:
        ClassAdSyntaxError: With line and column.
    """

    node = None if _core_parse is None else _core_parse(text)
    if isinstance(node, RecordExpr):
        return node

    def read() -> RecordExpr:
        parser = _Parser(text)
        parser.expect("[", "to open the ad")
        record = parser.record()
        if parser.tokens[parser.at][0] != "end":
            parser.fail(f"expected the end of the ad, found {parser.found()}")
        return record

    return _deep(read)


def parse_records(text: str) -> Iterator[RecordExpr]:
    """Read records that follow one another, with commas and an enclosing list allowed.

    Args:
        text: ``[...] [...]``, ``[...],[...]`` or ``{ [...],[...] }``.

    Returns:
        An iterator of trees.

    Raises:
        ClassAdSyntaxError: When the faulty record is reached.
    """
    parser = _Parser(text)
    listed = parser.take("{")
    while True:
        while parser.take(","):
            pass
        if listed and parser.take("}"):
            listed = False
        if parser.tokens[parser.at][0] == "end":
            return
        parser.expect("[", "to open an ad")
        at = parser.at

        def read(start: int = at) -> RecordExpr:
            parser.at, parser.depth = start, 0
            return parser.record()

        yield _deep(read)


def parse_assignment(text: str) -> tuple[str, Expr]:
    """Read ``name = expression``.

    Args:
        text: One assignment in the new form.

    Returns:
        Name as spelled, and tree.

    Raises:
        ClassAdSyntaxError: With line and column.
    """

    def read() -> tuple[str, Expr]:
        parser = _Parser(text)
        name = parser.name("")
        parser.expect("=", f"after the attribute name {name}")
        node = parser.expression()
        if parser.tokens[parser.at][0] != "end":
            parser.fail(f"expected the end of the expression, found {parser.found()}")
        return name, node

    return _deep(read)
