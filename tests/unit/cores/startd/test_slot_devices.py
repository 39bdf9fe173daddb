"""Which devices a job gets of a slot: as it requires, none twice, none that is off."""

from __future__ import annotations

from itertools import count

import attrs
import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.devices.inventory import Inventory, read_inventory
from condor_actors.cores.startd.slot_resources import Custom, Share, plan_slots
from condor_actors.cores.startd.slots import Slot, Slots, SlotSettings, parse_policy

INVENTORY = """DetectedGPUs = "GPU-a, GPU-b, GPU-t"
Common = [ Vendor = "NVIDIA"; MaxSupportedVersion = 12020 ]
GPU_a = [ id = "GPU-a"; Capability = 8.0; GlobalMemoryMb = 40960 ]
GPU_b = [ id = "GPU-b"; Capability = 8.0; GlobalMemoryMb = 81920 ]
GPU_t = [ id = "GPU-t"; Capability = 7.5; GlobalMemoryMb = 15360 ]
"""
SETTINGS = SlotSettings(host="h", policy=parse_policy({"START": "true"}))


def made(text: str = INVENTORY, **plan: object) -> tuple[Slots, Slot]:
    secrets = count()
    found: Inventory = read_inventory("GPUs", text)
    machine = Share(cpus=8, memory_mib=8192, disk_kib=10**6, custom={"GPUs": Custom(found.amount, found.ids)})
    slots = Slots(SETTINGS, ClassAd({"Machine": "h"}), lambda: str(next(secrets)), {"GPUs": found})
    slots.create(plan_slots(machine, **{"types": {}, "counts": {}, "partitionable": {}, **plan}), 0)  # type: ignore[arg-type]
    return slots, next(iter(slots))


def job(require: str = "", gpus: int = 1) -> ClassAd:
    ad = ClassAd({"RequestCpus": 1, "RequestMemory": 128, "RequestDisk": 1024, "RequestGPUs": gpus})
    if require:
        ad.insert_text("RequireGPUs", require)
        ad.insert_text("Requirements", "countMatches(MY.RequireGPUs, TARGET.AvailableGPUs) >= RequestGPUs")
    return ad


def given(slots: Slots, slot: Slot, wanted: ClassAd) -> tuple[str, ...]:
    share = slots.fit(slot, wanted)
    return share.custom["GPUs"].ids if isinstance(share, Share) else (share,)


@pytest.mark.parametrize(("require", "gpus", "ids"), [
    ("", 1, ("GPU-a",)), ("Capability < 8", 1, ("GPU-t",)), ("GlobalMemoryMb > 50000", 1, ("GPU-b",)),
    ("Capability >= 8", 2, ("GPU-a", "GPU-b")), ("Vendor == \"AMD\"", 1, ()), ("Unknown > 1", 1, ()),
    ("Capability < 8", 2, ()),
])  # fmt: skip
def test_the_negotiator_and_the_slot_are_of_one_mind(require: str, gpus: int, ids: tuple[str, ...]) -> None:
    slots, slot = made()
    wanted = job(require, gpus)
    seen = ClassAd.from_bytes(slot.ad.to_bytes())
    if require:
        assert wanted.evaluate("Requirements", seen) is bool(ids)
    found = given(slots, slot, wanted)
    assert found == ids if ids else "as it requires" in found[0]


def test_what_is_carved_out_is_not_there_for_the_next() -> None:
    slots, slot = made()
    share = slots.fit(slot, job("Capability < 8"))
    assert isinstance(share, Share)
    child = slots.carve(slot, share, 1)
    assert (child.ad["AssignedGPUs"], str(slot.ad.expression("AvailableGPUs"))) == (
        "GPU-t", "{ GPUs_GPU_a,GPUs_GPU_b }")
    assert child.ad["GPUs_Capability"] == 7.5
    assert slots.assigned(child) == (("GPUs", "GPU-t"),)
    slots.join(child, 2)
    assert given(slots, slot, job("Capability < 8")) == ("GPU-t",)


def test_units_that_are_off_are_not_given_out() -> None:
    slots, slot = made()
    slots.reconfigure(attrs.evolve(SETTINGS, offline={"GPUs": frozenset({"GPU-a"})}))
    assert (slot.ad["GPUs"], slot.ad["TotalSlotGPUs"], slot.ad["OfflineGPUs"]) == (2, 3, "GPU-a")
    assert given(slots, slot, job()) == ("GPU-b",)
    assert "2 are left" in given(slots, slot, job(gpus=3))[0]
    slots.reconfigure(SETTINGS)
    assert "OfflineGPUs" not in slot.ad
    assert given(slots, slot, job()) == ("GPU-a",)


def test_a_unit_for_two_jobs_is_never_twice_for_one() -> None:
    slots, slot = made('DetectedGPUs = "a, b, a, b"')
    assert "different" in given(slots, slot, job(gpus=3))[0]
    assert (slot.ad["GPUs"], slot.ad["DifferentGPUs"]) == (4, 2)
    assert slot.ad.evaluate("WithinResourceLimits", job(gpus=3)) is False
    children = []
    for expected in ("a", "b", "a", "b"):
        share = slots.fit(slot, job())
        assert isinstance(share, Share)
        children.append(slots.carve(slot, share, 1))
        assert children[-1].total.custom["GPUs"].ids == (expected,)
    assert slots.fit(slot, job()) == "it wants 1 GPUs, 0 are left"
    for child in children:
        slots.join(child, 2)
    assert sorted(slot.free.custom["GPUs"].ids) == ["a", "a", "b", "b"]


def test_static_slots_have_units_of_their_own() -> None:
    slots, first = made(types={1: "cpus=2, gpus=1"}, counts={1: 3})
    assert [slots.assigned(slot) for slot in slots] == [(("GPUs", f"GPU-{letter}"),) for letter in "abt"]
    assert given(slots, first, job("Capability >= 8")) == ("GPU-a",)
    assert "as it requires" in given(slots, first, job("Capability < 8"))[0]
