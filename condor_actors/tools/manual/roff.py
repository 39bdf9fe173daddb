"""Descriptions as manual pages, in roff with the macros of man(7)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from condor_actors.tools.manual.description import NO_EFFECT, REFUSED, Group, Row, Verb
from condor_actors.tools.manual.help_text import paragraphs, sentence
from condor_actors.tools.manual.lookup import find
from condor_actors.tools.manual.sources import groups_of, verbs_of
from condor_actors.tools.pool.version import DATE

BOOK = "Condor Actors"
CONFIGURATION: Mapping[str, str] = {
    "CONDOR_CONFIG": "the first file of the configuration, in place of /etc/condor/condor_config",
    "_CONDOR_NAME": "the value of the parameter NAME, in place of what the configuration says",
}
_SPECIAL = {"\\": "\\e", "'": "\\(aq", "`": "\\(ga", "^": "\\(ha", "~": "\\(ti"}
_WORD = re.compile(r"(?<![\w./$%~-])--?[A-Za-z][\w-]*|\b[A-Z][A-Z0-9_]*[A-Z0-9]\b|\b[A-Z]\b")
_OPTION = re.compile(r"(?<![\w\\])--?[a-z][\w-]*")
_SEE = re.compile(r"(\w+)\((\d)\)\Z")


def escaped(text: str) -> str:
    """Text that roff prints as it stands."""
    plain = "".join(_SPECIAL.get(letter, letter if letter.isascii() else f"\\[u{ord(letter):04X}]") for letter in text)
    return f"\\&{plain}" if plain[:1] in (".",) else plain


def literal(text: str) -> str:
    """The same for what is typed: its dashes can be copied."""
    return escaped(text).replace("-", "\\-")


def head(name: str, section: int, purpose: str) -> list[str]:
    """How a page begins."""
    return [f'.TH {name.upper()} {section} {DATE} "{BOOK}" "{BOOK}"', ".nh", ".ad l", ".SH NAME",
            f"{literal(name)} \\- {escaped(purpose)}"]


def paragraph(text: str) -> list[str]:
    """One paragraph."""
    return [".PP", prose(text)]


def prose(text: str) -> str:
    """A text in which options stand out."""
    return _OPTION.sub(lambda word: "\\fB" + word[0].replace("-", "\\-") + "\\fR", escaped(text))


def item(title: str, text: str) -> list[str]:
    """One entry of a list; the title is roff already."""
    return [".TP", title, prose(text)]


def command_page(name: str) -> str:
    """The manual page of a command."""
    return "\n".join(_command(name)) + "\n"


def _command(name: str) -> Iterator[str]:
    description = find(name)
    yield from head(name, description.section, description.purpose)
    yield ".SH SYNOPSIS"
    for number, line in enumerate(description.synopsis):
        yield from ([".br"] if number else [])
        yield f"\\fB{literal(name)}\\fR {_typed(line)}".rstrip()
    yield ".SH DESCRIPTION"
    for text in paragraphs(description.text) or [sentence(description.purpose)]:
        yield from paragraph(text)
    if verbs_of(name):
        yield ".SH VERBS"
        for verb in verbs_of(name):
            yield from _verb(verb)
    yield ".SH OPTIONS"
    yield from _dashes(name)
    for group in groups_of(name):
        yield from _group(group)
    yield from section("EXIT STATUS", paragraph(sentence(description.exit_status)))
    environment = {**(CONFIGURATION if description.reads_configuration else {}), **description.environment}
    yield from section("ENVIRONMENT", _list(environment))
    yield from section("FILES", _list(description.files))
    yield from section("SEE ALSO", see_also(("condor(1)", *description.see_also)))


def _dashes(name: str) -> list[str]:
    if find(name).source and not verbs_of(name):
        return paragraph("An option may be shortened as long as it stays distinct, and takes one dash or two.")
    return []


def section(title: str, lines: Iterable[str]) -> list[str]:
    """A section with something in it, or nothing."""
    body = list(lines)
    return [f".SH {title}", *body] if body else []


def see_also(pages: Iterable[str]) -> list[str]:
    """The names of other pages."""
    found = [_SEE.match(page) for page in dict.fromkeys(pages)]
    last = len(found) - 1
    return [f".BR {literal(match[1])} ({match[2]}){',' if number < last else ''}"
            for number, match in enumerate(found) if match is not None]


def _list(entries: Mapping[str, str]) -> list[str]:
    return [line for name, text in entries.items() for line in item(f"\\fI{literal(name)}\\fR", sentence(text))]


def _verb(verb: Verb) -> Iterator[str]:
    text = ("Not available: " if verb.is_refused else "") + sentence(verb.text)
    yield from item(f"\\fB{literal(verb.name)}\\fR {_typed(verb.synopsis)}".rstrip(), text)
    if verb.all_rows():
        yield ".RS"
        for row in verb.all_rows():
            yield from item(_label(row), sentence(row.text))
        yield ".RE"


def _group(group: Group) -> Iterator[str]:
    yield f".SS {escaped(group.title)}"
    if group.title not in (NO_EFFECT, REFUSED):
        for row in group.rows:
            yield from item(_label(row), sentence(row.text))
        return
    reasons: dict[str, list[str]] = {}
    for row in group.rows:
        reasons.setdefault(row.text, []).append(f"\\fB{literal(row.words[0])}\\fR")
    for reason, words in reasons.items():
        yield from item(", ".join(words), sentence(reason))


def _label(row: Row) -> str:
    first, *others = (f"\\fB{literal(word)}\\fR" for word in row.words)
    takes = f" {_typed(row.takes)}" if row.takes else ""
    return ", ".join([f"{first}{_typed(row.qualifier)}{takes}", *others])


def _typed(text: str) -> str:
    """A synopsis: options are bold, and what one puts in the place of a word is italic."""
    pieces, end = [], 0
    for match in _WORD.finditer(text):
        font = "B" if match[0].startswith("-") else "I"
        pieces += [literal(text[end:match.start()]), f"\\f{font}{literal(match[0])}\\fR"]
        end = match.end()
    return "".join([*pieces, literal(text[end:])])
