"""Holds a run to the memory and disk that it asked for, where nobody else does.

Theory: a control group's limit of memory is the kernel's affair.  Without one the processes are looked at again and
again, which a burst of allocation may outrun: so the log says which of the two is in force.  Disk is measured with the
run's reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.cores.starter import job_run as jr
from condor_actors.messages.codes import HoldSubCode
from condor_actors.messages.run import Usage

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["LimitWatch"]

WATCH_S = 1.0


class LimitWatch:
    """Looks at one run.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        claim, settings = starter.claim, starter.edges.settings
        held = settings.memory_policy == "hard" and claim.memory_mib > 0
        grouped = claim.cgroup is not None and claim.cgroup.limits_memory
        self._watches = held and not grouped
        self.memory_in_force = "none" if not held else "control group" if grouped else f"looked at every {WATCH_S:g} s"

    def begin(self) -> None:
        """The run has begun; what holds for all runs of its claim is told with the first."""
        starter, claim = self._starter, self._starter.claim
        if self._watches:
            starter.context.set_timer("watch", WATCH_S)
        if claim.limits_told:
            return
        claim.limits_told = True
        settings = starter.edges.settings
        counted = claim.cgroup is not None and claim.cgroup.counts_processes
        starter.context.log.info(
            "limits of the runs on {slot}: memory {memory} MB ({how}), processes {processes} ({who}), disk {disk}; "
            "shut in by {parts}", slot=claim.slot_name, memory=claim.memory_mib, how=self.memory_in_force,
            processes=settings.run.max_processes or "any number",
            who="control group" if counted else "limit of the account",
            disk=f"{claim.disk_kib >> 10} MB" if settings.enforce_disk else "as it is",
            parts=", ".join(settings.confine) or "nothing")

    def look(self) -> None:
        """Look at the memory now, and again soon."""
        starter = self._starter
        if starter.core.state not in jr.ALIVE or starter.processes is None:
            return
        limit_kib = starter.claim.memory_mib << 10
        memory_kib = starter.processes.measure().memory_kib
        if memory_kib > limit_kib:
            starter.decide(jr.Measured(starter.usage(), jr.too_much("memory", memory_kib, limit_kib, "RequestMemory"),
                                       HoldSubCode.MEMORY_EXCEEDED))
        else:
            starter.context.set_timer("watch", WATCH_S)

    def of_disk(self, usage: Usage) -> str:
        """A sentence when the run uses more disk than it may; empty: it does not."""
        limit_kib = self._starter.claim.disk_kib
        if not self._starter.edges.settings.enforce_disk or usage.disk_kib <= limit_kib:
            return ""
        return jr.too_much("disk", usage.disk_kib, limit_kib, "RequestDisk")
