"""One row of the parameter table: what a name of the configuration means.

The table is the single source for validation, for ``condor_config_val -help NAME``, for the reference page and for
the commented configuration that is shipped. A row is made by the function named after the kind of its value
(`text`, `path`, `boolean`, `integer`, `real`, `seconds`, `size`, `expression`, `words`, `choice`)
and its default is written in the language of the configuration itself, so it may use ``$(OTHER)``.

A name may hold places for the user's own words: ``SLOT_TYPE_<N>``, ``ALLOW_<LEVEL>``, ``<DAEMON>_LOG``.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from condor_actors.patterns import late
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Final, Literal

    Change = Literal["live", "restart"]

__all__ = [
    "Change",
    "Kind",
    "Parameter",
    "boolean",
    "choice",
    "expression",
    "integer",
    "path",
    "real",
    "seconds",
    "size",
    "text",
    "transform",
    "words",
]


LARGEST_INTEGER: Final = (1 << 31) - 1
LARGEST_REAL: Final = 1e15
LARGEST_SIZE: Final = 10**18 - 1
PLACE: Final = late(r"<([A-Z_]+)>")


class Kind(enum.Enum):
    """What the text of a value stands for; the enum's value is the phrase used in messages."""

    TEXT = "text"
    PATH = "path"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    SECONDS = "seconds"
    SIZE = "size"
    EXPRESSION = "expression"
    WORDS = "list"
    CHOICE = "choice"
    TRANSFORM = "job transform"


class Parameter(NamedTuple):
    """A name, its type, range, default, unit, and one paragraph about it.

    Attributes:
        name: in capitals; ``<WORD>`` stands for a word of the user's.
        default: the text a configuration file would hold, None when it is undefined unless set.
        doc: one paragraph for the administrator who sets it.
        low: the least value allowed, None without limit.
        high: the greatest value allowed, None without limit.
        unit: of a number, as people write it: ``s``, ``MiB``, ``jobs``; empty when it has none.
        choices: of a choice, in the spelling to show.
        change: ``live`` takes effect on condor_reconfig, ``restart`` when the daemons that read it start anew.
        sensitive: never shown to others, never logged.
        read_by: the subsystems that read it; empty when all do.
    """

    name: str
    kind: Kind
    default: str | None
    doc: str
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: tuple[str, ...] = ()
    change: Change = "live"
    sensitive: bool = False
    read_by: tuple[str, ...] = ()
    section: str = ""

    @property
    def is_pattern(self) -> bool:
        """Whether the name holds a place for a word of the user's."""
        return "<" in self.name

    def pattern(self) -> re.Pattern[str]:
        """What the names look like that this row describes."""
        import re

        parts = PLACE.split(self.name)
        built = [
            re.escape(part) if index % 2 == 0 else _WORDS.get(part, r"[A-Z0-9_.]+")
            for index, part in enumerate(parts)
        ]
        return re.compile("".join(built), re.IGNORECASE)

    @property
    def largest(self) -> float:
        """The greatest value that can be set, and below zero the least: ``high``, or what any number of its kind has.

        As with HTCondor, integers and seconds (68 years) have 31 bits, so that none of what is reckoned with them,
        dates and waits, becomes more than a machine can hold.
        """
        return _LARGEST[self.kind] if self.high is None else self.high

    @property
    def expected(self) -> str:
        """What a right value is, as a noun phrase."""
        if self.kind is Kind.CHOICE:
            return "one of " + ", ".join(self.choices)
        noun = _NOUNS[self.kind]
        low = None if self.low is None else f"{self.low:.15g}"
        high = None if self.high is None else f"{self.high:.15g}"
        if low is not None and high is not None:
            noun += f" from {low} to {high}"
        elif low is not None:
            noun += f", at least {low}"
        elif high is not None:
            noun += f", at most {high}"
        if self.unit and self.kind in (Kind.INTEGER, Kind.REAL):
            noun += f" ({self.unit})"
        return noun


_LARGEST: Final = {Kind.INTEGER: LARGEST_INTEGER, Kind.SECONDS: LARGEST_INTEGER, Kind.REAL: LARGEST_REAL,
                   Kind.SIZE: LARGEST_SIZE}

_SUBSYSTEMS: Final = (
    "MASTER|COLLECTOR|NEGOTIATOR|SCHEDD|STARTD|SHADOW|SHADOW_HOST|STARTER|STARTER_HOST|KBDD|DEFRAG|ROOSTER"
    "|WEB|GATEWAY|CKPT_SERVER|CREDD|DAGMAN"
    "|TOOL|SUBMIT"
)
_LEVELS: Final = "READ|WRITE|OWNER|ADMINISTRATOR|DAEMON|NEGOTIATOR|ADVERTISE_[A-Z]+|CONFIG|CLIENT"
_WORDS: Final = {"N": r"\d+", "SUBSYS": f"(?:{_SUBSYSTEMS})", "LEVEL": f"(?:{_LEVELS})",
                 "UNIVERSE": "(?:STANDARD|VANILLA|GRID|JAVA|PARALLEL|LOCAL|VM)"}
"""What stands in the places of a name; any other place takes any word."""

_NOUNS: Final = {
    Kind.TEXT: "a text",
    Kind.PATH: "a path",
    Kind.BOOLEAN: "True or False",
    Kind.INTEGER: "an integer",
    Kind.REAL: "a number",
    Kind.SECONDS: "a number of seconds",
    Kind.SIZE: "a size such as 500000 or 10 MB",
    Kind.EXPRESSION: "a ClassAd expression",
    Kind.TRANSFORM: "the statements of a job transform",
    Kind.WORDS: "a list of words with commas or blanks between",
}


def _tuple(read_by: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(read_by.split()) if isinstance(read_by, str) else tuple(read_by)


def text(
    name: str,
    default: str | None,
    doc: str,
    *,
    change: Change = "live",
    sensitive: bool = False,
    read_by: str = "",
    unit: str = "",
) -> Parameter:
    """A row whose value is taken as it is written."""
    return Parameter(
        name=name,
        kind=Kind.TEXT,
        default=default,
        doc=doc,
        change=change,
        sensitive=sensitive,
        read_by=_tuple(read_by),
        unit=unit,
    )


def transform(name: str, doc: str, *, read_by: str) -> Parameter:
    """A row whose value is a job transform: its macros are expanded for each job, not when it is read."""
    return Parameter(name=name, kind=Kind.TRANSFORM, default=None, doc=doc, read_by=_tuple(read_by))


def path(
    name: str,
    default: str | None,
    doc: str,
    *,
    change: Change = "restart",
    sensitive: bool = False,
    read_by: str = "",
) -> Parameter:
    """A row whose value names a file or a folder."""
    return Parameter(
        name=name,
        kind=Kind.PATH,
        default=default,
        doc=doc,
        change=change,
        sensitive=sensitive,
        read_by=_tuple(read_by),
    )


def boolean(
    name: str, default: bool | str | None, doc: str, *, change: Change = "live", read_by: str = ""
) -> Parameter:
    """A row that is True or False."""
    written = default if default is None or isinstance(default, str) else str(default)
    return Parameter(
        name=name, kind=Kind.BOOLEAN, default=written, doc=doc, change=change, read_by=_tuple(read_by)
    )


def integer(
    name: str,
    default: int | str | None,
    doc: str,
    *,
    low: int | None = None,
    high: int | None = None,
    unit: str = "",
    change: Change = "live",
    read_by: str = "",
) -> Parameter:
    """A row that is a whole number."""
    return Parameter(
        name=name,
        kind=Kind.INTEGER,
        default=None if default is None else str(default),
        doc=doc,
        low=low,
        high=high,
        unit=unit,
        change=change,
        read_by=_tuple(read_by),
    )


def real(
    name: str,
    default: float | str | None,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    change: Change = "live",
    read_by: str = "",
) -> Parameter:
    """A row that is a number."""
    return Parameter(
        name=name,
        kind=Kind.REAL,
        default=None if default is None else str(default),
        doc=doc,
        low=low,
        high=high,
        unit=unit,
        change=change,
        read_by=_tuple(read_by),
    )


def seconds(
    name: str,
    default: float | str | None,
    doc: str,
    *,
    low: float | None = 0,
    high: float | None = None,
    change: Change = "live",
    read_by: str = "",
) -> Parameter:
    """A row that is a span of time in seconds; fractions are allowed."""
    return Parameter(
        name=name,
        kind=Kind.SECONDS,
        default=None if default is None else str(default),
        doc=doc,
        low=low,
        high=high,
        unit="s",
        change=change,
        read_by=_tuple(read_by),
    )


def size(
    name: str,
    default: int | str | None,
    doc: str,
    *,
    low: int | None = 0,
    change: Change = "live",
    read_by: str = "",
) -> Parameter:
    """A row that is a number of bytes, with or without a unit such as ``10 MB``."""
    return Parameter(
        name=name,
        kind=Kind.SIZE,
        default=None if default is None else str(default),
        doc=doc,
        low=low,
        unit="bytes",
        change=change,
        read_by=_tuple(read_by),
    )


def expression(
    name: str, default: str | None, doc: str, *, change: Change = "live", read_by: str = ""
) -> Parameter:
    """A row that is a ClassAd expression, evaluated in the context of ads."""
    return Parameter(
        name=name, kind=Kind.EXPRESSION, default=default, doc=doc, change=change, read_by=_tuple(read_by)
    )


def words(
    name: str,
    default: str | None,
    doc: str,
    *,
    change: Change = "live",
    read_by: str = "",
    sensitive: bool = False,
) -> Parameter:
    """A row that is a list of words with commas or blanks between."""
    return Parameter(
        name=name,
        kind=Kind.WORDS,
        default=default,
        doc=doc,
        change=change,
        read_by=_tuple(read_by),
        sensitive=sensitive,
    )


def choice(
    name: str,
    default: str | None,
    doc: str,
    choices: Sequence[str],
    *,
    change: Change = "live",
    read_by: str = "",
) -> Parameter:
    """A row that is one word out of a few, in any letter case."""
    return Parameter(
        name=name,
        kind=Kind.CHOICE,
        default=default,
        doc=doc,
        choices=tuple(choices),
        change=change,
        read_by=_tuple(read_by),
    )
