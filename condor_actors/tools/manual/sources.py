"""The options and verbs of a command, from its own parser and its description."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from condor_actors.tools.lib.flags import Flag
from condor_actors.tools.manual.description import (
    NO_EFFECT,
    REFUSED,
    Description,
    Group,
    Row,
    Undescribed,
    Verb,
    described_rows,
)
from condor_actors.tools.manual.lookup import find

if TYPE_CHECKING:
    from condor_actors.tools.nouns.table import Noun
    from condor_actors.tools.nouns.table import Verb as NounVerb

_TOOLS = "condor_actors.tools."
_COUNTS = {"?": "[{}]", "*": "[{} ...]", "+": "{} ..."}
_HELP = Row(("-help", "-h", "--help"), "", "print this and end")


def flags_of(command: str) -> tuple[Flag, ...]:
    """The table of a command's flags; empty for one that reads its words otherwise."""
    found = _source(find(command))
    if isinstance(found, Mapping):
        found = found.get(command, ())
    return tuple(each for each in found if isinstance(each, Flag)) if isinstance(found, tuple) else ()


@functools.cache
def groups_of(command: str) -> tuple[Group, ...]:
    """The options of a command that go with all its verbs.

    Raises:
        Undescribed: the command and its description disagree.
    """
    description = find(command)
    flags = flags_of(command)
    if flags:
        return described_rows(flags, description)
    found = _source(description)
    groups = [Group(title, Verb(name="", text="", options=options).all_rows())
              for title, options in description.options.items()]
    if callable(found):
        from condor_actors.tools.manual.argparse_rows import rows_of

        rows = rows_of(found())
        groups += [Group("Options", rows)] if rows else []
    return (*groups, Group("General", (_HELP,)))


@functools.cache
def verbs_of(command: str) -> tuple[Verb, ...]:
    """The words that a command takes first.

    Raises:
        Undescribed: one of them has no text.
    """
    description = find(command)
    found = _source(description)
    verbs = description.verbs
    if callable(found):
        from condor_actors.tools.manual.argparse_rows import verbs_in

        verbs = verbs_in(found())
    elif isinstance(found, Mapping) and command == "htcondor":
        verbs = tuple(_noun_verb(noun, verb) for noun in found.values() for verb in noun.verbs)
    elif isinstance(found, Mapping) and command not in found:
        from condor_actors.tools.manual.argparse_rows import of_parser

        verbs = (*(of_parser(name, make()) for name, make in found.items()), *verbs)
    verbs = tuple(_like_another(verb) if verb.same_as else verb for verb in verbs)
    for verb in verbs:
        if not verb.text or any(not row.text for row in verb.all_rows()):
            raise Undescribed(f"{command} {verb.name}: it, or one of its options, has no sentence")
    return verbs


def _source(description: Description) -> Any:
    if not description.source:
        return ()
    module, _, name = description.source.partition(":")
    return getattr(import_module(module if module.startswith("condor_actors.") else _TOOLS + module), name)


def _like_another(verb: Verb) -> Verb:
    groups = [group for group in groups_of(verb.same_as) if group.title not in (NO_EFFECT, REFUSED)]
    rows = tuple(row for group in groups for row in group.rows)
    return Verb(name=verb.name, text=verb.text, synopsis=verb.synopsis, rows=rows)


def _noun_verb(noun: Noun, verb: NounVerb) -> Verb:
    if verb.command:
        command, word = verb.command
        own = next((each for each in verbs_of(command) if each.name == word), None)
        if own is None:
            raise Undescribed(f"htcondor {noun.name} {verb.name}: {command} has no {word}")
        return Verb(name=f"{noun.name} {verb.name}", text=verb.text, synopsis=own.synopsis, rows=own.all_rows())
    rows = tuple(Row(option.words, option.takes, option.text) for option in verb.options)
    synopsis = " ".join(_COUNTS.get(each.count, "{}").format(each.name.upper()) for each in verb.operands)
    return Verb(name=f"{noun.name} {verb.name}", text=verb.refused or verb.text, synopsis=synopsis, rows=rows,
                is_refused=bool(verb.refused))
