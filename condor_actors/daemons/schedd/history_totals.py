"""What the jobs of the history came to, grouped as the asker wants it: the answer to ``condor_history -totals``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from condor_actors.classads import ClassAd, Expr, is_true, parse_expression
from condor_actors.cores.schedd.job_query import JobPage
from condor_actors.messages.queue import TOTALS_BY, JobsPage, QueryJobs
from condor_actors.store.history_totals import DayTotal

__all__ = ["totals_page"]

PAGE_GROUPS = 2_000
_KEYS = {name.lower(): name for name in TOTALS_BY}


def totals_page(days: Iterable[DayTotal], question: QueryJobs) -> JobsPage:
    """The next page of the groups: by what the projection names, the newest dates first.

    Raises:
        ValueError: the constraint or the cursor cannot be read, or it asks for what is not in the totals.
    """
    if question.ids or question.since:
        raise ValueError("totals are of all jobs of an owner and a day: choose by Owner, Day, Month, Year or Outcome")
    by = [_KEYS.get(name.lower(), "") for name in question.projection] or ["Owner"]
    if "" in by:
        raise ValueError(f"totals are by {', '.join(TOTALS_BY)}")
    constraint = _constraint(question.constraint)
    found = JobPage(question, PAGE_GROUPS, constraint)
    start = int(found.after or 0)
    for number, ad in enumerate(_groups(days, question, by, constraint)):
        if number < start:
            continue
        if not found.add(ad.to_bytes()):
            return found.until(number)
        if found.is_enough():
            break
        if found.looked():
            return found.until(number + 1)
    return found.end()


def _constraint(text: str) -> Expr | None:
    if not text:
        return None
    constraint = parse_expression(text)
    unknown = set().union(*constraint.references()) - set(_KEYS)
    if unknown:
        raise ValueError(f"totals know of {', '.join(TOTALS_BY)}, not of {', '.join(sorted(unknown))}: -af prints the "
                         "jobs themselves, to be added up")
    return constraint


def _groups(days: Iterable[DayTotal], question: QueryJobs, by: Sequence[str], constraint: Expr | None) -> list[ClassAd]:
    owner = question.owner.partition("@")[0]
    sums: dict[tuple[str, ...], list[float]] = {}
    for day in days:
        if owner and day.owner != owner:
            continue
        keys = _keys(day)
        if constraint is not None and not is_true(constraint.evaluate(ClassAd(keys))):
            continue
        row = sums.setdefault(tuple(keys[name] for name in by), [0.0] * 5)
        for place, value in enumerate(day[3:]):
            row[place] += value
    return [ClassAd({**dict(zip(by, key, strict=True)), "Jobs": int(jobs), "JobStarts": int(starts),
                     "WallClockSeconds": wall_s, "CoreSeconds": core_s, "CpuSeconds": cpu_s})
            for key, (jobs, starts, wall_s, core_s, cpu_s) in sums.items()]


def _keys(day: DayTotal) -> dict[str, str]:
    date = f"{day.day:08d}"
    return {"Owner": day.owner, "Outcome": day.outcome, "Year": date[:4], "Month": f"{date[:4]}-{date[4:6]}",
            "Day": f"{date[:4]}-{date[4:6]}-{date[6:]}"}
