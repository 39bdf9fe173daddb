"""Command lines the way HTCondor reads them.

Theory: a flag is a word with one or two leading dashes; any beginning of its name counts, down to a least length
(``-con`` is ``-constraint``).  Some flags carry a qualifier behind a colon (``-af:jh``).  A flag takes a fixed number
of words, or (``MANY``, ``LIST``) all up to the next word with a dash.  What is no flag is an operand; order is kept,
because several tools give it a meaning.

``parse`` turns words into `Given` items; each tool says with a table of `Flag` rows what it knows, in the order in
which they are tried.  A row stands for every option of the manual: one that is not carried out says why, and is either
refused or accepted with a warning, so that no user believes it had an effect.

==========  ================================================================
row         what becomes of the flag
==========  ================================================================
plain       it does what the manual says
`idle`      it has no effect and needs none; standard error says so
`refused`   the command fails, with the reason and what comes nearest to it
==========  ================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from condor_actors import records

MANY = -1
"""Takes all words up to the next one that begins with a dash."""
LIST = -2
"""The same, and a lone dash ends it too: ``-af A B - 5.0``."""
MOST_DIGITS = 300
"""Python reads no number of thousands of digits, and a real one has 308 at most."""
NO_DEBUG = "commands keep no log; what goes wrong is said as it is"
"""Why ``-debug`` is `Flag.idle`."""
ALWAYS_SHORT = "messages are short as they are"
"""Why ``-expert`` is."""


@records.frozen
class Flag:
    """One flag of a tool.

    Attributes:
        name: the whole name, without dashes.
        least: how many letters must be given.
        takes: how many words follow, ``MANY`` or ``LIST``.
        colon: whether a qualifier may follow behind a colon.
        alias: the name it is reported under; by default its own.
        idle: why it has no effect, a clause.
        refused: why it cannot be done, a clause, and the nearest thing that can.
    """

    name: str
    least: int = 1
    takes: int = 0
    colon: bool = False
    alias: str = ""
    idle: str = ""
    refused: str = ""


@records.frozen
class Given:
    """A flag as given (``name`` is the alias or the full name), or an operand (``name`` empty).

    ``idle``: why it has no effect; empty: it has one.
    """

    name: str
    values: tuple[str, ...] = ()
    qualifier: str = ""
    word: str = ""
    idle: str = ""


class UnknownFlag(ValueError):
    """A word with a dash that the tool does not know."""

    def __init__(self, word: str) -> None:
        self.word = word
        super().__init__(word)


class RefusedFlag(ValueError):
    """A flag that the tool knows and does not carry out; the text names it and says why."""

    def __init__(self, flag: Flag, word: str) -> None:
        super().__init__(f"{word} is not available: {flag.refused}")


class LongNumber(RefusedFlag):
    """A number of more digits than any that is asked for."""

    def __init__(self, word: str) -> None:
        ValueError.__init__(self, f"{word[:20]}…: a number of {len(word)} digits is more than anything here can be")


class MissingValue(ValueError):
    """A flag without the words it needs."""

    def __init__(self, flag: Flag, word: str) -> None:
        self.flag = flag
        self.word = word
        super().__init__(word)


def parse(words: Sequence[str], flags: Sequence[Flag]) -> list[Given]:
    """Read a command line.

    Args:
        words: without the program's name.
        flags: the tool's flags; the first that fits wins.

    Returns:
        flags and operands in order.

    Raises:
        UnknownFlag: no flag fits.
        MissingValue: too few words follow.
        RefusedFlag: it is one that is not carried out.
        LongNumber: a word has more digits than any number that is asked for.
    """
    for word in words:
        if len(word) > MOST_DIGITS and word.lstrip("+-").isdecimal():
            raise LongNumber(word)
    return list(_each(list(words), flags))


def _each(words: list[str], flags: Sequence[Flag]) -> Iterator[Given]:
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not is_flag(word):
            yield Given("", (word,), "", word)
            continue
        found = match(word, flags)
        if found is None:
            raise UnknownFlag(word)
        flag, qualifier = found
        if flag.refused:
            raise RefusedFlag(flag, word)
        if flag.takes in (MANY, LIST):
            end = position
            while end < len(words) and not is_flag(words[end]) and (flag.takes == MANY or words[end] != "-"):
                end += 1
        else:
            end = position + flag.takes
            if end > len(words):
                raise MissingValue(flag, word)
        yield Given(flag.alias or flag.name, tuple(words[position:end]), qualifier, word, flag.idle)
        position = end + (flag.takes == LIST and words[end : end + 1] == ["-"])


def is_flag(word: str) -> bool:
    """Whether a word is a flag; a lone dash and a negative number are not."""
    return len(word) > 1 and word[0] == "-" and not word[1].isdecimal()


def match(word: str, flags: Sequence[Flag]) -> tuple[Flag, str] | None:
    """The flag that a word names, and the qualifier behind its colon."""
    name, colon, qualifier = word[2 if word.startswith("--") else 1 :].partition(":")
    name = name.lower()
    for flag in flags:
        if (not colon or flag.colon) and len(name) >= flag.least and flag.name.lower().startswith(name):
            return flag, qualifier
    return None
