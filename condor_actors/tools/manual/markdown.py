"""The descriptions of all commands as one page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from condor_actors.tools.manual.description import NO_EFFECT, REFUSED, Group, Row
from condor_actors.tools.manual.help_text import label, paragraphs, sentence
from condor_actors.tools.manual.lookup import find
from condor_actors.tools.manual.overviews import OF_USERS
from condor_actors.tools.manual.sources import groups_of, verbs_of


def reference() -> str:
    """All commands, below titles of the second level."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, names in OF_USERS.items():
        yield from (f"## {title}", "")
        for name in names:
            yield from _command(name)


def _command(name: str) -> Iterator[str]:
    description = find(name)
    yield from (f"### {name}", "", f"*{_plain(sentence(description.purpose))}*", "", "```")
    yield from (f"{name} {line}".rstrip() for line in description.synopsis)
    yield from ("```", "")
    for text in paragraphs(description.text):
        yield from (_plain(text), "")
    verbs = verbs_of(name)
    if verbs:
        yield from ("| verb | what it does |", "|---|---|")
        for verb in verbs:
            refused = "not available: " if verb.is_refused else ""
            yield f"| {_typed(f'{verb.name} {verb.synopsis}'.rstrip())} | {_plain(refused + verb.text)} |"
            yield from _rows(verb.all_rows())
        yield ""
    groups = groups_of(name)
    shown = [group for group in groups if group.title not in (NO_EFFECT, REFUSED)]
    yield from ("| option | what it is for |", "|---|---|")
    for group in shown:
        yield from (f"| **{group.title}** | |", *_rows(group.rows))
    yield ""
    for group in groups:
        if group not in shown:
            yield from (f"{group.title}: {', '.join(dict.fromkeys(_reasons(group)))}.", "")
    yield from (f"Exit status: {_plain(description.exit_status)}", "")


def _reasons(group: Group) -> Iterator[str]:
    return (f"`{row.words[0]}` ({_plain(row.text)})" for row in group.rows)


def _rows(rows: Iterable[Row]) -> Iterator[str]:
    return (f"| {_typed(label(row))} | {_plain(row.text)} |" for row in rows)


def _typed(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("_", "\\_").replace("*", "\\*")
