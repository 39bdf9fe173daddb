"""Macros of the submit language: ``$(name)``, ``$FUNCTION(…)``, and what is left for the match.

Theory: a text is cut once into a template (literal pieces and references) and kept by text, because the same few
texts are expanded for each of thousands of jobs.  Expanding a template asks a `Scope` for names.  The scope notes
which *live* names (those that differ from job to job, such as ``Process`` or the loop variables) it was asked for;
that is how the job maker knows what has to be made anew for the next job and what cannot have changed.

``$$(attribute)`` and ``$$([expression])`` wait for the machine and are left as they are, except that an ordinary macro
inside is expanded.  ``$(DOLLAR)`` is a dollar sign that is never looked at again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from condor_actors import records
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.functions import FUNCTIONS, file_parts

MAX_DEPTH = 40
MAX_EXPANSION_CHARS = 1 << 20
LONG_CHARS = 4000
"""From here on a text's parentheses are paired at once, not each on its own."""
_DOLLAR = "\ue000"  # stands for $(DOLLAR) until the outermost expansion is done


@records.frozen
class Reference:
    """``$(name)``, ``$(name:default)`` (function empty) or ``$FUNCTION(arguments)`` within a template."""

    function: str
    body: str
    default: str | None


Template = tuple["str | Reference", ...]


class Scope:
    """Where names are looked up: live values, the description's own assignments, automatic ones.

    Args:
        live: names that change from job to job, lower case, kept up to date by the owner.
        defaults: automatic names (``ARCH``, ``OPSYS`` …), lower case.
        environ: the caller's environment, for ``$ENV``.
        choose: picks a number in ``range(n)``, for the ``$RANDOM_`` family.
        evaluate: the value of a ClassAd expression as text, for ``$INT``, ``$EVAL`` …
        cwd: the caller's folder, for ``$Ff()``.
    """

    def __init__(
        self,
        *,
        live: dict[str, str],
        defaults: Mapping[str, str],
        environ: Mapping[str, str],
        choose: Callable[[int], int],
        evaluate: Callable[[str], object],
        cwd: str,
    ) -> None:
        self.live = live
        self.assigned: dict[str, str] = {}
        self.spellings: dict[str, str] = {}
        self.places: dict[str, tuple[str, int]] = {}
        self.defaults = defaults
        self.environ = environ
        self.choose = choose
        self.evaluate = evaluate
        self.cwd = cwd
        self.touched: set[str] = set()
        self.used: set[str] = set()
        self.referenced: set[str] = set()

    def raw(self, name: str) -> str | None:
        """What stands behind a name, not yet expanded; None: no such name."""
        key = name.lower()
        if key in self.live:
            self.touched.add(key)
            self.used.add(key)
            return self.live[key]
        value = self.assigned.get(key)
        if value is not None:
            self.used.add(key)
            return value
        return self.defaults.get(key)

    def has(self, key: str) -> bool:
        """Whether a lower-case name is assigned or live."""
        return key in self.assigned or key in self.live

    def expand(self, text: str) -> str:
        """The text with every macro replaced.

        Raises:
            SubmitError: macros that contain one another, or an expansion without end.
        """
        if "$" not in text:
            return text
        return self._expand(text, 0).replace(_DOLLAR, "$")

    def _expand(self, text: str, depth: int) -> str:
        if "$" not in text:
            return text
        if depth > MAX_DEPTH:
            raise SubmitError(f"macros refer to one another without end: {text[:80]}")
        pieces = [piece if isinstance(piece, str) else self._reference(piece, depth + 1) for piece in template(text)]
        out = "".join(pieces)
        if len(out) > MAX_EXPANSION_CHARS:
            raise SubmitError(f"a macro expands to more than {MAX_EXPANSION_CHARS} characters: {text[:80]}")
        return out

    def _reference(self, reference: Reference, depth: int) -> str:
        if not reference.function:
            return self._plain(reference, depth)
        body = self._expand(reference.body, depth)
        if reference.function[0] == "F" and reference.function not in FUNCTIONS:
            path = self._named_or_none(body.strip(), depth)  # what names nothing is a path itself
            return file_parts(reference.function[1:], body if path is None else path, self.cwd)
        try:
            return FUNCTIONS[reference.function](self, body, lambda name: self._named_or_none(name, depth))
        except (ValueError, OverflowError, TypeError) as error:
            if isinstance(error, SubmitError):
                raise
            raise SubmitError(f"${reference.function}({body}): {error}") from None

    def _plain(self, reference: Reference, depth: int) -> str:
        name = self._expand(reference.body, depth)
        if name.lower() == "dollar":
            return _DOLLAR
        value = self.raw(name)
        expanded = self._expand(value, depth) if value is not None else ""
        if not expanded and reference.default is not None:
            return self._expand(reference.default, depth)
        return expanded

    def _named_or_none(self, name: str, depth: int) -> str | None:
        value = self.raw(name.strip())
        return None if value is None else self._expand(value, depth)


@functools.lru_cache(maxsize=4096)
def template(text: str) -> Template:
    """Cut a text into literal pieces and references; what is no well-formed reference stays literal."""
    pieces: list[str | Reference] = []
    literal_from = position = 0
    ends: dict[int, int] | None = None
    while (dollar := text.find("$", position)) >= 0:
        if text.startswith("$$", dollar):
            position = dollar + 2
            if text.startswith("(", position):
                position += 1
            continue
        if len(text) > LONG_CHARS and ends is None:
            ends = _closing(text)
        found = _reference_at(text, dollar, ends)
        if found is None:
            position = dollar + 1
            continue
        reference, end = found
        if dollar > literal_from:
            pieces.append(text[literal_from:dollar])
        pieces.append(reference)
        position = literal_from = end
    if literal_from < len(text):
        pieces.append(text[literal_from:])
    return tuple(pieces)


def references(text: str, depth: int = 0) -> frozenset[str]:
    """The names, in lower case, that a text stands on as ``$(name)`` or within a function."""
    found: set[str] = set()
    if depth > MAX_DEPTH:
        return frozenset()  # it is not expanded either
    for piece in template(text) if "$" in text else ():
        if not isinstance(piece, str):
            found.add(piece.body.partition(",")[0].strip().lower())
            found |= references(piece.body, depth + 1)
            found |= references(piece.default or "", depth + 1)
    return frozenset(found)


def _reference_at(text: str, dollar: int, ends: Mapping[int, int] | None = None) -> tuple[Reference, int] | None:
    opening = text.find("(", dollar + 1)
    if opening < 0:
        return None
    function = _function_name(text[dollar + 1 : opening])
    if function is None:
        return None
    closing = closing_parenthesis(text, opening) if ends is None else ends.get(opening, -1)
    if closing < 0:
        return None
    body = text[opening + 1 : closing]
    if function:
        return Reference(function, body, None), closing + 1
    name, colon, default = _split_default(body)
    if not name or any(blank in name for blank in " \t\n"):
        return None
    return Reference("", name, default if colon else None), closing + 1


def _function_name(word: str) -> str | None:
    """The canonical name of a function, "" for none (``$(``), None when the word is no function."""
    if not word:
        return ""
    upper = word.upper()
    if upper in FUNCTIONS:
        return upper
    if word[0] == "F" and all(letter in "fpdnxbwuqa" for letter in word[1:]):
        return word
    return None


def _split_default(body: str) -> tuple[str, str, str]:
    """``name:default``; a colon within a nested reference is not ours."""
    depth = 0
    for position, letter in enumerate(body):
        if letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        elif letter == ":" and depth == 0:
            return body[:position], ":", body[position + 1 :]
    return body, "", ""


def _closing(text: str) -> dict[int, int]:
    """Where each parenthesis that is closed is closed: one look at the text, however many there are."""
    open_at: list[int] = []
    found: dict[int, int] = {}
    for position, letter in enumerate(text):
        if letter == "(":
            open_at.append(position)
        elif letter == ")" and open_at:
            found[open_at.pop()] = position
    return found


def closing_parenthesis(text: str, opening: int) -> int:
    """The position of the parenthesis that closes the one at ``opening``, -1 when there is none."""
    depth = 0
    for position in range(opening, len(text)):
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            depth -= 1
            if depth == 0:
                return position
    return -1


def substitute_itself(text: str, name: str, old: str) -> str:
    """Replace ``$(name)`` in a new definition of that name by what it stood for (``foo = snap $(foo)``)."""
    wanted = name.lower()
    out = []
    for piece in template(text):
        if isinstance(piece, str):
            out.append(piece)
        elif not piece.function and piece.body.lower() == wanted:
            out.append(old or (piece.default or ""))
        elif not piece.function:
            out.append(f"$({piece.body}" + (f":{piece.default}" if piece.default is not None else "") + ")")
        else:
            out.append(f"${piece.function}({piece.body})")
    return "".join(out)
