"""Functions that match regular expressions."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from condor_actors.classads.builtins.pattern_engines import Match, SafePattern, Unsupported
from condor_actors.classads.builtins.pattern_syntax import Options
from condor_actors.classads.builtins.pattern_tree import PatternError
from condor_actors.classads.builtins.registry import inside
from condor_actors.classads.builtins.strings import cooked, raw, worst
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.language.recent import Recent
from condor_actors.classads.values import ERROR, MAX_STRING, UNDEFINED, ListValue, Value

MAX_PATTERN: Final = 32_768
"""Characters that a pattern may have."""
MAX_OPTIONS: Final = 20
COMPILE_STEPS: Final = 4
"""What it costs to read one character of a pattern that is not remembered."""
_compiled: Final[Recent[tuple[str, str], SafePattern | Literal[False]]] = Recent(500)


def compiled_pattern(pattern: str, options: str = "", state: State | None = None) -> SafePattern | None:
    """Compile a pattern, remembering recent ones.

    Args:
        pattern: The regular expression.
        options: Letters of ``imsx``, any others among them.
        state: The evaluation that pays for it.

    Returns:
        The compiled pattern, None when it is none.
    """
    known = _compiled.get((pattern, options))
    if known is None:
        if len(pattern) > MAX_PATTERN:
            return None
        if state is not None:
            state.charge(len(pattern) * COMPILE_STEPS)
        chosen = Options(fold="i" in options, lines="m" in options, dot_all="s" in options, extended="x" in options)
        try:
            known = SafePattern(raw(pattern).decode("latin-1"), chosen)
        except PatternError:
            known = False
        if len(options) <= MAX_OPTIONS:
            _compiled.put((pattern, options), known)
    return known or None


def _unfit(*values: Value) -> Value:
    if any(value is ERROR for value in values):
        return ERROR
    if any(value is UNDEFINED for value in values):
        return UNDEFINED
    return None if all(isinstance(value, str) for value in values) else ERROR


@inside("regexp", least=2, most=3)
def _regexp(ad: Any, state: State, pattern: Value, target: Value, options: Value = "") -> Value:
    if not (pattern.__class__ is target.__class__ is options.__class__ is str):
        return _unfit(pattern, target, options)
    expression = compiled_pattern(pattern, options, state)
    if expression is None:
        return ERROR
    text = raw(target)
    state.charge(expression.cost(len(text)))
    try:
        return expression.matches(text)
    except Unsupported:
        return ERROR


@inside("regexpMember", least=2, most=3)
def _regexp_member(ad: Any, state: State, pattern: Value, targets: Value, options: Value = "") -> Value:
    strict = worst(pattern, targets, options)
    if strict is not None:
        return strict
    if not isinstance(pattern, str) or not isinstance(targets, ListValue) or not isinstance(options, str):
        return ERROR
    expression = compiled_pattern(pattern, options, state)
    result: Value = False
    for item in targets.elements:
        value = element(item, ad, state)
        if isinstance(value, str):
            text = raw(value)
            try:
                if expression is not None:
                    state.charge(expression.cost(len(text)))
                    if expression.matches(text):
                        return True
            except Unsupported:
                return ERROR
        elif value is UNDEFINED:
            result = UNDEFINED
        else:
            return ERROR
    return result


_INNER_GROUP: Final = re.compile(r"\\[1-9]")
_GROUP: Final = re.compile(rb"\\([0-9])")


def expanded(match: Match, template: str, missing: bytes | None = None) -> bytes | None:
    """Fill the groups of a match into a template.

    Args:
        match: The match.
        template: Text with ``\\0`` to ``\\9``.
        missing: Stands for a group that the match does not have.

    Returns:
        The text, None when nothing stands for a group that the match does not have.
    """
    pieces = _GROUP.split(raw(template))
    for at in range(1, len(pieces), 2):
        group = match.group(int(pieces[at]))
        group = missing if group is None else group
        if group is None:
            return None
        pieces[at] = group
    return b"".join(pieces)


def _substituted(
    state: State, pattern: Value, target: Value, template: Value, options: Value, extra: str
) -> Value:
    strict = _unfit(pattern, target, template, options)
    if strict is not None:
        return strict
    letters = options + extra
    expression = compiled_pattern(pattern, letters, state)
    if expression is None:
        return ERROR
    whole, every = "f" in letters, "g" in letters
    text = raw(target)
    pieces: list[bytes] = []
    position = size = 0
    state.charge(expression.cost(len(text)))
    try:
        for match in expression.finditer(text, groups=bool(_INNER_GROUP.search(template))):
            empty = match.end() == match.start()
            if every and empty and match.end() == len(text):
                return ERROR
            filled = expanded(match, template)
            if filled is None:
                return ERROR
            if whole:
                pieces.append(text[position : match.start()])
            pieces.append(filled)
            size += len(filled)
            position = match.end()
            if every and empty:
                pieces.append(text[position : position + 1])
                position += 1
            if not every or size > MAX_STRING:
                break
            state.charge(expression.cost(len(text) - position))
    except Unsupported:
        return ERROR
    if size > MAX_STRING:
        return ERROR
    if whole:
        pieces.append(text[position:])
    return cooked(b"".join(pieces))


@inside("regexps", least=3, most=4)
def _regexps(ad: Any, state: State, pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(state, pattern, target, template, options, "")


@inside("replace", least=3, most=4)
def _replace(ad: Any, state: State, pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(state, pattern, target, template, options, "f")


@inside("replaceAll", least=3, most=4)
def _replace_all(ad: Any, state: State, pattern: Value, target: Value, template: Value, options: Value = "") -> Value:
    return _substituted(state, pattern, target, template, options, "fg")
