"""What a shell offers at a place of a command line, for all shells alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from condor_actors.tools.manual.description import REFUSED, Row, Verb
from condor_actors.tools.manual.help_text import sentence
from condor_actors.tools.manual.lookup import find
from condor_actors.tools.manual.sources import flags_of, groups_of, verbs_of

FILES, FOLDERS, JOBS, MACHINES, PARAMETERS, COMMANDS = "files", "folders", "jobs", "machines", "parameters", "commands"
LIVE = {
    JOBS: r"timeout 2 condor_q -format '%d.' ClusterId -format '%d\n' ProcId 2>/dev/null",
    MACHINES: r"timeout 2 condor_status -af Machine 2>/dev/null | sort -u",
    PARAMETERS: r"timeout 2 condor_config_val -dump 2>/dev/null | sed -n 's/^\([A-Za-z0-9_.]*\) = .*/\1/p'",
}
"""How a shell asks for them; nothing comes of it where no pool answers."""
_OF_WORDS = {"FILE": FILES, "KEYFILE": FILES, "LOG": FILES, "PROGRAM": FILES, "FOLDER": FOLDERS, "DIR": FOLDERS,
             "JOB": JOBS, "MACHINE": MACHINES, "HOST": MACHINES}
_FEW = re.compile(r"[a-z0-9]+(\|[a-z0-9]+)+\Z")


@attrs.frozen
class Choice:
    """An option as a shell offers it.

    Attributes:
        words: how it may be typed.
        takes: what stands behind it, for people; empty: nothing.
        kind: what that is, for the shell: a key of `LIVE`, ``files``, ``folders``, or empty for anything.
        words_behind: the only words that may stand there, where those are few.
        text: a sentence.
    """

    words: tuple[str, ...]
    takes: str
    kind: str
    words_behind: tuple[str, ...]
    text: str


def choices_of(command: str) -> tuple[Choice, ...]:
    """The options of a command that go with all its verbs; not those that are refused."""
    rows = [row for group in groups_of(command) if group.title != REFUSED for row in group.rows]
    return tuple(_choice(row, is_table=bool(flags_of(command))) for row in rows)


def choices_of_verb(verb: Verb) -> tuple[Choice, ...]:
    """The options of a verb."""
    return tuple(_choice(row, is_table=False) for row in verb.all_rows())


def _choice(row: Row, *, is_table: bool) -> Choice:
    few = row.choices or (tuple(row.takes.split("|")) if _FEW.match(row.takes) else ())
    words = (*row.words, *(f"-{word}" for word in row.words)) if is_table else row.words
    first = row.takes.split(" ", maxsplit=1)[0]
    return Choice(words, row.takes, _OF_WORDS.get(first, ""), few, sentence(row.text))


def operands_of(command: str) -> str:
    """What the words of a command without a dash are."""
    return find(command).operands


def tree_of(command: str) -> dict[str, dict[str, Verb] | Verb]:
    """The verbs of a command that are carried out, by their first words; those of two words by both."""
    tree: dict[str, dict[str, Verb] | Verb] = {}
    for verb in verbs_of(command):
        if verb.is_refused:
            continue
        first, _, second = verb.name.partition(" ")
        if second:
            below = tree.setdefault(first, {})
            assert isinstance(below, dict), verb.name
            below[second] = verb
        else:
            tree[first] = verb
    return tree


def leaves(tree: dict[str, dict[str, Verb] | Verb]) -> Iterator[tuple[tuple[str, ...], Verb]]:
    """The words before each verb's options, with the verb."""
    for first, below in tree.items():
        if isinstance(below, Verb):
            yield (first,), below
        else:
            yield from (((first, second), verb) for second, verb in below.items())


def text_of(below: dict[str, Verb] | Verb) -> str:
    """What a first word is for."""
    return sentence(below.text) if isinstance(below, Verb) else f"{', '.join(below)}"
