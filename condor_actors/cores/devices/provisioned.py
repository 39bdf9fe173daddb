"""What a job's ad says of the resources that it asked for beside processors, memory and disk."""

from __future__ import annotations

from condor_actors.classads import ClassAd

__all__ = ["provisioned"]

LONGEST_UNITS = 4096
_USUAL = ("Cpus", "Memory", "Disk", "Swap")


def provisioned(slot: ClassAd, job: ClassAd) -> dict[str, int | str]:
    """``<NAME>Provisioned`` and ``Assigned<NAME>`` of a slot, for what the job asked for and nothing else."""
    found: dict[str, int | str] = {}
    for name in slot.get_str("MachineResources").split():
        if name.isidentifier() and name not in _USUAL and job.find(f"request{name.lower()}") is not None:
            found[f"{name}Provisioned"] = slot.get_int(name)
            found[f"Assigned{name}"] = slot.get_str(f"Assigned{name}")[:LONGEST_UNITS]
    return found
