"""The parameter table: the single source of what each name of the configuration means.

To add a parameter: one row in the module of the daemon that reads it, below, such as

    integer("MAX_JOBS_RUNNING", 10000, "How many jobs one schedd runs at once.", low=0, read_by="SCHEDD"),

Its type, limits, default and paragraph then reach validation, ``condor_config_val -help``, the reference page and the
shipped ``etc/condor_config`` by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from condor_actors.config.parameter import PLACE, Parameter
from condor_actors.config.parameters import (
    accounting,
    central,
    credentials,
    daemons,
    dagman,
    defrag,
    execute,
    gateway,
    hooks,
    job_logs,
    policy,
    pool,
    power,
    security,
    site_programs,
    slots,
    submit,
    submit_defaults,
    web,
)

__all__ = ["SECTIONS", "all_parameters", "default_text", "find_parameter", "plain_names"]

SECTIONS = {
    "The pool and its machines": pool.ROWS,
    "Daemons and the master": daemons.ROWS,
    "Security": security.ROWS,
    "Central manager": central.ROWS,
    "Priorities and accounting": accounting.ROWS,
    "Submit machines": submit.ROWS,
    "Submitting jobs": submit_defaults.ROWS,
    "What is written about jobs": job_logs.ROWS,
    "Credentials of users": credentials.ROWS,
    "Gateways to other pools": gateway.ROWS,
    "Workflows": dagman.ROWS,
    "Slots of execute machines": slots.ROWS,
    "Jobs on execute machines": execute.ROWS,
    "Programs of the site": site_programs.ROWS,
    "Programs around jobs": hooks.ROWS,
    "Defragmentation": defrag.ROWS,
    "Power": power.ROWS,
    "The web page": web.ROWS,
    "The owner's policy": policy.ROWS,
}
"""The rows by the heading under which the reference shows them."""


@cache
def _by_name() -> dict[str, Parameter]:
    return {row.name: row for rows in SECTIONS.values() for row in rows if not row.is_pattern}


@cache
def _patterns() -> tuple[tuple[str, str, Parameter], ...]:
    """How the names of each pattern begin and end, and its row."""
    rows = [row for rows in SECTIONS.values() for row in rows if row.is_pattern]
    rows.sort(key=lambda row: -len(PLACE.sub("", row.name)))  # MAX_<SUBSYS>_LOG before <DAEMON>_LOG
    return tuple((row.name.partition("<")[0], row.name.rpartition(">")[2], row) for row in rows)


@cache
def _compiled(row: Parameter) -> re.Pattern[str]:
    return row.pattern()


def all_parameters() -> Iterator[Parameter]:
    """Every row, each knowing its section."""
    for section, rows in SECTIONS.items():
        for row in rows:
            yield row._replace(section=section)


@cache
def plain_names() -> tuple[str, ...]:
    """Every row's name but the patterns'."""
    return tuple(_by_name())


def find_parameter(name: str) -> Parameter | None:
    """The row that describes ``name``, in any letter case; of a pattern, with ``name`` in place of the pattern's."""
    key = name.upper()
    found = _by_name().get(key)
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
    row = _by_name().get(name.upper())
    if row is not None:
        return row.default
    row = _by_pattern(name.upper())
    if row is None or row.default is None:
        return None
    return row.default.replace("<NAME>", row.name)
