"""Machines that sleep in a simulated pool: woken by demand and by owners, whatever dies meanwhile."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from condor_actors.simulation.world.scenario import MachineSpec, Result, Scenario, Submission, run
from tests.harness.seeds import some_of

CONFIG = {
    "HIBERNATE_CHECK_INTERVAL": "60", "HIBERNATION_OVERRIDE_WOL": "true", "ROOSTER_INTERVAL": "60",
    "HIBERNATE": 'ifThenElse(State == "Unclaimed" && KeyboardIdle > 300 && time() - EnteredCurrentState > 300, "RAM", '
                 '"NONE")',
}
MACHINES = (MachineSpec("m0", central=True, submits=True, executes=False, rooster=True),
            *(MachineSpec(f"m{number}", cpus=2) for number in range(1, 4)))
LATER = Submission(when_s=28_900.0, owner="alice", machine="m0", count=4, cpu_s=600.0)
NIGHT = Scenario(seed=3, machines=MACHINES, config=CONFIG, span_s=12 * 3600.0, submissions=(LATER,))


def pool_of(result: Result) -> Any:
    assert not result.violations, result.violations
    return result.pool


def test_machines_sleep_until_there_are_jobs_and_no_more_wake_than_are_wanted() -> None:
    result = run(attrs.evolve(NIGHT, config={**CONFIG, "ROOSTER_INTERVAL": "300"}))
    pool = pool_of(result)
    assert result.completed == 4
    slept_h = sorted(machine.asleep_s() / 3600.0 for machine in pool.machines.values() if machine.spec.executes)
    assert slept_h[0] > 7.5, "all slept until there was something to do"
    assert slept_h[2] - slept_h[0] > 0.15, "two of the three do"
    assert 20.0 <= pool.checkers.sleep.longest_s < 400.0


def test_a_rooster_that_wakes_nobody_is_found() -> None:
    result = run(attrs.evolve(NIGHT, config={**CONFIG, "ROOSTER_UNHIBERNATE": "false"}))
    (violation,) = result.violations
    assert "and all machines sleep" in violation


def test_without_a_rooster_nobody_is_woken_and_an_owner_wakes_the_machine_by_hand() -> None:
    central = attrs.evolve(MACHINES[0], rooster=False)
    result = run(attrs.evolve(NIGHT, machines=(central, *MACHINES[1:]), faults="at 10h owner m2 for 5m", drain=True))
    pool = pool_of(result)
    assert result.completed == 4
    first_s = min(job.first_start_s or 0.0 for job in result.jobs.values())
    assert 10 * 3600.0 < first_s < 10.5 * 3600.0
    assert pool.machines["m1"].asleep_s() > 10 * 3600.0
    assert pool.machines["m2"].slept_s > 9 * 3600.0


FAULTS = """
at 900s crash m0/collector
at 1500s power m0 for 60s
at 2000s power m2 for 5m
at 7h crash m0/negotiator
at 8h crash m0/rooster
at 28830s crash m0/collector
at 28850s cut m0 m1 for 120s
at 28900s crash m0/schedd
at 29000s crash m1/startd
at 29100s freeze m2/startd for 100s
at 29300s power m3 for 60s
"""


@pytest.mark.parametrize("seed", some_of(range(1, 5)))
def test_every_job_runs_whatever_dies(seed: int) -> None:
    more = Submission(when_s=28_950.0, owner="bob", machine="m0", count=5, cpu_s=900.0)
    result = run(attrs.evolve(NIGHT, seed=seed, faults=FAULTS, submissions=(LATER, more)))
    pool_of(result)
    assert result.completed == 9
