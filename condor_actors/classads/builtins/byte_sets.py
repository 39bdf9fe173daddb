"""Sets of bytes: a number with one bit for each."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Final

ALL: Final = (1 << 256) - 1


def set_of(members: Iterable[int]) -> int:
    """Make a set.

    Args:
        members: Codes of bytes.

    Returns:
        The set of them.
    """
    found = 0
    for member in members:
        found |= 1 << member
    return found


def bytes_of(text: str) -> int:
    """Make a set of the characters of a text.

    Args:
        text: Characters below 256.

    Returns:
        The set of them.
    """
    return set_of(ord(char) for char in text)


DIGITS: Final = bytes_of("0123456789")
UPPER: Final = set_of(range(65, 91))
LOWER: Final = set_of(range(97, 123))
WORD: Final = DIGITS | UPPER | LOWER | bytes_of("_")
SPACE: Final = bytes_of(" \t\n\r\f\v")
ACROSS: Final = bytes_of("\t \xa0")
DOWN: Final = bytes_of("\n\v\f\r\x85")
KINDS: Final = {"d": DIGITS, "w": WORD, "s": SPACE, "h": ACROSS, "v": DOWN}
CONTROL_LETTERS: Final = {"a": 7, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9}
PUNCTUATION: Final = bytes_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
POSIX_CLASSES: Final = {
    "alpha": UPPER | LOWER,
    "digit": DIGITS,
    "alnum": UPPER | LOWER | DIGITS,
    "upper": UPPER,
    "lower": LOWER,
    "space": SPACE,
    "punct": PUNCTUATION,
    "xdigit": DIGITS | bytes_of("abcdefABCDEF"),
    "word": WORD,
    "blank": bytes_of(" \t"),
    "cntrl": set_of([*range(32), 127]),
    "graph": set_of(range(33, 127)),
    "print": set_of(range(32, 127)),
    "ascii": set_of(range(128)),
}


def _in_category(*names: str) -> Callable[[str], bool]:
    return lambda found: found.startswith(names)


CATEGORIES: Final = (
    *("C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn"),
    *("N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps"),
    *("S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
)
PROPERTIES: Final[dict[str, Callable[[str], bool]]] = {
    "any": lambda found: True,
    "l&": _in_category("Lu", "Ll", "Lt"),
    "lc": _in_category("Lu", "Ll", "Lt"),
    "xan": _in_category("L", "N"),
} | {name.lower(): _in_category(name) for name in CATEGORIES}


def with_property(name: str) -> int | None:
    """Give the first 256 characters of Unicode that have a property.

    Args:
        name: A general category, ``L&``, ``Any`` or ``Xan``, with blanks and in any case.

    Returns:
        Their codes, None where the property is not known.
    """
    test = PROPERTIES.get("".join(char for char in name.lower() if char not in " \t_-"))
    return None if test is None else set_of(code for code in range(256) if test(unicodedata.category(chr(code))))


def folded(members: int) -> int:
    """Add the other case of every letter of a set.

    Args:
        members: The set.

    Returns:
        The set in both cases; ASCII letters have cases, others do not.
    """
    return members | (members & UPPER) << 32 | (members & LOWER) >> 32
