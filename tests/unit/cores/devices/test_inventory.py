"""Inventories as programs write them, and what a job is told of its units."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.devices.inventory import BadInventory, Inventory, attribute_of, read_inventory
from condor_actors.cores.devices.slot_devices import DEVICE_FILES, devices_of


def test_names_records_and_what_is_the_machines() -> None:
    found = read_inventory("FPGA", '# a comment\nDetectedFPGA = "a, b"\nOfflineFPGA = "b"\nCommon = [ Size = 3 ]\n'
                                   'x = [ id = "b"; Size = 4; Broken = undefined ]\nFpgaShell = "v2"\n')
    assert (found.ids, found.offline, found.attributes) == (("a", "b"), frozenset({"b"}), {"FpgaShell": "v2"})
    assert found.properties == {"a": {"Size": 3}, "b": {"Size": 4}}


@pytest.mark.parametrize("text", ["DetectedFPGA = 3", 'DetectedFPGA = "3"'])
def test_a_number_alone(text: str) -> None:
    assert read_inventory("FPGA", text) == Inventory(amount=3)


@pytest.mark.parametrize(("text", "said"), [
    ("", "does not say"), ("DetectedFPGA = -1", "does not say"), ("DetectedFPGA = 1e99", "does not say"),
    ("DetectedFPGA = [", "no ClassAd"), ('DetectedFPGA = "a;rm"', "cannot be the name"),
    (f'DetectedFPGA = "{" ".join(f"u{number}" for number in range(5000))}"', "at most 4096"),
])  # fmt: skip
def test_what_is_none(text: str, said: str) -> None:
    with pytest.raises(BadInventory, match=said):
        read_inventory("FPGA", text)


NVIDIA, AMD = {"Vendor": "NVIDIA", "DeviceFiles": "/dev/nvidia0 /dev/nvidiactl"}, {"Vendor": "AMD", "DeviceIndex": 2}
INTEL = {"Vendor": "Intel", "DeviceIndex": 1, "DeviceFiles": "/dev/dri/renderD129 /etc/passwd /dev/../etc/x"}


@pytest.mark.parametrize(("unit", "record", "variables"), [
    ("GPU-5d5b", NVIDIA, {"CUDA_VISIBLE_DEVICES": "GPU-5d5b", "NVIDIA_VISIBLE_DEVICES": "GPU-5d5b"}),
    ("CUDA3", NVIDIA, {"CUDA_VISIBLE_DEVICES": "3", "NVIDIA_VISIBLE_DEVICES": "3"}),
    ("GPU2", AMD, {"ROCR_VISIBLE_DEVICES": "2", "NVIDIA_VISIBLE_DEVICES": "void"}),
    ("GPU-9c", {**AMD, "DeviceUuid": "9c1d"}, {"ROCR_VISIBLE_DEVICES": "GPU-9c1d", "NVIDIA_VISIBLE_DEVICES": "void"}),
    ("XPU1", INTEL, {"ZE_AFFINITY_MASK": "1", "NVIDIA_VISIBLE_DEVICES": "void"}),
])  # fmt: skip
def test_variables_by_vendor(unit: str, record: Mapping[str, object], variables: dict[str, str]) -> None:
    found = devices_of(ClassAd({attribute_of("GPUs", unit): ClassAd(dict(record))}), (("GPUs", unit),))
    assert found.variables == variables
    assert ("CUDA_VISIBLE_DEVICES" in found.not_theirs) == (record["Vendor"] != "NVIDIA")
    assert all(path.startswith("/dev/") and ".." not in path for path in found.files)


def test_the_files_of_others() -> None:
    ad = ClassAd({DEVICE_FILES: "/dev/nvidia0 /dev/nvidiactl /dev/nvidia1", "GPUs_GPU_5d5b": ClassAd(dict(NVIDIA))})
    assert devices_of(ad, (("GPUs", "GPU-5d5b"),)).others == ("/dev/nvidia1",)
    none = devices_of(ad, ())
    assert none.others == ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia1")
    assert none.variables == {"NVIDIA_VISIBLE_DEVICES": "void"}
