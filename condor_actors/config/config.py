"""A configuration that has been read: values by name, typed by the parameter table, each with its place."""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors.config.errors import ConfigError, UnknownParameterError, nearest_word
from condor_actors.config.macros import Definition, MacroSet, Source
from condor_actors.config.parameter import Kind, Parameter
from condor_actors.config.parameters import find_parameter, plain_names
from condor_actors.config.settings import PARAMETER
from condor_actors.config.transforms import is_job_transform
from condor_actors.config.typed import Value, convert, split_words
from condor_actors.patterns import late
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeVar, cast

    from condor_actors.classads import Expr
    from condor_actors.config.parameters.of_htcondor import Elsewhere

    _S = TypeVar("_S")
else:
    def cast(kind, value):
        return value


__all__ = ["Config", "Slip"]


DEFAULT = Source("<Default>")
NUMBERS = frozenset({Kind.INTEGER, Kind.REAL, Kind.SECONDS, Kind.SIZE, Kind.BOOLEAN})
DETECTED = Source("<Detected>")
_WORD = late(r"[A-Za-z_]\w*")


class Slip(NamedTuple):
    """A name that was set and that no daemon reads.

    Attributes:
        nearest: the known name that was most likely meant; None: none is near.
        elsewhere: what became of it where it is one of HTCondor's.
    """

    name: str
    source: Source
    nearest: str | None
    elsewhere: Elsewhere | None = None

    def __str__(self) -> str:
        place = f"{self.source.file}, line {self.source.line}"
        if self.elsewhere is not None:
            return f"{place}: {self.name} of HTCondor is {self.elsewhere}"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{place}: nobody reads {self.name}{hint}"


class Config:
    """What `load_config` gives.

    Attributes:
        macros: the definitions behind it.
        sources: the files read, in order.
        warnings: what the files themselves asked to be said.
    """

    def __init__(
        self, macros: MacroSet, sources: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
    ) -> None:
        self.macros = macros
        self.sources = sources
        self.warnings = warnings
        self._values: dict[str, Value] = {}
        self._texts: dict[str, str | None] = {}

    @property
    def subsystem(self) -> str:
        """Whose prefix applies: ``SCHEDD``, ``TOOL`` and so on."""
        return self.macros.subsystem

    def raw(self, name: str) -> str | None:
        """The text of ``name`` as it was set (or its default), not expanded; None when undefined."""
        return self.macros.raw(name)

    def text(self, name: str) -> str | None:
        """The expanded value of ``name``; None when undefined or empty.

        What refers to nothing is kept; a reference may lead to a function of chance.
        """
        try:
            return self._texts[name]
        except KeyError:
            pass
        raw = self.macros.raw(name)
        if raw is None or is_job_transform(name):
            text = raw  # the macros of a transform are those of a job
        elif "$" not in raw:
            text = raw.strip() or None
        else:
            try:
                return self.macros.expand(raw).strip() or None
            except ConfigError as error:
                raise self._placed(error, name) from None
        self._texts[name] = text
        return text

    def needed_text(self, name: str) -> str:
        """The expanded value of ``name``; where it is set to nothing its default holds.

        Raises:
            ConfigError: it has no value.
        """
        found = self.text(name)
        if found is None:
            raw = self.macros.raw_when_unset(name)
            found = None if raw is None else self.macros.expand(raw).strip()
        if not found:
            raise self._placed(ConfigError(f"{name} is not set", name=name, expected="a value"), name)
        return found

    @property
    def full_hostname(self) -> str:
        """This machine's full name (FULL_HOSTNAME)."""
        return self.needed_text("FULL_HOSTNAME")

    def expand(self, text: str) -> str:
        """``text`` with its references replaced from this configuration."""
        return self.macros.expand(text)

    def value(self, name: str) -> Value | None:
        """The value of ``name`` as the table types it; None when undefined.

        Raises:
            ConfigError: the value is not of its kind or not within its limits.
            UnknownParameterError: the table has no such row.
        """
        key = name.upper()
        if key not in self._values:
            parameter = self.parameter(name)
            text = self.text(name)
            if text is None and parameter.default and parameter.kind in NUMBERS:
                text = self.macros.expand(parameter.default)  # an empty number is no number: the default holds
            try:
                self._values[key] = None if text is None else convert(parameter, text)
            except ConfigError as error:
                raise self._placed(error, name) from None
        return self._values[key]

    def integer(self, name: str) -> int:
        """The whole number ``name``."""
        return int(cast(int, self._needed(name, Kind.INTEGER, Kind.SECONDS, Kind.SIZE)))

    def real(self, name: str) -> float:
        """The number ``name``."""
        return float(cast(float, self._needed(name, Kind.REAL, Kind.INTEGER, Kind.SECONDS)))

    def seconds(self, name: str) -> float:
        """The span of time ``name`` in seconds."""
        return float(cast(float, self._needed(name, Kind.SECONDS, Kind.INTEGER, Kind.REAL)))

    def size(self, name: str) -> int:
        """The number of bytes ``name``."""
        return int(cast(int, self._needed(name, Kind.SIZE, Kind.INTEGER)))

    def boolean(self, name: str) -> bool:
        """The truth of ``name``; an undefined one is False."""
        self._of_kind(name, Kind.BOOLEAN)
        return bool(self.value(name))

    def expression(self, name: str) -> Expr | None:
        """The ClassAd expression ``name``, parsed; None when undefined."""
        self._of_kind(name, Kind.EXPRESSION)
        return cast("Expr | None", self.value(name))

    def list_of(self, name: str) -> tuple[str, ...]:
        """The words of ``name``, any macro; empty when undefined."""
        text = self.text(name)
        return () if text is None else split_words(text)

    def path(self, name: str) -> Path:
        """The path ``name``."""
        from pathlib import Path

        return Path(self.path_text(name))

    def path_text(self, name: str) -> str:
        """The same as a text, for commands that need no more of it."""
        return str(self._needed(name, Kind.PATH, Kind.TEXT))

    def is_debugged(self, subsystem: str) -> bool:
        """Whether everything that a subsystem does is to be logged (``<SUBSYS>_DEBUG = D_FULLDEBUG``)."""
        words = " ".join(self.text(name) or "" for name in ("ALL_DEBUG", f"{subsystem}_DEBUG", "DEFAULT_DEBUG"))
        return any(word in words.upper() for word in ("D_FULLDEBUG", "D_ALL", ":2"))

    def settings(self, cls: type[_S], **others: Any) -> _S:
        """A frozen value whose fields were made with `setting`, filled from here; ``others`` are given as they are."""
        import attrs

        fields = attrs.fields(cls)  # type: ignore[arg-type]  # any attrs class
        named = {field.name: field.metadata[PARAMETER] for field in fields
                 if PARAMETER in field.metadata and field.name not in others}
        return cls(**{field: self.value(parameter) for field, parameter in named.items()}, **others)

    def unusable(self, name: str, problem: str, expected: str | None = None, *, value: str | None = None,
                 nearest: str | None = None) -> ConfigError:
        """The error of a setting that cannot be used: with its file, line and value, and what was expected instead.

        Args:
            name: of the setting.
            problem: what is wrong, one sentence without its final stop; the name is put before it where it has none.
            expected: what would have been right, as a noun phrase.
            value: the part of the value that is wrong; None: all of it.
            nearest: the known word nearest to that.
        """
        file, line = self.where(name)
        text = problem if name in problem else f"{name}: {problem}"
        value = self.text(name) or "" if value is None else value
        return ConfigError(text, file=file, line=line or None, name=name, value=value, expected=expected,
                           nearest=nearest)

    def where(self, name: str) -> tuple[str, int]:
        """File and line that set ``name``; ``("<Default>", 0)`` when none did."""
        source = self.source(name)
        return source.file, source.line

    def source(self, name: str) -> Source:
        """Where ``name`` was set."""
        found = self.macros.find(name)
        if found is not None:
            return found.source
        return DETECTED if self.macros.is_detected(name) else DEFAULT

    def defined(self, name: str) -> bool:
        """Whether ``name`` has a value from anywhere, even an empty one."""
        return self.macros.raw(name) is not None

    def parameter(self, name: str) -> Parameter:
        """The row of the table that describes ``name``.

        Raises:
            UnknownParameterError: there is none.
        """
        found = find_parameter(name)
        if found is None:
            raise UnknownParameterError(name)
        return found

    def problems(self) -> tuple[ConfigError, ...]:
        """Every value that was set and cannot be used, in the order of the files.

        Daemons refuse to start while there is one.
        """
        found = []
        for definition in self.macros:
            problem = self._problem(definition)
            if problem is not None:
                found.append(problem)
        return tuple(found)

    def slips(self) -> tuple[Slip, ...]:
        """Names that were set and that nothing reads: HTCondor's own, slips of the finger, and leftovers."""
        from condor_actors.config.parameters.of_htcondor import elsewhere  # large, and only wanted by a check

        mentioned = self._mentioned()
        known = plain_names()
        found = []
        for definition in self.macros:
            bare = definition.name.upper().rpartition(".")[2]
            if find_parameter(bare) is not None:
                continue
            became = elsewhere(bare)
            if became is None and bare in mentioned:
                continue
            near = nearest_word(bare, known) if became is None else None
            found.append(Slip(definition.name, definition.source, near, became))
        return tuple(found)

    def changed(self, newer: Config) -> tuple[tuple[str, Parameter | None], ...]:
        """Names whose expanded value differs between this configuration and a newer one, with their rows."""
        names = dict.fromkeys(d.name.upper().rpartition(".")[2] for d in (*self.macros, *newer.macros))
        return tuple((name, find_parameter(name)) for name in names if self.text(name) != newer.text(name))

    def names(self) -> Iterator[str]:
        """Every name that has a value: set, detected, or with a default."""
        seen = dict.fromkeys(definition.name.upper() for definition in self.macros)
        seen.update(dict.fromkeys(self.macros.detected_names()))
        seen.update(dict.fromkeys(plain_names()))
        yield from sorted(seen)

    def names_like(self, prefix: str) -> list[str]:
        """The names, set or with a default, that begin with ``prefix`` (in capitals), whatever stands before a dot."""
        names = (*(definition.name.upper() for definition in self.macros), *plain_names())
        return sorted({name for name in names if name.rpartition(".")[2].startswith(prefix)})

    def _mentioned(self) -> set[str]:
        """Names that the text of some other value contains, as a macro or as the name of an attribute."""
        found: set[str] = set()
        for definition in self.macros:
            found.update(word.upper() for word in _WORD.findall(definition.raw))
        return found

    def _problem(self, definition: Definition) -> ConfigError | None:
        bare = definition.name.rpartition(".")[2]
        parameter = find_parameter(bare)
        try:
            text = definition.raw if is_job_transform(bare) else self.macros.expand(definition.raw).strip()
            if parameter is not None and text:
                convert(parameter, text)
        except ConfigError as error:
            return self._placed(error, definition.name, definition.source)
        return None

    def _of_kind(self, name: str, *kinds: Kind) -> None:
        kind = self.parameter(name).kind
        if kind not in kinds:
            raise TypeError(f"{name} is a {kind.value} parameter, read as {kinds[0].value}")

    def _needed(self, name: str, *kinds: Kind) -> Value:
        self._of_kind(name, *kinds)
        value = self.value(name)
        if value is None:
            raise self._placed(
                ConfigError(f"{name} is not set", name=name, expected=self.parameter(name).expected), name
            )
        return value

    def _placed(self, error: ConfigError, name: str, source: Source | None = None) -> ConfigError:
        if error.file is not None:
            return error
        source = source or self.source(name)
        return ConfigError(
            error.problem,
            file=source.file,
            line=source.line or None,
            name=error.name or name,
            value=error.value,
            expected=error.expected,
            nearest=error.nearest,
        )
