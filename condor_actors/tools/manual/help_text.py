"""What ``-help`` prints, and the short reminder behind a command line that makes no sense."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from condor_actors.tools.manual.description import NO_EFFECT, REFUSED, Group, Row, Verb
from condor_actors.tools.manual.lookup import find
from condor_actors.tools.manual.sources import groups_of, verbs_of

WIDTH = 100
_INDENT = 4
_COLUMN = 32
"""Where texts begin."""


def usage_text(command: str) -> str:
    """How a command, or a verb of one (``condor_checkpoint job``), is called; without a line end."""
    name, _, word = command.partition(" ")
    verb = _verb_of(name, word)
    if verb is not None:
        options = " [options]" if verb.all_rows() else ""
        return f"Usage: {command}{options} {verb.synopsis}".rstrip()
    lines = find(name).synopsis
    heads = ["Usage:", *["      "] * (len(lines) - 1)]
    return "\n".join(f"{head} {command} {line}".rstrip() for head, line in zip(heads, lines, strict=True))


def reminder(command: str) -> str:
    """How it is called, and how to learn more."""
    return f"{usage_text(command)}\n{command} -help lists its options."


def help_text(command: str) -> str:
    """What ``-help`` of a command prints, or of a verb of one (``condor_checkpoint job``); without a line end."""
    return "\n".join(_lines(command)).rstrip("\n")


def _verb_of(name: str, word: str) -> Verb | None:
    return next((each for each in verbs_of(name) if each.name == word), None) if word else None


def _lines(command: str) -> Iterator[str]:
    command, _, word = command.partition(" ")
    chosen = _verb_of(command, word)
    if chosen is not None:
        yield usage_text(f"{command} {word}")
        yield from ("", *textwrap.wrap(sentence(chosen.text), WIDTH))
        if chosen.all_rows():
            yield from _group(Group("Options", chosen.all_rows()))
        return
    description = find(command)
    yield usage_text(command)
    for paragraph in paragraphs(description.text):
        yield from ("", *textwrap.wrap(paragraph, WIDTH))
    if verbs_of(command):
        yield from ("", "Verbs:")
        for each in verbs_of(command):
            yield from _verb(each)
    for group in groups_of(command):
        yield from _group(group)
    yield from ("", *textwrap.wrap(f"Exit status: {description.exit_status}", WIDTH))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, each on one line."""
    return [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]


def sentence(text: str) -> str:
    """A clause with its capital letter and its full stop."""
    first = text[:1].upper() if text[1:2].islower() or text[1:2] in (" ", "") else text[:1]
    return first + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _verb(verb: Verb) -> Iterator[str]:
    refused = "not available: " if verb.is_refused else ""
    yield from _item(f"{verb.name} {verb.synopsis}".rstrip(), refused + verb.text)
    for row in verb.all_rows():
        yield from _item(f"  {label(row)}", row.text)


def _group(group: Group) -> Iterator[str]:
    yield from ("", f"{group.title}:")
    if group.title not in (NO_EFFECT, REFUSED):
        for row in group.rows:
            yield from _item(label(row), row.text)
        return
    reasons: dict[str, list[str]] = {}
    for row in group.rows:
        reasons.setdefault(row.text, []).append(row.words[0])
    for reason, words in reasons.items():
        yield from _item(", ".join(words), reason)


def label(row: Row) -> str:
    """An option as it is typed, with its other spellings."""
    return ", ".join(row.words[:1]) + row.qualifier + (f" {row.takes}" if row.takes else "") + "".join(
        f", {word}" for word in row.words[1:])


def _item(head: str, text: str) -> Iterator[str]:
    lines = textwrap.wrap(text, WIDTH - _COLUMN)
    if len(head) + _INDENT + 2 > _COLUMN:
        yield " " * _INDENT + head
    else:
        yield f"{' ' * _INDENT}{head}".ljust(_COLUMN) + (lines.pop(0) if lines else "")
    yield from (" " * _COLUMN + line for line in lines)
