"""Classes of characters in patterns: what stands between ``[`` and ``]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from condor_actors.classads.builtins.byte_sets import (
    ALL,
    KINDS,
    LOWER,
    POSIX_CLASSES,
    UPPER,
    WORD,
    bytes_of,
    folded,
)
from condor_actors.classads.builtins.pattern_tree import (
    At,
    Look,
    Node,
    OneOf,
    PatternError,
    Sequence,
)

if TYPE_CHECKING:
    from condor_actors.classads.builtins.pattern_syntax import Parser

_BEGUN_CLASS: Final = re.compile(r"\[([:.=])(?:\\.|[^\]\\])*?\1\]")


def read_class(parser: Parser) -> Node:
    """The class that begins here, with what stands between its brackets."""
    if parser.take("[[:<:]]"):
        return Sequence((At("boundary"), Look(OneOf(WORD), False, False)))
    if parser.take("[[:>:]]"):
        return Sequence((At("boundary"), Look(OneOf(WORD), True, False)))
    if _BEGUN_CLASS.match(parser.text, parser.at):
        raise PatternError("a POSIX class outside of a class")
    parser.at += 1
    negated = parser.take("^")
    members = 0
    first = True
    while True:
        if not first and parser.take("]"):
            break
        if parser.take("\\E"):
            continue
        if parser.options.more_extended and parser.peek() in (" ", "\t"):
            parser.at += 1
            continue
        low, single = _member(parser)
        first = False
        if low is None:
            continue
        members |= _ranged(parser, low, single)
    if parser.options.fold:
        members = folded(members)
    return OneOf(ALL & ~members if negated else members)


def _ranged(parser: Parser, low: int, single: bool) -> int:
    """The bytes of a member of a class, or of the range that it begins."""
    if parser.peek() != "-" or parser.text[parser.at + 1 : parser.at + 2] in ("]", ""):
        return low
    if not single:
        raise PatternError("a range that begins with a class")
    parser.at += 1
    high, ends = _member(parser)
    if high is None or not ends:
        raise PatternError("a range that ends with a class")
    if high < low:
        raise PatternError("a range from high to low")
    return (high << 1) - low


def _member(parser: Parser) -> tuple[int | None, bool]:
    """One member of a class and whether it is a single byte; None for ``\\Q\\E``."""
    if parser.peek() == "[":
        posix = _BEGUN_CLASS.match(parser.text, parser.at)
        if posix is not None:
            parser.at = posix.end()
            name = posix[0][2:-2]
            negated = name.startswith("^")
            known = POSIX_CLASSES.get(name[negated:]) if posix[1] == ":" else None
            if known is None:
                raise PatternError(f"{posix[0]} is no class")
            if parser.options.fold and name[negated:] in ("upper", "lower"):
                known = UPPER | LOWER
            return (ALL & ~known if negated else known), False
    char = parser.next()
    if char != "\\":
        return 1 << ord(char), True
    char = parser.next()
    if char == "Q":
        members = bytes_of(parser.until("\\E"))
        return (members, False) if members else (None, False)
    if char == "b":
        return 1 << 8, True
    if char in "BNRXK":
        raise PatternError(f"\\{char} in a class")
    members = parser.escaped_set(char)
    return members, char.lower() not in (*KINDS, "p")
