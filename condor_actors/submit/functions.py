"""Macro functions of the submit language: ``$ENV``, ``$INT``, ``$CHOICE``, ``$F…`` and the like.

Each takes the scope, its argument text (macros inside already expanded) and a function that gives the expanded value
of a name, or None.  **Source**: the manual, "Function Macros in Configuration" and "Using Function Macros".
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping

from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object


class Surface(Protocol):
    """What functions need of a scope."""

    environ: Mapping[str, str]
    choose: Callable[[int], int]
    evaluate: Callable[[str], object]


_FORMAT = late(r"%[-+ #0]{0,5}\d{0,4}(\.\d{0,4})?[diouxXeEfFgGs][^%]*", "s")
Lookup = Callable[[str], "str | None"]
Function = Callable[[Surface, str, Lookup], str]


def _arguments(body: str) -> list[str]:
    return [part.strip() for part in body.split(",")]


def _environment(scope: Surface, body: str, lookup: Lookup) -> str:
    name, colon, default = body.partition(":")
    value = scope.environ.get(name.strip())
    if value is None:
        return default if colon else "UNDEFINED"
    return value


def _number(scope: Surface, body: str, lookup: Lookup) -> tuple[object, str]:
    """The value of ``name-or-expression`` and the format behind it, if any."""
    what, comma, form = body.rpartition(",")
    if not comma or not form.strip().startswith("%"):
        what, form = body, ""
    text = lookup(what)
    return scope.evaluate(what if text is None else text), _format(form.strip())


def _format(form: str) -> str:
    """A format, or nothing: one conversion, of a width that people write.

    Raises:
        ValueError: it is none.
    """
    if form and not _FORMAT.fullmatch(form):
        raise ValueError(f"{form!r} is no format with one conversion, such as %d or %05.1f")
    return form


def _integer(scope: Surface, body: str, lookup: Lookup) -> str:
    value, form = _number(scope, body, lookup)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("is not a number")
    return (form or "%d") % int(value)


def _real(scope: Surface, body: str, lookup: Lookup) -> str:
    value, form = _number(scope, body, lookup)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("is not a number")
    return (form or "%.16g") % float(value)


def _string(scope: Surface, body: str, lookup: Lookup) -> str:
    what, comma, form = body.rpartition(",")
    if not comma or not form.strip().startswith("%"):
        what, form = body, ""
    text = lookup(what)
    text = what if text is None else text
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = text[1:-1]
    return (_format(form.strip()) or "%s") % text


def _evaluate(scope: Surface, body: str, lookup: Lookup) -> str:
    text = lookup(body)
    value = scope.evaluate(body if text is None else text)
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.16g}" if isinstance(value, float) else str(value)


def _substring(scope: Surface, body: str, lookup: Lookup) -> str:
    name, *rest = _arguments(body)
    text = lookup(name) or ""
    start = int(rest[0]) if rest else 0
    start = max(len(text) + start, 0) if start < 0 else min(start, len(text))
    if len(rest) < 2:
        return text[start:]
    length = int(rest[1])
    return text[start:length] if length < 0 else text[start : start + length]


def _choice(scope: Surface, body: str, lookup: Lookup) -> str:
    index_name, *items = _arguments(body)
    text = lookup(index_name)
    value = scope.evaluate(index_name if text is None else text)
    if not isinstance(value, int):
        raise ValueError(f"{index_name if text is None else text} is not an integer that chooses one of the list")
    index = int(value)  # a boolean counts as 0 or 1
    if len(items) == 1:
        listed = lookup(items[0])
        if listed is not None:
            items = listed.replace(",", " ").split()
    if not 0 <= index < len(items):
        raise ValueError(f"{index} is outside the list of {len(items)}")
    return items[index]


def _random_choice(scope: Surface, body: str, lookup: Lookup) -> str:
    items = _arguments(body)
    if len(items) == 1:
        listed = lookup(items[0])
        if listed is not None:
            items = listed.replace(",", " ").split()
    return items[scope.choose(len(items))]


def _random_integer(scope: Surface, body: str, lookup: Lookup) -> str:
    numbers = [int(part) for part in _arguments(body)]
    if len(numbers) not in (2, 3):
        raise ValueError("expected (least, greatest) or (least, greatest, step)")
    least, greatest, step = (*numbers, 1)[:3]
    if step < 1 or greatest < least:
        raise ValueError("expected least <= greatest and a step of at least 1")
    return str(least + step * scope.choose((greatest - least) // step + 1))


def _basename(scope: Surface, body: str, lookup: Lookup) -> str:
    name, comma, ending = (part.strip() for part in body.partition(","))
    last = os.path.basename(lookup(name) or name)
    return last.removesuffix(lookup(ending) or ending) if comma else last


def _dirname(scope: Surface, body: str, lookup: Lookup) -> str:
    folder = os.path.dirname(lookup(body) or body)
    return folder + "/" if folder and folder != "/" else folder


FUNCTIONS: dict[str, Function] = {
    "ENV": _environment,
    "INT": _integer,
    "REAL": _real,
    "STRING": _string,
    "EVAL": _evaluate,
    "SUBSTR": _substring,
    "CHOICE": _choice,
    "RANDOM_CHOICE": _random_choice,
    "RANDOM_INTEGER": _random_integer,
    "BASENAME": _basename,
    "DIRNAME": _dirname,
}


def file_parts(letters: str, path: str, cwd: str) -> str:
    """``$F<letters>(name)``: parts of a path.

    Args:
        letters: any of f (full path), p (folder), d (last folder; the last two where it stands twice), n (name), x
            (extension), b (without its mark: the trailing slash of a folder, the dot of an extension), w and u (back
            or forward slashes), q and a (quotes).
        path: the path, perhaps in double quotes.
        cwd: what a full path begins with.
    """
    if len(path) >= 2 and path[0] == path[-1] == '"':
        path = path[1:-1]
    if "f" in letters and path and not os.path.isabs(path):
        path = os.path.normpath(os.path.join(cwd, path))
    folder, name = os.path.split(path)
    if folder and not folder.endswith("/"):
        folder += "/"
    stem, extension = os.path.splitext(name)
    bare = "b" in letters
    out = ""
    if "d" in letters:
        folders = [part for part in folder.split("/") if part]
        out += "".join(f"{part}/" for part in folders[-letters.count("d") :])
    elif "p" in letters:
        out += folder
    if bare and out.endswith("/") and not any(letter in letters for letter in "nx"):
        out = out[:-1]
    if "n" in letters:
        out += stem
    if "x" in letters:
        out += extension[1:] if bare and "n" not in letters else extension
    if not any(letter in letters for letter in "pdnx"):
        out = path
    if "w" in letters:
        out = out.replace("/", "\\")
    elif "u" in letters:
        out = out.replace("\\", "/")
    if "q" in letters:
        quote = "'" if "a" in letters else '"'
        out = f"{quote}{out}{quote}"
    return out
