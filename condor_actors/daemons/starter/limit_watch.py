"""Holds a run to its memory and disk, where nobody else does.

Theory: a control group's limit of memory is the kernel's affair.  Without one the processes are looked at again and
again, which a burst of allocation may outrun: so the log says which of the two is in force.  Disk is the affair of
:class:`~condor_actors.daemons.starter.disk_watch.DiskWatch`, and is measured with the run's reports as well.  A burst
may fill the disk before it is noticed: a program that fails then, and has not taken more than its own, begins again,
whether or not disk is limited.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.disk_bound import floor_kib
from condor_actors.daemons.starter.hooks.job_wrapper import failure_in, wrapper_of
from condor_actors.messages.codes import HoldSubCode
from condor_actors.messages.run import Usage

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter
    from condor_actors.machine.run.launch import Ended

__all__ = ["LimitWatch"]

WATCH_S = 1.0
FULL_KIB = 1 << 10
"""A file system with less room than that is full."""


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
        self._stands = self._clears = self._wrapper_looked = False
        self.memory_in_force = "none" if not held else "control group" if grouped else f"looked at every {WATCH_S:g} s"

    def begin(self) -> None:
        """The run has begun; what holds for all runs of its claim is told with the first."""
        starter, claim = self._starter, self._starter.claim
        self._wrapper_looked = False
        if self._watches:
            starter.context.set_timer("watch", WATCH_S)
        if starter.sandbox is not None and not claim.disk.watched:
            starter.edges.disk.begin_unlimited(starter.run_id, claim.disk.own_kib)
        elif starter.sandbox is not None:
            starter.edges.disk.begin(
                starter.run_id, claim.disk, starter.sandbox, pids=starter.pids,
                used=starter.context.as_turn(self._uses), stands=starter.context.as_turn(self._stand),
                makes_room=starter.context.as_turn(self._make_room))
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
            disk=str(claim.disk),
            parts=", ".join(settings.confine) or "nothing")

    def look(self) -> None:
        """Look at the memory now, and again soon."""
        starter = self._starter
        if starter.core.state not in jr.ALIVE or starter.processes is None:
            return
        limit_kib = starter.claim.memory_mib << 10
        memory_kib = starter.processes.measure().memory_kib
        if memory_kib > limit_kib:
            text = jr.too_much("memory", memory_kib, limit_kib, "RequestMemory", starter.claim.slot_name)
            starter.decide(jr.Measured(starter.usage(), text, HoldSubCode.MEMORY_EXCEEDED))
        else:
            starter.context.set_timer("watch", WATCH_S)

    def of_disk(self, usage: Usage) -> str:
        """A sentence when the run uses more disk than it may; empty: it does not."""
        return self._starter.claim.disk.exceeded(usage.disk_kib)

    def _make_room(self, used_kib: int, floor_kib: int) -> None:
        """The disk is nearly full, and this run has taken most of it."""
        starter = self._starter
        if starter.core.state in jr.ALIVE:
            usage = attrs.evolve(starter.usage(), disk_kib=used_kib)
            text, to_blame = starter.claim.disk.takes_room(used_kib, floor_kib)
            starter.context.log.warn("run {run}: {why}", run=starter.run_id, why=text)
            starter.decide(jr.Measured(usage, text, HoldSubCode.DISK_EXCEEDED if to_blame else 0))

    def _uses(self, disk_kib: int) -> None:
        """The scratch directory was looked through."""
        starter = self._starter
        if starter.core.state in jr.ALIVE:
            usage = attrs.evolve(starter.usage(), disk_kib=disk_kib)
            text = self.of_disk(usage)
            if text:
                starter.decide(jr.Measured(usage, text, HoldSubCode.DISK_EXCEEDED))

    def _stand(self, stands: bool) -> None:
        """The processes stand still while their files are looked through, or go on, unless another wish keeps them."""
        starter = self._starter
        if stands == self._stands or starter.processes is None or starter.core.state not in jr.ALIVE:
            return
        self._stands = stands
        if not starter.core.suspended:
            (starter.processes.freeze if stands else starter.processes.thaw)()

    def cleared(self, ended: Ended | None) -> None:
        """No process of the run is left: say so; where the program has failed, after a look at the disk."""
        starter = self._starter
        if not self._wrapper_looked and wrapper_of(starter) and starter.sandbox is not None:
            self._wrapper_looked = True
            work = starter.held.in_thread(partial(failure_in, starter.sandbox))
            starter.context.defer_to_turn(work, lambda found: self._wrapper_said(ended, found))
            return
        had_room = starter.edges.disk.had_room(starter.run_id)
        if not (had_room and starter.core.failed and starter.sandbox is not None):
            self._tree_gone(ended)
        elif not self._clears:
            self._clears = True
            sandbox, host, path = starter.sandbox, starter.edges.host, starter.edges.root.path

            def disk() -> tuple[int, int, int]:
                free_kib, total_kib = host.disk_room(path)
                return free_kib, total_kib, sandbox.size_kib() if free_kib < FULL_KIB else 0

            starter.context.defer_to_turn(starter.held.in_thread(disk), lambda found: self._disk_at_end(ended, found))

    def _wrapper_said(self, ended: Ended | None, failure: Any) -> None:
        """What has ended was the job, or a wrapper that could not start it."""
        starter = self._starter
        if starter.core.state is not jr.StarterState.CLEARING:
            return
        if isinstance(failure, Failure):
            failure = ""
        if failure:
            starter.decide(jr.TreeGone(starter.usage(), slot_name=starter.claim.slot_name, unstarted=(
                f"Error from {starter.claim.slot_name}: USER_JOB_WRAPPER did not start the job: {failure}")))
        else:
            self.cleared(ended)

    def _disk_at_end(self, ended: Ended | None, found: Any) -> None:
        starter, bound = self._starter, self._starter.claim.disk
        self._clears = False
        if starter.core.state is not jr.StarterState.CLEARING:
            return
        free_kib, total_kib, used_kib = (FULL_KIB, 0, 0) if isinstance(found, Failure) else found
        if free_kib >= FULL_KIB:
            self._tree_gone(ended)
        elif used_kib > bound.own_kib:
            over = jr.too_much("disk", used_kib, bound.own_kib, "RequestDisk", starter.claim.slot_name)
            to_blame = bound.is_to_blame(used_kib, floor_kib(bound.leaves_kib, total_kib))
            self._tree_gone(ended, over_disk=over if to_blame else "", disk_kib=used_kib)
        else:
            self._tree_gone(ended, no_room=(
                f"The disk of {starter.claim.slot_name} is full, and others have filled it: the job, which failed "
                f"there, used {-(-used_kib // 1024):,} MB of {bound.own_kib >> 10:,} MB that were its own."))

    def _tree_gone(self, ended: Ended | None, *, no_room: str = "", over_disk: str = "", disk_kib: int = 0) -> None:
        starter, processes = self._starter, self._starter.processes
        usage, oom = starter.usage(), False
        if disk_kib:
            usage = attrs.evolve(usage, disk_kib=disk_kib)
        if processes is not None and ended is not None and ended.exit_code != 0:
            oom = processes.killed_for_memory()
        starter.decide(jr.TreeGone(usage, oom, starter.claim.memory_mib, starter.claim.slot_name, no_room,
                                   over_disk))
