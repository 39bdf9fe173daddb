"""The totals of a pool that the collector's own ad carries: machines by state, jobs, and resources."""

from __future__ import annotations

from collections.abc import Iterable

from condor_actors.classads import ClassAd

__all__ = ["pool_totals"]

STATES = ("Owner", "Unclaimed", "Matched", "Claimed", "Preempting", "Backfill", "Drained")


def pool_totals(slots: Iterable[ClassAd], schedds: Iterable[ClassAd], submitters: int) -> dict[str, int]:
    """Sum up a pool.

    Args:
        slots: the ads of all slots.
        schedds: the ads of all schedds.
        submitters: how many submitter ads there are.

    Returns:
        Attributes of the collector's ad.
    """
    by_state = dict.fromkeys(STATES, 0)
    total = cpus = cpus_used = memory_mib = memory_used_mib = 0
    for slot in slots:
        total += 1
        state = slot.get_str("State")
        if state in by_state:
            by_state[state] += 1
        if slot.get_str("SlotType", "Static") != "Dynamic":
            cpus += slot.get_int("TotalSlotCpus", slot.get_int("Cpus"))
            memory_mib += slot.get_int("TotalSlotMemory", slot.get_int("Memory"))
        if state == "Claimed":
            cpus_used += slot.get_int("Cpus")
            memory_used_mib += slot.get_int("Memory")
    schedds = tuple(schedds)
    totals = {f"Hosts{state}": count for state, count in by_state.items()}
    return {
        "HostsTotal": total, **totals, "TotalCpus": cpus, "CpusInUse": cpus_used, "TotalMemory": memory_mib,
        "MemoryInUse": memory_used_mib, "NumSchedds": len(schedds), "NumSubmitters": submitters,
        "RunningJobs": sum(ad.get_int("TotalRunningJobs") for ad in schedds),
        "IdleJobs": sum(ad.get_int("TotalIdleJobs") for ad in schedds),
        "HeldJobs": sum(ad.get_int("TotalHeldJobs") for ad in schedds),
    }
