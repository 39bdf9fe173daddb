"""``if``, ``elif``, ``else``, ``endif``: which statements of a file count.

A condition is a truth, a number, a macro that becomes one of them, ``defined NAME``, ``version >= X.Y.Z``, or any of
these behind ``!``.
"""

from __future__ import annotations

from condor_actors.config.errors import ConfigError
from condor_actors.config.lines import LogicalLine
from condor_actors.config.macros import MacroSet
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

__all__ = ["LANGUAGE_VERSION", "Conditions"]

LANGUAGE_VERSION: Final = (25, 14, 0)
"""What ``if version`` compares with: the HTCondor release whose configuration language this one is."""

_KEYWORD: Final = late(r"(if|elif|else|endif)\b\s*(.*)", "is")
_VERSION: Final = late(r"version\s*+(==|!=|>=|<=|>|<|=)?\s*+(\d+(?:\.\d+){0,2})\s*", "i")
_DEFINED: Final = late(r"defined\b\s*(.*)", "is")
_TEMPLATE: Final = late(r"use\s+(\w+)\s*:\s*(\w+)", "i")
_ASSIGNS: Final = late(r"[=:]")
_SPACE: Final = late(r"\s")
_TRUE: Final = frozenset({"TRUE", "YES", "T", "Y"})
_FALSE: Final = frozenset({"FALSE", "NO", "F", "N", ""})


class _Level:
    """One ``if``: whether its present branch counts, and whether any branch has."""

    def __init__(self, outer: bool, chosen: bool, line: int) -> None:
        self.outer = outer
        self.now = outer and chosen
        self.done = chosen
        self.line = line
        self.in_else = False


class Conditions:
    """The nest of conditions at one point of a file."""

    def __init__(self, macros: MacroSet) -> None:
        self._macros = macros
        self._levels: list[_Level] = []

    @property
    def open(self) -> bool:
        """Whether statements count here."""
        return not self._levels or self._levels[-1].now

    def take(self, line: LogicalLine) -> bool:
        """Follow ``line`` if it is part of a condition; False when it is not."""
        if line.block is not None or line.text[:1] not in "iIeE":
            return False
        match = _KEYWORD.fullmatch(line.text)
        if match is None or _ASSIGNS.match(match[2]):
            return False
        keyword, rest = match[1].lower(), match[2].strip()
        if keyword == "if":
            outer = self.open
            self._levels.append(_Level(outer, outer and self._holds(rest, line), line.line))
            return True
        if not self._levels:
            raise ConfigError(f"{keyword} without an if before it", file=line.file, line=line.line)
        level = self._levels[-1]
        if keyword == "endif":
            self._levels.pop()
        elif level.in_else:
            raise ConfigError(f"{keyword} after else", file=line.file, line=line.line)
        elif keyword == "else":
            level.in_else = True
            level.now = level.outer and not level.done
        else:
            level.now = level.outer and not level.done and self._holds(rest, line)
            level.done = level.done or level.now
        return True

    def finish(self, file: str) -> None:
        """Complain of an ``if`` that the file leaves open."""
        if self._levels:
            raise ConfigError("this if has no endif", file=file, line=self._levels[-1].line, expected="endif")

    def _holds(self, condition: str, line: LogicalLine) -> bool:
        text = condition.strip()
        if text.startswith("!"):
            return not self._holds(text[1:], line)
        if match := _DEFINED.fullmatch(text):
            return self._is_defined(match[1].strip())
        if match := _VERSION.fullmatch(text):
            return _compare_version(match[1] or "==", match[2])
        if text.lower().startswith("version"):
            raise ConfigError(
                f"cannot read the condition {text!r}",
                file=line.file,
                line=line.line,
                value=text,
                expected="version >= X.Y.Z",
            )
        value = self._macros.expand(text).strip()
        if value.startswith("!"):
            return not self._holds(value[1:], line)
        truth = _truth(value)
        if truth is None:
            raise ConfigError(
                f"the condition {text!r} is {value!r}, which is neither true nor false",
                file=line.file,
                line=line.line,
                value=value,
                expected="a truth, defined NAME, or version >= X.Y.Z",
            )
        return truth

    def _is_defined(self, rest: str) -> bool:
        name = self._macros.expand(rest).strip()
        if not name:
            return False
        if match := _TEMPLATE.fullmatch(name):
            from condor_actors.config.templates import template_statements

            return template_statements(match[1], match[2], None) is not None
        if _SPACE.search(name):
            raise ConfigError(f"defined takes one name, not {name!r}", value=name, expected="the name of a macro")
        return bool(self._macros.raw(name)) or bool(_truth(name)) or name.isdecimal()


def _truth(value: str) -> bool | None:
    upper = value.upper()
    if upper in _TRUE:
        return True
    if upper in _FALSE:
        return False
    try:
        return float(value) != 0
    except ValueError:
        pass
    from condor_actors.config.typed import constant_value

    constant = constant_value(value)
    return bool(constant) if isinstance(constant, (bool, int, float)) else None


def _compare_version(operator: str, wanted: str) -> bool:
    parts = tuple(int(part) for part in wanted.split("."))
    ours = LANGUAGE_VERSION[: len(parts)]
    return {
        "==": ours == parts,
        "=": ours == parts,
        "!=": ours != parts,
        ">=": ours >= parts,
        "<=": ours <= parts,
        ">": ours > parts,
        "<": ours < parts,
    }[operator]
