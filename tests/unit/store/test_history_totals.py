"""What the jobs of the history came to: kept with them, made of older ones, kept longer than they are."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.daemons.schedd.history_totals import totals_page
from condor_actors.messages.queue import QueryJobs
from condor_actors.store.database import Database
from condor_actors.store.history_totals import KEPT_DAYS, day_of, forget_old
from condor_actors.store.queue_store import FILE_NAME, QueueStore

NOON_S = time.mktime((2026, 11, 29, 12, 0, 0, 0, 0, -1))
DAY_S = 86_400.0
CLUSTER = b"RequestCpus = 2\nNote = \"\nExitCode = 7\"\n"
EVERYTHING = JobSight(frozenset(), lambda owner: True)


def ended(cluster: int, owner: str, when_s: float, own: str = "JobStatus = 4\nExitCode = 0") -> ArchiveJob:
    """A job that ran for an hour and used half of it."""
    ad = f"{own}\nNumJobStarts = 1\nRemoteWallClockTime = 3600.0\nRemoteUserCpu = 1700.0\nRemoteSysCpu = 100\n"
    return ArchiveJob(cluster, 0, owner, 1, when_s, ad.encode(), CLUSTER)


@pytest.fixture
def store(tmp_path: Path) -> QueueStore:
    made = QueueStore(tmp_path)
    made.commit([
        ended(1, "ann", NOON_S), ended(2, "ann", NOON_S, "JobStatus = 4\nExitCode = 1"),
        ended(3, "ann", NOON_S - 40 * DAY_S, "JobStatus = 3"),
        ended(4, "bob", NOON_S, "JobStatus = 4\nExitCode = 0\nCpusProvisioned = 8"),
        ended(5, "bob", NOON_S, "JobStatus = 4\nExitBySignal = true\nRequestCpus = 2 * 3\nRemoteWallClockTime = evil"),
    ])
    return made


def totals(store: QueueStore, *by: str, **question: object) -> list[tuple[object, ...]]:
    """Groups with their jobs, hours and hours of cores."""
    page = totals_page(store.history().totals(), QueryJobs(source="totals", projection=by, **question))  # type: ignore[arg-type]
    assert not page.cursor
    ads = [ClassAd.from_bytes(text) for text in page.ads]
    return [(*(ad.get_str(name) for name in by), ad.get_int("Jobs"), ad.get_float("WallClockSeconds") / 3600,
             ad.get_float("CoreSeconds") / 3600) for ad in ads]


def test_they_are_kept_by_owner_date_and_outcome(store: QueueStore) -> None:
    assert totals(store, "Owner") == [("ann", 3, 3.0, 6.0), ("bob", 2, 2.0, 10.0)]
    assert totals(store, "Outcome") == [("completed", 2, 2.0, 10.0), ("failed", 2, 2.0, 4.0), ("removed", 1, 1.0, 2.0)]
    assert totals(store, "Month", "Owner") == [
        ("2026-11", "ann", 2, 2.0, 4.0), ("2026-11", "bob", 2, 2.0, 10.0), ("2026-10", "ann", 1, 1.0, 2.0)]
    assert totals(store, "Owner", constraint='Day >= "2026-11-29" && Outcome == "completed"') == [
        ("ann", 1, 1.0, 2.0), ("bob", 1, 1.0, 8.0)]
    assert totals(store, "Year", owner="bob@here") == [("2026", 2, 2.0, 10.0)]
    assert totals(store, "Owner", limit=1) == [("ann", 3, 3.0, 6.0)]
    store.commit([ended(6, "ann", NOON_S)])
    assert totals(store, "Owner")[0] == ("ann", 4, 4.0, 8.0)


@pytest.mark.parametrize("wrong", [
    {"constraint": "ExitCode == 137"}, {"ids": ((1, 0),)}, {"projection": ("Cmd",)}, {"since": "3"},
    {"constraint": "TARGET.Cpus > 1"},
])
def test_what_they_do_not_know_is_refused(store: QueueStore, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="totals"):
        totals_page(store.history().totals(), QueryJobs(source="totals", **wrong))  # type: ignore[arg-type]


def test_they_come_page_by_page(store: QueueStore) -> None:
    store.commit([ended(100 + number, f"user{number:05}" + "x" * 200, NOON_S) for number in range(3000)])
    asked = HistoryQuestions(store.history, lambda function, *given: function(*given))
    owners, cursor = [], ""
    while True:
        page = asked.answer(QueryJobs(source="totals", projection=("Owner",), cursor=cursor), EVERYTHING)
        owners += [ClassAd.from_bytes(text).get_str("Owner") for text in page.ads]
        cursor = page.cursor
        if not cursor:
            break
    assert len(owners) == len(set(owners)) == 3002


def test_a_history_of_an_older_version_is_added_piece_by_piece(tmp_path: Path) -> None:
    older = Database(tmp_path / FILE_NAME, "queue", up_to=6)
    with older.transaction() as connection:
        connection.execute("INSERT INTO history_clusters VALUES (1, 1, ?)", (CLUSTER,))
        connection.executemany(
            "INSERT INTO history (cluster, proc, owner, version, ended_s, ad) VALUES (1, ?, 'ann', 1, ?, ?)",
            [(proc, NOON_S, ended(1, "ann", NOON_S).ad) for proc in range(25)])
    older.close()
    store = QueueStore(tmp_path)
    store.commit([ended(2, "ann", NOON_S)])
    with pytest.raises(ValueError, match="about 25 jobs are left"):
        store.history().totals()
    assert [store.sum_history(10), store.sum_history(10)] == [10, 10]
    store.close()
    store = QueueStore(tmp_path)
    store.open()
    assert [store.sum_history(10), store.sum_history(10)] == [5, 0]
    assert totals(store, "Owner") == [("ann", 26, 26.0, 52.0)]


def test_jobs_that_are_forgotten_stay_in_them_for_ten_years(store: QueueStore) -> None:
    store.trim_history(1)
    assert len(list(store.history().rows((), "", 0))) == 1
    assert totals(store, "Owner")[0] == ("ann", 3, 3.0, 6.0)
    forget_old(store.database.connection, NOON_S + KEPT_DAYS * DAY_S)
    assert totals(store, "Month") == [("2026-11", 4, 4.0, 14.0)]
    assert day_of(NOON_S) == 20261129


def test_a_job_that_is_not_taken_is_not_counted(store: QueueStore) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.commit([ended(7, "ann", NOON_S), ended(1, "ann", NOON_S)])
    assert totals(store, "Owner")[0] == ("ann", 3, 3.0, 6.0)
