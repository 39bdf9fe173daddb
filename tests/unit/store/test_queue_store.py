"""The job queue's database: what it keeps, what it refuses, and files of older versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.cores.checkpoint_seals import KEY_BYTES
from condor_actors.cores.schedd.queue_operations import (
    ArchiveJob,
    DropCluster,
    DropNotices,
    DropRun,
    InsertJobs,
    SaveClaim,
    SaveCluster,
    SaveCounter,
    SaveHost,
    SaveJob,
    SaveNotice,
    SaveRun,
)
from condor_actors.store.database import Database, StoreError, schema_steps
from condor_actors.store.queue_store import FILE_NAME, QueueStore

CLUSTER = SaveCluster(7, "ann", 2, 1, b'Owner = "ann"\n')
JOBS = InsertJobs(7, ((0, b"ProcId = 0\n"), (1, b"ProcId = 1\n")))


@pytest.fixture
def store(tmp_path: Path) -> QueueStore:
    return QueueStore(tmp_path)


def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    store = QueueStore(tmp_path)
    rows = (
        SaveCounter("next_cluster", 8), CLUSTER, JOBS, SaveJob(7, 1, b"ProcId = 1\nJobStatus = 2\n"),
        SaveClaim("c#1", "secret", "<s:1>", "<e:1>", "slot1@e", b"Cpus = 1\n", "ann@d", 600.0, "ann@d"),
        SaveRun("7.1#1", 7, 1, "ann", "c#1", 5.0), SaveHost("h", "ann", 12, "33"),
        SaveNotice("n", "ann", 7, 0, 1, 0, 4.0, b"UserLog = \"l\"\n"),
    )
    store.commit(rows)
    store.close()
    found = QueueStore(tmp_path).load()
    assert found.counters == {"next_cluster": 8}
    assert found.clusters == (CLUSTER,)
    assert found.jobs == (SaveJob(7, 0, b"ProcId = 0\n"), rows[3])
    assert (found.claims, found.runs, found.hosts, found.notices) == ((rows[4],), (rows[5],), (rows[6],), (rows[7],))


def test_the_key_is_made_once_and_for_nobody_else(tmp_path: Path) -> None:
    first, again = QueueStore(tmp_path).load(), QueueStore(tmp_path).load()
    (tmp_path / "other").mkdir()
    other = QueueStore(tmp_path / "other").load()
    assert len(first.checkpoint_key) == KEY_BYTES
    assert first.checkpoint_key == again.checkpoint_key != other.checkpoint_key
    assert str(first.checkpoint_key)[2:-1] not in repr(first)


def test_a_batch_is_all_or_nothing(store: QueueStore) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        store.commit((CLUSTER, JOBS, JOBS))
    assert store.load().clusters == ()


def test_a_job_moves_to_the_history_once(store: QueueStore) -> None:
    store.commit((CLUSTER, JOBS, SaveRun("7.0#1", 7, 0, "ann", "c", 1.0)))
    archived = ArchiveJob(7, 0, "ann", 1, 9.0, b"JobStatus = 4\n", CLUSTER.ad)
    store.commit((DropRun("7.0#1"), archived))
    assert [job.proc for job in store.load().jobs] == [1]
    assert store.load().runs == ()
    with pytest.raises(sqlite3.IntegrityError):
        store.commit((archived,))
    (row,) = store.history().rows((), "", 0)
    assert (row.cluster, row.proc, row.cluster_ad + row.ad) == (7, 0, CLUSTER.ad + b"JobStatus = 4\n")


def test_the_history_by_ids_owner_and_place(store: QueueStore) -> None:
    for cluster, owner in ((1, "ann"), (2, "bob")):
        store.commit((SaveCluster(cluster, owner, 2, 1, b""), InsertJobs(cluster, ((0, b""), (1, b"")))))
        store.commit([ArchiveJob(cluster, proc, owner, 1, 1.0, b"", b"") for proc in (0, 1)] + [DropCluster(cluster)])
    reader = store.history()

    def names(*question: object) -> list[tuple[int, int]]:
        return [(row.cluster, row.proc) for row in reader.rows(*question)]  # type: ignore[arg-type]

    assert names((), "", 0) == [(2, 1), (2, 0), (1, 1), (1, 0)]
    assert names(((2, -1), (1, 0)), "", 0) == [(2, 1), (2, 0), (1, 0)]
    assert names((), "ann", 0) == [(1, 1), (1, 0)]
    assert names((), "", 3) == [(1, 1), (1, 0)]
    reader.close()
    assert store.trim_history(1, most=2) == 2
    clusters = "SELECT cluster FROM history_clusters"
    assert store.database.connection.execute(clusters).fetchall() == [(2,)]
    assert store.trim_history(1, most=2) == 1
    assert store.trim_history(1, most=2) == 0
    assert store.database.connection.execute(clusters).fetchall() == [(2,)]
    assert [row.entry for row in store.history().rows((), "", 0)] == [4]


def test_what_was_committed_is_on_the_disk(store: QueueStore) -> None:
    """WAL with FULL: SQLite syncs the log at each commit; with NORMAL a power cut takes back what was promised."""
    full = 2
    run = store.database.connection.execute
    assert run("PRAGMA synchronous").fetchone() == (full,)
    assert run("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_disk_that_is_full_is_no_fault_of_the_schedd(store: QueueStore) -> None:
    store.commit((CLUSTER,))
    run = store.database.connection.execute
    (pages,) = run("PRAGMA page_count").fetchone()
    run(f"PRAGMA max_page_count = {pages}")
    large = InsertJobs(7, tuple((proc, bytes(4000)) for proc in range(100)))
    with pytest.raises(StoreUnavailable, match="full"):
        store.commit((large,))
    assert store.load().jobs == ()
    run("PRAGMA max_page_count = 1000000")
    store.commit((large,))
    assert len(store.load().jobs) == 100


@pytest.mark.parametrize(("ids", "owner", "before", "count"), [
    (((7, 3),), "", 0, 1), (((7, -1),), "", 0, 10), (((7, 3), (9, -1), (999999, 0)), "", 0, 11),
    (((7, 3),), "ann", 0, 1), (((7, 3),), "bob", 0, 0), (((7, 3), (9, -1)), "ann", 3000, 11), ((), "rare", 0, 10),
    ((), "rare", 2000, 10), ((), "nobody", 0, 0), (((1 << 70, 0),), "", 0, 0),
])
def test_what_is_asked_of_the_history_is_found_without_looking_at_the_rest(
        store: QueueStore, ids: tuple[tuple[int, int], ...], owner: str, before: int, count: int) -> None:
    owners = {number: "rare" if number == 100 else "ann" for number in range(1, 401)}
    store.commit([ArchiveJob(number, proc, owners[number], 1, float(number), b"ProcId = 1\n", b"Cmd = 1\n")
                  for number in owners for proc in range(10)])
    reader = store.history()
    steps: list[None] = []
    reader._connection.set_progress_handler(lambda: steps.append(None), 1)
    assert len(list(reader.rows(ids, owner, before))) == count
    assert len(steps) < 1000, "4000 jobs take more than 20,000"
    reader.close()


def test_notices_are_dropped_when_confirmed(store: QueueStore) -> None:
    store.commit([SaveNotice(name, "ann", 1, 0, -1, 5, 1.0, b"") for name in ("a", "b", "c")])
    store.commit((DropNotices(("a", "c")),))
    assert [notice.notice_id for notice in store.load().notices] == ["b"]


@pytest.mark.parametrize("version", range(1, len(schema_steps("queue"))))
def test_a_file_of_an_older_version_is_upgraded(tmp_path: Path, version: int) -> None:
    old = Database(tmp_path / FILE_NAME, "queue", up_to=version)
    assert old.version == version
    old.connection.execute("INSERT INTO clusters VALUES (3, 'ann', 1, 1, x'00')")
    old.connection.execute("INSERT INTO jobs VALUES (3, 0, x'01')")
    old.close()
    store = QueueStore(tmp_path)
    assert store.database.version == len(schema_steps("queue"))
    assert store.load().jobs == (SaveJob(3, 0, b"\x01"),)
    store.commit((SaveNotice("n", "ann", 3, 0, -1, 5, 1.0, b""),))


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    database = Database(tmp_path / FILE_NAME, "queue")
    database.connection.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StoreError, match="newer version"):
        QueueStore(tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database, and long enough to be told from an empty one" * 20)
    with pytest.raises(StoreError, match=FILE_NAME):
        QueueStore(tmp_path)


def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite"
    path.touch(0o644)
    database = Database(path, "queue")
    with database.transaction():
        pass
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    database.close()
    assert set(modes.values()) == {0o600}, modes
