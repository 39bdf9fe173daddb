"""The pool as the page shows it: each slot with what its owner and its job make of it, and what changed since.

Theory: a slot's ad becomes a small dictionary; two that are equal look alike, so only those that differ travel to the
browsers.  ``look`` is the one word by which a slot is painted and counted:

=============  ========================================================================
look           when
=============  ========================================================================
``owner``      state Owner: its owner uses it, or the policy does not lend it now
``free``       Unclaimed
``matched``    Matched, or Claimed and idle
``running``    Claimed, and a job works there
``suspended``  Claimed, and the job waits for its owner to go away
``leaving``    Preempting: the job is on its way out
``drained``    Drained, or it takes no jobs since it is being drained
=============  ========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.web.rows import LONGEST, date, finite, number

__all__ = ["ATTRIBUTES", "LOOKS", "PoolPicture", "slot_of"]

ATTRIBUTES = (
    "Name", "Machine", "State", "Activity", "Cpus", "Memory", "LoadAvg", "KeyboardIdle", "RemoteUser", "JobId",
    "RemoteScheddName", "EnteredCurrentActivity", "OpSys", "Arch", "PartitionableSlot", "DynamicSlot", "Draining",
    "LastHeardFrom",
)
LOOKS = ("owner", "free", "matched", "running", "suspended", "leaving", "drained")
MINUTE_S = 60

Slot = dict[str, Any]


def look_of(state: str, activity: str, draining: bool) -> str:
    """The word by which a slot is painted; see the table."""
    if state == "Drained" or (draining and state in ("Unclaimed", "Owner")):
        return "drained"
    if state == "Claimed":
        return {"Busy": "running", "Retiring": "running", "Suspended": "suspended"}.get(activity, "matched")
    return {"Owner": "owner", "Unclaimed": "free", "Matched": "matched", "Preempting": "leaving",
            "Backfill": "running"}.get(state, "owner")


def slot_of(ad: ClassAd) -> Slot:
    """A slot as it is shown."""
    idle_s = number(ad, "KeyboardIdle", -1)
    return {
        "name": ad.get_str("Name")[:LONGEST],
        "machine": (ad.get_str("Machine") or ad.get_str("Name"))[:LONGEST],
        "look": look_of(ad.get_str("State"), ad.get_str("Activity"), ad.get_bool("Draining")),
        "state": ad.get_str("State")[:LONGEST], "activity": ad.get_str("Activity")[:LONGEST],
        "cpus": max(0, number(ad, "Cpus")), "memory": max(0, number(ad, "Memory")),
        "load": finite(ad.get_float("LoadAvg")),
        "idle": idle_s if idle_s < 0 else idle_s // MINUTE_S * MINUTE_S,
        "user": ad.get_str("RemoteUser")[:LONGEST], "job": ad.get_str("JobId")[:LONGEST],
        "schedd": ad.get_str("RemoteScheddName")[:LONGEST], "since": date(ad, "EnteredCurrentActivity"),
        "system": f"{ad.get_str('OpSys')} {ad.get_str('Arch')}".strip()[:LONGEST],
        "parent": ad.get_bool("PartitionableSlot"), "child": ad.get_bool("DynamicSlot"),
    }


class PoolPicture:
    """All slots, as last heard of.

    Attributes:
        slots: by name.
        version: grows when something that is shown has changed.
        newest_s: when the last slot was heard from, by the collector's clock; a later question asks from there on.
    """

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}
        self.version = 0
        self.newest_s = 0

    def heard(self, ads: Iterable[bytes]) -> list[Slot]:
        """Take slots that were heard of; those that look different now."""
        changed = []
        for text in ads:
            try:
                ad = ClassAd.from_bytes(text)
            except ClassAdSyntaxError:
                continue
            slot = slot_of(ad)
            self.newest_s = max(self.newest_s, date(ad, "LastHeardFrom"))
            if slot["name"] and self.slots.get(slot["name"]) != slot:
                self.slots[slot["name"]] = slot
                changed.append(slot)
        if changed:
            self.version += 1
        return changed

    def keep_only(self, names: set[str]) -> list[str]:
        """These are all there are; the names of those that are gone."""
        gone = sorted(self.slots.keys() - names)
        for name in gone:
            del self.slots[name]
        if gone:
            self.version += 1
        return gone

    def counts(self) -> dict[str, int]:
        """Slots by look."""
        found = dict.fromkeys(LOOKS, 0)
        for slot in self.slots.values():
            if not (slot["parent"] and slot["cpus"] == 0):
                found[slot["look"]] += 1
        return found

    def cpus(self) -> dict[str, int]:
        """Cores by look."""
        found = dict.fromkeys(LOOKS, 0)
        for slot in self.slots.values():
            found[slot["look"]] += slot["cpus"]
        return found

    def machines(self) -> list[dict[str, Any]]:
        """A line for each machine: its slots, cores and looks, by name."""
        found: dict[str, dict[str, Any]] = {}
        for slot in self.slots.values():
            line = found.setdefault(slot["machine"], {
                "machine": slot["machine"], "system": slot["system"], "slots": 0, "cpus": 0, "memory": 0,
                "load": 0.0, "idle": slot["idle"], "looks": {}})
            line["slots"] += 1
            line["cpus"] += slot["cpus"]
            line["memory"] += slot["memory"]
            line["load"] = round(line["load"] + slot["load"], 2)
            line["idle"] = min(line["idle"], slot["idle"])
            line["looks"][slot["look"]] = line["looks"].get(slot["look"], 0) + 1
        return [found[name] for name in sorted(found)]
