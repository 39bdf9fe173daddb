"""Gangs in the world of whole daemons: all or none, no deadlock, whatever the owners and the faults do."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, run
from tests.harness.seeds import some_of

MACHINES = 16


def gangs(seed: int, number: int, *, schedds: int = 1, cpu_s: float = 60.0, owners: int = 20,
          faults: str = "") -> Scenario:
    """So many gangs of 2 to 8 on 16 machines whose owners come and go, and some jobs of one machine beside them."""
    random = Random(seed)
    machines = (MachineSpec("m0", central=True, submits=True, executes=False),
                *(MachineSpec(f"s{n}", submits=True, executes=False) for n in range(1, schedds)),
                *(MachineSpec(f"m{n}", kbdd=True, config=DESKTOP) for n in range(1, MACHINES + 1)))
    places = ["m0", *(f"s{n}" for n in range(1, schedds))]
    jobs = []
    for n in range(number):
        nodes, policy = random.randint(2, 8), random.choice(('"WAIT_FOR_ALL"', '"NODE_0"'))
        jobs.append(Submission(
            when_s=30.0 + random.random() * number, owner=random.choice(("alice", "bob")),
            machine=places[n % schedds], cpu_s=random.uniform(0.5, 1.5) * cpu_s,
            ad={"JobUniverse": "11", "MinHosts": str(nodes), "MaxHosts": str(nodes), "ParallelShutdownPolicy": policy}))
    jobs.append(Submission(when_s=30.0, owner="carol", machine="m0", count=number, cpu_s=cpu_s))
    lines = [f"at {random.uniform(60, 60 + number * 10):.0f}s owner m{random.randint(1, MACHINES)} for "
             f"{random.uniform(60, 600):.0f}s" for _ in range(owners)]
    return Scenario(seed=seed, machines=machines, submissions=tuple(jobs), span_s=80_000.0,
                    faults="\n".join(sorted([*lines, *faults.splitlines()], key=lambda line: float(
                        line.split()[1].removesuffix("s")))),
                    config={**QUICK, "UNUSED_CLAIM_TIMEOUT": "120", "NEGOTIATOR_INTERVAL": "20"})


def all_done(scenario: Scenario) -> None:
    result = run(scenario)
    assert result.violations == ()
    left = sorted(name for name, job in result.jobs.items() if job.completed_s is None)
    assert left == [], f"seed {scenario.seed}: {left} after {result.simulated_s} s"


@pytest.mark.parametrize("seed", some_of(range(1, 4)))
def test_all_gangs_of_one_schedd_complete_while_owners_come_and_go(seed: int) -> None:
    all_done(gangs(seed, 15))


@pytest.mark.parametrize("seed", some_of(range(11, 14)))
def test_two_schedds_whose_gangs_want_the_same_machines_do_not_wait_for_ever(seed: int) -> None:
    all_done(gangs(seed, 12, schedds=2))


FAULTS = """\
at 100s crash m0/schedd
at 160s crash m0/shadow-host
at 220s crash m3/starter-host
at 280s power m5 for 60s
at 340s die m0/schedd before commit
at 400s cut m0 m7 for 90s
at 500s crash m0/schedd
at 520s crash m2/startd
at 600s die m0/schedd after commit
"""


@pytest.mark.parametrize("seed", some_of(range(21, 24)))
def test_gangs_stay_whole_whatever_dies(seed: int) -> None:
    all_done(gangs(seed, 10, faults=FAULTS))
