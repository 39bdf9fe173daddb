"""Completion for zsh: one file with a function for each command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from condor_actors.tools.manual.completion.choices import (
    COMMANDS,
    FILES,
    FOLDERS,
    LIVE,
    Choice,
    choices_of,
    choices_of_verb,
    operands_of,
    text_of,
    tree_of,
)
from condor_actors.tools.manual.description import Verb
from condor_actors.tools.manual.lookup import described

NAME = "_condor"


def script() -> str:
    """The file."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    commands = sorted(described())
    yield f"#compdef {' '.join(commands)}"
    for kind, asked in LIVE.items():
        yield f"(( $+functions[_condor_live_{kind}] )) || _condor_live_{kind}() {{"
        yield f"    local -a found=(${{(f)\"$({asked})\"}})"
        yield "    compadd -a found"
        yield "}"
    for command in commands:
        yield from _function(command, tree_of(command), choices_of(command), operands_of(command))
    yield 'case "$service" in'
    yield from (f"    {command}) _{_named(command)} \"$@\" ;;" for command in commands)
    yield "esac"


def _function(name: str, tree: dict[str, dict[str, Verb] | Verb], choices: tuple[Choice, ...],
              operands: str) -> Iterator[str]:
    """The functions of a command, or of a first word of it."""
    for word, below in tree.items():
        if isinstance(below, Verb):
            yield from _function(f"{name} {word}", {}, choices_of_verb(below), operands)
        else:
            yield from _function(f"{name} {word}", dict(below), (), operands)
    yield f"_{_named(name)}() {{"
    specs = [spec for choice in choices for spec in _specs(choice)]
    if tree:
        yield '    local curcontext="$curcontext" state line'
        yield "    local -a verbs=("
        yield from (f"        {_quoted(word + ':' + text_of(below).replace(':', chr(92) + ':'))}"
                    for word, below in tree.items())
        yield "    )"
        yield f"    _arguments -C {' '.join([*specs, _quoted('1: :->verb'), _quoted('*:: :->rest')])}"
        yield "    case $state in"
        yield "        verb) _describe -t verbs verb verbs ;;"
        yield "        rest)"
        yield "            case $words[1] in"
        yield from (f"                {word}) _{_named(f'{name} {word}')} ;;" for word in tree)
        yield "            esac ;;"
        yield "    esac"
    else:
        yield f"    _arguments {' '.join([*specs, _quoted(f'*: :{_value(operands)}')])}"
    yield "}"


def _specs(choice: Choice) -> Iterable[str]:
    text = "".join(f"\\{letter}" if letter in "[]:\\" else letter for letter in choice.text)
    behind = ""
    if choice.takes:
        first, *others = choice.takes.removesuffix(" ...").split()
        what = f"({' '.join(choice.words_behind)})" if choice.words_behind else _value(choice.kind)
        behind = f":{_told(first)}:{what}" + "".join(f":{_told(other)}: " for other in others)
    return [_quoted(f"*{word}[{text}]{behind}") for word in choice.words]


def _told(text: str) -> str:
    return text.replace(":", "\\:")


def _value(kind: str) -> str:
    if kind == FILES:
        return "_files"
    if kind == FOLDERS:
        return "_files -/"
    if kind == COMMANDS:
        return "_command_names -e"
    return f"_condor_live_{kind}" if kind in LIVE else " "


def _named(name: str) -> str:
    return name.replace(" ", "_").replace("-", "_") if name.startswith("condor") else f"condor_{name}".replace(
        " ", "_").replace("-", "_")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
