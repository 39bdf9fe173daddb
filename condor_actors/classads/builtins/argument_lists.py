"""Arguments of programs as one string: ``argsToList`` and ``listToArgs``.

In the old syntax (1) arguments are what stands between blanks. In the new one (2) single quotes enclose blanks, and two
of them inside a quoted part stand for one.
"""

from __future__ import annotations

import re
from typing import Any, Final

from condor_actors.classads.builtins.lists import values_of
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.evaluation.state import State
from condor_actors.classads.values import ERROR, ListValue, Value

OLD: Final = 1
NEW: Final = 2
_BLANKS: Final = " \t\n\r"
_SPECIAL: Final = re.compile(r"[ \t\n\r']+")
_WORD: Final = re.compile(r"(?:[^ \t\n\r']|'(?:[^']|'')*')+")
_QUOTED: Final = re.compile(r"'((?:[^']|'')*)'")


def _syntax(number: Value) -> int | None:
    """Which syntax is meant, by the low 32 bits of an integer; None for neither."""
    if type(number) is not int:
        return None
    number &= 0xFFFFFFFF
    return number if number in (OLD, NEW) else None


def split_arguments(text: str) -> list[str] | None:
    """Read the new syntax.

    Args:
        text: ``one 'two words' 'it''s'``.

    Returns:
        The arguments, None where a quote is not closed.
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in _BLANKS:
            at += 1
            continue
        word = _WORD.match(text, at)
        if word is None or text[word.end() : word.end() + 1] == "'":
            return None
        found.append(_QUOTED.sub(lambda part: part[1].replace("''", "'"), word[0]))
        at = word.end()
    return found


def join_arguments(arguments: list[str]) -> str:
    """Write the new syntax.

    Args:
        arguments: The arguments.

    Returns:
        One string, with blanks and quotes enclosed in single quotes.
    """
    return " ".join(_SPECIAL.sub(_enclosed, argument) if argument else "''" for argument in arguments)


def _enclosed(match: re.Match[str]) -> str:
    return "'" + match[0].replace("'", "''") + "'"


@eager("argsToList", least=1, most=2)
def _args_to_list(text: Value, syntax: Value = NEW) -> Value:
    number = _syntax(syntax)
    if number is None or not isinstance(text, str):
        return ERROR
    if number == OLD:
        found: list[str] | None = [word for word in re.split(f"[{_BLANKS}]", text) if word]
    else:
        found = split_arguments(text)
    return ERROR if found is None else ListValue(tuple(found), None, made=True)


@inside("listToArgs", least=1, most=2)
def _list_to_args(ad: Any, state: State, items: Value, syntax: Value = NEW) -> Value:
    number = _syntax(syntax)
    if number is None or not isinstance(items, ListValue):
        return ERROR
    arguments = values_of(items, ad, state)
    if not all(isinstance(argument, str) for argument in arguments):
        return ERROR
    if number == NEW:
        return join_arguments(arguments)
    return ERROR if any(_has_blank(argument) for argument in arguments) else " ".join(arguments)


def _has_blank(argument: str) -> bool:
    return any(char in argument for char in _BLANKS)
