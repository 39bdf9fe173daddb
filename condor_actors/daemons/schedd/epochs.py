"""One record for every run of every job (JOB_EPOCH_HISTORY): written and read beside the reactor.

Theory: a run's end is a commit; behind it the job's ad of that moment goes to a worker, which appends all that waits
with one write, and one ``fdatasync``.  So a record is of a run that is over, and never there twice; one that a crash
catches between commit and write is missing.  The file is put aside at a size and the oldest are removed, so that what
is kept is bounded, and what waits for a disk that is full or gone is bounded as well.

Each record is an ad in the long form and a banner behind it, as HTCondor's programs read it::

    *** EPOCH ClusterId=1 ProcId=0 RunInstanceId=0 Owner="alice" CurrentTime=1700000000

The file has all of a job's ad, its environment too: only the schedd's account reads it, and the schedd shows of it what
the asker may see.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.classads import ClassAd, quote
from condor_actors.config import Config
from condor_actors.config.settings import setting
from condor_actors.cores.schedd.job_notices import RecordEpoch
from condor_actors.store.queue_store import HistoryRow

__all__ = ["EpochReader", "EpochSettings", "Epochs", "epoch_settings"]

MOST_WAITING = 20_000
"""Records that wait for the disk; more are not kept, and the log says so."""
OFFSET_BITS = 40
BANNER = re.compile(
    rb'^\*\*\* EPOCH ClusterId=(\d+) ProcId=(\d+) RunInstanceId=(\d+) Owner="((?:[^"\\\n]|\\.)*)" CurrentTime=(\d+)\n',
    re.MULTILINE)

Defer = Callable[..., Deferred[Any]]


@attrs.frozen(kw_only=True)
class EpochSettings:
    """The file (empty: none), its largest size in bytes, and how many that were put aside are kept."""

    path: str = ""
    most_bytes: int = setting("MAX_EPOCH_HISTORY_LOG")
    rotations: int = setting("MAX_EPOCH_HISTORY_ROTATIONS")


def epoch_settings(config: Config) -> EpochSettings:
    """Read them."""
    return config.settings(EpochSettings, path=config.text("JOB_EPOCH_HISTORY") or "")


class Epochs:
    """Writes the records.

    Args:
        settings: may be changed at any time.
        defer: runs a function beside the reactor; tests run it at once.
    """

    def __init__(self, settings: EpochSettings | None = None, defer: Defer = deferToThread) -> None:
        self.settings = settings or EpochSettings()
        self._defer = defer
        self._waiting: list[RecordEpoch] = []
        self._writing = False
        self._missed = 0
        self._sick = False
        self._log = Logger("condor.schedd")

    def record(self, epoch: RecordEpoch) -> None:
        """A run has ended, and that is committed."""
        if not self.settings.path:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._missed += 1
            return
        self._waiting.append(epoch)
        self._go_on()

    def _go_on(self) -> None:
        if self._writing or not self._waiting:
            return
        batch, self._waiting, self._writing = self._waiting, [], True
        self._defer(_append, self.settings, batch).addBoth(self._written)

    def _written(self, result: Any) -> None:
        self._writing = False
        missed, self._missed = self._missed, 0
        if missed:
            self._log.error("{count} records of runs are missing in {path}: it is written too slowly", count=missed,
                            path=self.settings.path)
        if isinstance(result, Failure):
            if not self._sick:
                self._log.error("{path} cannot be written, records of runs are lost: {why}", path=self.settings.path,
                                why=result.getErrorMessage())
            self._sick = True
        else:
            self._sick = False
        self._go_on()


def _append(settings: EpochSettings, batch: Sequence[RecordEpoch]) -> None:
    """Write records; in a worker.

    Raises:
        OSError: they cannot be written, and nothing of them is in the file.
    """
    path = Path(settings.path)
    data = b"".join(map(_record, batch))
    if path.exists() and path.stat().st_size + len(data) > settings.most_bytes:
        _put_aside(path, settings.rotations, batch[-1].when_s)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view):]
            os.fdatasync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)  # no half record
            raise
    finally:
        os.close(descriptor)


def _record(epoch: RecordEpoch) -> bytes:
    ad = ClassAd.from_bytes(epoch.cluster_ad + epoch.ad).to_bytes()  # a line for each attribute: no value is a banner
    return ad + (f"*** EPOCH ClusterId={epoch.cluster} ProcId={epoch.proc} RunInstanceId={epoch.instance} "
                 f"Owner={quote(epoch.owner)} CurrentTime={int(epoch.when_s)}\n").encode("utf-8", "surrogateescape")


def _put_aside(path: Path, rotations: int, now_s: float) -> None:
    from datetime import datetime

    stamp = datetime.fromtimestamp(now_s).strftime("%Y%m%dT%H%M%S")  # noqa: DTZ006 - HTCondor's names are local
    path.replace(f"{path}.{stamp}")
    old = _aside(path)
    for each in old[: max(0, len(old) - rotations)]:
        each.unlink()


def _aside(path: Path) -> list[Path]:
    return sorted(each for each in path.parent.glob(f"{path.name}.2*") if each.is_file())


class EpochReader:
    """The records, the newest first, for a worker thread.

    A row's number is made of the file's own (which stays when the file is put aside) and the place in it, so a cursor
    finds its place again while records are added.

    Args:
        path: JOB_EPOCH_HISTORY.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def rows(self, ids: Sequence[tuple[int, int]], owner: str, before: int) -> Iterator[HistoryRow]:
        """Those before the record ``before`` (0: all), of these ids (proc -1: a cluster; empty: all) and this owner.

        Raises:
            OSError: a file cannot be read.
        """
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
            for row in _rows_of(data, number, end):
                if (not owner or row.owner == owner) and (
                        not wanted or (row.cluster, row.proc) in wanted or (row.cluster, -1) in wanted):
                    yield row

    def close(self) -> None:
        """Nothing is kept open."""


def _rows_of(data: bytes, number: int, end: int) -> list[HistoryRow]:
    found, start = [], 0
    for banner in BANNER.finditer(data, 0, end):
        cluster, proc, _, owner, when = banner.groups()
        entry, ad = number << OFFSET_BITS | start, data[start:banner.start()]
        found.append(HistoryRow(entry, int(cluster), int(proc), owner.decode(), float(when), b"", ad))
        start = banner.end()
    return found[::-1]
