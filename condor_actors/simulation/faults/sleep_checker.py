"""What must hold of machines that sleep: they run nothing, and jobs do not wait for them for long.

Theory: a pool all of whose machines sleep has to run a job as one that is awake does, but for the time that it takes to
wake one: a cycle of the negotiator, a look of the rooster, and more of both when a packet is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.daemons.schedd.schedd_actor import ScheddActor
from condor_actors.messages.codes import JobStatus

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool

__all__ = ["SleepChecker"]

LONGEST_S = 900.0
"""How long a job may wait while all machines sleep."""


class SleepChecker:
    """Checks machines that sleep.

    Attributes:
        longest_s: the longest time that jobs have waited while all machines slept.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._since_s: float | None = None
        self.longest_s = 0.0

    def fell_asleep(self, machine: SimulatedMachine) -> None:
        """A machine sleeps from now on."""
        if machine.jobs:
            self._pool.violate(f"{machine.name} goes to sleep while it runs {len(machine.jobs)} programs")

    def job_started(self, machine: SimulatedMachine) -> None:
        """A program begins."""
        if machine.is_asleep:
            self._pool.violate(f"a program begins at {machine.name}, which sleeps")

    def look(self) -> None:
        """Whether jobs wait, and all machines sleep."""
        pool = self._pool
        workers = [machine for machine in pool.machines.values() if machine.spec.executes]
        is_quiet = pool.clock.now_s > pool.faults.last_s and any(
            machine.find("rooster") is not None for machine in pool.machines.values())
        if not is_quiet or not workers or not all(machine.is_asleep for machine in workers) or not self._jobs_wait():
            self._since_s = None
            return
        if self._since_s is None:
            self._since_s = pool.clock.now_s
        waited_s = pool.clock.now_s - self._since_s
        self.longest_s = max(self.longest_s, waited_s)
        if waited_s > LONGEST_S:
            pool.violate(f"jobs have waited for {waited_s:.0f} s, and all machines sleep")

    def _jobs_wait(self) -> bool:
        for machine in self._pool.machines.values():
            process = machine.find("schedd")
            actor = process.system.actor("schedd") if process is not None and process.system is not None else None
            if isinstance(actor, ScheddActor) and any(
                    job.ready and job.status == JobStatus.IDLE for job in actor.core.context.queue.jobs()):
                return True
        return False
