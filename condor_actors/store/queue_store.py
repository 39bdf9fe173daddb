"""The schedd's database: job queue, claims, runs, and history in one file, one transaction per reactor iteration.

Theory: the core says what rows are to be (:mod:`condor_actors.cores.schedd.queue_operations`); this module knows SQL
and nothing else.  Operations of one kind that follow each other go to SQLite in one ``executemany``.  Leaving the
queue and entering the history is one operation and so one transaction: a job is in one of the two, never in both or
neither.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import attrs

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.cores.schedd.queue_operations import (
    ENTERING,
    ArchiveJob,
    DropClaim,
    DropCluster,
    DropCounters,
    DropHost,
    DropItems,
    DropNotices,
    DropRun,
    InsertJobs,
    QueueOperation,
    QueueSnapshot,
    SaveClaim,
    SaveCluster,
    SaveCounter,
    SaveFactory,
    SaveHost,
    SaveItems,
    SaveJob,
    SaveNotice,
    SaveRun,
)
from condor_actors.numerals import INT64
from condor_actors.store import history_totals
from condor_actors.store.database import Store, disk_fails, takes_nothing
from condor_actors.store.history_totals import DayTotal

FILE_NAME = "job_queue.sqlite"
TRIMMED_AT_ONCE = 1_000
"""Jobs of the history that are forgotten in one transaction: it has to be a short one."""

_IS_ENTERING = f"name GLOB '{ENTERING}*'"
_UNFINISHED = f"SELECT value FROM counters WHERE {_IS_ENTERING}"
"""Clusters whose submission ended before all its rows were stored."""

MOST_IDS = 900
"""Of jobs in one question: what the database takes in one condition."""


@attrs.frozen
class HistoryRow:
    """A job that has left the queue; its whole ad is ``cluster_ad + ad`` (what comes later counts)."""

    entry: int
    cluster: int
    proc: int
    owner: str
    ended_s: float
    cluster_ad: bytes
    ad: bytes


class HistoryReader(Protocol):
    """A second, read-only view of the history, for a worker thread."""

    def rows(self, ids: Sequence[tuple[int, int]], owner: str, before: int) -> Iterator[HistoryRow]:
        """Newest first, those with ``entry < before`` (0: all), of these ids (proc -1: a cluster; empty: all)."""

    def totals(self) -> Sequence[DayTotal]:
        """What the jobs that have ended came to.

        Raises:
            ValueError: that is not known yet, or not of these records.
        """

    def close(self) -> None:
        """Close it."""


class LongHistory(HistoryReader, Protocol):
    """The history of jobs, whose entries are numbered one after another."""

    def span(self) -> tuple[int, int]:
        """The first and the last entry, as of now and until the end; (1, 0): there is none."""

    def piece(self, first: int, last: int) -> Iterator[HistoryRow]:
        """Entries from one to another, newest first."""


class QueueStore(Store):
    """The real one; ``commit`` is what :class:`~condor_actors.actors.ActorSystem` calls.

    Args:
        directory: where the file is, normally ``$(SPOOL)``.
        patient: see :class:`Store`.

    Raises:
        StoreError: the file cannot be used.
    """

    schema = "queue"

    def __init__(self, directory: Path, *, patient: bool = False) -> None:
        super().__init__(directory / FILE_NAME, patient=patient)

    def commit(self, operations: Sequence[QueueOperation]) -> None:
        """Write a batch, all or nothing; on the disk when it returns.

        Raises:
            StoreUnavailable: nothing of it was written (a full disk, say).
        """
        self.open()
        with self.database.transaction() as connection:
            for kind, group in groupby(operations, type):
                _WRITERS[kind](connection, tuple(group))

    def load(self) -> QueueSnapshot:
        """Everything that the schedd needs to go on; nothing while the file cannot be read (see ``problem``)."""
        if self.problem:
            return QueueSnapshot()
        try:
            return self._load()
        except sqlite3.DatabaseError as error:
            if not (takes_nothing(error) or disk_fails(self._path)):  # a disk that fails makes SQLite speak of damage
                raise
            self.problem = f"{self._path}: cannot read the queue: {error}"
            self.database.close()
            return QueueSnapshot()

    def _load(self) -> QueueSnapshot:
        run = self.database.connection.execute
        if run("SELECT 1 FROM items WHERE cluster NOT IN (SELECT cluster FROM factories) LIMIT 1").fetchone():
            with suppress(StoreUnavailable), self.database.transaction() as connection:
                connection.execute("DELETE FROM items WHERE cluster NOT IN (SELECT cluster FROM factories)")
        if run(f"{_UNFINISHED} LIMIT 1").fetchone():
            with suppress(StoreUnavailable), self.database.transaction() as connection:
                for table in ("jobs", "notices"):
                    connection.execute(f"DELETE FROM {table} WHERE cluster IN ({_UNFINISHED})")
                connection.execute(f"DELETE FROM counters WHERE {_IS_ENTERING}")
        finished = f"cluster NOT IN ({_UNFINISHED})"  # also where they could not be deleted
        return QueueSnapshot(
            counters=dict(run(f"SELECT name, value FROM counters WHERE NOT {_IS_ENTERING}")),
            clusters=tuple(SaveCluster(*row) for row in run(
                "SELECT cluster, owner, total, version, ad FROM clusters ORDER BY cluster")),
            jobs=tuple(SaveJob(*row) for row in run(
                f"SELECT cluster, proc, ad FROM jobs WHERE {finished} ORDER BY cluster, proc")),
            claims=tuple(SaveClaim(*row) for row in run(
                "SELECT claim_id, secret, startd, starter_node, slot_name, slot_ad, submitter, lease_s, owner"
                " FROM claims")),
            runs=tuple(SaveRun(*row) for row in run(
                "SELECT run_id, cluster, proc, owner, claim_id, began_s FROM runs")),
            hosts=tuple(SaveHost(*row) for row in run("SELECT host_id, owner, pid, birth FROM hosts")),
            notices=tuple(SaveNotice(*row) for row in run(
                "SELECT notice_id, owner, cluster, proc, last_proc, event, when_s, ad FROM notices"
                f" WHERE {finished} ORDER BY when_s, notice_id")),
            factories=tuple(SaveFactory(*row) for row in run(
                "SELECT cluster, next_proc, mode, reason, edited FROM factories ORDER BY cluster")),
            checkpoint_key=run("SELECT key FROM keys WHERE name = 'checkpoints'").fetchone()[0],
        )

    def items(self, cluster: int, proc: int) -> SaveItems | None:
        """What a job, and those behind it, are to be made of; None: there is nothing.

        Raises:
            StoreUnavailable: it cannot be read now.
        """
        self.open()
        try:
            row = self.database.connection.execute(
                "SELECT cluster, first, count, is_template, data FROM items WHERE cluster = ? AND first <= ?"
                " ORDER BY first DESC LIMIT 1", (cluster, proc)).fetchone()
        except sqlite3.DatabaseError as error:
            raise StoreUnavailable(f"{self._path}: cannot read items: {error}") from error
        if row is None or proc >= row[1] + row[2]:
            return None
        return SaveItems(row[0], row[1], row[2], bool(row[3]), row[4])

    def history(self) -> LongHistory:
        """A reader for another thread.

        Raises:
            StoreUnavailable: the file is not open.
        """
        if self.problem:
            raise StoreUnavailable(self.problem)
        return _SqliteHistory(self.database.reader())

    def history_span(self) -> tuple[int, int]:
        """The first and the last entry of the history; (1, 0): there is none.

        Raises:
            StoreUnavailable: the file is not open.
        """
        if self.problem:
            raise StoreUnavailable(self.problem)
        return span_of_history(self.database.connection)

    def trim_history(self, keep: int, most: int = TRIMMED_AT_ONCE) -> int:
        """Forget the oldest of what is more than ``keep`` jobs of the history, at most ``most``; returns how many
        went."""
        self.open()
        with self.database.transaction() as connection:
            # Entries are numbered one after another and go from the old end only: no row has to be counted.
            newest = connection.execute("SELECT max(entry) FROM history").fetchone()[0] or 0
            old = connection.execute("SELECT entry, cluster FROM history WHERE entry <= ? ORDER BY entry LIMIT ?",
                                     (newest - max(keep, 1), most)).fetchall()
            connection.executemany("DELETE FROM history WHERE entry = ?", [(entry,) for entry, _ in old])
            connection.executemany(
                "DELETE FROM history_clusters WHERE cluster = ?1"
                " AND NOT EXISTS (SELECT 1 FROM history WHERE cluster = ?1)",
                [(cluster,) for cluster in {cluster for _, cluster in old}])
            if len(old) < most:
                history_totals.forget_old(connection, time.time())
            return len(old)

    def sum_history(self, most: int = TRIMMED_AT_ONCE) -> int:
        """Take jobs of an older version's history into its totals, at most ``most``; returns how many it were."""
        self.open()
        if not history_totals.left_to_sum(self.database.connection):
            return 0
        with self.database.transaction() as connection:
            return history_totals.sum_older(connection, most)


class _SqliteHistory:
    """See :class:`HistoryReader`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, ids: Sequence[tuple[int, int]], owner: str, before: int) -> Iterator[HistoryRow]:
        """As the protocol says."""
        wheres: list[str] = []
        values: list[int | str] = []
        no_index = "+" if ids else ""  # no index for these: what ids leave is less than an owner's jobs
        if before:
            wheres.append(f"{no_index}h.entry < ?")
            values.append(min(before, INT64))
        if owner:
            wheres.append(f"{no_index}h.owner = ?")
            values.append(owner)
        if ids:
            if len(ids) > MOST_IDS:
                raise ValueError(f"{len(ids)} jobs: a question of the history can name {MOST_IDS}; ask several, or by "
                                 "a constraint")
            either = []
            for cluster, proc in ids:
                if max(cluster, proc) > INT64 or cluster < 0:  # there are no such jobs
                    continue
                either.append("h.cluster = ?" if proc < 0 else "(h.cluster = ? AND h.proc = ?)")
                values += [cluster] if proc < 0 else [cluster, proc]
            wheres.append("(" + (" OR ".join(either) or "0") + ")")  # a constant beside them would hide the index
        where = "WHERE " + " AND ".join(wheres) if wheres else ""
        query = (
            "SELECT h.entry, h.cluster, h.proc, h.owner, h.ended_s, c.ad, h.ad FROM history h"
            f" JOIN history_clusters c ON c.cluster = h.cluster AND c.version = h.version {where}"
            " ORDER BY h.entry DESC"
        )
        for row in self._connection.execute(query, values):
            yield HistoryRow(*row)

    def span(self) -> tuple[int, int]:
        """As the protocol says."""
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN")
        return span_of_history(self._connection)

    def piece(self, first: int, last: int) -> Iterator[HistoryRow]:
        """As the protocol says."""
        return piece_of_history(self._connection, first, last)

    def totals(self) -> Sequence[DayTotal]:
        """As the protocol says."""
        left = history_totals.left_to_sum(self._connection)
        if left:
            raise ValueError(f"the totals of a history of an older version are being made: about {left} jobs are left; "
                             "ask again later")
        return tuple(history_totals.days(self._connection))

    def close(self) -> None:
        """Close it."""
        self._connection.close()


def span_of_history(connection: sqlite3.Connection) -> tuple[int, int]:
    """The first and the last entry of the history; (1, 0): there is none."""
    # one by one: SQLite finds each at its end, and both together by a look at all
    ends = [connection.execute(f"SELECT {which}(entry) FROM history").fetchone()[0] for which in ("min", "max")]
    return (ends[0], ends[1]) if ends[1] is not None else (1, 0)


def piece_of_history(connection: sqlite3.Connection, first: int, last: int) -> Iterator[HistoryRow]:
    """Entries of the history from one to another, newest first."""
    for row in connection.execute(
            "SELECT h.entry, h.cluster, h.proc, h.owner, h.ended_s, c.ad, h.ad FROM history h JOIN history_clusters c"
            " ON c.cluster = h.cluster AND c.version = h.version WHERE h.entry BETWEEN ? AND ?"
            " ORDER BY h.entry DESC", (first, min(last, INT64))):
        yield HistoryRow(*row)


_Writer = Callable[[sqlite3.Connection, Sequence[Any]], None]


def _many(sql: str, *fields: str) -> _Writer:
    """A writer that binds these fields of each operation to one statement."""

    def write(connection: sqlite3.Connection, operations: Sequence[Any]) -> None:
        connection.executemany(sql, [tuple(getattr(each, name) for name in fields) for each in operations])

    return write


def _insert_jobs(connection: sqlite3.Connection, operations: Sequence[InsertJobs]) -> None:
    for each in operations:
        cluster = each.cluster
        connection.executemany("INSERT INTO jobs (cluster, proc, ad) VALUES (?, ?, ?)",
                               [(cluster, proc, ad) for proc, ad in each.rows])


def _archive(connection: sqlite3.Connection, operations: Sequence[ArchiveJob]) -> None:
    versions = {(each.cluster, each.version): each.cluster_ad for each in operations}
    connection.executemany("INSERT OR IGNORE INTO history_clusters (cluster, version, ad) VALUES (?, ?, ?)",
                           [(cluster, version, ad) for (cluster, version), ad in versions.items()])
    connection.executemany(
        "INSERT INTO history (cluster, proc, owner, version, ended_s, ad) VALUES (?, ?, ?, ?, ?, ?)",
        [(each.cluster, each.proc, each.owner, each.version, each.ended_s, each.ad) for each in operations])
    history_totals.add(connection, [(each.owner, each.ended_s, each.cluster_ad, each.ad) for each in operations])
    connection.executemany("DELETE FROM jobs WHERE cluster = ? AND proc = ?",
                           [(each.cluster, each.proc) for each in operations])


def _drop_notices(connection: sqlite3.Connection, operations: Sequence[DropNotices]) -> None:
    connection.executemany("DELETE FROM notices WHERE notice_id = ?",
                           [(notice_id,) for each in operations for notice_id in each.notice_ids])


def _drop_cluster(connection: sqlite3.Connection, operations: Sequence[DropCluster]) -> None:
    for table in ("clusters", "factories", "items"):
        connection.executemany(f"DELETE FROM {table} WHERE cluster = ?", [(each.cluster,) for each in operations])


def _drop_counters(connection: sqlite3.Connection, operations: Sequence[DropCounters]) -> None:
    connection.executemany("DELETE FROM counters WHERE name = ?",
                           [(name,) for each in operations for name in each.names])


_WRITERS: dict[type, _Writer] = {
    SaveCounter: _many("INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)", "name", "value"),
    DropCounters: _drop_counters,
    SaveCluster: _many("INSERT OR REPLACE INTO clusters (cluster, owner, total, version, ad) VALUES (?, ?, ?, ?, ?)",
                       "cluster", "owner", "total", "version", "ad"),
    DropCluster: _drop_cluster,
    SaveFactory: _many("INSERT OR REPLACE INTO factories (cluster, next_proc, mode, reason, edited)"
                       " VALUES (?, ?, ?, ?, ?)", "cluster", "next_proc", "mode", "reason", "edited"),
    SaveItems: _many("INSERT OR REPLACE INTO items (cluster, first, count, is_template, data) VALUES (?, ?, ?, ?, ?)",
                     "cluster", "first", "count", "is_template", "data"),
    DropItems: _many("DELETE FROM items WHERE cluster = ?", "cluster"),
    InsertJobs: _insert_jobs,
    SaveJob: _many("UPDATE jobs SET ad = ? WHERE cluster = ? AND proc = ?", "ad", "cluster", "proc"),
    ArchiveJob: _archive,
    SaveClaim: _many(
        "INSERT OR REPLACE INTO claims (claim_id, secret, startd, starter_node, slot_name, slot_ad, submitter, lease_s,"
        " owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "claim_id", "secret", "startd", "starter_node", "slot_name", "slot_ad", "submitter", "lease_s", "owner"),
    DropClaim: _many("DELETE FROM claims WHERE claim_id = ?", "claim_id"),
    SaveRun: _many("INSERT OR REPLACE INTO runs (run_id, cluster, proc, owner, claim_id, began_s)"
                   " VALUES (?, ?, ?, ?, ?, ?)", "run_id", "cluster", "proc", "owner", "claim_id", "began_s"),
    DropRun: _many("DELETE FROM runs WHERE run_id = ?", "run_id"),
    SaveHost: _many("INSERT OR REPLACE INTO hosts (host_id, owner, pid, birth) VALUES (?, ?, ?, ?)",
                    "host_id", "owner", "pid", "birth"),
    DropHost: _many("DELETE FROM hosts WHERE host_id = ?", "host_id"),
    SaveNotice: _many("INSERT OR REPLACE INTO notices (notice_id, owner, cluster, proc, last_proc, event, when_s, ad)"
                      " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                      "notice_id", "owner", "cluster", "proc", "last_proc", "event", "when_s", "ad"),
    DropNotices: _drop_notices,
}
