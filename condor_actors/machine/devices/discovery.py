"""All graphics processors of this machine, or of a recorded tree of another one's driver files."""

from __future__ import annotations

import os
from collections.abc import Collection

from condor_actors.machine.devices.gpu import Gpu
from condor_actors.machine.devices.nvidia_files import DRIVER, by_files
from condor_actors.machine.devices.nvidia_library import by_library
from condor_actors.machine.devices.other_vendors import CARDS, NODES, amd_devices, intel_devices

__all__ = ["VENDORS", "discover", "may_have_gpus"]

VENDORS = ("NVIDIA", "AMD", "Intel")


def may_have_gpus(tree: str = "/") -> bool:
    """Whether any driver is there, so that it is worth asking."""
    return any(os.path.isdir(os.path.join(tree, place)) for place in (DRIVER, NODES, CARDS))


def discover(tree: str = "/", vendors: Collection[str] = VENDORS) -> tuple[list[Gpu], list[str]]:
    """The devices in the order of vendors, and what was not possible.

    Args:
        tree: ``/``, or a folder with a copy of a machine's ``proc/driver/nvidia`` and ``sys/class``.
        vendors: whose devices are wanted.
    """
    found: list[Gpu] = []
    notes: list[str] = []
    if "NVIDIA" in vendors:
        asked, why = by_library() if tree == "/" else (None, "")
        if asked is None:
            asked = by_files(tree)
            if asked and why:
                notes.append(f"{why}; memory and capability are those of the model, by the driver's files")
        found += asked
    if "AMD" in vendors:
        found += amd_devices(tree)
    if "Intel" in vendors:
        found += intel_devices(tree)
    return found, notes
