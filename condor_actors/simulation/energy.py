"""What a pool's machines save when they sleep: the same weeks twice, always on and with HIBERNATE.

Theory: whole daemons in simulated time, owners as in 1988 (:mod:`condor_actors.simulation.cores.owners`), and a batch
of jobs each morning.  A machine computes for its owner or for a job, stands idle, or sleeps; each has its power, so
energy is what the hours add up to.  The owners' hours are the same both times, and so are the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from condor_actors.simulation.cores.owners import Visit, visits_of_all
from condor_actors.simulation.cores.workload import DAY_S, HOUR_S
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission, run

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool

__all__ = ["Energy", "Plan", "Watts", "compare", "measure"]

TOUCH_S = 300.0
"""How often an owner who is there touches the machine."""
BATCH_S = 10 * HOUR_S
"""When on a day jobs are submitted."""
CONFIG = {
    "START": "KeyboardIdle > 900", "PREEMPT": "KeyboardIdle < 120", "POLLING_INTERVAL": "300",
    "UPDATE_INTERVAL": "3600",
    "HIBERNATE": 'ifThenElse(State == "Unclaimed" && KeyboardIdle > 1800 && time() - EnteredCurrentState > 900, "RAM", '
                 '"NONE")',
    "HIBERNATION_OVERRIDE_WOL": "true", "ROOSTER_INTERVAL": "300",
}
CHECK_S = 300


@attrs.frozen
class Watts:
    """What a machine takes: while it computes, stands idle, sleeps."""

    busy: float = 120.0
    idle: float = 60.0
    asleep: float = 3.0


@attrs.frozen(kw_only=True)
class Plan:
    """What is simulated.

    Attributes:
        machines: how many; days: how long; seed: of owners and chance.
        jobs: of an hour, for each machine and day.
    """

    machines: int = 4
    days: int = 7
    jobs: int = 2
    seed: int = 1


@attrs.frozen(kw_only=True)
class Energy:
    """What came of it, in hours of one machine.

    Attributes:
        busy_h, idle_h, asleep_h: of all machines.
        completed: jobs; wait_s: how long one waited on average until it began.
    """

    busy_h: float
    idle_h: float
    asleep_h: float
    completed: int
    wait_s: float

    def kwh(self, watts: Watts) -> float:
        """The energy."""
        return (self.busy_h * watts.busy + self.idle_h * watts.idle + self.asleep_h * watts.asleep) / 1000.0


def measure(plan: Plan, *, sleeps: bool) -> Energy:
    """Simulate the plan, with machines that sleep or without."""
    span_s = plan.days * DAY_S
    owners = visits_of_all(plan.machines, plan.seed, span_s)
    result = run(_scenario(plan, owners, span_s, sleeps=sleeps))
    assert result.pool is not None
    workers = [machine for machine in result.pool.machines.values() if machine.spec.executes]
    ended_s = result.simulated_s
    owner_s = sum(min(until_s, ended_s) - from_s for each in owners for from_s, until_s in each if from_s < ended_s)
    busy_h = (owner_s + sum(job.cpu_s for job in result.jobs.values())) / HOUR_S
    asleep_h = sum(machine.asleep_s() for machine in workers) / HOUR_S
    waits_s = [job.first_start_s - job.submitted_s for job in result.jobs.values() if job.first_start_s is not None]
    return Energy(busy_h=busy_h, asleep_h=asleep_h, idle_h=len(workers) * ended_s / HOUR_S - busy_h - asleep_h,
                  completed=result.completed, wait_s=sum(waits_s) / max(1, len(waits_s)))


def compare(plan: Plan, watts: Watts, progress: Callable[[float], None] = lambda done: None) -> str:
    """The same weeks always on and with machines that sleep, as a table."""
    on = measure(plan, sleeps=False)
    progress(0.5)
    sleeping = measure(plan, sleeps=True)
    progress(1.0)
    rows: Sequence[tuple[str, Callable[[Energy], str]]] = (
        ("jobs done", lambda each: f"{each.completed:,}"),
        ("mean wait of a job, min", lambda each: f"{each.wait_s / 60.0:,.1f}"),
        ("hours computing or used by owners", lambda each: f"{each.busy_h:,.0f}"),
        ("hours idle", lambda each: f"{each.idle_h:,.0f}"),
        ("hours asleep", lambda each: f"{each.asleep_h:,.0f}"),
        ("energy, kWh", lambda each: f"{each.kwh(watts):,.0f}"),
    )
    lines = [f"{plan.machines} machines, {plan.days} days, {plan.jobs} jobs of an hour for each a day, "
             f"seed {plan.seed}",
             f"{watts.busy:g} W busy, {watts.idle:g} W idle, {watts.asleep:g} W asleep", "",
             f"{'':36}{'always on':>12}{'sleeping':>12}"]
    lines += [f"{title:36}{shown(on):>12}{shown(sleeping):>12}" for title, shown in rows]
    saved = 100.0 * (1.0 - sleeping.kwh(watts) / on.kwh(watts))
    return "\n".join([*lines, "", f"saved: {on.kwh(watts) - sleeping.kwh(watts):,.0f} kWh, {saved:.0f} %"])


def _scenario(plan: Plan, owners: Sequence[Sequence[Visit]], span_s: float, *, sleeps: bool) -> Scenario:
    machines = tuple(MachineSpec(f"m{number}") for number in range(1, plan.machines + 1))
    batch = plan.jobs * plan.machines
    days = plan.days
    submissions = tuple(Submission(when_s=day * DAY_S + BATCH_S, owner="alice", machine="m0", count=batch, cpu_s=HOUR_S)
                        for day in range(days))

    def prepare(pool: Pool) -> None:
        for spec, visits in zip(machines, owners, strict=True):
            for from_s, until_s in visits:
                pool.clock.callLater(from_s, _touches, pool, pool.machines[spec.name], until_s)

    return Scenario(
        seed=plan.seed, span_s=span_s, drain=False, checks=False, submissions=submissions, prepare=prepare,
        machines=(MachineSpec("m0", central=True, submits=True, executes=False, rooster=sleeps), *machines),
        config={**CONFIG, "HIBERNATE_CHECK_INTERVAL": str(CHECK_S if sleeps else 0)})


def _touches(pool: Pool, machine: SimulatedMachine, until_s: float) -> None:
    machine.touch()
    if pool.clock.now_s + TOUCH_S < until_s:
        pool.clock.callLater(TOUCH_S, _touches, pool, machine, until_s)
