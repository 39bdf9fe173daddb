"""The event log of all jobs, and histories as text."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd.records import record_settings
from condor_actors.store.queue_store import QueueStore
from tests.harness.submit_side import SubmitPool


def pool_with(folder: Path, **parameters: str) -> SubmitPool:
    pool = SubmitPool(folder, records_events="EVENT_LOG" in parameters)
    read = record_settings(load_config(files=[], environ={}, overrides=parameters))
    pool.schedd._edges.records.settings = read
    return pool


def run_job(pool: SubmitPool, ad: bytes = b"", procs: int = 1) -> int:
    cluster = pool.submit(ad, procs=procs)
    for proc in range(procs):
        pool.match(1)
        pool.execute.begin(f"{cluster}.{proc}#1")
        pool.run(2.0)
        pool.execute.finish(f"{cluster}.{proc}#1")
        pool.run()
    return cluster


def test_the_log_of_all_jobs(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    pool = pool_with(tmp_path, EVENT_LOG=str(log))
    run_job(pool)
    held = pool.submit(b'UserLog = "own.log"\n')
    pool.act("hold", held)
    pool.act("release", held)
    pool.act("remove", held)
    pool.run()
    heads = [line[:8] for line in log.read_text().splitlines() if line[3:5] == " ("]
    assert heads == ["000 (001", "001 (001", "005 (001", "000 (002", "012 (002", "013 (002", "009 (002"]
    assert (pool.home / "own.log").read_text().count("\n...\n") == 4
    assert not (pool.home / "log").exists()


def test_a_start_is_in_the_log_of_all_jobs_once_whoever_tells_of_it(tmp_path: Path) -> None:
    """The schedd is started anew, and the shadow, or another in its place, says again that the program executes."""
    log = tmp_path / "EventLog"
    pool = pool_with(tmp_path, EVENT_LOG=str(log))
    cluster = pool.submit()
    pool.match(1)
    pool.execute.begin(f"{cluster}.0#1")
    pool.run(2.0)
    pool.kill_host(pool.owner_host_pid())
    pool.kill_schedd()
    pool.start_schedd()
    pool.schedd._edges.records.settings = record_settings(
        load_config(files=[], environ={}, overrides={"EVENT_LOG": str(log)}))
    pool.run(30.0)
    pool.execute.finish(f"{cluster}.0#1")
    pool.run(5.0)
    heads = [line[:3] for line in log.read_text().splitlines() if line[3:5] == " ("]
    assert heads == ["000", "001", "005"]


def test_the_log_is_put_aside_when_it_has_grown(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    pool = pool_with(tmp_path, EVENT_LOG=str(log), EVENT_LOG_MAX_SIZE="1000", EVENT_LOG_MAX_ROTATIONS="2")
    run_job(pool, procs=5)
    assert log.stat().st_size <= 1000
    assert sorted(path.name for path in tmp_path.glob("EventLog*")) == ["EventLog", "EventLog.1", "EventLog.2"]
    assert Path(f"{log}.1").stat().st_mtime >= Path(f"{log}.2").stat().st_mtime


def test_one_old_log_has_htcondors_name(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    pool = pool_with(tmp_path, EVENT_LOG=str(log), EVENT_LOG_MAX_SIZE="1000")
    run_job(pool, procs=5)
    assert sorted(path.name for path in tmp_path.glob("EventLog*")) == ["EventLog", "EventLog.old"]


def test_histories_as_text(tmp_path: Path) -> None:
    (tmp_path / "per-job").mkdir()
    history = tmp_path / "history"
    pool = pool_with(tmp_path, HISTORY=str(history), PER_JOB_HISTORY_DIR=str(tmp_path / "per-job"))
    cluster = run_job(pool, b'Colour = "red"\n', procs=2)
    text = history.read_text()
    assert text.count("*** ClusterId = ") == 2
    assert f"*** ClusterId = {cluster} ProcId = 1 Owner = " in text
    first = ClassAd.from_text(text.split("***")[0])
    assert (first.get_str("Colour"), first.get_int("JobStatus"), first.get_int("ProcId")) == ("red", 4, 0)
    alone = ClassAd.from_text((tmp_path / "per-job" / f"history.{cluster}.1").read_text())
    assert alone.get_int("ProcId") == 1
    assert len(list((tmp_path / "per-job").iterdir())) == 2


def test_no_value_passes_for_a_record(tmp_path: Path) -> None:
    history = tmp_path / "history"
    pool = pool_with(tmp_path, HISTORY=str(history))
    value = r'x\n*** ClusterId = 7 ProcId = 0 Owner = \"root\" CompletionDate = 1\nOwner = \"root\"'
    run_job(pool, f'Evil = "{value}"\n'.encode())
    lines = history.read_text().splitlines()
    assert [line for line in lines if line.startswith("***")] == [lines[-1]]
    assert sum("*** ClusterId = 7" in line for line in lines) == 1


def test_the_text_history_is_put_aside(tmp_path: Path) -> None:
    history = tmp_path / "history"
    pool = pool_with(tmp_path, HISTORY=str(history), MAX_HISTORY_LOG="100", MAX_HISTORY_ROTATIONS="1")
    run_job(pool, procs=3)
    assert len(list(tmp_path.glob("history.2*"))) == 1


def test_what_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    pool = pool_with(tmp_path, HISTORY="/nonexistent/history", PER_JOB_HISTORY_DIR="/nonexistent",
                     EVENT_LOG="/nonexistent/log")
    run_job(pool)
    assert len(pool.history()) == 1


def test_a_history_that_nobody_set_is_not_written() -> None:
    settings = record_settings(load_config(files=[], environ={}, overrides={"SPOOL": "/spool"}))
    assert settings.history == ""


def test_an_end_that_could_not_be_stored_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = tmp_path / "history"
    pool = pool_with(tmp_path, HISTORY=str(history))
    failed: list[object] = []

    def fail_once(store: QueueStore, operations: Sequence[Any]) -> None:
        if not failed and any(isinstance(each, ArchiveJob) for each in operations):
            failed.append(operations)
            raise OSError(errno.ENOSPC, "No space left on device")
        commit(store, operations)

    commit = QueueStore.commit
    monkeypatch.setattr(QueueStore, "commit", fail_once)
    run_job(pool)
    pool.run(120.0)
    assert len(failed) == 1
    assert len(pool.history()) == 1
    assert history.read_text().count("*** ClusterId = ") == 1


def test_the_log_of_all_jobs_in_other_forms(tmp_path: Path) -> None:
    log = tmp_path / "EventLog"
    pool = pool_with(tmp_path, EVENT_LOG=str(log), EVENT_LOG_FORMAT_OPTIONS="UTC, sub_second")
    run_job(pool)
    heads = [line for line in log.read_text().splitlines() if line[3:5] == " ("]
    assert heads
    assert all(re.search(r"\) \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z ", line) for line in heads)
    other = tmp_path / "xml"
    other.mkdir()
    pool = pool_with(other, EVENT_LOG=str(log), EVENT_LOG_FORMAT_OPTIONS="XML")
    run_job(pool)
    assert "<s>SubmitEvent</s>" in log.read_text()
