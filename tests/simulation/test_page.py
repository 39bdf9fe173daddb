"""The page's daemon in simulated pools: what it shows is the queue, no matter which process dies."""

from __future__ import annotations

import pytest

from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, Wish, run

MACHINES = (MachineSpec("m0", central=True, submits=True, executes=False, web=True),
            MachineSpec("m1", submits=True, executes=False), *(MachineSpec(f"m{number}") for number in range(2, 5)))


def scenario(faults: str) -> Scenario:
    """Two schedds, thirty jobs, some of them held and removed on the way."""
    return Scenario(
        seed=11, machines=MACHINES, span_s=4 * 3600.0, faults=faults, release_s=97.0,
        submissions=tuple(Submission(when_s=30.0 + 200 * number, owner="alice", machine=f"m{number % 2}", count=10,
                                     cpu_s=60.0) for number in range(3)),
        wishes=(Wish(when_s=150.0, owner="alice", machine="m0", action="hold", constraint="ProcId > 6"),
                Wish(when_s=260.0, owner="alice", machine="m1", action="remove", constraint="ProcId == 9")))


@pytest.mark.parametrize("faults", [
    "", "at 120s crash m0/web", "at 120s crash m0/schedd\nat 300s crash m1/schedd", "at 200s crash m0/collector",
    "at 100s raise m0/web before 3\nat 200s raise m0/web after 3",
])
def test_the_page_shows_the_queue(faults: str) -> None:
    result = run(scenario(faults))
    assert not result.violations
    assert result.pool.checkers.pages_compared > 5
