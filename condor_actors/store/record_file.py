"""A file of ads with a banner behind each, appended beside the reactor: records of runs, of transfers, of daemons.

Theory: what is recorded has happened, and nothing waits for its record.  Records go to a worker, which appends all
that wait with one write and one ``fdatasync``, the first at once and those that follow together a moment later; one
that a crash catches before is missing, and none is there twice.  A process that ends in order writes what waits.
The file is put aside at a size and the oldest are removed, so what is kept is bounded; what waits for a disk that is
full or gone is bounded as well.

The banner is the one that HTCondor's programs read::

    *** EPOCH ClusterId=1 ProcId=0 RunInstanceId=0 Owner="alice" CurrentTime=1700000000

The files have all of an ad: only the account that writes them reads them, and who answers questions shows of them what
the asker may see.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.classads import ClassAd, quote
from condor_actors.durable import append_whole, open_beside
from condor_actors.store.history_totals import DayTotal
from condor_actors.store.queue_store import HistoryRow

__all__ = ["AdRecord", "RecordFile", "RecordFileSettings", "RecordReader"]

MOST_WAITING = 20_000
"""Records that wait for the disk; more are not kept, and the log says so."""
TOGETHER_S = 0.2
"""How long the records behind one that was just written wait for one another."""
OFFSET_BITS = 40
BANNER = re.compile(
    rb'^\*\*\* ([A-Z]+) ClusterId=(\d+) ProcId=(\d+) RunInstanceId=(\d+) Owner="((?:[^"\\\n]|\\.)*)" '
    rb"CurrentTime=(\d+)\n", re.MULTILINE)
PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9#@._-]{0,199}")

Defer = Callable[..., Deferred[Any]]


@attrs.frozen(kw_only=True)
class RecordFileSettings:
    """The file (empty: none), its largest size in bytes, and how many that were put aside are kept.

    ``folder``: gets the records of ``kind`` as well, a file ``job.runs.CLUSTER.PROC.ads`` for each job; empty: none.
    ``last_only``: its files are ``history.GLOBALJOBID`` instead, each with the last ad of its job alone.
    """

    path: str
    most_bytes: int
    rotations: int
    folder: str = ""
    kind: str = ""
    last_only: bool = False


NOWHERE = RecordFileSettings(path="", most_bytes=0, rotations=0)


@attrs.frozen(kw_only=True)
class AdRecord:
    """One record.

    Attributes:
        kind: a word in capitals: ``EPOCH``, ``INPUT``, ``JOB`` …
        cluster, proc: the job's; 0 where it is about none.
        instance: which of its runs, from 0.
        owner: whose job it is.
        when_s: now, seconds since 1970.
        ad: its text, one line for each attribute or not; the first part counts less than the last.
        is_written: the text is as an ad is written, so it goes into the file as it is.
    """

    kind: str
    cluster: int = 0
    proc: int = 0
    instance: int = 0
    owner: str = ""
    when_s: float
    ad: bytes
    is_written: bool = False

    def to_bytes(self) -> bytes:
        """Ad and banner, as they stand in the file: a line for each attribute, so that no value is a banner."""
        ad = self.ad if self.is_written else ClassAd.from_bytes(self.ad).to_bytes()
        return ad + (f"*** {self.kind} ClusterId={self.cluster} ProcId={self.proc} RunInstanceId={self.instance} "
                     f"Owner={quote(self.owner)} CurrentTime={int(self.when_s)}\n").encode("utf-8", "surrogateescape")


class RecordFile:
    """Writes the records.

    Args:
        settings: may be changed at any time.
        what: the records in words, for the log.
        log: of the daemon.
        defer: runs a function beside the reactor; tests run it at once.
        clock: for :data:`TOGETHER_S`; None: no record waits for another.
    """

    def __init__(self, settings: RecordFileSettings | None = None, *, what: str, log: Logger,
                 defer: Defer = deferToThread, clock: IReactorTime | None = None) -> None:
        self.settings = settings or NOWHERE
        self._what = what
        self._defer = defer
        self._clock = clock
        self._rests = False
        self._waiting: list[AdRecord] = []
        self._writing = False
        self._missed = 0
        self._sick = False
        self._log = log

    def record(self, record: AdRecord) -> None:
        """Append a record soon; nothing where there is no file for it."""
        if not (self.settings.path or self.settings.folder):
            return
        if len(self._waiting) >= MOST_WAITING:
            self._missed += 1
            return
        self._waiting.append(record)
        self._go_on()

    def _go_on(self) -> None:
        if self._writing or self._rests or not self._waiting:
            return
        batch, self._waiting, self._writing = self._waiting, [], True
        self._defer(_append, self.settings, batch).addBoth(self._written)

    def _written(self, result: Any) -> None:
        self._writing = False
        missed, self._missed = self._missed, 0
        if missed:
            self._log.error("{count} {what} are missing in {path}: it is written too slowly", count=missed,
                            what=self._what, path=self.settings.path)
        if isinstance(result, Failure):
            if not self._sick:
                self._log.error("{path} cannot be written, {what} are lost: {why}",
                                path=self.settings.path or self.settings.folder, what=self._what,
                                why=result.getErrorMessage())
            self._sick = True
        else:
            self._sick = False
        if self._clock is not None:
            self._rests = True
            self._clock.callLater(TOGETHER_S, self._rested)
        else:
            self._go_on()

    def _rested(self) -> None:
        self._rests = False
        self._go_on()

    def write_waiting(self) -> None:
        """Write what waits, here and now: the process ends in order, or a question is about the file."""
        batch, self._waiting = self._waiting, []
        if batch:
            try:
                _append(self.settings, batch)
            except OSError as error:
                self._log.error("{path} cannot be written, {what} are lost: {why}", what=self._what,
                                path=self.settings.path or self.settings.folder, why=error)


def _append(settings: RecordFileSettings, batch: Sequence[AdRecord]) -> None:
    """Write records; in a worker.

    Raises:
        OSError: they cannot be written, and nothing of them is in the file that the error names.
    """
    of_jobs = [record for record in batch if settings.folder and record.kind == settings.kind]
    try:
        if settings.path:
            _append_to(Path(settings.path), settings, batch)
    finally:
        if settings.last_only:
            for name, last in {_name_of(record): record for record in of_jobs}.items():
                _replace(Path(settings.folder) / name, ClassAd.from_bytes(last.ad).to_bytes())
        else:
            by_job: dict[str, list[AdRecord]] = {}
            for record in of_jobs:
                by_job.setdefault(f"job.runs.{record.cluster}.{record.proc}.ads", []).append(record)
            for name, records in by_job.items():
                _write(Path(settings.folder) / name, b"".join(record.to_bytes() for record in records))


def _name_of(record: AdRecord) -> str:
    """The file of a job's last ad; an id that is no plain name is left out: it comes from a schedd, maybe not ours."""
    job = ClassAd.from_bytes(record.ad).get_str("GlobalJobId")
    return f"history.{job if PLAIN_ID.fullmatch(job) else f'{record.cluster}.{record.proc}'}"


def _replace(path: Path, data: bytes) -> None:
    """A whole file in the place of another one: who reads it sees the old one or the new one."""
    stream, fresh = open_beside(str(path), "record")
    with stream:
        stream.write(data)
        os.replace(fresh, path)


def _append_to(path: Path, settings: RecordFileSettings, batch: Sequence[AdRecord]) -> None:
    data = b"".join(record.to_bytes() for record in batch)
    if path.exists() and path.stat().st_size + len(data) > settings.most_bytes:
        _put_aside(path, settings.rotations, batch[-1].when_s)
    _write(path, data)


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        append_whole(descriptor, data)
    finally:
        os.close(descriptor)


def _put_aside(path: Path, rotations: int, now_s: float) -> None:
    stamp = datetime.fromtimestamp(now_s).strftime("%Y%m%dT%H%M%S")  # noqa: DTZ006 - HTCondor's names are local
    path.replace(f"{path}.{stamp}")
    old = _aside(path)
    for each in old[: max(0, len(old) - rotations)]:
        each.unlink()


def _aside(path: Path) -> list[Path]:
    return sorted(each for each in path.parent.glob(f"{path.name}.2*") if each.is_file())


class RecordReader:
    """The records, the newest first, for a worker thread.

    A row's number is made of the file's own (which stays when the file is put aside) and the place in it, so a cursor
    finds its place again while records are added.

    Args:
        path: the file; empty: there is none.
        kinds: of the records wanted.
        sees: whether the asker sees the records of an owner.
    """

    def __init__(self, path: str, kinds: Collection[str], sees: Callable[[str], bool] = lambda owner: True) -> None:
        self._path = Path(path)
        self._kinds = {kind.encode() for kind in kinds} if path else set()
        self._sees = sees

    def rows(self, ids: Sequence[tuple[int, int]], owner: str, before: int) -> Iterator[HistoryRow]:
        """Those before the record ``before`` (0: all), of these ids (proc -1: a cluster; empty: all) and this owner.

        Raises:
            OSError: a file cannot be read.
        """
        if not self._kinds:
            return
        within, offset = before >> OFFSET_BITS, before & ((1 << OFFSET_BITS) - 1)
        wanted = set(ids)
        for path in [self._path, *reversed(_aside(self._path))]:
            try:
                with open(path, "rb") as file:
                    number, data = os.fstat(file.fileno()).st_ino, file.read()
            except FileNotFoundError:
                continue
            if before and within not in (0, number):
                continue
            end = offset if before and within == number else len(data)
            within = 0
            for row in self._rows_of(data, number, end):
                if (not owner or row.owner.partition("@")[0] == owner) and self._sees(row.owner) and (
                        not wanted or (row.cluster, row.proc) in wanted or (row.cluster, -1) in wanted):
                    yield row

    def totals(self) -> Sequence[DayTotal]:
        """None are kept of these records.

        Raises:
            ValueError: always.
        """
        raise ValueError("no totals are kept of these records; those of jobs are (condor_history -totals)")

    def _rows_of(self, data: bytes, number: int, end: int) -> list[HistoryRow]:
        found, start = [], 0
        for banner in BANNER.finditer(data, 0, end):
            kind, cluster, proc, _, owner, when = banner.groups()
            if kind in self._kinds:
                entry, ad = number << OFFSET_BITS | start, data[start:banner.start()]
                found.append(HistoryRow(entry, int(cluster), int(proc), owner.decode("utf-8", "surrogateescape"),
                                        float(when), b"", ad))
            start = banner.end()
        return found[::-1]

    def close(self) -> None:
        """Nothing is kept open."""
