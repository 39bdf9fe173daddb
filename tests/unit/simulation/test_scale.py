"""The measurements of large pools, on small ones."""

from __future__ import annotations

import json

import pytest

from condor_actors.simulation.cores.scale import header, line, measure, measure_cycle


def test_a_small_pool_does_its_jobs() -> None:
    result = measure(20, jobs_per_machine=4, hours=2.0, kinds=3, budget_s=60.0)
    assert result.simulated_h == pytest.approx(2.0)
    assert 40 <= result.completed <= 80
    assert result.cycles >= 1
    assert result.first_cycle_s > 0.0
    assert json.loads(result.to_json())["machines"] == 20
    assert len(line(result).split()) >= len(header().split()) - 5


def test_a_budget_ends_a_run() -> None:
    assert measure(20, hours=100.0, budget_s=0.0).simulated_h < 1.0


def test_a_cycle_gives_every_machine() -> None:
    result = measure_cycle(200, 5)
    assert result.matches == 200
    assert result.cycle_s > 0.0
    assert result.again_s > 0.0


def test_sizes_are_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        measure(0)
