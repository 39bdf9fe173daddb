"""Several pools in one world, which lend each other machines: by chance, from one number."""

from __future__ import annotations

from random import Random

from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.simulation.faults.chance import QUICK
from condor_actors.simulation.faults.fault_chances import random_schedule
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission

__all__ = ["random_federation"]


LATE_S = 2500.0
"""So long work comes after the faults: the rules of lending are for pools that are left in peace."""


def random_federation(seed: int, pools: int = 3, machines: int = 4, faults: int | None = None,
                      raises: bool = False) -> Scenario:
    """So many pools, each with so many machines that run jobs, all of them partners, with work unevenly spread.

    Args:
        seed: says everything else.
        pools: how many; machines: that run jobs, in each.
        faults: how many; None: chance says.
        raises: whether turns and edges of actors may raise as well.
    """
    random = Random(f"federation {seed}")
    names = [f"p{number}" for number in range(pools)]
    terms = {(own, other): FlockTerms(quota=float(random.choice((-1, 0, 1, 2, 3)))) for own in names for other in names
             if own != other}
    specs = []
    for name in names:
        others = [other for other in names if other != name]
        random.shuffle(others)
        flocks = {"FLOCK_TO": " ".join(others), "FLOCK_FROM": " ".join(others)}
        specs.append(MachineSpec(f"{name}c", central=True, submits=True, executes=False, pool=name, config=flocks))
        specs += [MachineSpec(f"{name}x{number}", pool=name, cpus=random.choice((1, 1, 2)), memory_mib=4096,
                              config=flocks) for number in range(machines)]
    end_s = round(random.uniform(300.0, 900.0), 3)
    submissions = tuple(
        Submission(when_s=round(random.uniform(5.0, end_s + LATE_S), 3), owner=random.choice(("alice", "bob")),
                   machine=f"{random.choice((names[0], *names))}c", count=random.choice((1, 3, 5, 10)),
                   cpu_s=round(random.choice((20.0, 60.0, 300.0, 1500.0)) * random.uniform(0.5, 1.5), 3))
        for _ in range(random.randrange(2 * pools, 4 * pools)))
    count = random.randrange(0, 2 * len(specs)) if faults is None else faults
    schedule = random_schedule(random, specs, 1.0, end_s, count, raises)
    return Scenario(seed=seed, machines=tuple(specs), submissions=submissions, release_s=97.0, terms=terms,
                    faults="\n".join(map(str, schedule)), span_s=end_s + 4 * 3600.0,
                    config={**QUICK, "JOB_DEFAULT_LEASE_DURATION": str(random.choice((120, 300, 900)))},
                    delay_s=random.choice((0.0002, 0.005, 0.05)))
