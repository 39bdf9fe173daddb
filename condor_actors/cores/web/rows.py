"""The queue as the page shows it: rows of all jobs of all schedds, that can be counted, sorted, searched and paged.

Theory: a row is one tuple, in the order of :data:`COLUMNS`, so a hundred thousand jobs take some sixty megabytes and
are sorted by C code.  Rows come from ads that a schedd has made for strangers; strings are cut, and whatever is not
of the kind that a column has becomes that kind's nothing.  A view (which rows, in which order) is remembered until
something changes, and made anew at most so often that all making together takes :data:`SHARE` of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.messages.codes import JobStatus
from condor_actors.numerals import LAST_S

__all__ = ["ATTRIBUTES", "COLUMNS", "LONGEST", "STATES", "Page", "QueueRows", "View", "date", "finite", "job_row",
           "number"]

COLUMNS = ("schedd", "cluster", "proc", "owner", "status", "submitted", "started", "host", "batch", "command",
           "priority", "runs", "moves", "checkpoints", "cpu", "memory", "entered", "reason")
"""What a row has; ``submitted``, ``started`` and ``entered`` in seconds since 1970, ``cpu`` in seconds, ``memory`` in
MiB."""

ATTRIBUTES = (
    "Owner", "JobStatus", "QDate", "JobCurrentStartDate", "RemoteHost", "LastRemoteHost", "JobBatchName", "Cmd",
    "JobPrio", "NumShadowStarts", "NumCkpts", "RemoteUserCpu", "MemoryUsage", "EnteredCurrentStatus", "HoldReason",
)
"""The attributes queried; a stranger may see each of these (a test checks it)."""

STATES: dict[int, str] = {
    JobStatus.IDLE: "idle", JobStatus.RUNNING: "running", JobStatus.REMOVED: "removed",
    JobStatus.COMPLETED: "completed",
    JobStatus.HELD: "held", JobStatus.TRANSFERRING_OUTPUT: "transferring", JobStatus.SUSPENDED: "suspended",
}
LONGEST = 200
"""Letters of a text that are shown."""
GREATEST = 10**9
"""What a number is at most: as many cores, MiB or seconds as no machine has; sums of them are exact in a browser."""
MOST_ROWS = 500
"""Rows in one page."""
MOST_VIEWS = 40
SHARE = 0.02
"""Of one processor, for the making of views that were made before."""

Row = tuple[Any, ...]
Key = tuple[str, int, int]

_STATUS = COLUMNS.index("status")
_OWNER = COLUMNS.index("owner")
_SEARCHED = itemgetter(*(COLUMNS.index(name) for name in ("schedd", "owner", "host", "batch", "command")))
_BY_KEY = itemgetter(0, 1, 2)


def finite(value: float) -> float:
    """A number that JSON can say, to a hundredth; what is infinite, no number or beyond :data:`GREATEST` is 0."""
    return round(value, 2) if math.isfinite(value) and abs(value) <= GREATEST else 0.0


def number(ad: ClassAd, name: str, default: int = 0) -> int:
    """A whole number of an ad that a machine or a shadow has written; one beyond :data:`GREATEST` counts as none."""
    value = ad.get_int(name, default)
    return value if abs(value) <= GREATEST else default


def date(ad: ClassAd, name: str) -> int:
    """A date of an ad; 0: it has none, or one that no calendar has."""
    value = ad.get_int(name)
    return value if 0 < value <= LAST_S else 0


def job_row(schedd: str, ad: ClassAd) -> Row:
    """The row of a job's ad."""
    status = ad.get_int("JobStatus")
    running = status in (JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.TRANSFERRING_OUTPUT)
    starts = number(ad, "NumShadowStarts")
    return (
        schedd, ad.get_int("ClusterId"), ad.get_int("ProcId"), ad.get_str("Owner")[:LONGEST],
        STATES.get(status, "other"),
        date(ad, "QDate"), date(ad, "JobCurrentStartDate") if running else 0,
        (ad.get_str("RemoteHost") if running else "")[:LONGEST],
        ad.get_str("JobBatchName")[:LONGEST], ad.get_str("Cmd").rpartition("/")[2][:LONGEST],
        number(ad, "JobPrio"), starts, max(0, starts - 1), number(ad, "NumCkpts"),
        finite(ad.get_float("RemoteUserCpu")), number(ad, "MemoryUsage"), date(ad, "EnteredCurrentStatus"),
        ad.get_str("HoldReason")[:LONGEST] if status == JobStatus.HELD else "",
    )


@attrs.frozen(kw_only=True)
class View:
    """Which rows, in which order.

    Attributes:
        status, owner: only these; empty: all.
        search: what the job's number, schedd, owner, host, batch or command contains, in any letter case.
        sort: a column, or ``id``; descending: the greatest first.
    """

    status: str = ""
    owner: str = ""
    search: str = ""
    sort: str = "id"
    descending: bool = False


@attrs.frozen(kw_only=True)
class Page:
    """A piece of a view: ``rows`` from ``offset``, of ``total``."""

    rows: list[Row]
    offset: int
    total: int


@attrs.define
class _Made:
    rows: list[Row]
    version: int
    made_s: float
    cost_s: float


class QueueRows:
    """The rows of all schedds.

    Args:
        clock: seconds that only grow, to bound what views cost.

    Attributes:
        version: grows with each change.
        counts: jobs by state.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows: dict[Key, Row] = {}
        self._clusters: dict[tuple[str, int], set[int]] = {}
        self._views: dict[View, _Made] = {}
        self.counts: dict[str, int] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._rows)

    # ---- changes

    def put(self, schedd: str, ads: Iterable[bytes]) -> None:
        """Jobs of a schedd are new or have changed."""
        for text in ads:
            try:
                row = job_row(schedd, ClassAd.from_bytes(text))
            except ClassAdSyntaxError:
                continue
            key = row[:3]
            self._drop(key)
            self._rows[key] = row
            self._clusters.setdefault(key[:2], set()).add(key[2])
            self.counts[row[_STATUS]] = self.counts.get(row[_STATUS], 0) + 1
        self.version += 1

    def take_out(self, schedd: str, gone: Iterable[tuple[int, int]]) -> None:
        """Jobs have left; proc -1 is a whole cluster."""
        for cluster, proc in gone:
            procs = list(self._clusters.get((schedd, cluster), ())) if proc < 0 else [proc]
            for each in procs:
                self._drop((schedd, cluster, each))
        self.version += 1

    def forget(self, schedd: str) -> None:
        """Nothing is known of a schedd's jobs any more."""
        for key in [key for key in self._rows if key[0] == schedd]:
            self._drop(key)
        self.version += 1

    def schedds(self) -> set[str]:
        """Those that have jobs here."""
        return {name for name, _ in self._clusters}

    def _drop(self, key: Key) -> None:
        old = self._rows.pop(key, None)
        if old is None:
            return
        procs = self._clusters[key[:2]]
        procs.discard(key[2])
        if not procs:
            del self._clusters[key[:2]]
        self.counts[old[_STATUS]] -= 1
        if not self.counts[old[_STATUS]]:
            del self.counts[old[_STATUS]]

    # ---- questions

    def get(self, schedd: str, cluster: int, proc: int) -> Row | None:
        """The row of one job."""
        return self._rows.get((schedd, cluster, proc))

    def page(self, view: View, offset: int = 0, limit: int = 50) -> Page:
        """A piece of a view; beyond its end: its last piece.

        Args:
            view: which rows.
            offset: of the first one.
            limit: how many, at most :data:`MOST_ROWS`.

        Raises:
            ValueError: ``sort`` is no column.
        """
        if view.sort != "id" and view.sort not in COLUMNS:
            raise ValueError(f"sort={view.sort!r} is no column; expected id or one of {', '.join(COLUMNS)}")
        limit = max(1, min(limit, MOST_ROWS))
        rows = self._view(view)
        if offset >= len(rows):
            offset = max(0, (len(rows) - 1) // limit * limit)
        return Page(rows=rows[offset:offset + limit], offset=offset, total=len(rows))

    def owners(self) -> dict[str, int]:
        """Jobs by owner."""
        found: dict[str, int] = {}
        for row in self._rows.values():
            found[row[_OWNER]] = found.get(row[_OWNER], 0) + 1
        return found

    def _view(self, view: View) -> list[Row]:
        known = self._views.get(view)
        began_s = self._clock()
        if known is not None and (known.version == self.version or began_s < known.made_s + known.cost_s / SHARE):
            return known.rows
        rows = self._chosen(view)
        if view.sort == "id":
            rows.sort(key=_BY_KEY, reverse=view.descending)
        else:
            column = COLUMNS.index(view.sort)
            rows.sort(key=_BY_KEY)
            rows.sort(key=itemgetter(column), reverse=view.descending)
        now_s = self._clock()
        self._views.pop(view, None)
        self._views[view] = _Made(rows, self.version, now_s, (now_s - began_s) * max(1, len(self._views)))
        while len(self._views) > MOST_VIEWS or sum(len(each.rows) for each in self._views.values()) > 5_000_000:
            del self._views[next(iter(self._views))]
        return rows

    def _chosen(self, view: View) -> list[Row]:
        rows: Iterable[Row] = self._rows.values()
        if view.status:
            rows = [row for row in rows if row[_STATUS] == view.status]
        if view.owner:
            rows = [row for row in rows if row[_OWNER] == view.owner]
        if view.search:
            wanted = view.search.lower()
            rows = [row for row in rows
                    if wanted in f"{row[1]}.{row[2]}" or wanted in "\n".join(_SEARCHED(row)).lower()]
        return list(rows)
