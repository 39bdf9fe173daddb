"""Text to tokens.

One regular expression knows every token; a token is a tuple ``(kind, value, position)``. Kinds are ``num`` (a literal
number), ``octal`` (an integer with a needless leading 0), ``str``, ``name``, ``quoted`` (a name in single quotes, never
a keyword), ``op`` and ``end``.
Keywords are told apart by the parser, because ``true`` is a name nowhere and ``is`` is an operator everywhere.
"""

from __future__ import annotations

import re
from typing import Final

from .errors import ClassAdSyntaxError
from .values import INT_MAX, INT_MIN

Token = tuple[str, str | int | float, int]

MAX_TEXT: Final = 1024 * 1024

_TOKEN: Final = re.compile(
    r"""
    (?P<skip>(?:[ \t\r\n\v\f]+|//[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)+)
  | (?P<num>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<str>"(?:[^"\\]|\\.)*")
  | (?P<quoted>'(?:[^'\\]|\\.)*')
  | (?P<op>=\?=|=!=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||\?:|[-+*/%!~&|^<>?:.,;=(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescape(body: str) -> str:
    """Resolve the backslash escapes of a string literal.

    :param body: what stands between the quotes.
    :returns: the string; octal escapes above 127 are joined to UTF-8 characters where they make some.
    :raises ValueError: when the string would hold a NUL, which no ClassAd string can.
    """
    octal = False

    def one(match: re.Match[str]) -> str:
        nonlocal octal
        code = match[1]
        if code[0] in "01234567":
            number = int(code, 8)
            if number == 0:
                raise ValueError("a string cannot hold a NUL character")
            if number > 127:
                octal = True
                return chr(0xDC00 + number)
            return chr(number)
        return _LETTERS.get(code, code)

    text = _ESCAPE.sub(one, body)
    if octal:
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return text


def _number(text: str) -> int | float:
    if not text.isdigit():
        return float(text)
    return int(text) if len(text.lstrip("0")) < 25 else INT_MAX + 1


def tokenize(text: str) -> list[Token]:
    """Split a text into tokens.

    :param text: one expression, or a whole ad in the new form; at most 1 MiB.
    :returns: the tokens, the last of them of kind ``end``.
    :raises ClassAdSyntaxError: where no token starts, with the place.
    """
    if len(text) > MAX_TEXT:
        raise ClassAdSyntaxError(f"text longer than {MAX_TEXT} characters", text[:1], 0)
    if "\0" in text:
        raise ClassAdSyntaxError("a NUL character", text, text.index("\0"))
    tokens: list[Token] = []
    append = tokens.append
    match_at = _TOKEN.match
    position, size = 0, len(text)
    while position < size:
        match = match_at(text, position)
        if match is None:
            raise ClassAdSyntaxError(_complaint(text, position), text, position)
        kind = match.lastgroup
        after = match.end()
        if kind in {"name", "op"}:
            append((kind, match[0], position))
        elif kind == "num":
            digits = match[0]
            if digits.isdigit() and text.startswith(".", after):
                raise ClassAdSyntaxError("digits are missing behind the decimal point", text, after)
            octal = digits[0] == "0" and len(digits) > 1 and digits.isdigit()
            append(("octal" if octal else "num", _number(digits), position))
        elif kind in {"str", "quoted"}:
            body = match[0][1:-1]
            try:
                append((kind, unescape(body) if "\\" in body else body, position))
            except ValueError as why:
                raise ClassAdSyntaxError(str(why), text, position) from None
        position = after
    append(("end", "", size))
    return tokens


def _complaint(text: str, position: int) -> str:
    first = text[position]
    if first == '"':
        return 'string without its closing "'
    if first == "'":
        return "quoted name without its closing '"
    if text.startswith("/*", position):
        return "comment without its closing */"
    return f"{first!r} starts nothing that belongs in an expression"


def fold_number(number: int | float, negative: bool) -> int | float:
    """Give a numeric literal its value: integers beyond 64 bits read as 0, as they always did.

    :param number: the literal without its sign.
    :param negative: whether a minus stands directly before it.
    :returns: the value.
    """
    if negative:
        number = -number
    if isinstance(number, int) and not INT_MIN <= number <= INT_MAX:
        return 0
    return number
