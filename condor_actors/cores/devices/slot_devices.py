"""What a job is told of its devices, and which device files are its own: read from the slot's ad.

====== ==========================================================================================================
NVIDIA ``CUDA_VISIBLE_DEVICES`` and ``NVIDIA_VISIBLE_DEVICES`` by name; without one: ``void`` for the latter
AMD    ``ROCR_VISIBLE_DEVICES`` by name, or by number where it has none
Intel  ``ZE_AFFINITY_MASK`` by number
====== ==========================================================================================================

The administrator's ENVIRONMENT_FOR_ASSIGNED<NAME> comes first, but for variables that are another vendor's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.devices.inventory import attribute_of

__all__ = ["DEVICE_FILES", "SlotDevices", "devices_of"]

DEVICE_FILES = "MachineDeviceFiles"
"""The machine's attribute with the files of all its devices."""

_VARIABLES = {
    "NVIDIA": ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"), "AMD": ("ROCR_VISIBLE_DEVICES",),
    "INTEL": ("ZE_AFFINITY_MASK",),
}
_ALL_NVIDIA = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_SAFE_FILE = re.compile(r"/dev/[A-Za-z0-9_./-]+")


@attrs.frozen(kw_only=True)
class SlotDevices:
    """Of a claim's slot.

    Attributes:
        variables: of its vendors, by name.
        not_theirs: variables that mean nothing, or something else, to its vendors.
        files: device files of its own; others: those of other slots' devices.
    """

    variables: Mapping[str, str] = attrs.field(factory=dict)
    not_theirs: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


NONE = SlotDevices()


def devices_of(ad: ClassAd, assigned: tuple[tuple[str, str], ...]) -> SlotDevices:
    """Read a slot's ad.

    Args:
        ad: of the slot.
        assigned: resource to the names of its units, with commas between.
    """
    machine = _paths(ad.evaluate(DEVICE_FILES))
    if not machine and not assigned:
        return NONE
    own: list[str] = []
    units: dict[str, list[str]] = {}
    for resource, ids in assigned:
        for unit in dict.fromkeys(ids.split(",")):
            record = ad.evaluate(attribute_of(resource, unit))
            if not isinstance(record, ClassAd):
                continue
            own += _paths(record.evaluate("DeviceFiles"))
            vendor = record.get_str("Vendor", "").upper()
            if vendor in _VARIABLES:
                number = re.sub(r"^[A-Za-z]+(?=\d+$)", "", unit)
                units.setdefault(vendor, []).append(_shown(vendor, record, number))
    variables = {name: ",".join(names) for vendor, names in units.items() for name in _VARIABLES[vendor]}
    foreign: frozenset[str] = frozenset()
    if "NVIDIA" not in units and (units or any("nvidia" in path for path in machine)):
        variables["NVIDIA_VISIBLE_DEVICES"] = "void"
        foreign = frozenset(_ALL_NVIDIA) if units else frozenset()
    mine = set(own)
    return SlotDevices(variables=variables, not_theirs=foreign, files=tuple(dict.fromkeys(own)),
                       others=tuple(path for path in machine if path not in mine))


def _shown(vendor: str, record: ClassAd, unit: str) -> str:
    """How the vendor's libraries call a unit: Intel's know numbers alone, AMD's take no shortened names."""
    index = record.get_int("DeviceIndex", -1)
    if vendor == "INTEL" and index >= 0:
        return str(index)
    if vendor == "AMD":
        whole = record.get_str("DeviceUuid", "")
        return f"GPU-{whole}" if whole else str(index) if index >= 0 else unit
    return unit


def _paths(value: Any) -> list[str]:
    """The device files that a string names; nothing that is not below /dev."""
    words = value.split() if isinstance(value, str) else []
    return list(dict.fromkeys(word for word in words if _SAFE_FILE.fullmatch(word) and ".." not in word))
