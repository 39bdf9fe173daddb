"""Many seeds in several processes: the same sum whatever their number, and a failure tells all that is needed."""

from __future__ import annotations

import pytest

from condor_actors.cores.run_table import Runs
from condor_actors.simulation.command import main
from condor_actors.simulation.seeds import Sum, run_seeds


def test_workers_change_nothing() -> None:
    seen: list[int] = []
    one = run_seeds(1, 6, machines=(4,))
    two = run_seeds(1, 6, machines=(4,), workers=2, progress=lambda so_far: seen.append(so_far.seeds))
    assert not one.failures
    assert (one.seeds, one.events, one.failures) == (two.seeds, two.events, two.failures)
    assert seen == [4, 6]


def test_no_time_is_no_seed() -> None:
    assert run_seeds(1, None, seconds=0.0) == Sum()


def test_a_failure_is_made_small_and_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    account = Runs._account

    def twice(self: Runs, ended: object, message: object) -> None:
        account(self, ended, message)  # type: ignore[arg-type]
        account(self, ended, message)  # type: ignore[arg-type]

    monkeypatch.setattr(Runs, "_account", twice)
    assert main(["seeds", "--first", "3", "--count", "1", "--machines", "4"]) == 1
    said = capsys.readouterr().out
    assert "VIOLATION at" in said
    assert "CumulativeRemoteUserCpu" in said
    assert "smallest schedule of faults:" in said
    assert "the story of job m" in said
    assert "program of run" in said
    assert "again: condor_simulate --seed 3 --machines 4 --smallest --trace" in said
    assert "failed: 3" in said


def test_seeds_that_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["seeds", "--first", "2", "--count", "2", "--machines", "4"]) == 0
    said = capsys.readouterr().out
    assert "seeds 2 to 3 with 4 machines" in said
    assert "0 failed" in said
