"""The ad of a slot, with HTCondor's attribute names.

Theory: an ad has three layers: facts of the machine (chained, shared by all slots), the slot's resources, and what
changes with state and claim.  Each function below writes one layer; attributes that no longer hold are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.devices.inventory import Inventory, attribute_of
from condor_actors.cores.startd.claims.claim import Claim
from condor_actors.cores.startd.owner_policy import SlotState, SlotStateMachine, State
from condor_actors.cores.startd.slot_resources import Share

__all__ = ["within_limits", "write_claim", "write_devices", "write_readings", "write_share", "write_state"]

CLAIM_NAMES = (
    "RemoteOwner", "RemoteUser", "AccountingGroup", "ClientMachine", "RemoteScheddName", "JobId", "GlobalJobId",
    "JobStart", "CurrentRank", "PublicClaimId", "ImageSize", "ResidentSetSize", "RemoteUserCpu", "DiskUsage",
    "MemoryUsage", "TotalJobRunTime", "NumJobStarts", "TotalClaimRunTime", "JobUniverse", "NiceUser",
    "LastPeriodicCheckpoint", "ConcurrencyLimits", "RemoteNegotiatingGroup", "RemoteAutoregroup", "PreemptingOwner",
)

CLAIM_KEYS = tuple(name.lower() for name in CLAIM_NAMES)
_TIMES: dict[SlotState, str] = {}
"""The name of the attribute that says how long a slot was in a place."""


def within_limits(custom: Iterable[str], shared: Iterable[str] = ()) -> str:
    """The text of WithinResourceLimits: the request fits into what the slot has; ``shared`` resources have units that
    several jobs can have at once, and each job only once."""
    terms = [
        "MY.Cpus > 0 && (TARGET.RequestCpus ?: 1) <= MY.Cpus",
        "MY.Memory > 0 && (TARGET.RequestMemory ?: 1) <= MY.Memory",
        "MY.Disk > 0 && (TARGET.RequestDisk ?: 1) <= MY.Disk",
    ]
    terms += [f"(TARGET.Request{name} ?: 0) <= MY.{name}" for name in custom]
    terms += [f"(TARGET.Request{name} ?: 0) <= MY.Different{name}" for name in shared]
    return " && ".join(terms)


def write_share(ad: ClassAd, share: Share, total: Share, *, requirements: str, weight: str = "Cpus") -> None:
    """The resources: what is there now (``share``) of what belongs to the slot (``total``)."""
    for name, now, whole in (
        ("Cpus", share.cpus, total.cpus), ("Memory", share.memory_mib, total.memory_mib),
        ("Disk", share.disk_kib, total.disk_kib), ("VirtualMemory", share.swap_mib * 1024, total.swap_mib * 1024),
    ):
        ad[name] = now
        ad[f"TotalSlot{name}"] = whole
    resources, shared = ["Cpus", "Memory", "Disk", "Swap"], list[str]()
    for name, have in share.custom.items():
        resources.append(name)
        ad[name] = have.amount
        ad[f"TotalSlot{name}"] = total.custom[name].amount
        if total.custom[name].ids:
            ad[f"Assigned{name}"] = ",".join(total.custom[name].ids)
            if len(set(total.custom[name].ids)) < len(total.custom[name].ids):
                shared.append(name)
                ad[f"Different{name}"] = len(set(have.ids))
    ad["MachineResources"] = " ".join(resources)
    if "Requirements" not in ad:
        ad.insert_text("WithinResourceLimits", within_limits(share.custom, shared))
        ad.insert_text("Requirements", requirements)
        ad["SlotWeight"] = parse_expression(weight)


def write_devices(ad: ClassAd, share: Share, total: Share, inventories: Mapping[str, Inventory],
                  offline: Mapping[str, frozenset[str]]) -> None:
    """What the slot's devices are (``GPUs_GPU_5d5ba0d6 = [ … ]``, and ``GPUs_DeviceName`` where all are alike), which
    of them can be had now (``AvailableGPUs``, a list of those records), and which are off (``OfflineGPUs``)."""
    for name, have in share.custom.items():
        out = [unit for unit in dict.fromkeys(total.custom[name].ids) if unit in offline.get(name, ())]
        if out:
            ad[f"Offline{name}"] = ",".join(out)
        elif f"Offline{name}".lower() in ad.own:
            del ad[f"Offline{name}"]
        found = inventories[name].properties if name in inventories else {}
        units = [unit for unit in dict.fromkeys(total.custom[name].ids) if unit in found]
        if not units:
            continue
        if attribute_of(name, units[0]).lower() not in ad.own:
            for unit in units:
                ad[attribute_of(name, unit)] = ClassAd({"Id": unit, **found[unit]})
            for key, value in found[units[0]].items():
                if all(found[unit].get(key) == value for unit in units):
                    ad[f"{name}_{key}"] = value
        free = [attribute_of(name, unit) for unit in dict.fromkeys(have.ids) if unit in found]
        ad.insert_text(f"Available{name}", "{ " + ", ".join(free) + " }")


def write_state(ad: ClassAd, machine: SlotStateMachine, now_s: float) -> None:
    """State, activity, since when, and how long in each."""
    store = ad.store
    store("State", machine.state.value)
    store("Activity", machine.activity.value)
    store("EnteredCurrentState", int(machine.state_since_s))
    store("EnteredCurrentActivity", int(machine.activity_since_s))
    store("MyCurrentTime", int(now_s))
    store("Draining", machine.draining)
    for slot_state, spent_s in machine.spent_s.items():
        if spent_s >= 1.0:
            name = _TIMES.get(slot_state)
            if name is None:
                name = _TIMES[slot_state] = f"TotalTime{slot_state[0].value}{slot_state[1].value}"
            store(name, int(spent_s))


def write_claim(ad: ClassAd, claim: Claim | None, machine: SlotStateMachine, now_s: float) -> None:
    """Who uses the slot, for what, and how much."""
    own = ad.own
    for key in CLAIM_KEYS:
        if key in own:
            del ad[key]
    if claim is None:
        ad["CurrentRank"] = 0.0
        return
    record = claim.record
    owner = record.submitter
    ad["RemoteUser"] = owner
    ad["RemoteOwner"] = owner
    ad["AccountingGroup"] = owner
    ad["ClientMachine"] = record.schedd_name.rpartition("@")[2]
    ad["RemoteScheddName"] = record.schedd_name
    ad["PublicClaimId"] = record.claim_id
    ad["CurrentRank"] = record.rank
    store = ad.store
    store("NumJobStarts", claim.jobs)
    store("TotalClaimRunTime", max(0, int(now_s - record.granted_s)))
    if claim.job_id and machine.state in (State.CLAIMED, State.PREEMPTING):
        ad["JobId"] = claim.job_id
        store("JobStart", int(claim.job_began_s))
        store("LastPeriodicCheckpoint", int(max(claim.checkpoint_s, claim.job_began_s)))
        store("TotalJobRunTime", max(0, int(now_s - claim.job_began_s)))
        ad["MemoryUsage"] = claim.memory_mib
        ad["DiskUsage"] = claim.disk_kib
        ad["ImageSize"] = claim.memory_mib * 1024
        ad["RemoteUserCpu"] = claim.cpu_s


def write_readings(ad: ClassAd, *, load: float, own_load: float, total_load: float, total_own_load: float,
                   keyboard_idle_s: float | None, console_idle_s: float | None) -> None:
    """What the sensors say; an idle time that no sensor knows is left out rather than made up."""
    ad["LoadAvg"] = round(load, 3)
    ad["CondorLoadAvg"] = round(own_load, 3)
    ad["TotalLoadAvg"] = round(total_load, 3)
    ad["TotalCondorLoadAvg"] = round(total_own_load, 3)
    for name, idle_s in (("KeyboardIdle", keyboard_idle_s), ("ConsoleIdle", console_idle_s)):
        if idle_s is not None:
            ad[name] = int(idle_s)
        elif name in ad:
            del ad[name]
