"""What the startd reads of its machine's owner, on plain files in place of terminals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from twisted.internet.testing import MemoryReactorClock

from condor_actors.machine.sensors import sensors
from condor_actors.machine.sensors.sensors import HostSensors


def test_a_typist_costs_one_look_at_the_jobs_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand keys are not a thousand walks through /proc; a terminal that is made anew is looked at anew."""
    (tmp_path / "pts").mkdir()
    looks: list[int] = []

    def looked(root: int) -> frozenset[str]:
        looks.append(root)
        return frozenset({"tty:pts/1"})

    monkeypatch.setattr(sensors, "own_terminals", looked)
    for name in ("0", "1"):
        (tmp_path / "pts" / name).write_text("typed")
    read = HostSensors({"terminals"}, dev=str(tmp_path))
    told: list[str] = []
    read.start(MemoryReactorClock(), lambda word: told.append(word.source), os.getpid)
    try:
        for _ in range(1000):
            read._touched("tty:pts/0")
            read._touched("tty:pts/1")
        assert told == ["tty:pts/0"] * 1000
        assert looks == [os.getpid()] * 2
        new = tmp_path / "pts" / "new"
        new.write_text("typed by another")
        new.replace(tmp_path / "pts" / "0")
        read._touched("tty:pts/0")
        assert len(looks) == 3
    finally:
        read.stop()
