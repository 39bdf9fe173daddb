"""The macros of a configuration: where each was set, how one is found, how text with ``$(…)`` expands.

A name is looked up as ``SUBSYS.LOCAL.NAME``, ``LOCAL.NAME``, ``SUBSYS.NAME``, ``NAME``, then among the values found out
from the machine, then in the parameter table's defaults. Expansion is textual and happens when a value is asked for;
only a macro that mentions itself is expanded at once, so that ``A = $(A) more`` appends.

Expansion works inside out: the first reference whose name is complete is replaced and the text is read again, which is
what makes ``$(A_$(B))`` work. ``$(DOLLAR)`` becomes a dollar sign that starts nothing. ``$$(X)`` and ``$$([x])`` are
left alone: the reader of the value expands them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from condor_actors.config.errors import ConfigError
from condor_actors.patterns import late
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Final, Protocol
else:
    Protocol = object

__all__ = ["HIDDEN_DOLLAR", "Definition", "Expansion", "Functions", "MacroSet", "Source"]

LOWEST_DEPTH: Final = 64
"""How deep macros may refer to one another before it is called a circle."""

MOST_STEPS: Final = 100_000
"""How many references one value may need replaced."""

LONGEST_VALUE: Final = 1 << 20
"""The greatest length in characters that a value may expand to."""

MOST_WORK: Final = 20_000_000
"""How many letters may be copied to expand one value."""

SEARCH_COST: Final = 40
"""What a letter costs among which a parenthesis is looked for, beside one that is copied."""

HIDDEN_DOLLAR: Final = "\x00"
_REFERENCE: Final = late(r"\$([A-Za-z_]*)\(")
_OWN_REFERENCE: Final = late(r"(?<!\$)\$\(([\w.]+)(:[^()]*)?\)")
_NAME: Final = late(r"[A-Za-z0-9_.]+[?#+]?")


class Source(NamedTuple):
    """Where a value was set: ``file`` is a path or a name such as ``<Environment>``; ``line`` is 0 without lines."""

    file: str
    line: int = 0
    template: str = ""


class Definition(NamedTuple):
    """A macro as it was set: ``name`` in its author's spelling, ``raw`` not expanded."""

    name: str
    raw: str
    source: Source


class Functions(Protocol):
    """What evaluates ``$NAME(arguments)``."""

    def __call__(self, function: str, arguments: str, expansion: Expansion, depth: int) -> str | None:
        """The text to put in place, or None when there is no such function."""


class MacroSet:
    """The definitions read so far, and how names resolve among them.

    Args:
        subsystem: such as ``SCHEDD``; its prefix makes values particular to it.
        local_name: of one instance of a daemon among several, or None.
        detected: values found out from the machine, used when no file sets the name.
        defaults: gives the parameter table's default text for a name.
    """

    def __init__(
        self,
        subsystem: str = "TOOL",
        local_name: str | None = None,
        detected: Mapping[str, str] | None = None,
        defaults: Callable[[str], str | None] = lambda name: None,
        functions: Functions | None = None,
    ) -> None:
        self.subsystem = subsystem.upper()
        self.local_name = local_name.upper() if local_name else None
        self._detected = detected if detected is not None else {}
        self._defaults = defaults
        self._functions = functions
        self._defined: dict[str, Definition] = {}
        self.history: dict[str, list[Definition]] = {}
        self.mentioned: set[str] = set()

    @property
    def functions(self) -> Functions | None:
        """What evaluates ``$NAME(arguments)``."""
        return self._functions

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._defined.values())

    def __contains__(self, name: str) -> bool:
        return self.find(name) is not None

    def find(self, name: str) -> Definition | None:
        """The definition in force for ``name`` among what was set, the most particular; None when nobody set it."""
        key, defined = name.upper(), self._defined
        if self.local_name:
            own = f"{self.local_name}.{key}"
            found = defined.get(f"{self.subsystem}.{own}") or defined.get(own)
            if found is not None:
                return found
        return defined.get(f"{self.subsystem}.{key}") or defined.get(key)

    def is_detected(self, name: str) -> bool:
        """Whether the value of ``name`` comes from the machine."""
        return self.find(name) is None and name.upper() in self._detected

    def detected_names(self) -> Iterator[str]:
        """The names the machine gives values to."""
        yield from self._detected

    def raw(self, name: str) -> str | None:
        """The text of ``name`` before expansion: what was set, else detected, else the table's default."""
        found = self.find(name)
        if found is not None:
            return found.raw
        return self.raw_when_unset(name)

    def raw_when_unset(self, name: str) -> str | None:
        """What ``name`` is where no file sets it: detected, else the table's default."""
        detected = self._detected.get(name.upper())
        return detected if detected is not None else self._defaults(name)

    def define(self, name: str, raw: str, source: Source) -> None:
        """Set ``name``; a mention of itself within ``raw`` is expanded now."""
        key = name.upper()
        definition = Definition(name, self._with_itself_expanded(key, raw), source)
        self._defined.pop(key, None)
        self._defined[key] = definition
        self.history.setdefault(key, []).append(definition)

    def append(self, name: str, raw: str, source: Source) -> None:
        """Add to the value of ``name``, with a blank between."""
        before = self._defined.get(name.upper())
        old = before.raw if before is not None else ""
        self.define(name, f"{old} {raw}".strip(), source)


    def expand(self, text: str, depth: int = 0) -> str:
        """``text`` with every reference replaced.

        Raises:
            ConfigError: a circle of references, or a function misused.
        """
        return Expansion(self._lookup, self._functions).expand(text, depth)

    def _lookup(self, name: str) -> str | None:
        self.mentioned.add(name.upper())
        return self.raw(name)

    def _with_itself_expanded(self, key: str, raw: str) -> str:
        if "$(" not in raw:
            return raw
        own = {key, key.rpartition(".")[2]}
        length = len(raw)

        def replaced(match: re.Match[str]) -> str:
            nonlocal length
            name = match[1].upper()
            if name not in own:
                return match[0]
            before = self._defined.get(key) if name == key else None
            value = before.raw if before is not None else self._before(key, name)
            if not value:
                value = match[2][1:] if match[2] else ""
            length += len(value)
            if length > LONGEST_VALUE:
                raise ConfigError("the value grows beyond all bounds: it takes itself in again and again", name=key)
            return value

        return _OWN_REFERENCE.sub(replaced, raw)

    def _before(self, key: str, name: str) -> str:
        """What ``name`` means just before ``key`` is set."""
        found = self._defined.get(key) or self._defined.get(name)
        if found is not None:
            return found.raw
        return self.raw(name) or ""


_PARENTHESIS = late(r"[()]")


class Expansion:
    """One text on its way to being expanded, and what its references mean.

    Attributes:
        lookup: the raw text of a macro, None when it is not defined.
        functions: evaluates ``$FUNCTION(arguments)``; None leaves them as they are.
        steps_left: how many more references may be replaced before it is called endless.
        work_left: how many letters may be looked at or copied for it.
    """

    __slots__ = ("functions", "lookup", "steps_left", "work_left")

    def __init__(
        self,
        lookup: Callable[[str], str | None],
        functions: Functions | None = None,
        steps_left: int = MOST_STEPS,
    ) -> None:
        self.lookup = lookup
        self.functions = functions
        self.steps_left = steps_left
        self.work_left = MOST_WORK

    def expand(self, text: str, depth: int = 0) -> str:
        """Replace every ``$(NAME)``, ``$(NAME:default)`` and ``$FUNCTION(…)`` of ``text``.

        Raises:
            ConfigError: references that go round in a circle, or a value grown beyond all bounds.
        """
        return self.partly(text, depth).replace(HIDDEN_DOLLAR, "$")

    def partly(self, text: str, depth: int) -> str:
        """As `expand`, with the dollar signs that are final still hidden."""
        if "$" not in text:
            return text
        if depth > LOWEST_DEPTH:
            raise ConfigError("the macros refer to one another in a circle", value=text[:200])
        start = 0
        skipped = False
        while (match := _REFERENCE.search(text, start)) is not None:
            opened = match.end()
            value = None
            closed = None
            if match.start() == 0 or text[match.start() - 1] != "$":
                closed = _closing(text, opened)
                self._work(SEARCH_COST * ((closed or len(text)) - opened))
                if closed is not None:
                    value = self._value_of(match[1], text[opened:closed], depth)
            if closed is None or value is None:
                start, skipped = opened, True
                continue
            self._count(len(text) + len(value))
            text = text[: match.start()] + value + text[closed + 1 :]
            # A reference around this one, passed over because its name had a hole, may be complete now.
            start = max(text.rfind("$", 0, match.start()), 0) if skipped else match.start()
        return text

    def _count(self, length: int) -> None:
        self.steps_left -= 1
        self._work(length)
        if self.steps_left < 0 or length > LONGEST_VALUE:
            raise ConfigError("the value grows beyond all bounds when its macros are expanded")

    def _work(self, letters: int) -> None:
        self.work_left -= letters
        if self.work_left < 0:
            raise ConfigError("the value takes too long to expand: its macros are long, and refer to many")

    def _value_of(self, function: str, inner: str, depth: int) -> str | None:
        """What stands for ``$function(inner)``; None when it is nothing to expand (yet)."""
        if function:
            if self.functions is None:
                return None
            result = self.functions(function, self.partly(inner, depth + 1), self, depth + 1)
            return None if result is None else result.replace("$", HIDDEN_DOLLAR)
        name, colon, default = inner.partition(":")
        if not _NAME.fullmatch(name):
            return None
        if name.upper() == "DOLLAR":
            return HIDDEN_DOLLAR
        raw = self.lookup(name)
        if colon and not raw:
            raw = default
        if not raw:
            return None if name[-1] in "?#+" else ""  # an argument of a template that is not this one
        try:
            return self.partly(raw, depth + 1)
        except ConfigError as error:
            if error.name is not None:
                raise
            raise ConfigError(error.problem, name=name, value=error.value) from None


def _closing(text: str, opened: int) -> int | None:
    """Where the parenthesis closes that was opened just before ``opened``."""
    level = 1
    for parenthesis in _PARENTHESIS.finditer(text, opened):
        if parenthesis[0] == "(":
            level += 1
        else:
            level -= 1
            if level == 0:
                return parenthesis.start()
    return None
