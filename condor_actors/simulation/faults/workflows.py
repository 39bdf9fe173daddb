"""Workflows by chance, from one number: DAGs with splices, retries, scripts, limits, and a pool that fails them."""

from __future__ import annotations

from random import Random
from typing import Any

import attrs

from condor_actors.simulation.faults.chance import random_scenario
from condor_actors.simulation.faults.faults import Fault, parse_schedule
from condor_actors.simulation.world.scenario import Scenario, Workflow

__all__ = ["random_dag", "random_workflows"]

AMBUSHED_BY = ("submission.ClusterReserved", "submission.Submitted", "submission.Submitted", "queue.JobsPage")
"""Answers that condor_dagman may die of."""


def random_workflows(seed: int, machines: int = 6, faults: int | None = None, raises: bool = False) -> Scenario:
    """A pool as of that seed, with workflows beside its jobs, and condor_dagman killed more often than anything else.

    Args:
        seed: says everything else.
        machines, faults, raises: see :func:`~condor_actors.simulation.faults.chance.random_scenario`.
    """
    usual = random_scenario(seed, machines, faults, raises)
    random = Random(f"workflows of {seed}")
    places = [spec.name for spec in usual.machines if spec.submits]
    flows = tuple(
        Workflow(when_s=round(random.uniform(5.0, 60.0), 3), owner=random.choice(("alice", "bob")),
                 machine=random.choice(places), files=random_dag(random), seed=random.getrandbits(32),
                 jobs=random.choice((0, 1, 3)), idle=random.choice((0, 0, 4)), pre=random.choice((0, 1)),
                 post=random.choice((0, 1)))
        for _ in range(random.choice((1, 1, 2))))
    kills = [_kill(random, flow) for flow in flows for _ in range(random.randrange(20) if faults is None else faults)]
    names = [spec.name for spec in usual.machines]
    schedule = sorted([*parse_schedule(usual.faults, names), *kills], key=lambda fault: fault.when_s)
    return attrs.evolve(usual, workflows=flows, wishes=(), submissions=usual.submissions[:2],
                        span_s=usual.span_s + 8 * 3600.0, faults="\n".join(map(str, schedule)))


def _kill(random: Random, flow: Workflow) -> Fault:
    """Something that befalls the condor_dagman of a workflow."""
    kind = random.choice(("crash", "ambush", "ambush", "die", "freeze"))
    facts: dict[str, Any] = {}
    if kind == "ambush":
        facts = {"message": random.choice(AMBUSHED_BY), "moment": random.choice(("kill", "kill", "reset"))}
    elif kind == "die":
        facts = {"moment": random.choice(("before", "after"))}
    elif kind == "freeze":
        facts = {"span_s": round(random.uniform(1.0, 90.0), 3)}
    return Fault(kind=kind, daemon="dagman", target=flow.machine,
                 when_s=round(random.uniform(flow.when_s, 900.0), 3), **facts)


def random_dag(random: Random) -> dict[str, str]:
    """A DAG of some nodes and splices: its files by name, the first one first."""
    files = {"x.dag": "", **{f"part{number}.dag": _nodes(random, f"p{number}n", random.randrange(2, 5))
                             for number in range(random.choice((0, 1, 2)))}}
    lines = [_nodes(random, "n", random.randrange(3, 9))]
    for number in range(len(files) - 1):
        lines += [f"SPLICE S{number} part{number}.dag", f"PARENT n0 CHILD S{number}"]
        if random.random() < 0.5:
            lines.append(f"PARENT S{number} CHILD n2")
    if random.random() < 0.5:
        lines.append(f"MAXJOBS few {random.randrange(1, 3)}")
    if random.random() < 0.3:
        lines.append("FINAL last x.sub")
    files["x.dag"] = "\n".join(lines)
    return files


def _nodes(random: Random, prefix: str, count: int) -> str:
    lines = []
    for number in range(count):
        node = f"{prefix}{number}"
        lines.append(f"JOB {node} x.sub{' NOOP' * (random.random() < 0.1)}")
        for which in ("PRE", "POST"):
            if random.random() < 0.25:
                defer = "DEFER 9 5 " if random.random() < 0.3 else ""
                lines.append(f"SCRIPT {defer}{which} {node} program $RETRY")
        if random.random() < 0.5:
            lines.append(f"RETRY {node} {random.randrange(1, 4)}{' UNLESS-EXIT 3' * (random.random() < 0.3)}")
        if random.random() < 0.3:
            lines.append(f"CATEGORY {node} few")
        if random.random() < 0.3:
            lines.append(f"PRIORITY {node} {random.randrange(-3, 4)}")
        lines += [f"{'WEAK ' * (random.random() < 0.15)}PARENT {prefix}{parent} CHILD {node}"
                  for parent in range(number) if random.random() < 0.3]
    return "\n".join(lines)
