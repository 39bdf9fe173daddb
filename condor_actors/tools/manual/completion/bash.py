"""Completion for bash: one file for each command, which bash-completion loads when the command is first completed."""

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
    tree_of,
)


def script(command: str) -> str:
    """The file of a command."""
    return "\n".join(_lines(command)) + "\n"


def _lines(command: str) -> Iterator[str]:
    tree = tree_of(command)
    depth = max((len(words) for words, _ in leaves(tree)), default=0)
    yield f"# {command}: completion for bash"
    yield f"_{command}() {{"
    yield '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} verb="" given=0 index'
    yield "    COMPREPLY=()"
    if depth:
        yield "    for ((index = 1; index < COMP_CWORD && given < " f"{depth}; index++)); do"
        yield "        case ${COMP_WORDS[index]} in"
        yield "            -*) ;;"
        yield '            *) verb="$verb${verb:+ }${COMP_WORDS[index]}" given=$((given + 1)) ;;'
        yield "        esac"
        yield "    done"
    yield '    case "$verb" in'
    for words, verb in leaves(tree):
        yield f"        {_quoted(' '.join(words))})"
        yield from _place(choices_of_verb(verb), operands_of(command))
        yield "            ;;"
    for first, below in tree.items():
        if isinstance(below, dict):
            yield f"        {_quoted(first)})"
            yield f"            {_offer(below)}"
            yield "            ;;"
    yield "        '')"
    if tree:
        yield from _place(choices_of(command), "", tuple(tree))
    else:
        yield from _place(choices_of(command), operands_of(command))
    yield "            ;;"
    yield "    esac"
    yield "}"
    yield f"complete -F _{command} {command}"


def _place(choices: Iterable[Choice], operands: str, verbs: tuple[str, ...] = ()) -> Iterator[str]:
    """What is offered behind the words of a verb, or of a command that has none."""
    choices = tuple(choices)
    behind: dict[str, list[str]] = {}
    for choice in choices:
        if choice.takes:
            what = _offer(choice.words_behind) if choice.words_behind else _value(choice.kind)
            behind.setdefault(what, []).extend(choice.words)
    if behind:
        yield "            case $before in"
        for what, words in behind.items():
            yield f"                {'|'.join(words)}) {what}; return ;;"
        yield "            esac"
    if choices:
        yield "            case $word in"
        long = [word for choice in choices for word in choice.words if word.startswith("--")]
        usual = [word for choice in choices for word in choice.words
                 if not word.startswith("--") or f"{word[1:]}" not in choice.words]
        yield f"                --*) {_offer(long)}; return ;;"
        yield f"                -*) {_offer(usual)}; return ;;"
        yield "            esac"
    yield f"            {_offer(verbs) if verbs else _value(operands)}"


def _offer(words: Iterable[str]) -> str:
    return f"mapfile -t COMPREPLY < <(compgen -W {_quoted(' '.join(words))} -- \"$word\")"


def _value(kind: str) -> str:
    if kind == FILES:
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word")'
    if kind == FOLDERS:
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word")'
    if kind == COMMANDS:
        return 'mapfile -t COMPREPLY < <(compgen -c -- "$word")'
    if kind in LIVE:
        return f'mapfile -t COMPREPLY < <(compgen -W "$({LIVE[kind]})" -- "$word")'
    return ":"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
