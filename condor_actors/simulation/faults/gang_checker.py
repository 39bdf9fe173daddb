"""What must hold of gangs: none waits for another one forever, and what they gather is not kept idle.

Theory: a deadlock of gangs is a pool in which nothing moves: machines are free or claimed for gangs, no program runs,
and jobs wait.  A gang that cannot have all its machines gives them back after UNUSED_CLAIM_TIMEOUT and stands aside,
longer after each failure; so a pool that is whole, without owners and faults, must have begun something long
before :data:`LONGEST_S`.  What the gangs' machines did is added up besides: `GangUse` compares it with what the best
order of them could have done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from condor_actors.daemons.schedd.schedd_actor import ScheddActor
from condor_actors.messages.codes import JobStatus

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool
    from condor_actors.simulation.world.scenario import Result, Scenario

__all__ = ["GangChecker", "GangUse", "has_gangs", "use_of"]

LONGEST_S = 1800.0
"""For how long nothing may run while gangs wait and no owner is there: fifteen times UNUSED_CLAIM_TIMEOUT."""
OWNER_S = 120.0
"""For so long after the last input no job begins on a desktop."""
NOTICED_S, GOES_ON_S = 15.0, 90.0
"""How long after an owner came a job may still compute there, and how long after the last input one goes on at last."""


class GangChecker:
    """Checks that the gangs of a pool do not wait for one another.

    Attributes:
        longest_s: the longest time in which gangs waited, and nothing ran.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._has_gangs = has_gangs(pool.scenario)
        self._since_s: float | None = None
        self.longest_s = 0.0

    def look(self) -> None:
        """Whether gangs wait, and nothing runs although it could."""
        pool = self._pool
        now_s = pool.clock.now_s
        waiting = self._waiting() if self._has_gangs and now_s > pool.faults.last_s and self._all_is_free() else ""
        if not waiting:
            self._since_s = None
            return
        if self._since_s is None:
            self._since_s = now_s
        waited_s = now_s - self._since_s
        self.longest_s = max(self.longest_s, waited_s)
        if waited_s > LONGEST_S:
            pool.violate(f"gangs wait for each other: nothing has run for {waited_s:.0f} s, and {waiting} is idle",
                         waiting)

    def _all_is_free(self) -> bool:
        """Whether every machine could run jobs, and none does."""
        return not any(machine.jobs or self._has_owner(machine) for machine in self._pool.machines.values())

    def _has_owner(self, machine: SimulatedMachine) -> bool:
        return machine.spec.kbdd and self._pool.clock.now_s - machine.last_input_s < OWNER_S

    def _waiting(self) -> str:
        """A gang that is idle; empty: there is none."""
        for machine in self._pool.machines.values():
            process = machine.find("schedd")
            actor = process.system.actor("schedd") if process is not None and process.system is not None else None
            for job in actor.core.context.queue.jobs() if isinstance(actor, ScheddActor) else ():
                if job.ready and job.status == JobStatus.IDLE and job.ad.get_int("MinHosts", 0) > 1:
                    return f"{machine.name}/{job.name}"
        return ""


def has_gangs(scenario: Scenario) -> bool:
    """Whether any job has several nodes."""
    return any("MinHosts" in each.ad for each in scenario.submissions)


@attrs.frozen(kw_only=True)
class GangUse:
    """How well machines were used, beside the best that there could have been.

    Attributes:
        work_s: seconds of machines that the jobs needed, all nodes of the gangs included.
        took_s: from the first submission to the end of the last job.
        best_s: a bound below which no order of the jobs could have ended: the work divided by the machines that owners
            left, or the longest job, whichever is more.
        machines: how many.
    """

    work_s: float
    took_s: float
    best_s: float
    machines: int

    @property
    def use(self) -> float:
        """The part of all machines' time that was work which counted."""
        return self.work_s / (self.took_s * self.machines)

    @property
    def best_use(self) -> float:
        """What it could have been at most."""
        return self.work_s / (self.best_s * self.machines)


def use_of(result: Result) -> GangUse:
    """How well the machines of a scenario of gangs were used."""
    scenario = result.scenario
    machines = sum(spec.executes for spec in scenario.machines)
    work_s = sum(each.cpu_s * each.count * int(each.ad.get("MinHosts", "1")) for each in scenario.submissions)
    began_s = min(each.when_s for each in scenario.submissions)
    ended_s = max(result.simulated_s if job.completed_s is None else job.completed_s for job in result.jobs.values())
    longest_s = max(each.cpu_s for each in scenario.submissions)
    best_s = max(longest_s, _time_for(work_s, machines, _owners_times(result), began_s))
    return GangUse(work_s=work_s, took_s=ended_s - began_s, best_s=best_s, machines=machines)


def _owners_times(result: Result) -> list[tuple[float, float]]:
    """From when to when an owner keeps a machine from jobs, less than that rather than more; no two of one machine."""
    by_machine: dict[str, list[tuple[float, float]]] = {}
    for fault in sorted(result.pool.faults.faults, key=lambda fault: fault.when_s):
        if fault.kind != "owner":
            continue
        begins_s, ends_s = fault.when_s + NOTICED_S, fault.end_s + GOES_ON_S
        spans = by_machine.setdefault(fault.target, [])
        if spans and begins_s <= spans[-1][1]:
            begins_s, ends_s = spans[-1][0], max(ends_s, spans.pop()[1])
        spans.append((begins_s, ends_s))
    return [span for spans in by_machine.values() for span in spans]


def _time_for(work_s: float, machines: int, owners: list[tuple[float, float]], began_s: float) -> float:
    """In how much time so much work fits on what the owners leave of the machines."""
    low_s, high_s = 0.0, work_s / machines + sum(ends_s - begins_s for begins_s, ends_s in owners)
    for _ in range(60):
        middle_s = (low_s + high_s) / 2
        until_s = began_s + middle_s
        taken_s = sum(max(0.0, min(ends_s, until_s) - max(begins_s, began_s)) for begins_s, ends_s in owners)
        if middle_s * machines - taken_s < work_s:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s
