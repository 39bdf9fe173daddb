"""Questions of a long history: ``python benchmarks/history.py [--jobs 300000] [--folder DIR]``.

A queue's file is filled with jobs that have ended, a hundred in a cluster, each with some 110 attributes and a tenth
of a percent of them a rare user's.  Then the questions of ``condor_history`` are answered as the schedd's worker does
it, page after page, each with a connection of its own.  Beyond the first jobs they are copies of these, days later, and
so are their columns: what making columns costs is measured with the first.  Seconds are of the processor, and beside
them those that passed.  Conditions that begin with ``eval`` have every ad read as a whole, as all conditions once had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

import msgpack
import zstandard
from twisted.internet.defer import succeed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.messages.queue import QueryJobs
from condor_actors.store import history_totals
from condor_actors.store.column_file import END
from condor_actors.store.history_columns import FOLDER, PIECE_JOBS, HistoryColumns, make_missing, path_of
from condor_actors.store.queue_store import QueueStore

OF_CLUSTER = 100
MADE = 12 * PIECE_JOBS
BEGAN_S = 1_700_000_000
SHARED = "".join(f'Shared{number} = "what all jobs of the cluster have, {number}"\n' for number in range(60)).encode()
FAILED = "ExitCode != 0"
SUMS = ("Owner", "JobStatus", "RemoteUserCpu", "RemoteWallClockTime")


def job(cluster: int, proc: int, serial: int) -> ArchiveJob:
    """A job that has ended; every 97th failed."""
    lines = [f"ClusterId = {cluster}", f"ProcId = {proc}", "JobStatus = 4", f"ExitCode = {int(serial % 97 == 0)}",
             f"CompletionDate = {BEGAN_S + serial}", f"RemoteWallClockTime = {serial % 1000}.5",
             f"RemoteUserCpu = {serial % 900}.25", f'ProjectName = "project{serial * 7 % 31}"',
             f"RequestMemory = {1 << serial % 14}", f'MyStep = "step {serial // 3 % 12}"',
             f'RemoteHost = "slot{serial % 20}@m{serial % 100}"',
             *(f"Own{number} = {serial + number}" for number in range(40)), ""]
    owner = "rare" if cluster % 1000 == 7 else f"user{cluster % 20}"
    return ArchiveJob(cluster, proc, owner, 1, float(BEGAN_S + serial), "\n".join(lines).encode(),
                      f'Owner = "{owner}"\n'.encode() + SHARED)


def fill(store: QueueStore, jobs: int) -> None:
    """So many ended jobs: the first ones as a schedd writes them, the others as copies of them, days later."""
    made = min(jobs, MADE)
    for first in range(0, made, 20_000):
        store.commit([job(1 + serial // OF_CLUSTER, serial % OF_CLUSTER, serial)
                      for serial in range(first, min(made, first + 20_000))])
    days = list(history_totals.days(store.database.connection))
    for copy in range(1, -(-jobs // made)):
        with store.database.transaction() as connection:
            clusters = copy * -(-made // OF_CLUSTER)
            connection.execute("INSERT INTO history_clusters SELECT cluster + ?1, version, ad FROM history_clusters"
                               " WHERE cluster <= ?2", (clusters, -(-made // OF_CLUSTER)))
            connection.execute(
                "INSERT INTO history (cluster, proc, owner, version, ended_s, ad) SELECT cluster + ?1, proc, owner,"
                " version, ended_s + ?2, ad FROM history WHERE entry <= ?3", (clusters, 86_400.0 * copy, made))
            connection.executemany("INSERT INTO history_totals VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
                                   " SET jobs = jobs + excluded.jobs", [
                (history_totals.day_of(BEGAN_S + 86_400.0 * copy), *day[1:]) for day in days])


def copied_columns(store: QueueStore, folder: Path, jobs: int) -> None:
    """Files for the pieces that are copies, made of those of the first ones: what differs is when jobs ended."""
    of_copy = MADE // PIECE_JOBS
    for number in range(of_copy, jobs // PIECE_JOBS):
        copy, source = divmod(number, of_copy)
        data = path_of(folder, source).read_bytes()
        at, length, _, magic = END.unpack(data[-END.size:])
        index = msgpack.unpackb(zstandard.decompress(data[at:at + length]))
        count, (start, size, _), codes = index["columns"]["#when"]
        whens = zstandard.decompress(data[start:start + size]).split(b"\n")
        later = zstandard.compress(b"\n".join(b"%d" % (int(when) + 96 * copy) for when in whens))
        index["columns"]["#when"] = count, (at, len(later), zlib.crc32(later)), codes
        (row,) = store.history().piece((number + 1) * PIECE_JOBS, (number + 1) * PIECE_JOBS)
        index["facts"]["last"] = row.cluster, row.proc, row.ended_s
        packed = zstandard.compress(msgpack.packb(index))
        path_of(folder, number).write_bytes(b"".join((
            data[:at], later, packed, END.pack(at + len(later), len(packed), zlib.crc32(packed), magic))))


def answered_at_once(function: Any, *arguments: Any) -> Any:
    """What a worker thread does, here."""
    return succeed(function(*arguments))


def ask(store: QueueStore, **question: Any) -> int:
    """All pages of an answer; how many ads, or groups."""
    sight = JobSight(frozenset(), lambda owner: True)
    columns = HistoryColumns(store.database.path.parent / FOLDER)
    cursor, count, groups = "", 0, set()
    while True:
        page = HistoryQuestions(store.history, answered_at_once, columns=columns).answer(
            QueryJobs(cursor=cursor, **{"source": "history", **question}), sight).result
        if page.looked:
            groups |= {text.partition(b"\nJobs = ")[0] for text in page.ads}
            count = len(groups)
        else:
            count += len(page.ads)
        cursor = page.cursor
        if not cursor:
            return count


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=300_000)
    parser.add_argument("--questions", type=int, default=None, help="how many of them are asked; all by default")
    parser.add_argument("--percent", type=int, default=25, help="HISTORY_COLUMNS_PERCENT")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        store = QueueStore(Path(name))
        fill(store, given.jobs)
        size = sum(path.stat().st_size for path in Path(name).iterdir() if path.is_file()) / 1e6
        print(f"{given.jobs:,} jobs, {size:,.0f} MB")
        began, began_wall = time.process_time(), time.perf_counter()
        folder = Path(name) / FOLDER
        really = make_missing(Path(name), given.percent, most=MADE // PIECE_JOBS, oldest_first=True)
        took_s, took_wall_s = time.process_time() - began, time.perf_counter() - began_wall
        copied_columns(store, folder, given.jobs)
        made = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        each = 1e6 / max(really * PIECE_JOBS, 1)
        print(f"columns: {made:,.0f} MB; made of {really * PIECE_JOBS:,} jobs in {took_s * each:,.0f} µs of the "
              f"processor each, {took_wall_s * each:,.0f} µs passed", flush=True)
        middle = given.jobs // OF_CLUSTER // 2
        questions = (
            ("one job", {"ids": ((middle, 5),)}),
            ("three jobs and a cluster", {"ids": ((middle, 5), (2, 0), (3, 99), (middle + 1, -1))}),
            ("jobs and hours of each user", {"source": "totals", "projection": ("Owner",)}),
            ("… by month", {"source": "totals", "projection": ("Month", "Owner")}),
            ("… by project", {"source": "totals", "projection": ("ProjectName",)}),
            ("… by memory and outcome", {"source": "totals", "projection": ("RequestMemory", "Outcome")}),
            ("… by a user's own attribute, of some", {
                "source": "totals", "projection": ("MyStep",),
                "constraint": 'RequestMemory > 4096 && ProjectName == "project3"'}),
            ("… by host, of those of a month", {
                "source": "totals", "projection": ("RemoteHost",),
                "constraint": f"CompletionDate >= {BEGAN_S + 864_000} && ExitCode != 0"}),
            ("… by project, with whole ads", {
                "source": "totals", "projection": ("ProjectName",), "constraint": 'eval("true")'}),
            ("a rare user's last ten", {"owner": "rare", "limit": 10}),
            ("all failed ones, three attributes",
             {"constraint": FAILED, "projection": ("ClusterId", "ProcId", "RemoteHost")}),
            ("… with whole ads", {"constraint": f'eval("true") && {FAILED}',
                                  "projection": ("ClusterId", "ProcId", "RemoteHost")}),
            ("four attributes of all", {"projection": SUMS}),
            ("… with whole ads", {"constraint": 'eval("true")', "projection": SUMS}),
        )
        for what, question in questions[:given.questions]:
            began, began_wall = time.process_time(), time.perf_counter()
            count = ask(store, **question)
            print(f"{what:35} {count:9,} ads {time.process_time() - began:9.4f} s of the processor, "
                  f"{time.perf_counter() - began_wall:9.4f} s", flush=True)
        store.close()


if __name__ == "__main__":
    main()
