"""Completion for fish: one file for each command."""

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
    leaves,
    operands_of,
    text_of,
    tree_of,
)


def script(command: str) -> str:
    """The file of a command."""
    return "\n".join(_lines(command)) + "\n"


def _lines(command: str) -> Iterator[str]:
    tree = tree_of(command)
    yield f"# {command}: completion for fish"
    yield f"complete -c {command} -f"
    for choice in choices_of(command):
        yield from _options(command, choice, "__fish_use_subcommand" if tree else "")
    for first, below in tree.items():
        yield f"complete -c {command} -n __fish_use_subcommand -a {first} -d {_quoted(text_of(below))}"
        if isinstance(below, dict):
            seen = f"__fish_seen_subcommand_from {first}; and not __fish_seen_subcommand_from {' '.join(below)}"
            for second, verb in below.items():
                yield f"complete -c {command} -n {_quoted(seen)} -a {second} -d {_quoted(verb.text)}"
    for words, verb in leaves(tree):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words)
        for choice in choices_of_verb(verb):
            yield from _options(command, choice, seen)
        yield from _operands(command, seen)
    if not tree:
        yield from _operands(command, "")


def _operands(command: str, condition: str) -> Iterable[str]:
    what = _value(operands_of(command))
    return [f"complete -c {command}{_when(condition)} {what}"] if what else []


def _options(command: str, choice: Choice, condition: str) -> Iterator[str]:
    words = " ".join(_option(word) for word in choice.words)
    takes = ""
    if choice.words_behind:
        takes = f" -x -a {_quoted(' '.join(choice.words_behind))}"
    elif choice.takes:
        takes = f" -r {_value(choice.kind)}" if choice.kind else " -x"
    yield f"complete -c {command}{_when(condition)} {words}{takes} -d {_quoted(choice.text)}"


def _option(word: str) -> str:
    if word.startswith("--"):
        return f"-l {word[2:]}"
    return f"-s {word[1:]}" if len(word) == 2 else f"-o {word[1:]}"


def _when(condition: str) -> str:
    return f" -n {_quoted(condition)}" if condition else ""


def _value(kind: str) -> str:
    if kind == FILES:
        return "-F"
    if kind == FOLDERS:
        return "-f -a '(__fish_complete_directories)'"
    if kind == COMMANDS:
        return "-a '(__fish_complete_command)'"
    return f"-f -a {_quoted(f'({LIVE[kind]})')}" if kind in LIVE else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
