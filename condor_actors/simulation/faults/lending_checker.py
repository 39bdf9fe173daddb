"""What must hold between pools that lend each other machines.

Theory: both rules are about pools as they are, not as their daemons believe them to be: the claims are the startds'
own, the waiting jobs the schedds' own.  While a fault lasts, and for as long as an ad or a lease may outlive what it
tells of, a central manager may not know what is lent; so the rules are held against a pool that is left in peace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from condor_actors.daemons.schedd.schedd_actor import ScheddActor
from condor_actors.daemons.startd_actor import StartdActor
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.flock_terms import BELOW
from condor_actors.messages.realm import parted

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool

__all__ = ["LendingChecker"]

CALM_S = 1000.0
"""The longest lease, and a little."""
BEYOND_S = 90.0
"""So long a pool may have more than its quota: a look of the negotiator's, and what a job may take to leave."""
WAIT_S = 300.0
"""So long a local job may wait while guests have what it could run on."""


class LendingChecker:
    """Looks at all pools of a world in each round."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._since: dict[tuple[str, str], float] = {}
        self.most: dict[tuple[str, str], float] = {}
        """The most that a pool had of another, by (lender, borrower)."""

    def look(self) -> None:
        """Compare what is lent with the terms, and with who waits at home."""
        pool = self._pool
        if not pool.scenario.terms:
            return
        lent: Counter[tuple[str, str]] = Counter()
        waiting: Counter[str] = Counter()
        for machine, actor in self._actors():
            own = machine.spec.pool
            if isinstance(actor, StartdActor):
                for slot in actor.core.claims:
                    realm = parted(slot.claim.record.submitter)[1] if slot.claim is not None else ""
                    if realm:
                        lent[own, realm] += slot.ad.get_int("Cpus", 1)
            else:
                waiting[own] += sum(job.ready and job.status == JobStatus.IDLE
                                    for job in actor.core.context.queue.jobs())
        now_s = pool.clock.now_s
        is_calm = now_s > pool.faults.last_s + CALM_S or not pool.faults.faults
        for (own, other), terms in pool.scenario.terms.items():
            held = lent[own, other]
            self.most[own, other] = max(self.most.get((own, other), 0.0), float(held))
            beyond = is_calm and 0.0 <= terms.quota < held
            self._watch((f"{own} < {other}", "quota"), beyond, BEYOND_S,
                        f"the pool {other} has {held} cores of {own}, whose quota is {terms.quota:g}")
            blocked = is_calm and terms.rank == BELOW and held > 0 and waiting[own] > 0
            self._watch((f"{own} < {other}", "local"), blocked, WAIT_S,
                        f"{waiting[own]} local jobs of {own} wait while {other} has {held} cores there")

    def _watch(self, key: tuple[str, str], is_so: bool, most_s: float, text: str) -> None:
        now_s = self._pool.clock.now_s
        if not is_so:
            self._since.pop(key, None)
        elif now_s - self._since.setdefault(key, now_s) > most_s:
            self._pool.violate(f"for {most_s:g} s: {text}")

    def _actors(self) -> Iterator[tuple[SimulatedMachine, Any]]:
        for machine in self._pool.machines.values():
            for process in machine.processes.values():
                actor = process.system.actor(process.kind) if process.system is not None else None
                if isinstance(actor, (StartdActor, ScheddActor)):
                    yield machine, actor
