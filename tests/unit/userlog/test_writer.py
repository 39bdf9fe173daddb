"""Events that may have been written before a crash appear once, however many one notice stands for."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.task import Clock

from condor_actors.classads import ClassAd
from condor_actors.userlog import writer
from condor_actors.userlog.writer import LogFiles, UserLogs

WHEN_S = 1_700_000_000.0


def _facts(folder: Path) -> ClassAd:
    return ClassAd({"Iwd": str(folder), "UserLog": "job.log", "SubmitHost": "<127.0.0.1:9618>"})


def _submits(folder: Path) -> list[str]:
    return [line for line in (folder / "job.log").read_text().splitlines() if line.startswith("000 ")]


@pytest.mark.parametrize("written", [0, 1, 2999, 3000])
def test_a_large_cluster_is_logged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int) -> None:
    """The writer died after some of them; the log's end that is read first has but a few."""
    monkeypatch.setattr(writer, "BLOCK_BYTES", 512)
    facts = _facts(tmp_path)
    first = UserLogs(Clock(), sync=False)
    first.write(0, 7, range(written), WHEN_S, facts)
    first.flush()
    second = UserLogs(Clock(), sync=False)
    second.write(0, 7, range(3000), WHEN_S, facts, maybe_written=True)
    second.write(0, 7, range(3000), WHEN_S, facts, maybe_written=True)
    second.flush()
    lines = _submits(tmp_path)
    assert len(lines) == len(set(lines)) == 3000


def test_an_older_event_is_looked_for_further_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second notice of a group may be older than the first."""
    monkeypatch.setattr(writer, "BLOCK_BYTES", 256)
    facts = _facts(tmp_path)
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
