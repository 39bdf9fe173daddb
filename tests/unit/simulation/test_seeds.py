"""Many seeds in several processes: the same sum whatever their number, and a failure tells all that is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.cores.schedd.runs.run_facts import RunFacts
from condor_actors.simulation.command import main
from condor_actors.simulation.faults import seeds
from condor_actors.simulation.faults.chance import random_scenario
from condor_actors.simulation.faults.kept_seeds import KeptSeeds, Outcome
from condor_actors.simulation.faults.kinds import WorldKind
from condor_actors.simulation.faults.seeds import Sum, run_seeds


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
    account = RunFacts.account

    def twice(self: RunFacts, ended: object, message: object) -> None:
        account(self, ended, message)  # type: ignore[arg-type]
        account(self, ended, message)  # type: ignore[arg-type]

    monkeypatch.setattr(RunFacts, "account", twice)
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


def test_turns_may_raise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.jsonl"
    assert main(["seeds", "--first", "1", "--count", "4", "--machines", "4", "--raises", "--keep", str(path)]) == 0
    assert "with 4 machines, raising" in capsys.readouterr().out
    assert '"raises": true' in path.read_text()
    assert any(" raise m" in random_scenario(seed, 4, raises=True).faults for seed in range(1, 5))


def test_what_is_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept.jsonl"
    kept = KeptSeeds(path, "c0ffee", (4,))
    once = run_seeds(1, 6, machines=(4,), kept=kept)
    kept.close()
    with path.open("ab") as file:
        file.write(b'{"commit": "c0f')  # killed while it wrote
    run: list[int] = []
    monkeypatch.setattr(seeds, "_some", lambda first, number, *_: run.append(first) or Outcome(number, 0, 0.0))
    again = KeptSeeds(path, "c0ffee", (4,))
    assert run_seeds(1, 6, machines=(4,), kept=again) == once
    assert not run
    run_seeds(1, 10, machines=(4,), kept=again)
    assert run == [5, 9]  # the last piece was of two seeds, and is of four now
    again.close()
    for commit, machines, raises in (("decaf", (4,), False), ("c0ffee", (6,), False), ("c0ffee", (4,), True)):
        other = KeptSeeds(path, commit, machines, WorldKind(raises=raises))
        assert other.find(1, 4) is None
        other.close()
    assert path.read_text().count("\n") == 4


def test_failures_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    for outcome in (Outcome(4, 10, 0.5, ((7, "two\nlines"),)), Outcome(4, 0, 0.0)):
        kept = KeptSeeds(path, "c0ffee", (20,))
        kept.add(5, outcome)  # the second is known already
        kept.close()
    kept = KeptSeeds(path, "c0ffee", (20,))
    assert kept.find(5, 4) == Outcome(4, 10, 0.5, ((7, "two\nlines"),))
    kept.close()


@pytest.mark.parametrize("line", ["nonsense", "[]", '{"first": 1}', "12"])
def test_another_file_is_refused(tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{line}\n")
    assert main(["seeds", "--count", "1", "--machines", "4", "--keep", str(path)]) == 2
    assert f"{path}:1: not a line that" in capsys.readouterr().err
    assert path.read_text() == f"{line}\n"
