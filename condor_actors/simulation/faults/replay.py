"""One seed of the world of whole daemons again, or many one after another."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from condor_actors.simulation.faults.chance import random_scenario, shrink
from condor_actors.simulation.faults.faults import parse_schedule
from condor_actors.simulation.faults.federations import random_federation
from condor_actors.simulation.faults.gang_checker import has_gangs, use_of
from condor_actors.simulation.faults.gangs import random_gangs
from condor_actors.simulation.faults.kinds import WorldKind
from condor_actors.simulation.faults.sites import random_sites
from condor_actors.simulation.faults.workflows import random_workflows
from condor_actors.simulation.world.scenario import Result, Scenario, run

__all__ = ["commit", "replay", "report_of", "scenario_of"]

USUAL = WorldKind()


def commit() -> str:
    """The commit that this program is of, with ``-dirty`` if it was changed since; empty outside of a repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, text=True, capture_output=True, timeout=10,
                              check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def scenario_of(seed: int, machines: int, faults: int | None, schedule: str | None,
                trace: Callable[[str], None] | None, kind: WorldKind = USUAL) -> Scenario:
    """What a seed means.

    Args:
        seed, machines, faults: see :func:`condor_actors.simulation.faults.chance.random_scenario`.
        kind: of world; ``machines`` means nothing on the map of 1994.
        schedule: faults in their own language instead of those of chance; trace: takes each line of what happens.

    Raises:
        BadSchedule: the schedule is not understood.
    """
    if kind.scale:
        scenario = random_sites(seed, kind.scale, faults, kind.raises)
    elif kind.pools > 1:
        scenario = random_federation(seed, kind.pools, machines, faults, kind.raises)
    elif kind.workflows:
        scenario = random_workflows(seed, machines, faults, kind.raises)
    elif kind.gangs:
        scenario = random_gangs(seed, machines, faults, kind.raises)
    else:
        scenario = random_scenario(seed, machines, faults, kind.raises)
    scenario = attrs.evolve(scenario, trace=trace)
    if schedule is None:
        return scenario
    parse_schedule(schedule, [spec.name for spec in scenario.machines])
    return attrs.evolve(scenario, faults=schedule)


def report_of(result: Result, minimal: Scenario | None) -> str:
    """What came of a seed, with what is needed to see it again."""
    scenario = result.scenario
    of = commit()
    lines = [
        f"seed {scenario.seed}{f', commit {of}' if of else ''}: {result.completed} of {len(result.jobs)} jobs done in "
        f"{result.simulated_s:.0f} simulated seconds, {result.events} events, {result.wall_s:.1f} s",
        f"trace {result.digest}"]
    if has_gangs(scenario):
        use = use_of(result)
        lines.append(f"the jobs took {use.took_s:.0f} s, and no order of them less than {use.best_s:.0f} s: "
                     f"{use.use:.0%} of the machines' time was their work, at most {use.best_use:.0%} could have been")
    lines += [f"VIOLATION {text}" for text in result.violations]
    if result.violations:
        shown = minimal or scenario
        lines += [f"{'smallest ' if minimal else ''}schedule of faults:", *(f"  {line}" for line in
                                                                           shown.faults.splitlines())]
    return "\n".join(lines)


def replay(seeds: Iterable[int], *, machines: int = 20, faults: int | None = None, schedule: str | None = None,
           kind: WorldKind = USUAL, smallest: bool = False, trace: Callable[[str], None] | None = None,
           say: Callable[[str], None] = lambda text: None) -> int:
    """Run the seeds; returns how many of them violated anything.

    Args:
        seeds: which; the others: see :func:`scenario_of`.
        smallest: whether to look for fewer faults and submissions that still fail.
        say: takes the report of each.
    """
    failed = 0
    for seed in seeds:
        scenario = scenario_of(seed, machines, faults, schedule, trace, kind)
        result = run(scenario)
        failed += bool(result.violations)
        say(report_of(result, shrink(attrs.evolve(scenario, trace=None)) if result.violations and smallest else None))
    return failed
