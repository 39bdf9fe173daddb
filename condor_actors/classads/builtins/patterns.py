"""Regular expressions in Perl's dialect, on Python's engine."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any, Final, Literal

from condor_actors.classads.builtins.linear_matcher import LinearPattern, Span, Unsupported, cost
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.builtins.strings import worst
from condor_actors.classads.evaluation.state import State, element
from condor_actors.classads.language.recent import Recent
from condor_actors.classads.values import ERROR, MAX_STRING, UNDEFINED, ListValue, Value

_FLAGS: Final = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_compiled: Final[Recent[tuple[str, int], SafePattern | Literal[False]]] = Recent(1000)
MAX_TRIES: Final = 3_000_000
"""Steps that one search may take at worst before the linear matcher is used."""


class SafePattern:
    """A compiled pattern whose searches end in reasonable time.

    Args:
        pattern: The regular expression, in Python's dialect.
        flags: Of `re`.

    Raises:
        re.error: When it is none.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        self._fast = re.compile(pattern, flags)
        self._source = (pattern, flags)
        self._nested, self._open = cost(pattern, flags)
        self._linear: LinearPattern | None = None

    def _is_slow_on(self, text: str) -> bool:
        size = len(text) + 1
        if self._nested:
            return size > 12
        return bool(size ** (self._open + 1) > MAX_TRIES)

    def search(self, text: str) -> Span | None:
        """Find the first match.

        Args:
            text: Where to look.

        Returns:
            The match, None when there is none.

        Raises:
            Unsupported: When the search could take for ever.
        """
        for found in self.finditer(text):
            return found
        return None

    def finditer(self, text: str) -> Iterator[Span]:
        """Find all matches.

        Args:
            text: Where to look.

        Returns:
            An iterator of matches that do not overlap.

        Raises:
            Unsupported: When the search could take for ever.
        """
        if self._is_slow_on(text):
            if self._linear is None:
                self._linear = LinearPattern(*self._source)
            yield from self._linear.finditer(text)
            return
        for match in self._fast.finditer(text):
            ends: list[int | None] = []
            for number in range(match.re.groups + 1):
                start, end = match.span(number)
                ends += [None, None] if start < 0 else [start, end]
            yield Span(text, tuple(ends))

    def matches(self, text: str) -> bool:
        """Say whether there is a match.

        Args:
            text: Where to look.

        Returns:
            True when there is one.

        Raises:
            Unsupported: When the search could take for ever.
        """
        if self._is_slow_on(text):
            return self.search(text) is not None
        return self._fast.search(text) is not None


def compiled_pattern(pattern: str, flags: int = 0) -> SafePattern | None:
    """Compile a pattern, remembering recent ones.

    Args:
        pattern: The regular expression.
        flags: Of `re`.

    Returns:
        The compiled pattern, None when it is none.
    """
    known = _compiled.get((pattern, flags))
    if known is None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known = SafePattern(_translated(pattern), flags | re.ASCII)
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
    if expression is None:
        return ERROR
    try:
        return expression.matches(target)
    except Unsupported:
        return ERROR


@inside("regexpMember", least=2, most=3)
def _regexp_member(ad: Any, state: State, pattern: Value, targets: Value, options: Value = "") -> Value:
    strict = worst(pattern, targets, options)
    if strict is not None:
        return strict
    if not isinstance(pattern, str) or not isinstance(targets, ListValue) or not isinstance(options, str):
        return ERROR
    expression = compiled_pattern(pattern, _flags(options))
    result: Value = False
    for item in targets.elements:
        value = element(item, ad, state)
        if isinstance(value, str):
            try:
                if expression is not None and expression.matches(value):
                    return True
            except Unsupported:
                return ERROR
        elif value is UNDEFINED:
            result = UNDEFINED
        else:
            return ERROR
    return result


def expanded(match: Span, template: str) -> str:
    """Fill the groups of a match into a template.

    Args:
        match: The match.
        template: Text with ``\\0`` to ``\\9``.

    Returns:
        The text.
    """

    return re.sub(r"\\([0-9])", lambda found: match.group(int(found[1])), template)


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
    position = size = 0
    try:
        for match in expression.finditer(target):
            if every and match.end() == match.start():
                return ERROR
            if whole:
                pieces.append(target[position : match.start()])
            pieces.append(expanded(match, template))
            size += len(pieces[-1])
            position = match.end()
            if not every or size > MAX_STRING:
                break
    except Unsupported:
        return ERROR
    if size > MAX_STRING:
        return ERROR
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
