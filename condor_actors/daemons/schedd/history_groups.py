"""What the jobs of the history came to, by any attribute: the answer to ``condor_history -totals:ATTRIBUTE``.

Theory: a page has the groups of some pieces of the history, the newest first, and the asker adds up the pages; so a
question over ten million jobs is many short ones, and nothing is kept between them.  A piece that has columns
(:mod:`condor_actors.store.history_columns`) is answered from these; of any other one, and where the columns do not say
it, each job is looked at.  Both ways give the same groups.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from condor_actors.classads import Expr, is_true, parse_expression
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.daemons.schedd.history_filter import NeededLines
from condor_actors.daemons.schedd.history_pieces import NeedsJobs, Pieces, date_keys, written
from condor_actors.messages.codec import PAGE_BYTES
from condor_actors.messages.pages import shortened
from condor_actors.messages.queue import TOTALS_BY, JobsPage, QueryJobs
from condor_actors.numerals import numeral
from condor_actors.store.column_file import BadColumns
from condor_actors.store.history_columns import PIECE_JOBS, HistoryColumns
from condor_actors.store.history_totals import facts
from condor_actors.store.queue_store import HistoryRow, LongHistory

__all__ = ["groups_page", "is_by_attributes"]

PAGE_S = 0.5
"""After which a page ends with the piece that it is at."""
GROUPS_BYTES = PAGE_BYTES // 2
AD_BYTES = 400
"""What the ad of a group takes beside its values, about."""
MOST_BY = 10
SUMMED = ("Jobs", "JobStarts", "WallClockSeconds", "CoreSeconds", "CpuSeconds")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_OF_TOTALS = {name.lower(): name for name in TOTALS_BY}

Sums = dict[tuple[bytes, ...], list[float]]
"""Jobs, starts and seconds (of machines, of their cores, of processors) by the values grouped by."""


def is_by_attributes(question: QueryJobs) -> bool:
    """Whether a question for totals names other things than they are kept by.

    Raises:
        ValueError: its constraint cannot be read.
    """
    names = {name.lower() for name in question.projection}
    if question.constraint:
        names |= set().union(*parse_expression(question.constraint).references())
    return not names <= set(_OF_TOTALS)


def groups_page(history: LongHistory, columns: HistoryColumns | None, question: QueryJobs, sight: JobSight,
                clock: Callable[[], float] = time.monotonic) -> JobsPage:
    """The next page of groups, which the asker adds to those of other pages.

    Raises:
        ValueError: the question cannot be read, or asks for what groups do not tell.
    """
    by = _by(question)
    constraint = parse_expression(question.constraint) if question.constraint else None
    first, last = history.span()
    at = last
    if question.cursor:
        place = numeral(question.cursor)
        if place is None:
            raise ValueError(f"{question.cursor} is no cursor")
        at = min(place, last)
    work = _Work(history, columns, constraint, [parse_expression(name) for name in by], sight,
                 question.owner.partition("@")[0], clock)
    end_s = clock() + PAGE_S
    sums, looked, scanned, reason = _Groups(), 0, 0, ""
    while at >= first and (not looked or clock() < end_s):
        below, found, why = work.piece(at, first)
        if looked and not sums.has_room_for(found):
            break
        sums.add(found)
        looked += at - below
        if why:
            scanned, reason = scanned + at - below, why
        at = below
    left = max(at - first + 1, 0)
    return JobsPage(ads=sums.told(by), cursor=str(at) if left else "", looked=looked, scanned=scanned, left=left,
                    reason=reason)


class _Groups:
    """Sums by key, not more than a page holds."""

    def __init__(self) -> None:
        self._sums: dict[tuple[bytes, ...], list[float]] = {}
        self._bytes = 0

    def has_room_for(self, more: Sums) -> bool:
        """Whether it can take them all."""
        return self._bytes + sum(_size(key) for key in more if key not in self._sums) <= GROUPS_BYTES

    @property
    def is_full(self) -> bool:
        """Whether it should take no more."""
        return self._bytes > GROUPS_BYTES // 2

    def add(self, more: Sums) -> None:
        """Add them."""
        for key, values in more.items():
            before = self._sums.get(key)
            if before is None:
                self._sums[key] = list(values)
                self._bytes += _size(key)
                continue
            for place, value in enumerate(values):
                before[place] += value

    @property
    def sums(self) -> Sums:
        """What they are."""
        return self._sums

    def told(self, by: Sequence[str]) -> tuple[bytes, ...]:
        """An ad for each."""
        ads = []
        for key, (jobs, starts, *seconds) in self._sums.items():
            texts = (*key, b"%d" % jobs, b"%d" % starts, *(repr(each).encode() for each in seconds))
            ads.append(shortened(b"".join(b"%s = %s\n" % (name.encode(), text)
                                          for name, text in zip((*by, *SUMMED), texts, strict=True))))
        return tuple(ads)


def _size(key: tuple[bytes, ...]) -> int:
    return sum(map(len, key)) + AD_BYTES


def _by(question: QueryJobs) -> list[str]:
    """Names by which is grouped, those that totals know as they spell them.

    Raises:
        ValueError: one is none.
    """
    if question.ids or question.since:
        raise ValueError("totals are of all jobs that a constraint chooses, not of single ones or those since one")
    by = list(dict.fromkeys(_OF_TOTALS.get(name.lower(), name) for name in question.projection)) or ["Owner"]
    for name in by:
        if not _NAME.fullmatch(name) or name.lower() in {each.lower() for each in SUMMED}:
            raise ValueError(f"totals cannot be by {name}: that is no attribute, or one of their sums")
    if len(by) > MOST_BY:
        raise ValueError(f"totals are by at most {MOST_BY} attributes")
    return by


class _Work:
    """One question, piece by piece."""

    def __init__(self, history: LongHistory, columns: HistoryColumns | None, constraint: Expr | None,
                 by: Sequence[Expr], sight: JobSight, owner: str, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._history, self._columns, self._sight, self._owner = history, columns, sight, owner
        self._constraint, self._by = constraint, by
        self._pieces = Pieces(constraint, by, sight, owner)
        self._needed = NeededLines([*by, *([] if constraint is None else [constraint])], ())
        self._meter = Meter("the constraint", constraint)

    def piece(self, at: int, first: int) -> tuple[int, Sums, str]:
        """From entry ``at`` down: to where (that one is not in it), the groups, and why jobs had to be looked at."""
        number = (at - 1) // PIECE_JOBS
        base = number * PIECE_JOBS
        reason = "the newest jobs"
        if self._columns is not None and at == base + PIECE_JOBS:
            last, = self._history.piece(at, at)
            try:
                with self._columns.piece(number, last) as file:
                    if file is not None:
                        found = self._pieces.groups(file, max(first - 1 - base, 0))
                        if _Groups().has_room_for(found):
                            return max(base, first - 1), found, ""
                        raise NeedsJobs("there are many groups")
                    reason = "jobs whose columns are not made yet"
            except NeedsJobs as why:
                reason = str(why)
            except (BadColumns, OSError):
                reason = "columns that cannot be read"
        return (*self._scan(at, max(base, first - 1)), reason)

    def _scan(self, at: int, base: int) -> tuple[int, Sums]:
        groups = _Groups()
        end_s = self._clock() + PAGE_S
        for row in self._history.piece(base + 1, at):
            key, values = self._of(row)
            if key:
                groups.add({key: values})
            if groups.is_full or self._meter.is_spent() or self._clock() > end_s:
                return row.entry - 1, groups.sums
        return base, groups.sums

    def _of(self, row: HistoryRow) -> tuple[tuple[bytes, ...], list[float]]:
        """The group of a job, and what it adds to it; no group: it does not count."""
        if self._owner and row.owner != self._owner:
            return (), []
        ad = self._sight.whole(self._needed.ad(row.cluster_ad, row.ad), row.owner)
        outcome, *numbers = facts(row.cluster_ad, row.ad)
        for name, value in {"Owner": row.owner, "Outcome": str(outcome), **date_keys(row.ended_s)}.items():
            ad[name] = value
        if self._constraint is not None and not is_true(self._constraint.evaluate(ad)):
            return (), []
        return tuple(written(each.evaluate(ad)) for each in self._by), [1.0, *map(float, numbers)]
