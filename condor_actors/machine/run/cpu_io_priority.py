"""A run's share of processor and disk, and how to leave it only idle processor and disk time.

Theory: the kernel knows two ways.  A control group has weights (``cpu.weight``, ``io.weight``) and can be idle as a
whole (``cpu.idle``): nothing of the run escapes it, and the groups above it are idle too where all their runs are.  A
process has a scheduling class (SCHED_IDLE) and an I/O class (idle), which its children inherit.  Groups are used where
there are any, the I/O class always (schedulers without weights obey it), the scheduling class where no group can
be idle.  Out of SCHED_IDLE the kernel lets a process only if RLIMIT_NICE allows its nice value, or root asks; a process
that could not be brought back is not lowered.  What was done is returned in words, so that a machine that can do little
says so.

Source: sched(7), setrlimit(2), ioprio_set(2), the kernel's admin-guide/cgroup-v2.
"""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Iterable

import attrs
import psutil

from condor_actors.machine.run.cgroups import JobCgroup

__all__ = ["NORMAL_WEIGHT", "Share", "apply_share"]

NORMAL_WEIGHT = 100
LOWEST_NICE_LIMIT = 20
"""RLIMIT_NICE of this value allows nice 0; each one more allows one less."""


@attrs.frozen(kw_only=True)
class Share:
    """What a run gets where others want the same.

    Attributes:
        cpu_weight: for the whole run; 100 is a process group's ordinary weight.
        io_weight: likewise of disk time, 1 to 1000; None: as it is.
        idle: only idle processor and disk time.
    """

    cpu_weight: int = NORMAL_WEIGHT
    io_weight: int | None = None
    idle: bool = False


def apply_share(share: Share, cgroup: JobCgroup | None, pids: Iterable[int]) -> tuple[str, ...]:
    """Give a run its share; what of it the kernel took: ``cpu.idle``, ``cpu.weight``, ``io.weight``, ``idle i/o`` …"""
    done = list(cgroup.share(share.cpu_weight, 1 if share.idle else share.io_weight, share.idle)) if cgroup else []
    group_is_idle = any(word.startswith("cpu.idle") for word in done)
    io_done = class_done = stuck = kept = False
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError, ValueError):
            psutil.Process(pid).ionice(psutil.IOPRIO_CLASS_IDLE if share.idle else psutil.IOPRIO_CLASS_NONE)
            io_done = True
        if not group_is_idle:
            taken = _schedule(pid, share.idle)
            class_done |= taken
            stuck |= not taken and not share.idle and _is_idle(pid)
            kept |= not taken and share.idle and psutil.pid_exists(pid)
    if share.idle and io_done:
        done.append("idle i/o")
    if share.idle and class_done:
        done.append("SCHED_IDLE")
    if kept:
        done.append("not SCHED_IDLE: without root or RLIMIT_NICE a process does not come out of it again")
    if stuck:
        done.append("still SCHED_IDLE: only root may take a process out of it")
    return tuple(done)


def _is_idle(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.sched_getscheduler(pid) == os.SCHED_IDLE
    return False


def _may_come_back(pid: int) -> bool:
    """Whether a process may leave SCHED_IDLE again; its soft RLIMIT_NICE is raised for that as far as it may be."""
    if os.geteuid() == 0:
        return True
    needed = LOWEST_NICE_LIMIT - os.getpriority(os.PRIO_PROCESS, pid)
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NICE)
    if resource.RLIM_INFINITY not in (soft, hard) and soft < needed <= hard:
        resource.prlimit(pid, resource.RLIMIT_NICE, (needed, hard))
        soft = needed
    return soft == resource.RLIM_INFINITY or soft >= needed


def _schedule(pid: int, idle: bool) -> bool:
    """The scheduling class of every thread of a process; whether the kernel took it."""
    done = False
    policy = os.SCHED_IDLE if idle else os.SCHED_OTHER
    with contextlib.suppress(OSError):
        if idle and not _may_come_back(pid):
            return False
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                if os.sched_getscheduler(int(thread)) != policy:
                    os.sched_setscheduler(int(thread), policy, os.sched_param(0))
                done = True
    return done
