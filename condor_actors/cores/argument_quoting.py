r"""Words as job ads hold them: the raw new syntax of ``Arguments`` and ``Environment``.

Blanks separate words; single quotes protect blanks, and within them two single quotes are one.
"""

from __future__ import annotations

from collections.abc import Iterable

from condor_actors.patterns import late

__all__ = ["UnbalancedQuote", "join_raw", "split_raw"]

_BLANKS = " \t\n\r"
_SPECIAL = late(r"[ \t\n\r']+")


class UnbalancedQuote(ValueError):
    """A single quote without its partner."""


def split_raw(raw: str) -> list[str]:
    """The words of a raw string.

    Raises:
        UnbalancedQuote: a single quote without its partner.
    """
    words: list[str] = []
    word: list[str] | None = None
    position = 0
    while position < len(raw):
        letter = raw[position]
        if letter == "'":
            word = [] if word is None else word
            position = _quoted(raw, position + 1, word)
            continue
        if letter in _BLANKS:
            if word is not None:
                words.append("".join(word))
                word = None
        else:
            word = [] if word is None else word
            word.append(letter)
        position += 1
    if word is not None:
        words.append("".join(word))
    return words


def _quoted(raw: str, position: int, word: list[str]) -> int:
    while position < len(raw):
        if raw[position] != "'":
            word.append(raw[position])
            position += 1
        elif raw.startswith("''", position):
            word.append("'")
            position += 2
        else:
            return position + 1
    raise UnbalancedQuote(f"Unbalanced quote starting here: {raw[:80]}")


def join_raw(words: Iterable[str]) -> str:
    """The raw string of words; quotes only stand where they must."""
    return " ".join(_protect(word) for word in words)


def _protect(word: str) -> str:
    if not word:
        return "''"
    return _SPECIAL.sub(lambda found: "'" + found.group(0).replace("'", "''") + "'", word)
