"""The description of a command, from which ``-help``, its manual page and its completion are made.

Theory: a command's parser and its description stand apart, since a command that only runs reads no sentences.  The
parser says which options there are, how far they may be shortened, and which of them have no effect or are refused;
the description says what the others are for.  `described_rows` puts both together and fails for an option without a
sentence and for a sentence without an option, so that neither can change alone.

====================  ========================================================
how a command reads   where its rows come from
====================  ========================================================
a table of `Flag`     the table and `Description.options`
argparse              the parser, which has the sentences itself
the nouns             the table of ``htcondor``
words by hand         `Description.verbs`, and ``OPTIONS`` of its module
====================  ========================================================

The classes are named tuples, which are created ten times faster than others: a user waits for ``-help``.

A description says an option as it is typed: ``constraint EXPR``, ``wide[:COLUMNS]``, ``af[:LETTERS] ATTR ...``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from condor_actors.tools.lib.flags import LIST, MANY, Flag

Options = Mapping[str, str]
_NOTHING: Options = MappingProxyType({})
_SPELLED = re.compile(r"([\w-]+)(\[:[^\]]*\])?(?: (.*))?\Z")
WHERE: Options = {
    "pool HOST": "ask the central manager HOST where the daemons are",
    "name NAME": "the schedd of that name, instead of this machine's",
    "addr ADDRESS": "the daemon at ADDRESS (<host:port>)",
}
GENERAL: Options = {
    "help": "print this and end",
    "version": "print the version and end",
    **WHERE,
}
"""What these mean wherever a command does not say otherwise."""
NO_EFFECT, REFUSED = "Without effect", "Not available"


class Row(NamedTuple):
    """One option as people see it.

    Attributes:
        words: its spellings with their dashes, the first the usual one.
        takes: the names of the words behind it.
        text: what it is for.
        qualifier: what may follow its colon, with brackets and colon.
        choices: the words it takes, where those are few.
        is_refused: the command knows it and does not carry it out.
    """

    words: tuple[str, ...]
    takes: str
    text: str
    qualifier: str = ""
    choices: tuple[str, ...] = ()
    is_refused: bool = False


class Group(NamedTuple):
    """Rows under one title."""

    title: str
    rows: tuple[Row, ...]


class Verb(NamedTuple):
    """One of the words that a command takes first.

    Attributes:
        name: the word, or several with blanks between them.
        synopsis: what follows it.
        text: what it does.
        options: as of `Description`, with their dashes.
        rows: the same, where a parser has them.
        same_as: a command whose options it takes.
        is_refused: it is not carried out.
    """

    name: str
    text: str
    synopsis: str = ""
    options: Options = _NOTHING
    rows: tuple[Row, ...] = ()
    same_as: str = ""
    is_refused: bool = False

    def all_rows(self) -> tuple[Row, ...]:
        """Its options."""
        return self.rows or tuple(_row(spelling, text) for spelling, text in self.options.items())


class Description(NamedTuple):
    """A command.

    Attributes:
        name: as it is typed.
        purpose: what it does, in a few words.
        synopsis: its command lines, without its name.
        text: paragraphs, with an empty line between them.
        source: ``module:NAME`` of its table of flags, of its tables by command, or of the maker of its parser; empty
            for one that reads its words itself.
        options: what each option is for, under titles.
        verbs: the words that it takes first.
        section: of the manual.
        exit_status, files, environment: what they are, beyond what all commands have in common.
        see_also: other pages, ``name(section)``.
        operands: what its other words are, for completion: ``jobs``, ``machines``, ``files``, ``parameters``,
            ``commands``, or nothing.
        reads_configuration: whether it does.
    """

    name: str
    purpose: str
    synopsis: tuple[str, ...] = ("[options]",)
    text: str = ""
    source: str = ""
    options: Mapping[str, Options] = MappingProxyType({})
    verbs: tuple[Verb, ...] = ()
    section: int = 1
    exit_status: str = "0 when the command did what it was asked to do, otherwise 1."
    files: Options = _NOTHING
    environment: Options = _NOTHING
    see_also: tuple[str, ...] = ()
    operands: str = ""
    reads_configuration: bool = True


class Undescribed(ValueError):
    """A description and its table do not agree; the text says where."""


def described_rows(flags: Sequence[Flag], description: Description) -> tuple[Group, ...]:
    """The options of a table of flags, with what they are for.

    Args:
        flags: as the command reads them.
        description: of that command.

    Returns:
        the groups of the description in its order, then the general options, then those that have no effect and
        those that are refused, with their reasons.

    Raises:
        Undescribed: an option lacks a sentence, a sentence its option, or they disagree about what follows it.
    """
    carried_out: dict[str, list[Flag]] = {}
    for flag in flags:
        if not (flag.idle or flag.refused):
            carried_out.setdefault(flag.alias or flag.name, []).append(flag)
    found: list[Group] = []
    for title, options in (*description.options.items(), ("General", GENERAL)):
        rows = []
        for spelling, text in options.items():
            name, qualifier, takes = spelled(spelling)
            key = next((key for key, same in carried_out.items() if name in (key, *(flag.name for flag in same))), None)
            if key is None:
                if title != "General":
                    raise Undescribed(f"{description.name}: -{name} is described, and the command does not know it")
                continue
            rows.append(_of_flags(carried_out.pop(key), name, takes, text, qualifier, description.name))
        if rows:
            found.append(Group(title, tuple(rows)))
    if carried_out:
        raise Undescribed(f"{description.name}: no sentence says what is the use of "
                          + ", ".join(f"-{name}" for name in carried_out))
    for title, reasons in ((NO_EFFECT, [(flag, flag.idle) for flag in flags if flag.idle]),
                           (REFUSED, [(flag, flag.refused) for flag in flags if flag.refused])):  # fmt: skip
        if reasons:
            found.append(Group(title, tuple(_without(flag, why) for flag, why in reasons)))
    return tuple(found)


def spelled(spelling: str) -> tuple[str, str, str]:
    """An option's name, its qualifier, and what it takes.

    Raises:
        Undescribed: it is not spelled like an option.
    """
    match = _SPELLED.match(spelling)
    if match is None:
        raise Undescribed(f"{spelling!r} is not spelled like an option")
    return match[1], match[2] or "", match[3] or ""


def operand_count(takes: str) -> int:
    """How many words a description says that an option takes; ``MANY`` for a list."""
    return MANY if takes.endswith("...") else len(takes.split())


def _of_flags(same: Iterable[Flag], name: str, takes: str, text: str, qualifier: str, command: str) -> Row:
    flags = sorted(same, key=lambda flag: flag.name != name)
    for flag in flags:
        if operand_count(takes) != (MANY if flag.takes == LIST else flag.takes):
            raise Undescribed(f"{command}: -{flag.name} takes {flag.takes} words, described as {takes!r}")
        if qualifier and not flag.colon:
            raise Undescribed(f"{command}: -{flag.name} takes nothing behind a colon")
    return Row(tuple(f"-{flag.name}" for flag in flags), takes, text, qualifier)


def _without(flag: Flag, why: str) -> Row:
    takes = "ARG ..." if flag.takes in (MANY, LIST) else " ".join(["ARG"] * flag.takes)
    return Row((f"-{flag.name}",), takes, why, is_refused=bool(flag.refused))


def _row(spelling: str, text: str) -> Row:
    words, _, takes = spelling.partition(" ")
    return Row(tuple(words.split(",")), takes, text)
