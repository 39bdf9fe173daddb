"""Gangs by chance, from one number: jobs of several machines, of one schedd or two, whose machines' owners return."""

from __future__ import annotations

from random import Random

import attrs

from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.faults.fault_chances import random_schedule
from condor_actors.simulation.faults.faults import Fault, parse_schedule
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission

__all__ = ["gangs_among_owners", "random_gangs"]

FEWEST, MOST = 2, 8
"""Nodes of a gang."""
GANGS = {**QUICK, "UNUSED_CLAIM_TIMEOUT": "120", "NEGOTIATOR_INTERVAL": "20"}
"""A pool in a hurry, which soon takes back what a gang has gathered that does not become whole."""


def gangs_among_owners(seed: int, number: int, *, machines: int = 16, schedds: int = 1, cpu_s: float = 60.0,
                       owners: int = 20, faults: str = "") -> Scenario:
    """So many gangs of 2 to 8 nodes on machines whose owners come and go, and as many jobs of one machine beside them.

    Args:
        seed: says everything else.
        number: of gangs.
        machines: that run jobs; as many as the largest gang has nodes, at least.
        schedds: whose gangs they are, in turn.
        cpu_s: what a node takes, by half more or less.
        owners: so many visits of owners.
        faults: besides, in the language of faults.
    """
    random = Random(seed)
    specs = (MachineSpec("m0", central=True, submits=True, executes=False),
             *(MachineSpec(f"s{n}", submits=True, executes=False) for n in range(1, schedds)),
             *(MachineSpec(f"m{n}", kbdd=True, config=DESKTOP) for n in range(1, machines + 1)))
    places = ["m0", *(f"s{n}" for n in range(1, schedds))]
    jobs = []
    for n in range(number):
        nodes, policy = random.randint(FEWEST, min(MOST, machines)), random.choice(('"WAIT_FOR_ALL"', '"NODE_0"'))
        jobs.append(Submission(
            when_s=30.0 + random.random() * number, owner=random.choice(("alice", "bob")),
            machine=places[n % schedds], cpu_s=random.uniform(0.5, 1.5) * cpu_s,
            ad={"JobUniverse": "11", "MinHosts": str(nodes), "MaxHosts": str(nodes), "ParallelShutdownPolicy": policy}))
    jobs.append(Submission(when_s=30.0, owner="carol", machine="m0", count=number, cpu_s=cpu_s))
    visits = [f"at {random.uniform(60, 60 + number * 10):.0f}s owner m{random.randint(1, machines)} for "
              f"{random.uniform(60, 600):.0f}s" for _ in range(owners)]
    schedule = parse_schedule("\n".join([*visits, *faults.splitlines()]), [spec.name for spec in specs])
    return Scenario(seed=seed, machines=specs, submissions=tuple(jobs), release_s=97.0, span_s=80_000.0,
                    config=GANGS, faults=_in_order(schedule))


def random_gangs(seed: int, machines: int = 16, faults: int | None = None, raises: bool = False) -> Scenario:
    """A world of gangs: 4 to 12 of them, of one schedd or two that want the same machines, and faults in half.

    Args:
        seed: says everything else.
        machines: that run jobs.
        faults: how many besides the owners' visits; None: none in every other seed, some in the rest.
        raises: whether turns and edges of actors may raise as well.
    """
    random = Random(f"gangs of {seed}")
    usual = gangs_among_owners(
        seed, random.randint(4, 12), machines=max(machines, MOST), schedds=random.choice((1, 2)),
        cpu_s=random.choice((20.0, 60.0, 120.0)), owners=random.randint(5, 25))
    count = random.choice((0, random.randint(1, 12))) if faults is None else faults
    more = random_schedule(random, usual.machines, 1.0, 900.0, count, raises)
    visits = parse_schedule(usual.faults, [spec.name for spec in usual.machines])
    return attrs.evolve(usual, faults=_in_order([*visits, *more]))


def _in_order(faults: list[Fault] | tuple[Fault, ...]) -> str:
    return "\n".join(map(str, sorted(faults, key=lambda fault: fault.when_s)))
