"""Events that may have been written before a crash appear once, however many one notice stands for."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer
from condor_actors.classads import ClassAd, parse_expression
from condor_actors.userlog import writer
from condor_actors.userlog.paths import log_paths
from condor_actors.userlog.writer import (
    LATELY_S,
    LONGEST_RETRY_S,
    MOMENT_S,
    PACE_S,
    RETRY_S,
    LogFiles,
    UserLogs,
)

WHEN_S = 1_700_000_000.0


def _facts(folder: Path, *, xml: bool = False) -> ClassAd:
    return ClassAd({"Iwd": str(folder), "UserLog": "job.log", "SubmitHost": "<127.0.0.1:9618>", "UserLogUseXML": xml})


def _submits(folder: Path) -> list[str]:
    text = (folder / "job.log").read_text()
    in_xml = re.findall('<a n="EventTypeNumber"><i>0</i></a>.*?<a n="Proc"><i>[0-9]+</i>', text, re.DOTALL)
    return in_xml + [line for line in text.splitlines() if line.startswith("000 ")]


@pytest.mark.parametrize("xml", [False, True], ids=["text", "xml"])
@pytest.mark.parametrize("written", [0, 1, 2999, 3000])
def test_a_large_cluster_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int,
                                        xml: bool) -> None:
    """The writer died after some of them; the log's end that is read first has but a few."""
    monkeypatch.setattr(writer, "BLOCK_BYTES", 512)
    facts = _facts(tmp_path, xml=xml)
    first = UserLogs(Clock(), sync=False)
    first.write(0, 7, range(written), WHEN_S, facts)
    first.flush()
    second = UserLogs(Clock(), sync=False)
    second.write(0, 7, range(3000), WHEN_S, facts, maybe_written=True)
    second.write(0, 7, range(3000), WHEN_S, facts, maybe_written=True)
    second.flush()
    lines = _submits(tmp_path)
    assert len(lines) == len(set(lines)) == 3000


@pytest.mark.parametrize("xml", [False, True], ids=["text", "xml"])
def test_an_older_event_is_looked_for_further_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xml: bool) -> None:
    """The second notice of a group may be older than the first."""
    monkeypatch.setattr(writer, "BLOCK_BYTES", 256)
    facts = _facts(tmp_path, xml=xml)
    first = UserLogs(Clock(), sync=False)
    for day in range(10):
        first.write(0, 7, [day], WHEN_S + day * 86_400, facts)
    first.flush()
    second = UserLogs(Clock(), sync=False)
    second.write(0, 7, [9], WHEN_S + 9 * 86_400, facts, maybe_written=True)
    second.write(0, 7, [0], WHEN_S, facts, maybe_written=True)
    second.write(0, 7, [10], WHEN_S, facts, maybe_written=True)
    second.flush()
    assert len(_submits(tmp_path)) == 11


def test_a_log_of_both_forms_has_each_event_once(tmp_path: Path) -> None:
    """One job of the log writes XML, another one text; each event has its own moment."""
    for again in (False, True):
        logs = UserLogs(Clock(), sync=False)
        for proc, xml in ((0, False), (1, True), (2, True)):
            logs.write(0, 7, [proc], WHEN_S + 0.25 * proc, _facts(tmp_path, xml=xml), maybe_written=again)
            logs.write(12, 7, [proc], WHEN_S + 1, _facts(tmp_path, xml=xml), maybe_written=again)
            logs.write(12, 7, [proc], WHEN_S + 1.5 if xml else WHEN_S + 2, _facts(tmp_path, xml=xml),
                       maybe_written=again)
        logs.flush()
    text = (tmp_path / "job.log").read_text()
    assert len(_submits(tmp_path)) == 3
    assert (text.count("JobHeldEvent"), text.count("\n012 (")) == (4, 2)


@pytest.mark.parametrize("xml", [False, True], ids=["text", "xml"])
def test_an_event_that_a_run_has_once_is_known_with_another_date(tmp_path: Path, xml: bool) -> None:
    """The next shadow of a run that is lost says so later, and in its own words; of the next run it is news."""
    def lost(proc: int, when_s: float, reason: str, since_s: float) -> None:
        facts = _facts(tmp_path, xml=xml)
        facts["DisconnectReason"] = reason
        logs = UserLogs(Clock(), sync=False)
        logs.write(24, 7, [proc], when_s, facts, maybe_written=True, once_since_s=since_s)
        logs.flush()

    for proc, when_s, reason, since_s in (
            (0, 5, "one", 1), (0, 9, "two", 1), (1, 9, "other job", 1), (0, 20, "next run", 10), (0, 21, "again", 10)):
        lost(proc, WHEN_S + when_s, reason, WHEN_S + since_s)
    text = (tmp_path / "job.log").read_text()
    found = [reason for reason in ("one", "two", "other job", "next run", "again") if reason in text]
    assert found == ["one", "other job", "next run"]


class FullFiles(LogFiles):
    """A disk that can be full."""

    full = False

    def append(self, path: str, data: bytes, *, lock: bool, sync: bool) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().append(path, data, lock=lock, sync=sync)


def test_events_wait_for_room(tmp_path: Path) -> None:
    files = FullFiles()
    logs = UserLogs(Clock(), sync=False, files=files)
    facts = _facts(tmp_path)
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.flush()
    files.full = True
    logs.write(0, 7, [1], WHEN_S, facts)
    logs.flush()
    assert "No space left" in logs.problem(facts)
    files.full = False
    assert logs.problem(facts) == ""
    logs.write(0, 7, [2], WHEN_S, facts)
    logs.flush()
    assert [line[5:16] for line in _submits(tmp_path)] == ["007.000.000", "007.001.000", "007.002.000"]


class Pool:
    """Workers whose work comes back when the test says so."""

    def __init__(self) -> None:
        self.under_way: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def run(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        self.under_way.append((lambda: function(*arguments), result))
        return result

    def work(self, number: int = 0) -> None:
        function, result = self.under_way.pop(number)
        try:
            result.callback(function())
        except OSError:
            result.errback(Failure())


def test_the_last_event_of_a_log_waits_for_room_too(tmp_path: Path) -> None:
    """Nothing comes after it that would have it tried again."""
    clock, files, kept, written = Clock(), FullFiles(), list[str](), list[str]()
    logs = UserLogs(clock, sync=False, files=files)
    facts = _facts(tmp_path)
    files.full = True
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.when_written(log_paths(facts), lambda: written.append("given up"))
    logs.when_kept(log_paths(facts), lambda: kept.append("kept"), lambda: kept.append("waits"))
    for _ in range(200):
        clock.advance(1.0)
    assert (written, kept) == (["given up"], ["waits"])
    files.full = False
    clock.advance(LONGEST_RETRY_S)
    assert [line[5:16] for line in _submits(tmp_path)] == ["007.000.000"]
    assert kept == ["waits", "kept"]
    assert logs.is_idle
    assert not clock.getDelayedCalls()


def test_nobody_keeps_events_for_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    """Its folder has gone, say: they are written when it is there again, and wait for that no longer than a writer."""
    clock, kept = Clock(), list[str]()
    logs = UserLogs(clock, sync=False)
    facts = _facts(tmp_path / "gone")
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.when_kept(log_paths(facts), lambda: kept.append("given up"), lambda: kept.append("waits"))
    clock.advance(MOMENT_S)
    assert kept == ["given up"]
    (tmp_path / "gone").mkdir()
    clock.advance(RETRY_S)
    assert len(_submits(tmp_path / "gone")) == 1


def test_one_log_does_not_wait_for_another(tmp_path: Path) -> None:
    pool, told = Pool(), list[str]()
    logs = UserLogs(Clock(), sync=False, in_worker=pool.run)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        logs.write(0, 7, [0], WHEN_S, _facts(tmp_path / name))
        logs.when_written(log_paths(_facts(tmp_path / name)), partial(told.append, name))
    logs.flush()
    pool.work(1)
    assert told == ["b"]
    pool.work()
    assert told == ["b", "a"]


def test_groups_that_someone_waits_for_keep_their_distance(tmp_path: Path) -> None:
    """The first is written at once; what comes soon afterwards shares the next one."""
    clock, pool, told = Clock(), Pool(), list[int]()
    logs = UserLogs(clock, sync=False, in_worker=pool.run)
    facts = _facts(tmp_path)

    def say(number: int) -> None:
        logs.write(0, 7, [number], WHEN_S, facts)
        logs.when_written(log_paths(facts), partial(told.append, number))

    say(0)
    clock.advance(0)
    pool.work()
    assert told == [0]
    for number in (1, 2, 3):
        clock.advance(PACE_S / 4)
        say(number)
    assert pool.under_way == []
    clock.advance(PACE_S / 4)
    assert len(pool.under_way) == 1
    pool.work()
    assert told == [0, 1, 2, 3]
    clock.advance(PACE_S)
    say(4)
    clock.advance(0)
    pool.work()
    assert told == [0, 1, 2, 3, 4]


def test_a_stuck_log_is_given_up_and_written_once(tmp_path: Path) -> None:
    """What the stuck worker was writing appears once, before what came later."""
    pool, told = Pool(), list[int]()
    logs = UserLogs(Clock(), sync=False, in_worker=pool.run)
    facts = _facts(tmp_path)
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.when_written(log_paths(facts), partial(told.append, 0))
    logs.flush()
    (function, result), late = pool.under_way.pop(), Deferred[Any]()
    result.errback(NoAnswer("no answer", str(tmp_path / "job.log"), late))
    assert told == [0]
    logs.write(0, 7, [1], WHEN_S, facts)
    logs.when_written(log_paths(facts), partial(told.append, 1))
    logs.flush()
    assert (told, pool.under_way) == ([0, 1], [])
    late.callback(function())
    logs.flush()
    pool.work()
    assert [line[5:16] for line in _submits(tmp_path)] == ["007.000.000", "007.001.000"]


def test_a_lock_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    clock, told = Clock(), list[int]()
    logs = UserLogs(clock, sync=False)
    facts = _facts(tmp_path)
    with (tmp_path / "job.log").open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        for number in range(2):
            logs.write(0, 7, [number], WHEN_S, facts)
            logs.when_written(log_paths(facts), partial(told.append, number))
            clock.advance(1.0)
        assert told == []
        clock.pump([1.0] * 40)
        assert told == [0, 1]
    logs.write(0, 7, [2], WHEN_S, facts)
    logs.flush()
    assert [line[5:16] for line in _submits(tmp_path)] == ["007.000.000", "007.001.000", "007.002.000"]


def test_what_waits_for_a_stuck_log_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "KEPT_BYTES", 10_000)
    pool = Pool()
    logs = UserLogs(Clock(), sync=False, in_worker=pool.run)
    facts = _facts(tmp_path)
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.flush()
    (function, result), late = pool.under_way.pop(), Deferred[Any]()
    result.errback(NoAnswer("no answer", str(tmp_path / "job.log"), late))
    for _ in range(50):
        logs.write(0, 7, range(1, 100), WHEN_S, facts)
        logs.flush()
    late.callback(function())
    logs.flush()
    while pool.under_way:
        pool.work()
    assert 1 <= len(_submits(tmp_path)) < 400


def test_a_log_that_was_just_written_needs_no_look(tmp_path: Path) -> None:
    files, clock = FullFiles(), Clock()
    logs = UserLogs(clock, sync=False, files=files)
    facts = _facts(tmp_path)
    assert not logs.lately_written(facts)
    assert logs.lately_written(ClassAd()), "a job without a log has none that could be in the way"
    logs.write(0, 7, [0], WHEN_S, facts)
    logs.flush()
    assert logs.lately_written(facts)
    clock.advance(LATELY_S)
    assert not logs.lately_written(facts)
    logs.write(0, 7, [1], WHEN_S, facts)
    logs.flush()
    files.full = True
    logs.write(0, 7, [2], WHEN_S, facts)
    logs.flush()
    assert not logs.lately_written(facts), "nor one that was just refused"


@pytest.mark.parametrize(("facts", "paths"), [
    ({"UserLog": "a.log", "Iwd": "/home/alice"}, ("/home/alice/a.log",)),
    ({"UserLog": "/logs/a.log", "Iwd": "/home/alice"}, ("/logs/a.log",)),
    ({"UserLog": "a.log"}, ("/a.log",)),
    ({"UserLog": "/dev/null", "Iwd": "/home/alice"}, ()),
    ({"UserLog": "", "Iwd": "/home/alice"}, ()),
    ({"UserLog": 7, "Iwd": "/home/alice"}, ()),
    ({"Iwd": "/home/alice"}, ()),
    ({"UserLog": "a.log", "Iwd": 7}, ("/a.log",)),
    ({"UserLog": parse_expression('strcat("a", ".log")'), "Iwd": "/home/alice"}, ("/home/alice/a.log",)),
    ({"UserLog": "a.log", "DAGManNodesLog": "nodes.log", "Iwd": "/w"}, ("/w/a.log", "/w/nodes.log")),
    ({"UserLog": "/dev/null", "DAGManNodesLog": "nodes.log", "Iwd": "/w"}, ("/w/nodes.log",)),
    ({"UserLog": "nodes.log", "DAGManNodesLog": "/w/nodes.log", "Iwd": "/w"}, ("/w/nodes.log",)),
])
def test_where_a_jobs_logs_are(facts: dict[str, Any], paths: tuple[str, ...]) -> None:
    for _ in range(2):
        assert log_paths(ClassAd(facts)) == paths
        assert log_paths(ClassAd(parent=ClassAd(facts))) == paths
