"""The totals of a pool that the collector's own ad carries: machines by state, jobs, and resources."""

from __future__ import annotations

from collections import Counter

from condor_actors.classads import ClassAd
from condor_actors.messages.advertise import AdKind

__all__ = ["PoolTotals"]

STATES = ("Owner", "Unclaimed", "Matched", "Claimed", "Preempting", "Backfill", "Drained")
NAMES = ("HostsTotal", *(f"Hosts{state}" for state in STATES), "TotalCpus", "CpusInUse", "TotalMemory", "MemoryInUse",
         "NumSchedds", "NumSubmitters", "RunningJobs", "IdleJobs", "HeldJobs")


class PoolTotals:
    """Sums that follow each ad as it comes, changes and goes; nobody walks over all of them."""

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()

    def attributes(self) -> dict[str, int]:
        """Those of the collector's ad."""
        return {name: self._sums[name] for name in NAMES}

    def count(self, ad_kind: AdKind, ad: ClassAd, sign: int) -> None:
        """Add an ad, or take out what it had added.

        Args:
            ad_kind: its table; ad: as it was when it was added; sign: 1 or -1.
        """
        if ad_kind is AdKind.SLOT:
            self._count_slot(ad, sign)
        elif ad_kind is AdKind.SCHEDD:
            self._sums["NumSchedds"] += sign
            for status in ("Running", "Idle", "Held"):
                self._sums[f"{status}Jobs"] += sign * ad.get_int(f"Total{status}Jobs")
        elif ad_kind is AdKind.SUBMITTER:
            self._sums["NumSubmitters"] += sign

    def _count_slot(self, slot: ClassAd, sign: int) -> None:
        sums, state = self._sums, slot.get_str("State")
        sums["HostsTotal"] += sign
        if state in STATES:
            sums[f"Hosts{state}"] += sign
        if slot.get_str("SlotType", "Static") != "Dynamic":
            sums["TotalCpus"] += sign * slot.get_int("TotalSlotCpus", slot.get_int("Cpus"))
            sums["TotalMemory"] += sign * slot.get_int("TotalSlotMemory", slot.get_int("Memory"))
        if state == "Claimed":
            sums["CpusInUse"] += sign * slot.get_int("Cpus")
            sums["MemoryInUse"] += sign * slot.get_int("Memory")
