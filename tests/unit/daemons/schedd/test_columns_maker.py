"""Columns of the history are made by a process of its own, as soon as a piece is full."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.logger import Logger

from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd import columns_maker
from condor_actors.daemons.schedd.columns_maker import ColumnsMaker
from condor_actors.store.history_columns import FOLDER, PIECE_JOBS
from condor_actors.store.queue_store import QueueStore
from tests.pool_fixture import until


class Said:
    """Takes events of a log."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, event: dict[str, object]) -> None:
        self.texts.append(str(event["log_format"]))


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    store = QueueStore(tmp_path)
    store.commit([ArchiveJob(1 + serial // 100, serial % 100, "ann", 1, 1e9 + serial, b"JobStatus = 4\n", b"")
                  for serial in range(PIECE_JOBS + 7)])
    store.close()
    return tmp_path


def maker(spool: Path, said: Said, start: Callable[[Callable[[], None]], None]) -> ColumnsMaker:
    return ColumnsMaker(spool, 25, Logger(observer=said), start)


def test_a_full_piece_gets_its_file_once(spool: Path) -> None:
    started = 0

    def at_once(work: Callable[[], None]) -> None:
        nonlocal started
        started += 1
        work()

    columns, said = maker(spool, Said(), at_once), Said()
    columns.look(1, PIECE_JOBS - 1)
    assert (started, (spool / FOLDER).exists()) == (0, False), "for a short history no process is started"
    columns.look(1, PIECE_JOBS + 7)
    columns.look(1, PIECE_JOBS + 9)
    columns.look(1, PIECE_JOBS + 9)
    assert (started, said.texts) == (2, []), "the second finds all there, and then nothing has changed"
    (spool / FOLDER / "0000000000.columns").unlink()
    for _ in range(columns_maker.LOOKS + 1):
        columns.look(1, PIECE_JOBS + 9)
    assert os.listdir(spool / FOLDER) == ["0000000000.columns"], "one that was removed is made again within the hour"
    columns.percent = 0
    columns.look(1, PIECE_JOBS + 9)
    assert os.listdir(spool / FOLDER) == []


def test_one_process_at_a_time(spool: Path) -> None:
    waiting: list[Callable[[], None]] = []
    columns = maker(spool, Said(), waiting.append)
    columns.look(1, PIECE_JOBS)
    columns.look(1, 2 * PIECE_JOBS)
    assert len(waiting) == 1


def test_a_process_that_fails_is_told_of(tmp_path: Path) -> None:
    said = Said()
    maker(tmp_path / "nowhere", said, lambda work: work()).look(1, PIECE_JOBS)
    assert said.texts == ["columns of the history cannot be made, totals of it take longer: {why}"]


def test_it_works_beside_the_reactor(spool: Path) -> None:
    columns = maker(spool, Said(), columns_maker.beside)
    columns.look(1, PIECE_JOBS)
    until((spool / FOLDER / "0000000000.columns").exists, "the columns")


def test_it_ends_with_the_process_that_started_it_and_leaves_nothing_wrong(spool: Path) -> None:
    """The schedd is killed at each of many moments; what is there then is whole or not there."""
    folder = spool / FOLDER
    starts = ("import subprocess, sys; subprocess.run([sys.executable, '-P', '-m', "
              "'condor_actors.store.history_columns', sys.argv[1], '25'])")
    for _ in range(4):
        parent = subprocess.Popen([sys.executable, "-P", "-c", starts, str(spool)])
        seen = until(lambda: folder.is_dir() and (os.listdir(folder) or True), "its beginning")
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until(lambda: not holders(folder), "the process to end")
        assert seen
        whole = [name for name in os.listdir(folder) if not name.startswith(".")]
        assert set(whole) <= {"0000000000.columns"}
        for name in whole:
            (folder / name).unlink()
    maker(spool, Said(), lambda work: work()).look(1, PIECE_JOBS)
    assert os.listdir(folder) == ["0000000000.columns"]


def holders(folder: Path) -> str:
    """Who has the folder's lock."""
    inode = folder.stat().st_ino
    return "".join(line for line in Path("/proc/locks").read_text().splitlines() if f":{inode} " in line)
