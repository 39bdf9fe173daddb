"""condor_dagman before its reactor runs: which run it is, which file it begins from, who else runs the DAG."""

from __future__ import annotations

import fcntl
import json
import os
import sys
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.dag.definitions import Script
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_events import REMOVED
from condor_actors.dag.run_state import Attempt, RunSettings, RunState
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.dag_files import DagFiles
from condor_actors.tools.dag.dagman import _is_own, ended_with, main
from condor_actors.tools.dag.journal import Journal
from condor_actors.tools.dag.script_runner import words_of


@pytest.mark.parametrize(("said", "own", "status"), [
    ({"dagman_id": "4", "exitcode": 0}, 4, 0), ({"dagman_id": "4", "exitcode": 2}, 4, 2),
    ({"dagman_id": "4", "exitcode": 0}, 5, None), ({"dagman_id": "4", "exitcode": 7}, 4, None),
    ({"dagman_id": "", "exitcode": 0}, 0, None), ({}, 4, None), ("what", 4, None), (None, 4, None),
])
def test_a_run_that_has_ended_is_not_run_again(tmp_path: Path, said: object, own: int, status: int | None) -> None:
    files = DagFiles(str(tmp_path / "x.dag"))
    Path(files.journal).touch()
    if said is not None:
        Path(files.metrics).write_text(said if isinstance(said, str) else json.dumps(said))
    assert ended_with(files, own) == status
    assert Path(files.journal).exists() == (status is None)


def test_two_of_one_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.dag").write_text("JOB A x\n")
    with (tmp_path / "x.dag.lock").open("w") as lock:
        lock.write("pid 77\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(sys, "argv", ["condor_dagman", "-f", "-l", ".", "-Dag", "x.dag"])
        assert main() == 1
    assert "another condor_dagman runs this DAG already (x.dag.lock: pid 77)" in capsys.readouterr().err


def test_a_mistake_in_the_dag_is_in_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").write_text(f"LOCAL_DIR = {tmp_path}\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(tmp_path / "config"))
    (tmp_path / "x.dag").write_text("JOB A x\nPARENT A CHILD A\n")
    monkeypatch.setattr(sys, "argv", ["condor_dagman", "-f", "-l", ".", "-Dag", "x.dag"])
    assert main() == 1
    out = (tmp_path / "x.dag.dagman.out").read_text()
    assert "ERROR: x.dag, line 2: there is a cycle: A -> A" in out
    assert out.endswith(f"(condor_DAGMAN) pid {os.getpid()} EXITING WITH STATUS 1\n")
    assert not (tmp_path / "x.dag.lock").exists()


def test_whose_journal_it_is(tmp_path: Path) -> None:
    """A job that is told -Force, as Pegasus' are, does not begin anew when it is only started anew."""
    path = str(tmp_path / "journal")
    Journal.create(path, "digest", RunSettings(), "", 1000.0)
    assert _is_own(path, ClassAd({"QDate": 999}))
    assert not _is_own(path, ClassAd({"QDate": 1001})), "it is of an earlier job"
    assert not _is_own(path, ClassAd())
    Path(path).write_text("what\n")
    assert not _is_own(path, ClassAd({"QDate": 999}))


def test_the_words_of_scripts() -> None:
    run = RunState(read_dag(["x.dag"], Reading(lambda _: "JOB A x\nRETRY A 4\nJOB B x\n")), RunSettings())
    run.active[0] = Attempt(cluster=9, jobs=3, statuses={0: 2, 1: REMOVED, 2: 0}, status=2, pre_status=0)
    names = ("$NODE", "$max_retries", "$NODE_COUNT", "$JOBID", "$RETURN", "$SUCCESS", "$JOB_ABORT_COUNT", "$EXIT_CODES",
             "$EXIT_CODE_COUNTS", "$EXIT_CODE_LIST", "$PRE_SCRIPT_RETURN", "$DAGID", "$OTHER", "plain")
    facts = {"DAGID": "5", "DAG_STATUS": "0"}
    assert words_of(Script(("s", *names)), 0, run, facts, is_post=True) == [
        "s", "A", "4", "2", "9.2", "2", "False", "1", "0,2", "0:1,2:1", "2,,0", "0", "5", "$OTHER", "plain"]
    assert words_of(Script(("s", "$JOBID", "$NODE")), 0, run, facts, is_post=False) == ["s", "$JOBID", "A"]
