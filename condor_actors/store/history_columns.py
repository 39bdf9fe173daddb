"""Columns beside the history: a file for each piece of it that is full, made by a process of its own.

Theory: the history is added to at its end and forgotten at its beginning, and what stands between is never changed.
So it is cut into pieces of :data:`PIECE_JOBS` entries, and the columns of a piece that is full can be made once, at any
time, by anybody.  They are never a second truth: without a file the jobs themselves are looked through, and a file is
believed only when its last job is that of the history (a queue that was
restored from a copy goes on with others).
A file is removed with its piece, and one that is damaged by the reader that finds it so.

``python -m condor_actors.store.history_columns SPOOL PERCENT`` makes what is missing, the newest first; a lock keeps a
second such process away.  It is killed with the process that started it, which leaves at most a hidden file that the
next one removes.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import signal
import sqlite3
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from condor_actors.classads import quote
from condor_actors.patterns import late
from condor_actors.store import history_totals
from condor_actors.store.column_file import BadColumns, Column, ColumnFile, write_columns
from condor_actors.store.queue_store import FILE_NAME, HistoryRow, piece_of_history, span_of_history

__all__ = ["FOLDER", "OF_JOBS", "PIECE_JOBS", "HistoryColumns", "make_missing", "missing_pieces"]

FOLDER = "history.columns"
"""Where they are, in SPOOL."""
PIECE_JOBS = 16_384
MOST_NAMES = 2_000
"""Attributes that a piece may have columns of."""
MADE_AT_ONCE = 64
"""Files that one process makes: it takes half a minute."""
WHEN_S = 900
"""Dates are kept by the quarter of an hour: every zone's days begin with one."""
OF_JOBS = {"owner": "#owner", "outcome": "#outcome", "day": "#when", "month": "#when", "year": "#when"}
"""The columns from which come what totals know of each job; no attribute has such a name."""
SUMS = ("starts", "wall", "core", "cpu")
_NAME = late(rb"[A-Za-z_][A-Za-z0-9_]*")
_PR_SET_PDEATHSIG = 1


def path_of(folder: Path, number: int) -> Path:
    """The file of a piece, which begins behind entry ``number * PIECE_JOBS``."""
    return folder / f"{number:010}.columns"


_Place = tuple[dict[bytes, int], "array[int]"]
"""The numbers of a column's texts, and for each job the number of its own."""


class _Columns:
    """The columns of a piece, while its jobs are read.

    Args:
        count: how many jobs there are.

    Attributes:
        has_all_names: not more attributes were met than have columns.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._places: dict[bytes, _Place] = {}
        self._by_name: dict[bytes, _Place | None] = {}
        self.has_all_names = True

    def put(self, record: int, lines: Sequence[bytes]) -> None:
        """The lines of a job; of two of one name the last counts."""
        by_name = self._by_name
        for line in lines:
            name, _, text = line.partition(b" = ")
            place = by_name[name] if name in by_name else self._place(name)
            if place is not None:
                texts, codes = place
                code = texts.get(text)
                if code is None:
                    code = texts[text] = len(texts)
                codes[record] = code

    def put_shared(self, first: int, end: int, lines: Sequence[bytes]) -> None:
        """Lines of all jobs from one to before another, which their own ones follow."""
        for line in lines:
            name, _, text = line.partition(b" = ")
            place = self._place(name)
            if place is not None:
                texts, codes = place
                codes[first:end] = array("I", (texts.setdefault(text, len(texts)),)) * (end - first)

    def put_text(self, record: int, name: bytes, text: bytes) -> None:
        """What a job has in a column of this name."""
        texts, codes = self._made(name)
        codes[record] = texts.setdefault(text, len(texts))

    def _place(self, name: bytes) -> _Place | None:
        """Where an attribute goes; one whose name is no plain one has no column."""
        place = self._by_name.get(name)
        if place is None and _NAME.fullmatch(name):
            if len(self._by_name) < MOST_NAMES:
                place = self._by_name[name] = self._made(name.lower())
            else:
                self.has_all_names = False
        return place

    def _made(self, key: bytes) -> _Place:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = {b"": 0}, array("I", bytes(4 * self._count))
        return place

    def columns(self) -> dict[str, Column]:
        """All of them by name."""
        return {name.decode("ascii"): Column(tuple(texts), codes) for name, (texts, codes) in self._places.items()}


def write_piece(folder: Path, piece: int, rows: Sequence[HistoryRow], percent: int) -> int:
    """Write the file of a piece.

    Args:
        folder: where.
        piece: its number.
        rows: all its jobs, in their order.
        percent: of the jobs' own texts that its columns may take.

    Returns:
        Its bytes.

    Raises:
        OSError: the disk takes nothing.
    """
    columns, always = _Columns(len(rows)), _Columns(len(rows))
    reals = {name: array("d") for name in SUMS}
    record = 0
    for shared, jobs in groupby(rows, key=attrgetter("cluster_ad")):
        of_cluster = tuple(jobs)
        columns.put_shared(record, record + len(of_cluster), shared.split(b"\n"))
        for row in of_cluster:
            columns.put(record, row.ad.split(b"\n"))
            outcome, *numbers = history_totals.facts(shared, row.ad)
            always.put_text(record, b"#owner", _quoted(row.owner))
            always.put_text(record, b"#outcome", _quoted(str(outcome)))
            always.put_text(record, b"#when", b"%d" % (row.ended_s // WHEN_S))
            for name, value in zip(SUMS, numbers, strict=True):
                reals[name].append(float(value))
            record += 1
    size = sum(len(row.ad) for row in rows) + sum(map(len, {row.cluster_ad for row in rows}))
    facts = {"last": _mark(rows[-1]), "count": len(rows), "percent": percent, "has_all_names": columns.has_all_names}
    kept = always.columns()
    return write_columns(path_of(folder, piece), facts, columns.columns() | kept, reals, size * percent // 100, kept)


def _quoted(text: str) -> bytes:
    return quote(text).encode("utf-8", "surrogateescape")


def _mark(row: HistoryRow) -> tuple[int, int, float]:
    """What says that an entry is this job."""
    return row.cluster, row.proc, row.ended_s


class HistoryColumns:
    """The files, for a reader.

    Args:
        folder: where they are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def piece(self, number: int, last: HistoryRow) -> Iterator[ColumnFile | None]:
        """The columns of a piece; None: there are none.  A file that proves to be damaged meanwhile is removed.

        Args:
            number: of the piece.
            last: its last job, which the file has to know.

        Raises:
            BadColumns: they are damaged; the jobs themselves have what is wanted.
        """
        path = path_of(self._folder, number)
        file = None
        try:
            file = ColumnFile(path)
            is_ours = tuple(file.facts["last"]) == _mark(last) and file.facts["count"] == PIECE_JOBS
            if not is_ours:
                raise BadColumns(f"{path}: it is of another history")
            yield file
        except BadColumns:
            with suppress(OSError):
                path.unlink()
            if file is None:
                yield None
            else:
                raise
        except OSError:
            if file is not None:
                raise
            yield None
        finally:
            if file is not None:
                file.close()


def missing_pieces(connection: sqlite3.Connection, folder: Path) -> tuple[list[int], list[Path]]:
    """Pieces that are full and have no file, the newest first, and what is in the folder and belongs to no piece."""
    first, last = span_of_history(connection)
    full = range(-(-(first - 1) // PIECE_JOBS), last // PIECE_JOBS)
    some_left = range((first - 1) // PIECE_JOBS, full.stop)
    kept = {path_of(folder, number).name for number in some_left}
    there = set(os.listdir(folder)) if folder.is_dir() else set()
    return ([number for number in reversed(full) if path_of(folder, number).name not in there],
            [folder / name for name in there - kept])


def make_missing(spool: Path, percent: int, most: int = MADE_AT_ONCE, *, oldest_first: bool = False) -> int:
    """Make files of pieces that have none, remove those that belong to none.

    Args:
        spool: where the job queue is.
        percent: of the jobs' own texts that columns may take; 0: there are to be none.
        most: how many are made; the newest of those that are missing, or the oldest.

    Returns:
        How many were made.

    Raises:
        OSError: the disk takes nothing.
        sqlite3.Error: the queue cannot be read.
    """
    folder = spool / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = sqlite3.connect(f"{(spool / FILE_NAME).resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0
        missing, strange = missing_pieces(connection, folder)
        if not percent:
            missing, strange = [], list(folder.iterdir())
        for path in strange:
            path.unlink(missing_ok=True)
        made = 0
        for number in missing[:most] if not oldest_first else missing[::-1][:most]:
            rows = tuple(piece_of_history(connection, number * PIECE_JOBS + 1, (number + 1) * PIECE_JOBS))
            if len(rows) == PIECE_JOBS:  # otherwise it is being forgotten
                write_piece(folder, number, rows[::-1], percent)
                made += 1
        return made
    finally:
        connection.close()
        os.close(lock)


def main() -> None:
    """Entry of the process; it prints how many it has made."""
    gc.disable()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.nice(19)
    sys.stdout.write(f"{make_missing(Path(sys.argv[1]), int(sys.argv[2]))}\n")


if __name__ == "__main__":
    main()
