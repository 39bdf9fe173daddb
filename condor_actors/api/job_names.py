"""Which jobs are meant: ids, clusters, or an expression."""

from __future__ import annotations

from collections.abc import Iterable

from condor_actors.classads import Expr, parse_expression
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.tools.lib.job_ids import ALL_PROCS, parse_id

JobName = int | str | tuple[int, int]
Jobs = JobName | Expr | Iterable[JobName]
"""A cluster (``12``), a job (``"12.3"`` or ``(12, 3)``), several of these, or an expression over job ads as text or
`Expr`."""

Ids = tuple[tuple[int, int], ...]


def constraint_text(constraint: str | Expr | None) -> str:
    """A constraint as daemons take it; empty: none.

    Raises:
        ClassAdSyntaxError: it is no expression.
    """
    if constraint is None:
        return ""
    if isinstance(constraint, Expr):
        return str(constraint)
    if not isinstance(constraint, str):
        raise TypeError(f"a constraint is text or an expression, not {type(constraint).__name__}")
    text = old_to_new(constraint.strip())
    if text:
        parse_expression(text)
    return text


def jobs_meant(jobs: Jobs) -> tuple[Ids, str]:
    """Ids (proc -1: the whole cluster), or a constraint; the other one is empty.

    Raises:
        TypeError: it is none of `Jobs`.
        ValueError: an empty list, or text that is neither an id nor an expression.
    """
    if isinstance(jobs, Expr):
        return (), str(jobs)
    if isinstance(jobs, str) and parse_id(jobs.strip()) is None:
        text = constraint_text(jobs)
        if not text:
            raise ValueError("no jobs are named; 'true' means all")
        return (), text
    if isinstance(jobs, (int, str)) or (isinstance(jobs, tuple) and _is_pair(jobs)):
        return (_id(jobs),), ""
    if not isinstance(jobs, Iterable):
        raise TypeError(f"jobs are named by ids or an expression, not by {type(jobs).__name__}")
    ids = tuple(_id(each) for each in jobs)
    if not ids:
        raise ValueError("no jobs are named; 'true' means all")
    return ids, ""


def _is_pair(jobs: tuple[object, ...]) -> bool:
    return len(jobs) == 2 and all(type(each) is int for each in jobs)


def _id(name: object) -> tuple[int, int]:
    if isinstance(name, bool):
        raise TypeError("a job is named by C, 'C.P' or (C, P), not by a truth value")
    if isinstance(name, int):
        return name, ALL_PROCS
    if isinstance(name, str):
        found = parse_id(name.strip())
        if found is None:
            raise ValueError(f"{name!r} is no job id; expected 'C' or 'C.P'")
        return found
    if isinstance(name, tuple) and _is_pair(name):
        return name[0], name[1]
    raise TypeError(f"a job is named by C, 'C.P' or (C, P), not by {name!r}")
