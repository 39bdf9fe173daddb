"""What the jobs of the history came to, by day, owner and outcome: kept as they end, in the same transaction.

Theory: an aggregate over millions of ads takes minutes, and nearly all that people ask for is a sum over owners and
dates.  A day has a row for each owner and outcome, so years of a busy schedd are some ten thousand rows, whatever the
number of jobs.  Jobs that the history has forgotten (MAX_HISTORY_LOG, MAX_HISTORY_ROTATIONS) stay in the sums for
:data:`KEPT_DAYS`.  The days are those of this machine's time zone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache

from condor_actors.messages.codes import JobStatus
from condor_actors.patterns import late
from condor_actors.records import NamedTuple

__all__ = ["KEPT_DAYS", "DayTotal", "add", "day_of", "days", "facts", "forget_old", "left_to_sum", "sum_older"]

KEPT_DAYS = 3_660
"""For how long a day is remembered: ten years."""
_NUMBERS = late(
    rb"^(JobStatus|ExitCode|ExitBySignal|NumJobStarts|RemoteWallClockTime|RemoteUserCpu|RemoteSysCpu|RequestCpus"
    rb"|CpusProvisioned) = ([-+0-9.Ee]{1,40}|true|false)$", "m")


class DayTotal(NamedTuple):
    """The jobs of an owner that ended on one day in one way.

    Attributes:
        day: as the number YYYYMMDD.
        outcome: ``completed`` (exit status 0), ``failed`` or ``removed``.
        starts: how often they were started.
        wall_s: how long they ran; ``core_s``: times the cores that they had; ``cpu_s``: the processor time they used.
    """

    day: int
    owner: str
    outcome: str
    jobs: int
    starts: int
    wall_s: float
    core_s: float
    cpu_s: float


def day_of(when_s: float) -> int:
    """The date, as the number YYYYMMDD."""
    found = time.localtime(when_s)
    return found.tm_year * 10_000 + found.tm_mon * 100 + found.tm_mday


def add(connection: sqlite3.Connection, ended: Iterable[tuple[str, float, bytes, bytes]]) -> None:
    """Take jobs into the totals: owner, when each ended, the ad of its cluster, and its own."""
    sums: dict[tuple[int, str, str], list[float]] = {}
    for owner, ended_s, cluster_ad, ad in ended:
        outcome, *numbers = facts(cluster_ad, ad)
        row = sums.setdefault((day_of(ended_s), owner, str(outcome)), [0, 0, 0.0, 0.0, 0.0])
        for place, number in enumerate((1.0, *numbers)):
            row[place] += float(number)
    connection.executemany(
        "INSERT INTO history_totals (day, owner, outcome, jobs, starts, wall_s, core_s, cpu_s)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs,"
        " starts = starts + excluded.starts, wall_s = wall_s + excluded.wall_s, core_s = core_s + excluded.core_s,"
        " cpu_s = cpu_s + excluded.cpu_s",
        [(*key, int(jobs), int(starts), *others) for key, (jobs, starts, *others) in sums.items()])


def facts(cluster_ad: bytes, ad: bytes) -> tuple[str | float, ...]:
    """Outcome, starts, seconds of the machine, of its cores, and of the processor."""
    found = {**_numbers_of_cluster(cluster_ad), **dict(_NUMBERS.findall(ad))}

    def number(name: bytes) -> float:
        try:
            return min(max(float(found.get(name, 0)), 0.0), 1e15)
        except ValueError:
            return 0.0

    wall_s = number(b"RemoteWallClockTime")
    cores = number(b"CpusProvisioned") or number(b"RequestCpus") or 1.0
    is_well = number(b"ExitCode") == 0 and found.get(b"ExitBySignal") != b"true"
    outcome = ("removed" if number(b"JobStatus") != JobStatus.COMPLETED else "completed" if is_well else "failed")
    return (outcome, number(b"NumJobStarts"), wall_s, wall_s * cores,
            number(b"RemoteUserCpu") + number(b"RemoteSysCpu"))


@lru_cache(64)
def _numbers_of_cluster(ad: bytes) -> dict[bytes, bytes]:
    return dict(_NUMBERS.findall(ad))


def sum_older(connection: sqlite3.Connection, most: int) -> int:
    """Take so many more of the jobs into the totals that an older version has left there; how many it were."""
    first = connection.execute("SELECT entry FROM history_summed").fetchone()[0]
    rows = connection.execute(
        "SELECT h.entry, h.owner, h.ended_s, c.ad, h.ad FROM history h JOIN history_clusters c"
        " ON c.cluster = h.cluster AND c.version = h.version WHERE h.entry < ? ORDER BY h.entry DESC LIMIT ?",
        (first, most)).fetchall()
    add(connection, [row[1:] for row in rows])
    connection.execute("UPDATE history_summed SET entry = ?", (rows[-1][0] if rows else 0,))
    return len(rows)


def left_to_sum(connection: sqlite3.Connection) -> int:
    """How many jobs, about, the totals do not have yet."""
    first = connection.execute("SELECT entry FROM history_summed").fetchone()[0]
    oldest = connection.execute("SELECT min(entry) FROM history").fetchone()[0]
    return max(0, first - oldest) if oldest is not None else 0


def forget_old(connection: sqlite3.Connection, now_s: float) -> None:
    """Drop days that are older than :data:`KEPT_DAYS`."""
    connection.execute("DELETE FROM history_totals WHERE day < ?", (day_of(now_s - KEPT_DAYS * 86_400.0),))


def days(connection: sqlite3.Connection) -> Iterator[DayTotal]:
    """The totals, the newest day first."""
    for row in connection.execute(
            "SELECT day, owner, outcome, jobs, starts, wall_s, core_s, cpu_s FROM history_totals"
            " ORDER BY day DESC, owner, outcome"):
        yield DayTotal(*row)
