"""What condor_watch_q makes of event logs, and of its command line; the program itself runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.live import job_table
from condor_actors.tools.live.event_logs import Found
from condor_actors.tools.live.job_table import Group
from condor_actors.tools.live.screen import keys_of
from condor_actors.tools.live.tracked_jobs import State, TrackedJobs
from condor_actors.userlog.reader import EventReader
from tests.harness.terminal import Terminal

WORDS = {0: "Job submitted from host: <1>", 1: "Job executing on host: <1>", 5: "Job terminated.",
         9: "Job was aborted.", 10: "Job was suspended.", 11: "Job was unsuspended.", 12: "Job was held.",
         13: "Job was released.",
         4: "Job was evicted."}


def event(number: int, cluster: int = 1, proc: int = 0, words: str = "") -> str:
    return f"{number:03} ({cluster:03}.{proc:03}.000) 2026-11-21 09:00:00 {words or WORDS[number]}\n...\n"


def tracked(text: str, **options: object) -> TrackedJobs:
    jobs = TrackedJobs(**options)  # type: ignore[arg-type]
    for each in EventReader().feed(text.encode()):
        jobs.take("a.log", each)
    return jobs


@pytest.mark.parametrize(("events", "state"), [
    ((0,), State.IDLE), ((0, 1), State.RUN), ((0, 1, 4), State.IDLE), ((0, 12), State.HELD), ((0, 12, 13), State.IDLE),
    ((0, 1, 10), State.SUSPENDED), ((0, 1, 10, 11), State.RUN), ((0, 1, 5), State.DONE), ((0, 9), State.REMOVED),
])
def test_events_change_states(events: tuple[int, ...], state: State) -> None:
    jobs = tracked("".join(event(number) for number in events))
    assert list(jobs.states()) == [state]
    assert jobs.clusters[1].is_over == (state in (State.DONE, State.REMOVED))


@pytest.mark.parametrize(("words", "state"), [
    ("Started transferring input files", State.INPUT), ("Started transferring output files", State.OUTPUT),
    ("Finished transferring input files", State.RUN), ("Queued for transferring output files", State.RUN),
])
def test_transfers(words: str, state: State) -> None:
    assert list(tracked(event(0) + event(1) + event(40, words=words)).states()) == [state]


def test_a_job_that_comes_back_is_not_over() -> None:
    jobs = tracked(event(0) + event(5) + event(0, proc=1))
    assert not jobs.clusters[1].is_over
    assert jobs.clusters[1].ended_s is None
    ended = tracked(event(0) + event(5)).clusters[1]
    assert ended.ended_s == time.mktime((2026, 11, 21, 9, 0, 0, 0, 0, -1))
    assert not ended.is_shown(ended.ended_s + 61, 60)
    assert ended.is_shown(ended.ended_s + 59, 60)


def test_only_what_is_asked_for() -> None:
    text = event(0, 1) + event(0, 2) + event(0, 3)
    assert set(tracked(text, only={2}).clusters) == {2}
    assert set(tracked(text, least=2).clusters) == {2, 3}
    assert tracked(text, batches={2: "night"}, expected={2: 9}).clusters[2].jobs == 9


def test_the_table_leaves_out_what_nobody_is_in() -> None:
    jobs = tracked("".join(event(0, proc=proc) for proc in range(4)) + event(1) + event(12, proc=1))
    group = Group.of("one\x1b[2Jtwo", list(jobs.clusters.values()))
    head, line = (text.plain for text in job_table.table("BATCH", [group], 80, has_bars=False))
    assert head.split() == ["BATCH", "HELD", "IDLE", "RUN", "DONE", "TOTAL", "JOB_IDS"]
    assert line.split() == ["one\\x1b[2Jtwo", "1", "2", "1", "-", "4", "1.0", "...", "1.3"]
    assert all(len(text.plain) <= 60 for text in job_table.table("BATCH", [group], 60, has_bars=True))


@pytest.mark.parametrize("width", [12, 40, 60, 79, 80, 200])
def test_bars_are_as_long_as_they_are_told(width: int) -> None:
    counts = {State.IDLE: 1, State.RUN: 1, State.DONE: 1}
    assert len(job_table.bar(counts, 3, width).plain) == min(width, 79)
    assert len(job_table.bar({}, 0, width).plain) == min(width, 79)


def test_sums_are_cut_to_the_width() -> None:
    counts = {State.DONE: 10, State.IDLE: 20, State.RUN: 30, State.HELD: 40}
    whole = job_table.summary(counts, 100, 200, is_percent=False).plain
    assert whole == "Total: 100 jobs; 10 completed, 20 idle, 30 running, 40 held"
    assert len(job_table.summary(counts, 100, 50, is_percent=False).plain) <= 50
    assert job_table.summary(counts, 100, 200, is_percent=True).plain.startswith("Total: 100 jobs; 10% completed, 0%")


def test_paths_are_written_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alpha").mkdir()
    (tmp_path / "alps").mkdir()
    monkeypatch.chdir(tmp_path)
    assert job_table.nice_path("alpha/a.log") == "./alpha/a.log"
    assert job_table.abbreviated(f"{tmp_path}/alpha/a.log").endswith("/alph/a.log")


def test_a_workflow_and_its_nodes_are_one_batch() -> None:
    found = Found()
    found.take(ClassAd({"ClusterId": 1, "Iwd": "/w", "UserLog": "x.dag.dagman.log", "JobBatchName": "x",
                        "OtherJobRemoveRequirements": "1", "DAG_NodesTotal": 7}))
    found.take(ClassAd({"ClusterId": 2, "Iwd": "/w", "DAGManNodesLog": "/w/x.dag.nodes.log", "JobBatchName": "x"}))
    found.take(ClassAd({"ClusterId": 3, "Iwd": "/w"}))
    assert found.logs == {"/w/x.dag.dagman.log": False, "/w/x.dag.nodes.log": True}
    assert (found.workflows["/w/x.dag.nodes.log"], found.nodes, found.managers) == ("x", {"x": 7}, {1})
    assert "Cluster 3 does not have a job event log" in found.warnings[0]


def test_keys() -> None:
    assert keys_of(b"q\x1b[A\x1bOB\r\t\x7f\x1b") == ["q", "up", "down", "enter", "tab", "backspace", "escape"]
    assert keys_of("é".encode()) == ["é"]
    assert keys_of(b"\x1b[200~\x01") == []


# ---- the program


def program(*words: str) -> list[str]:
    return [sys.executable, "-m", "condor_actors.tools.live.watch_q", *words]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(program(*words), capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "CONDOR_CONFIG": "/nonexistent/condor_config"})


@pytest.mark.parametrize(("words", "said"), [
    (["-exit", "all"], "invalid -exit specification"),
    (["-exit", "some,done"], 'invalid GROUPER "some", must be one of {all, any, none}'),
    (["-exit", "all,gone"], 'invalid JOB_STATUS "gone", must be one of {active, done, idle, held}'),
    (["-exit", "all,done,x"], "exit_status must be an integer"), (["-exit", "all,done,256"], "from 0 to 255"),
    (["-clusters", "x"], "'x' is no number of a cluster"), (["-clusters"], "expected at least one argument"),
    (["-clusters", "1", "-larger-than", "2"], "prohibited"), (["-groupby", "owner"], "invalid choice: 'owner'"),
    (["-exited-row-decay", "3q"], "Unknown unit specifier 'q'"), (["-interval", "0"], "no number of seconds"),
    (["123.4"], "try -clusters 123.4"), (["-nosuch"], "unrecognized arguments: -nosuch"),
])
def test_what_makes_no_sense_is_said(words: list[str], said: str) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_no_jobs_is_no_failure(tmp_path: Path) -> None:
    done = run()
    assert (done.returncode, "No jobs found, exiting..." in done.stderr) == (0, True)
    assert "Was not able to query" in done.stderr
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "book").write_text("Once upon a time\n")
    done = run("-files", str(tmp_path / "gone"), str(tmp_path / "pipe"), str(tmp_path / "book"), "-exit", "none,held,4")
    assert done.returncode == 4
    assert "File path does not exist" in done.stderr
    assert "it is no file" in done.stderr
    assert "this is no event log" in done.stderr


def test_scripts_read_its_exit_status(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0) + event(0, proc=1) + event(5))
    with subprocess.Popen(program("-files", str(log), "-exit", "all,done,3", "-exit", "any,held,9"),
                          stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert "1.1" in "".join(watching.stdout.readline() for _ in range(2))
        with log.open("a") as file:
            file.write(event(5, proc=1))
        rest = watching.stdout.read()
    assert watching.returncode == 3
    assert rest.splitlines()[-1].startswith('Exiting with code 3 because of condition "all done" at ')
    assert "\x1b" not in rest
    assert "Total: 2 jobs; 2 completed" in rest


def test_on_a_terminal_any_key_ends_it_and_the_screen_comes_back(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0) + event(1))
    with Terminal(program("-files", str(log)), columns=60, lines=16, cwd=tmp_path, environment=os.environ) as terminal:
        terminal.until("Press any key to exit")
        assert "\x1b[?1049h" in terminal.raw.decode()
        with log.open("a") as file:
            file.write(event(5))
        assert "[###" in terminal.until("1 completed")
        terminal.resize(100, 16)
        terminal.until(lambda text: any(len(line) > 70 for line in text.splitlines()))
        terminal.type("x")
        assert terminal.end() == 0
        assert terminal.raw.decode().count("\x1b[?1049l") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: int) -> None:
    log = tmp_path / "a.log"
    log.write_text(event(0))
    command = program("-files", str(log), "-no-exit-on-key-press")
    with Terminal(command, cwd=tmp_path, environment=os.environ) as terminal:
        terminal.until("Press ^C to exit")
        threading.Timer(0, os.kill, (terminal.pid, number)).start()
        assert terminal.end() == 0
        assert "\x1b[?1049l" in terminal.raw.decode()
