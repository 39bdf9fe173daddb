"""Pools of chance with every fault on: no rule is broken, every job is done in the end."""

from __future__ import annotations

import os
import time

import pytest

from condor_actors.simulation.faults.chance import random_scenario
from condor_actors.simulation.faults.seeds import run_seeds
from condor_actors.simulation.world.scenario import run
from tests.harness.seeds import some_of

SIZES = (4, 6, 6, 6, 6, 6, 8, 20)


def check(seed: int, machines: int) -> None:
    """One seed."""
    result = run(random_scenario(seed, machines))
    assert not result.violations, f"seed {seed} with {machines} machines: {result.violations[0]}"


@pytest.mark.parametrize("seed", some_of(range(6), every_run=2))
def test_small_pools(seed: int) -> None:
    check(seed, 6)


def test_a_pool_of_twenty_machines() -> None:
    check(6, 20)


@pytest.mark.soak
def test_many_seeds() -> None:
    """Fresh ones: for SIMULATION_SECONDS (600), or SIMULATION_SEEDS of them from SIMULATION_FIRST_SEED on."""
    first = int(os.environ.get("SIMULATION_FIRST_SEED", "0")) or int(time.time())
    seconds = float(os.environ.get("SIMULATION_SECONDS", "600"))
    number = int(os.environ.get("SIMULATION_SEEDS", "0")) or None
    done = run_seeds(first, number, machines=SIZES, seconds=seconds)
    print(f"{done.seeds} seeds from {first} on, {done.events} events, {done.cpu_s:.0f} s of processor time")
    assert not done.failures, "\n\n".join(text for _, text in done.failures)
