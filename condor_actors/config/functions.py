"""The functions of the configuration language: ``$INT(…)``, ``$CHOICE(…)``, ``$Fnx(…)`` and their like.

The submit description language has the same ones. A function's name is taken as written, letter case and all; an
unknown one is left in the text. Random ones are drawn anew each time a value is expanded.

Source: HTCondor manual, Introduction to Configuration, "Function Macros in Configuration".
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping

from condor_actors.config.errors import ConfigError
from condor_actors.config.macros import HIDDEN_DOLLAR, Expansion
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import random
    from typing import Final

__all__ = ["ConfigFunctions"]

_ITEM: Final = late(r"[\w.]+")
_FILE_LETTERS: Final = late(r"F[fpduwnxbqa]*")
_FORMAT: Final = late(
    r"(.*?)%([-+ #0]*\d{0,3}(?:\.\d{1,3})?)(?:h|hh|l|ll|j|z)?([diouxXeEfFgGsvV])(.*)", "s"
)


class ConfigFunctions:
    """Evaluates the functions of one configuration.

    Args:
        environ: what ``$ENV()`` reads.
        folder: what ``$Ff()`` makes relative paths absolute with; None leaves them.
        draw: the source of chance of the random functions.
    """

    def __init__(
        self, environ: Mapping[str, str], *, folder: str | None = None, draw: random.Random | None = None
    ) -> None:
        self._environ = environ
        self._folder = folder
        self._chance = draw
        self._table: dict[str, Callable[[str, Expansion, int], str]] = {
            "ENV": self._env,
            "CHOICE": self._choice,
            "RANDOM_CHOICE": self._random_choice,
            "RANDOM_INTEGER": self._random_integer,
            "INT": self._int,
            "REAL": self._real,
            "STRING": self._string,
            "EVAL": self._eval,
            "SUBSTR": self._substr,
            "DIRNAME": lambda arguments, expansion, depth: self._file("p", arguments, expansion, depth),
            "BASENAME": self._basename,
        }

    def __call__(self, function: str, arguments: str, expansion: Expansion, depth: int) -> str | None:
        """The text of ``$function(arguments)``, or None when there is no such function."""
        found = self._table.get(function)
        if found is not None:
            return found(arguments.replace(HIDDEN_DOLLAR, "$"), expansion, depth)
        if _FILE_LETTERS.fullmatch(function):
            return self._file(function[1:], arguments.replace(HIDDEN_DOLLAR, "$"), expansion, depth)
        return None

    @property
    def _draw(self) -> random.Random:
        if self._chance is None:
            import random

            self._chance = random.Random()
        return self._chance

    def _env(self, arguments: str, expansion: Expansion, depth: int) -> str:
        name, colon, default = arguments.partition(":")
        value = self._environ.get(name.strip())
        if value is not None:
            return value
        return default if colon else "UNDEFINED"

    def _choice(self, arguments: str, expansion: Expansion, depth: int) -> str:
        first, *rest = [part.strip() for part in arguments.split(",")]
        index_text = _text_of(first, expansion, depth)
        if len(rest) == 1 and (listed := expansion.lookup(rest[0])) is not None:
            rest = [word for part in expansion.expand(listed, depth).split(",") if (word := part.strip())]
        index = _number(index_text, "CHOICE", arguments)
        if not 0 <= int(index) < len(rest):
            raise ConfigError(
                f"$CHOICE({arguments}) has no item {int(index)}",
                value=arguments,
                expected=f"an index from 0 to {len(rest) - 1}",
            )
        return rest[int(index)]

    def _random_choice(self, arguments: str, expansion: Expansion, depth: int) -> str:
        return self._draw.choice([part.strip() for part in arguments.split(",")])

    def _random_integer(self, arguments: str, expansion: Expansion, depth: int) -> str:
        numbers = [int(_number(part.strip(), "RANDOM_INTEGER", arguments)) for part in arguments.split(",")]
        if len(numbers) not in (2, 3):
            raise ConfigError(f"$RANDOM_INTEGER({arguments}) is malformed", expected="min, max [, step]")
        step = numbers[2] if len(numbers) == 3 else 1
        if step < 1 or numbers[1] < numbers[0]:
            raise ConfigError(
                f"$RANDOM_INTEGER({arguments}) has no number to choose", expected="min <= max, step >= 1"
            )
        return str(self._draw.randrange(numbers[0], numbers[1] + 1, step))

    def _int(self, arguments: str, expansion: Expansion, depth: int) -> str:
        item, form = _item_and_format(arguments)
        value = _number(_text_of(item, expansion, depth), "INT", arguments)
        return _formatted(form or "%d", int(value))

    def _real(self, arguments: str, expansion: Expansion, depth: int) -> str:
        item, form = _item_and_format(arguments)
        value = _number(_text_of(item, expansion, depth), "REAL", arguments)
        return _formatted(form or "%.16G", float(value))

    def _string(self, arguments: str, expansion: Expansion, depth: int) -> str:
        item, form = _item_and_format(arguments)
        written = _text_of(item, expansion, depth)
        value = _evaluated(written)
        return _formatted(form or "%s", _plain(value, written))

    def _eval(self, arguments: str, expansion: Expansion, depth: int) -> str:
        written = _text_of(arguments.strip(), expansion, depth)
        return _plain(_evaluated(written), written)

    def _substr(self, arguments: str, expansion: Expansion, depth: int) -> str:
        name, *numbers = [part.strip() for part in arguments.split(",")]
        value = _text_of(name, expansion, depth)
        where = [int(_number(_text_of(number, expansion, depth), "SUBSTR", arguments)) for number in numbers]
        if len(where) not in (1, 2):
            raise ConfigError(f"$SUBSTR({arguments}) is malformed", expected="name, start [, length]")
        start = max(len(value) + where[0], 0) if where[0] < 0 else where[0]
        if len(where) == 1:
            return value[start:]
        end = len(value) + where[1] if where[1] < 0 else start + where[1]
        return value[start:end] if end > start else ""

    def _basename(self, arguments: str, expansion: Expansion, depth: int) -> str:
        name, comma, suffix = arguments.partition(",")
        whole = self._file("nx", name.strip(), expansion, depth)
        ending = _text_of(suffix.strip(), expansion, depth) if comma else ""
        return whole[: -len(ending)] if ending and whole.endswith(ending) else whole

    def _file(self, letters: str, arguments: str, expansion: Expansion, depth: int) -> str:
        """The parts of a file name that the letters ask for, put together again."""
        name = _text_of(arguments.strip(), expansion, depth)
        if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
            name = name[1:-1]
        if "f" in letters and self._folder is not None and not name.startswith("/"):
            name = os.path.join(self._folder, name)
        if "u" in letters:
            name = name.replace("\\", "/")
        if "w" in letters:
            name = name.replace("/", "\\")
        if not set(letters) & set("pdnx"):
            return _quoted(name, letters)
        folder, slash, last = name.rpartition("\\" if "w" in letters else "/")
        separator = slash or "/"
        stem, dot, extension = last.rpartition(".")
        if not dot:
            stem, extension = last, ""
        result = ""
        if "p" in letters and "d" not in letters:
            result = folder + slash
        elif "d" in letters:
            result = folder.rpartition(separator)[2] + (slash if folder or slash else "")
            if "b" in letters:
                result = result.rstrip(separator)
        if "n" in letters:
            result += stem
        if "x" in letters and extension:
            result += extension if "b" in letters and "n" not in letters else "." + extension
        return _quoted(result, letters)


def _quoted(name: str, letters: str) -> str:
    if "q" not in letters:
        return name
    mark = "'" if "a" in letters else '"'
    return f"{mark}{name}{mark}"


def _text_of(item: str, expansion: Expansion, depth: int) -> str:
    """The expanded value of the macro called ``item``; ``item`` itself when there is none."""
    raw = expansion.lookup(item) if _ITEM.fullmatch(item) else None
    return item if raw is None else expansion.expand(raw, depth)


def _item_and_format(arguments: str) -> tuple[str, str | None]:
    item, comma, form = arguments.partition(",")
    return item.strip(), form if comma else None


def _formatted(form: str, value: float | int | str) -> str:
    match = _FORMAT.fullmatch(form.strip() if form.strip().startswith("%") else form.lstrip())
    if match is None:
        raise ConfigError(f"the format {form!r} does not have one conversion", expected="a format such as %d")
    kind = match[3]
    if kind in "di" or (kind in "ouxX"):
        shown = (
            f"%{match[2]}{'d' if kind == 'i' else kind}" % int(float(value))
            if kind != "u"
            else str(int(value))
        )
    elif kind in "eEfFgG":
        shown = f"%{match[2]}{kind}" % float(value)
    else:
        shown = f"%{match[2]}s" % value
    return match[1] + shown + match[4]


def _number(written: str, function: str, arguments: str) -> float | int:
    value = _evaluated(written)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return value
    raise ConfigError(f"${function}({arguments}) is not given a number", value=written, expected="a number")


def _evaluated(written: str) -> object:
    from condor_actors.config.typed import constant_value

    return constant_value(written)


def _plain(value: object, written: str) -> str:
    """A constant as it shows when printed: strings bare, the rest as ClassAd text."""
    from condor_actors.config.typed import constant_text

    return constant_text(value, written)
