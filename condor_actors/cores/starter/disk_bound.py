"""How much disk a run may use, which limit that is, and what a job is told that has used more.

Theory: with STARTD_ENFORCE_DISK_LIMITS a run has the disk of its slot: what it asked for.  Otherwise it has
JOB_DISK_LIMIT, by default its processors' share of the machine's disk, so an honest job that asked for too little goes
on and none takes the machine.  Beside that, no run takes what JOB_DISK_LEAVES keeps free for everyone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from condor_actors.cores.starter.run_events import too_much

if TYPE_CHECKING:
    from condor_actors.classads import ClassAd, Expr

__all__ = ["DiskBound", "DiskSettings", "bound_of", "floor_kib"]

REQUEST, LIMIT = "RequestDisk", "JOB_DISK_LIMIT"


@attrs.frozen(kw_only=True)
class DiskSettings:
    """What the configuration says.

    Attributes:
        enforce: a run has no more than its slot's disk (STARTD_ENFORCE_DISK_LIMITS).
        limit: JOB_DISK_LIMIT, over the slot's ad, in KiB; None: any amount.
        leaves_kib: JOB_DISK_LEAVES.
    """

    enforce: bool = False
    limit: Expr | None = None
    leaves_kib: int = 0


@attrs.frozen
class DiskBound:
    """The disk of one run.

    Attributes:
        own_kib: its slot's; limit_kib: what it may use, 0: any amount.
        name: of the parameter or attribute that says so.
        leaves_kib: what JOB_DISK_LEAVES keeps free.
        slot_name: where it runs.
    """

    own_kib: int
    limit_kib: int
    name: str
    leaves_kib: int
    slot_name: str

    @property
    def watched(self) -> bool:
        """Whether there is anything to look at."""
        return self.limit_kib > 0 or self.leaves_kib > 0

    @property
    def strict(self) -> bool:
        """Whether it is held to what it asked for."""
        return self.name == REQUEST

    def exceeded(self, used_kib: int) -> str:
        """A sentence, with the numbers and the remedy, when that is more than it may use; empty: it is not."""
        if not 0 < self.limit_kib < used_kib:
            return ""
        if self.strict:
            return too_much("disk", used_kib, self.limit_kib, REQUEST, self.slot_name)
        return (f"The job used {_mb(used_kib)} of disk on {self.slot_name}, where a job may use {_mb(self.limit_kib)} "
                f"({LIMIT}), and was killed. Its slot has {_mb(self.own_kib)} for it: with as large a request_disk as "
                "it needs it runs where there is room.")

    def is_to_blame(self, used_kib: int, floor: int) -> bool:
        """Whether a disk with less than ``floor`` KiB left is this job's fault: it has used more than its slot's disk,
        if it is not held to that by as much as is to stay free."""
        beyond_kib = used_kib - self.own_kib
        return beyond_kib > 0 if self.strict else beyond_kib >= max(1, floor)

    def takes_room(self, used_kib: int, floor: int) -> tuple[str, bool]:
        """Why it is ended when less than ``floor`` KiB are left, and whether it is the job's fault."""
        left = f"less than {_mb(floor)} were left there (JOB_DISK_LEAVES)"
        if self.is_to_blame(used_kib, floor):
            return (f"The job used {_mb(used_kib)} of disk on {self.slot_name}, of {_mb(self.own_kib)} that were its "
                    f"own (RequestDisk), until {left}, and was killed. With as large a request_disk as it needs it "
                    "runs where there is room."), True
        return (f"The disk of {self.slot_name} is nearly full: {left}. The job, which used {_mb(used_kib)}, makes room "
                "and is tried again."), False

    def __str__(self) -> str:
        """As a log says it."""
        left = f"{_mb(self.leaves_kib)} stay free" if self.leaves_kib else ""
        limit = f"{_mb(self.limit_kib)} ({self.name}, looked at)" if self.limit_kib else "any amount"
        return f"{limit}, {left}" if left else limit if self.limit_kib else "as it is"


def bound_of(settings: DiskSettings, slot: ClassAd, slot_name: str) -> DiskBound:
    """The disk of the runs on a slot, whose ad it is."""
    own_kib = max(0, slot.get_int("Disk", 0))
    if settings.enforce:
        return DiskBound(own_kib, own_kib, REQUEST, settings.leaves_kib, slot_name)
    return DiskBound(own_kib, _limit_kib(settings.limit, slot, own_kib), LIMIT, settings.leaves_kib, slot_name)


def floor_kib(leaves_kib: int, total_kib: int) -> int:
    """How much of a disk stays free: what is said, at most a twentieth of it."""
    return min(leaves_kib, total_kib // 20)


def _limit_kib(limit: Expr | None, slot: ClassAd, own_kib: int) -> int:
    """JOB_DISK_LIMIT for a slot; what is no number is as good as the slot's disk."""
    found = limit.evaluate(slot) if limit is not None else 0
    if isinstance(found, bool) or not isinstance(found, int | float) or not found < 1 << 62:
        return own_kib
    return max(0, int(found))


def _mb(kib: int) -> str:
    return f"{-(-kib // 1024):,} MB"
