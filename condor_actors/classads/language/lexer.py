"""Text to tokens.

One regular expression knows every token; a token is a tuple ``(kind, value, position)``. Kinds are ``num`` (a literal
number), ``octal`` (an integer with a needless leading 0), ``str``, ``name``, ``quoted`` (a name in single quotes, never
a keyword), ``op`` and ``end``.
Keywords are told apart by the parser, because ``true`` is a name nowhere and ``is`` is an operator everywhere.
"""

from __future__ import annotations

from condor_actors.classads.errors import ClassAdSyntaxError
from condor_actors.classads.values import INT_MAX, INT_MIN
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Final

Token = tuple[str, str | int | float, int]

MAX_TEXT: Final = 1024 * 1024

_BLANK: Final = " \t\r\n\v\f"
_TOKEN: Final = late(
    r"""
    [ \t\r\n\v\f]*
    (?:
        (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<num>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
      | (?P<skip>//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
      | (?P<op>=\?=|=!=|>>>|<<|>>|<=|>=|==|!=|&&|\|\||\?:|[-+*/%!~&|^<>?:.,;=(){}\[\]])
      | (?P<str>"(?:[^"\\]|\\.)*")
      | (?P<quoted>'(?:[^'\\]|\\.)*')
      | (?P<none>\S|\Z)  # so that it is looked for nowhere further on, which would take the square of the text's length
    )
    """,
    "xsa",
)
_ESCAPE: Final = late(r"\\([0-3]?[0-7]{1,2}|.)", "s")
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unescape(body: str) -> str:
    """Resolve the backslash escapes of a string literal.

    Args:
        body: What stands between the quotes.

    Returns:
        The string; octal escapes above 127 are joined to UTF-8 characters where they make some.

    Raises:
        ValueError: When the string would hold a NUL, which no ClassAd string can.
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
    if not text.isdecimal():
        return float(text)
    return int(text) if len(text.lstrip("0")) < 25 else INT_MAX + 1


def tokenize(text: str) -> list[Token]:
    """Split a text into tokens.

    Args:
        text: One expression, or a whole ad in the new form; at most 1 MiB.

    Returns:
        The tokens, the last of them of kind ``end``.

    Raises:
        ClassAdSyntaxError: Where no token starts, with the place.
    """
    if len(text) > MAX_TEXT:
        raise ClassAdSyntaxError(f"text longer than {MAX_TEXT} characters", text[:1], 0)
    if "\0" in text:
        raise ClassAdSyntaxError("a NUL character", text, text.index("\0"))
    tokens: list[Token] = []
    append = tokens.append
    position, size = 0, len(text)
    for match in _TOKEN.finditer(text):
        group = match.lastindex or 0
        if group == _NONE:
            break
        position = match.end()
        start = match.start(group)
        value = match[group]
        if group == _NAME:
            append(("name", value, start))
        elif group == _OPERATOR:
            if value == "/" and text.startswith("*", position):
                raise ClassAdSyntaxError("comment without its closing */", text, start)
            append(("op", value, start))
        elif group == _NUMBER:
            if value.isdecimal() and text.startswith(".", position):
                raise ClassAdSyntaxError("digits are missing behind the decimal point", text, position)
            octal = value[0] == "0" and len(value) > 1 and value.isdecimal()
            append(("octal" if octal else "num", _number(value), start))
        elif group != _COMMENT:
            append((match.lastgroup or "", _string(value[1:-1], text, start), start))
    rest = size - len(text[position:].lstrip(_BLANK))
    if rest < size:
        raise ClassAdSyntaxError(_complaint(text, rest), text, rest)
    append(("end", "", size))
    return tokens


_NAME, _NUMBER, _COMMENT, _OPERATOR, _NONE = 1, 2, 3, 4, 7


def _string(body: str, text: str, start: int) -> str:
    if "\\" not in body:
        return body
    try:
        return unescape(body)
    except ValueError as why:
        raise ClassAdSyntaxError(str(why), text, start) from None


def _complaint(text: str, position: int) -> str:
    first = text[position]
    if first == '"':
        return 'string without its closing "'
    if first == "'":
        return "quoted name without its closing '"
    return f"{first!r} starts nothing that belongs in an expression"


def as_the_library(tokens: list[Token], text: str) -> list[Token]:
    """Read numbers as HTCondor's bare library does: a leading 0 is harmless, and hexadecimal ones are all 0.

    Args:
        tokens: The tokens of a text.
        text: The text.

    Returns:
        The tokens with such numbers put right.
    """
    found: list[Token] = []
    for token in tokens:
        kind, value, start = token
        before = found[-1] if found else token
        if kind == "octal" and not set("89") & set(str(value)):
            found.append(("num", value, start))
        elif kind == "name" and before[0] == "num" and before[2] == start - 1 and _HEX.match(text, start - 1):
            continue
        else:
            found.append(token)
    return found


_HEX: Final = late(r"0[xX][0-9a-fA-F]+(?![A-Za-z0-9_])")


def fold_number(number: int | float, negative: bool) -> int | float:
    """Give a numeric literal its value: integers beyond 64 bits read as 0, as they always did.

    Args:
        number: The literal without its sign.
        negative: Whether a minus stands directly before it.

    Returns:
        The value.
    """
    if negative:
        number = -number
    if isinstance(number, int) and not INT_MIN <= number <= INT_MAX:
        return 0
    return number
