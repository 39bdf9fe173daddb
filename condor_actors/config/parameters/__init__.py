"""The parameter table: the single source of what each name of the configuration means.

To add a parameter: one row in the module of the daemon that reads it, below, such as

    integer("MAX_JOBS_RUNNING", 10000, "How many jobs one schedd runs at once.", low=0, read_by="SCHEDD"),

Its type, limits, default and paragraph then reach validation, ``condor_config_val -help``, the reference page and the
shipped ``etc/condor_config`` by themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, lru_cache

from condor_actors.config.parameter import PLACE, Parameter

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re

__all__ = ["all_parameters", "default_text", "find_parameter", "plain_names", "sections"]

MODULES = {
    "The pool and its machines": "pool",
    "Daemons and the master": "daemons",
    "Security": "security",
    "Central manager": "central",
    "Priorities and accounting": "accounting",
    "Submit machines": "submit",
    "Submitting jobs": "submit_defaults",
    "What is written about jobs": "job_logs",
    "Credentials of users": "credentials",
    "Gateways to other pools": "gateway",
    "Workflows": "dagman",
    "Slots of execute machines": "slots",
    "Jobs on execute machines": "execute",
    "Programs of the site": "site_programs",
    "Programs around jobs": "hooks",
    "Defragmentation": "defrag",
    "Power": "power",
    "The web page": "web",
    "The owner's policy": "policy",
}
"""The modules that hold the rows, by the heading under which the reference shows them."""

SOUGHT_FIRST = ("pool", "daemons", "submit", "submit_defaults", "security", "job_logs")
"""Where the names stand that a command asks for; one that finds them there never loads the others."""


@cache
def _named_rows(module: str) -> dict[str, Parameter]:
    """The rows of a module by their names; the module is loaded when a name is first looked for there."""
    return {row.name: row for row in _rows(module)}


def _rows(module: str) -> tuple[Parameter, ...]:
    path = f"{__name__}.{module}"
    __import__(path)
    rows: tuple[Parameter, ...] = sys.modules[path].ROWS
    return rows


@cache
def sections() -> dict[str, tuple[Parameter, ...]]:
    """The rows by the heading under which the reference shows them."""
    return {title: _rows(module) for title, module in MODULES.items()}


@cache
def _by_name() -> dict[str, Parameter]:
    """Every row but the patterns', by its name; all modules are loaded for it."""
    return {row.name: row for rows in sections().values() for row in rows if not row.is_pattern}


def _plain_row(key: str) -> Parameter | None:
    """The row of a name in capitals, None where it has none of its own."""
    for module in SOUGHT_FIRST:
        found = _named_rows(module).get(key)
        if found is not None:
            return found
    return _by_name().get(key)


@cache
def _patterns() -> tuple[tuple[str, str, Parameter], ...]:
    """How the names of each pattern begin and end, and its row."""
    rows = [row for rows in sections().values() for row in rows if row.is_pattern]
    rows.sort(key=lambda row: -len(PLACE.sub("", row.name)))  # MAX_<SUBSYS>_LOG before <DAEMON>_LOG
    return tuple((row.name.partition("<")[0], row.name.rpartition(">")[2], row) for row in rows)


@cache
def _compiled(row: Parameter) -> re.Pattern[str]:
    return row.pattern()


def all_parameters() -> Iterator[Parameter]:
    """Every row, each knowing its section."""
    for section, rows in sections().items():
        for row in rows:
            yield row._replace(section=section)


@cache
def plain_names() -> tuple[str, ...]:
    """Every row's name but the patterns'."""
    return tuple(_by_name())


def find_parameter(name: str) -> Parameter | None:
    """The row that describes ``name``, in any letter case; of a pattern, with ``name`` in place of the pattern's."""
    key = name.upper()
    found = _plain_row(key)
    return found if found is not None else _by_pattern(key)


@lru_cache(maxsize=4096)
def _by_pattern(key: str) -> Parameter | None:
    """The row of a pattern that matches an upper-case name; most names that are asked for match none."""
    for begin, end, row in _patterns():
        if key.startswith(begin) and key.endswith(end) and _compiled(row).fullmatch(key):
            return row._replace(name=key)
    return None


def default_text(name: str, subsystem: str = "") -> str | None:
    """The default of ``name`` in the language of the configuration, None when it has none."""
    row = _plain_row(name.upper())
    if row is not None:
        return row.default
    row = _by_pattern(name.upper())
    if row is None or row.default is None:
        return None
    return row.default.replace("<NAME>", row.name)
