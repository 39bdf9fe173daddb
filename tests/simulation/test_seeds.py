"""Pools of chance with every fault on: no rule is broken, every job is done in the end."""

from __future__ import annotations

import os
import time

import pytest

from condor_actors.simulation.chance import random_scenario
from condor_actors.simulation.scenario import run

FIRST = int(os.environ.get("SIMULATION_FIRST_SEED", "1000000"))
SECONDS = float(os.environ.get("SIMULATION_SECONDS", "600"))
SEEDS = int(os.environ.get("SIMULATION_SEEDS", "1000000"))


def check(seed: int, machines: int) -> None:
    """One seed."""
    result = run(random_scenario(seed, machines))
    assert not result.violations, f"seed {seed} with {machines} machines: {result.violations[0]}"


@pytest.mark.parametrize("seed", range(6))
def test_small_pools(seed: int) -> None:
    check(seed, 6)


def test_a_pool_of_twenty_machines() -> None:
    check(6, 20)


@pytest.mark.soak
def test_many_seeds() -> None:
    """For SIMULATION_SECONDS, or SIMULATION_SEEDS seeds from SIMULATION_FIRST_SEED on."""
    end_s = time.monotonic() + SECONDS
    seed = FIRST
    while seed < FIRST + SEEDS and time.monotonic() < end_s:
        check(seed, (4, 6, 8, 20)[seed % 4])
        seed += 1
    print(f"{seed - FIRST} seeds")
