"""The job queue of a simulated schedd: the production's database, on a simulated disk.

Theory: the SQL that runs in production runs here, on a database in memory: it is what processes see.  Beside it stands
a model in plain tables, as processes see it and as it is on the platter.  After a machine has lost its power the
database is made again from the platter; whenever a schedd reads the database, it has to say what the model says.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import attrs

from condor_actors.cores.schedd import queue_operations as q
from condor_actors.simulation.world.disk import Committer, Kept
from condor_actors.store.database import Database, schema_steps
from condor_actors.store.queue_store import TRIMMED_AT_ONCE, LongHistory, QueueStore

__all__ = ["QueueFile", "SimulatedQueueStore", "Tables"]

_steps = cache(schema_steps)
_numbers = count(1)


class MemoryDatabase(Database):
    """The production's schema, in memory; what is durable is the simulated disk's affair."""

    def __init__(self, schema: str) -> None:
        self.path = Path(f"memory-{next(_numbers)}")
        self.connection = self.reader()
        self.connection.execute("PRAGMA foreign_keys = ON")
        self._migrate(_steps(schema), newest=len(_steps(schema)))

    def reader(self) -> sqlite3.Connection:
        """Another connection."""
        return sqlite3.connect(f"file:{self.path}?mode=memory&cache=shared", uri=True, isolation_level=None,
                               cached_statements=256)


class MemoryQueueStore(QueueStore):
    """The production's store on such a database."""

    def __init__(self) -> None:
        self.database = MemoryDatabase("queue")

CHECKPOINT_KEY = bytes(range(32))
"""A real database makes one at random, and no run would be the same as the last."""


@attrs.define
class Tables:
    """The tables of a schedd."""

    counters: dict[str, int] = attrs.field(factory=dict)
    clusters: dict[int, q.SaveCluster] = attrs.field(factory=dict)
    jobs: dict[tuple[int, int], bytes] = attrs.field(factory=dict)
    claims: dict[str, q.SaveClaim] = attrs.field(factory=dict)
    runs: dict[str, q.SaveRun] = attrs.field(factory=dict)
    hosts: dict[str, q.SaveHost] = attrs.field(factory=dict)
    notices: dict[str, q.SaveNotice] = attrs.field(factory=dict)
    history: list[q.ArchiveJob] = attrs.field(factory=list)
    factories: dict[int, q.SaveFactory] = attrs.field(factory=dict)
    items: dict[tuple[int, int], q.SaveItems] = attrs.field(factory=dict)

    def operations(self) -> Iterator[q.QueueOperation]:
        """What makes the same rows anew."""
        yield from (q.SaveCounter(name, value) for name, value in self.counters.items())
        yield from self.clusters.values()
        yield from (q.InsertJobs(cluster, ((proc, ad),)) for (cluster, proc), ad in self.jobs.items())
        for rows in (self.claims, self.runs, self.hosts, self.notices, self.factories, self.items):
            yield from rows.values()
        yield from self.history

    def snapshot(self) -> q.QueueSnapshot:
        """As a store would give it: without what belongs to a submission that was never whole."""
        unfinished = {value for name, value in self.counters.items() if name.startswith(q.ENTERING)}
        return q.QueueSnapshot(
            counters={name: value for name, value in self.counters.items() if not name.startswith(q.ENTERING)},
            clusters=tuple(cluster for _, cluster in sorted(self.clusters.items())),
            jobs=tuple(q.SaveJob(cluster, proc, ad) for (cluster, proc), ad in sorted(self.jobs.items())
                       if cluster not in unfinished),
            claims=tuple(row for _, row in sorted(self.claims.items())),
            runs=tuple(row for _, row in sorted(self.runs.items())),
            hosts=tuple(row for _, row in sorted(self.hosts.items())),
            notices=tuple(sorted((each for each in self.notices.values() if each.cluster not in unfinished),
                                 key=lambda each: (each.when_s, each.notice_id))),
            factories=tuple(row for _, row in sorted(self.factories.items())),
            checkpoint_key=CHECKPOINT_KEY)

    def copy(self) -> Tables:
        """Another one with the same rows."""
        return Tables(*(type(value)(value) for value in attrs.astuple(self, recurse=False)))

    def apply(self, operation: Any) -> None:
        """Carry out one operation."""
        _APPLY[type(operation)](self, operation)


def _insert(tables: Tables, each: q.InsertJobs) -> None:
    for proc, ad in each.rows:
        tables.jobs[each.cluster, proc] = ad


def _save_job(tables: Tables, each: q.SaveJob) -> None:
    if (each.cluster, each.proc) in tables.jobs:
        tables.jobs[each.cluster, each.proc] = each.ad


def _archive(tables: Tables, each: q.ArchiveJob) -> None:
    tables.history.append(each)
    tables.jobs.pop((each.cluster, each.proc), None)


def _drop_notices(tables: Tables, each: q.DropNotices) -> None:
    for notice_id in each.notice_ids:
        tables.notices.pop(notice_id, None)


def _drop_cluster(tables: Tables, each: q.DropCluster) -> None:
    tables.clusters.pop(each.cluster, None)
    tables.factories.pop(each.cluster, None)
    _drop_items(tables, each)


def _drop_items(tables: Tables, each: q.DropCluster | q.DropItems) -> None:
    for key in [key for key in tables.items if key[0] == each.cluster]:
        del tables.items[key]


def _drop_counters(tables: Tables, each: q.DropCounters) -> None:
    for name in each.names:
        tables.counters.pop(name, None)


_APPLY: dict[type, Callable[[Tables, Any], Any]] = {
    q.SaveCounter: lambda t, o: t.counters.__setitem__(o.name, o.value),
    q.DropCounters: _drop_counters,
    q.SaveCluster: lambda t, o: t.clusters.__setitem__(o.cluster, o),
    q.DropCluster: _drop_cluster, q.DropItems: _drop_items,
    q.SaveFactory: lambda t, o: t.factories.__setitem__(o.cluster, o),
    q.SaveItems: lambda t, o: t.items.__setitem__((o.cluster, o.first), o),
    q.InsertJobs: _insert, q.SaveJob: _save_job, q.ArchiveJob: _archive,
    q.SaveClaim: lambda t, o: t.claims.__setitem__(o.claim_id, o),
    q.DropClaim: lambda t, o: t.claims.pop(o.claim_id, None),
    q.SaveRun: lambda t, o: t.runs.__setitem__(o.run_id, o),
    q.DropRun: lambda t, o: t.runs.pop(o.run_id, None),
    q.SaveHost: lambda t, o: t.hosts.__setitem__(o.host_id, o),
    q.DropHost: lambda t, o: t.hosts.pop(o.host_id, None),
    q.SaveNotice: lambda t, o: t.notices.__setitem__(o.notice_id, o),
    q.DropNotices: _drop_notices,
}


class QueueFile(Kept):
    """A job queue on a disk; ``stored`` hears of each row that is on the platter."""

    def __init__(self, stored: Callable[[q.QueueOperation], None]) -> None:
        super().__init__()
        self._stored = stored
        self.database = MemoryQueueStore()
        self.seen = Tables()
        self.platter = Tables()

    def write(self, operations: Sequence[Any]) -> None:
        """One transaction."""
        self.database.commit(operations)
        super().write(operations)

    def apply(self, operation: Any) -> None:
        """A row, as processes see it."""
        self.seen.apply(operation)

    def settle(self, operation: Any) -> None:
        """A row, on the platter."""
        self.platter.apply(operation)
        self._stored(operation)

    def revert(self) -> None:
        """Back to the platter."""
        if self.unsynced:
            self.unsynced = []
            self.seen = self.platter.copy()
            self.database = MemoryQueueStore()
            self.database.commit(tuple(self.platter.operations()))


class SimulatedQueueStore(Committer):
    """As :class:`~condor_actors.store.queue_store.QueueStore`."""

    problem = ""
    _kept: QueueFile

    def open(self) -> None:
        """It always is."""

    def load(self) -> q.QueueSnapshot:
        """Everything that the schedd needs to go on."""
        found = attrs.evolve(self._kept.database.load(), checkpoint_key=CHECKPOINT_KEY)
        if found != self._kept.seen.snapshot():
            machine = self._process.machine
            machine.pool.violate(f"{machine.name}: the database of the queue has other rows than were stored")
        return found

    def items(self, cluster: int, proc: int) -> q.SaveItems | None:
        """As the production's."""
        return self._kept.database.items(cluster, proc)

    def history(self) -> LongHistory:
        """A reader."""
        return self._kept.database.history()

    def history_span(self) -> tuple[int, int]:
        """The first and the last entry of the history; (1, 0): there is none."""
        return self._kept.database.history_span()

    def sum_history(self, most: int = TRIMMED_AT_ONCE) -> int:
        """Take jobs of an older version's history into its totals."""
        return self._kept.database.sum_history(most)

    def trim_history(self, keep: int, most: int = TRIMMED_AT_ONCE) -> int:
        """Forget the oldest of what is more than so many."""
        return self._kept.database.trim_history(keep, most)
