"""Regular expressions in Perl's dialect, on Python's engine."""

from __future__ import annotations

import re
import warnings
from typing import Any, Final, Literal

from ..evaluation import State, element
from ..recent import Recent
from ..values import ERROR, UNDEFINED, ListValue, Value
from .registry import eager, inside

_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_compiled: Final[Recent[tuple[str, int], re.Pattern[str] | Literal[False]]] = Recent(1000)


def compiled_pattern(pattern: str, flags: int = 0) -> re.Pattern[str] | None:
    """Compile a pattern, remembering recent ones.

    :param pattern: the regular expression.
    :param flags: of `re`.
    :returns: the compiled pattern, None when it is none.
    """
    known = _compiled.get((pattern, flags))
    if known is None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known = re.compile(_translated(pattern), flags | re.ASCII)
        except (re.error, OverflowError, RecursionError, ValueError):
            known = False
        _compiled.put((pattern, flags), known)
    return known or None


_CLASSES: Final = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:xdigit:]": "0-9a-fA-F",
    "[:word:]": r"\w",
    "[:blank:]": r" \t",
}


def _translated(pattern: str) -> str:
    if "[:" in pattern:
        for name, members in _CLASSES.items():
            pattern = pattern.replace(name, members)
    return pattern.replace("\\z", "\\Z") if "\\z" in pattern else pattern


def _flags(options: str) -> int:
    flags = 0
    for letter in options.lower():
        flags |= _FLAGS.get(letter, 0)
    return flags


def _unfit(*values: Value) -> Value:
    if any(value is ERROR for value in values):
        return ERROR
    if any(value is UNDEFINED for value in values):
        return UNDEFINED
    return None if all(isinstance(value, str) for value in values) else ERROR


@eager("regexp", least=2, most=3)
def _regexp(pattern: Value, target: Value, options: Value = "") -> Value:
    strict = _unfit(pattern, target, options)
    if strict is not None:
        return strict
    expression = compiled_pattern(pattern, _flags(options))
    return ERROR if expression is None else expression.search(target) is not None


@inside("regexpMember", least=2, most=3)
def _regexp_member(ad: Any, state: State, pattern: Value, targets: Value, options: Value = "") -> Value:
    if any(value is not UNDEFINED and not isinstance(value, str) for value in (pattern, options)):
        return ERROR
    if targets is UNDEFINED or pattern is UNDEFINED or options is UNDEFINED:
        return UNDEFINED
    if not isinstance(targets, ListValue):
        return ERROR
    expression = compiled_pattern(pattern, _flags(options))
    result: Value = False
    for item in targets.elements:
        value = element(item, ad, state)
        if isinstance(value, str):
            if expression is not None and expression.search(value) is not None:
                return True
        elif value is UNDEFINED:
            result = UNDEFINED
        else:
            return ERROR
    return result


def expanded(match: re.Match[str], template: str) -> str:
    """Fill the groups of a match into a template.

    :param match: the match.
    :param template: text with ``\\0`` to ``\\9``.
    :returns: the text.
    """

    def group(found: re.Match[str]) -> str:
        number = int(found[1])
        return (match[number] or "") if number <= match.re.groups else ""

    return re.sub(r"\\([0-9])", group, template)


def _substituted(pattern: Value, target: Value, template: Value, options: Value, extra: str) -> Value:
    strict = _unfit(pattern, target, template, options)
    if strict is not None:
        return strict
    letters = options.lower() + extra
    expression = compiled_pattern(pattern, _flags(letters))
    if expression is None:
        return ERROR
    whole, every = "f" in letters, "g" in letters
    pieces: list[str] = []
    position = 0
    for match in expression.finditer(target):
        if every and match.end() == match.start():
            return ERROR
        if whole:
            pieces.append(target[position : match.start()])
        pieces.append(expanded(match, template))
        position = match.end()
        if not every:
            break
    if whole:
        pieces.append(target[position:])
    return "".join(pieces)


@eager("regexps", least=3, most=4)
def _regexps(pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(pattern, target, template, options, "")


@eager("replace", least=3, most=4)
def _replace(pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(pattern, target, template, options, "f")


@eager("replaceAll", least=3, most=4)
def _replace_all(pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(pattern, target, template, options, "fg")
