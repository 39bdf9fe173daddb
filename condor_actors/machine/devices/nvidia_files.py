"""NVIDIA devices by the files of the kernel's driver: ``/proc/driver/nvidia``.

They tell models, names and device files, and which parts (MIG) there are; memory and compute capability follow from
the model.
"""

from __future__ import annotations

import os
import re

from condor_actors.machine.devices.gpu import Gpu, Value, lines_of, names_in, text_of
from condor_actors.machine.devices.nvidia_models import capability_of, cuda_of_driver, memory_of

__all__ = ["by_files", "driver_version", "files_of", "files_of_part"]

DRIVER = "proc/driver/nvidia"
SHARED = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")


def driver_version(tree: str) -> str:
    """The driver's version; empty: there is none."""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text_of(os.path.join(tree, DRIVER, "version")))
    return found[1] if found is not None else ""


def files_of(tree: str, minor: int) -> tuple[str, ...]:
    """What a program opens to use the device of that number."""
    wanted = (f"nvidia{minor}", *SHARED)
    return tuple(f"/dev/{name}" for name in wanted if name == wanted[0] or os.path.exists(f"{tree}/dev/{name}"))


def files_of_part(tree: str, minor: int, instance: int, compute: int) -> tuple[str, ...]:
    """What a program opens to use a part of the device of that number."""
    place = os.path.join(tree, DRIVER, "capabilities", f"gpu{minor}", "mig", f"gi{instance}")
    paths = (f"{place}/access", f"{place}/ci{compute}/access")
    numbers = [lines_of(path, ":").get("DeviceFileMinor", "") for path in paths]
    caps = [f"/dev/nvidia-caps/nvidia-cap{number}" for number in numbers if number.isdecimal()]
    return (*files_of(tree, minor), *caps)


def by_files(tree: str) -> list[Gpu]:
    """The devices, but for those that the driver was told to leave alone; parts in the place of what they are of."""
    found: list[Gpu] = []
    driver = driver_version(tree)
    cuda = cuda_of_driver(driver)
    for index, place in enumerate(names_in(os.path.join(tree, DRIVER, "gpus"))):
        said = lines_of(os.path.join(tree, DRIVER, "gpus", place, "information"), ":")
        minor = said.get("Device Minor", "")
        uuid = said.get("GPU UUID", "")
        if not minor.isdecimal() or said.get("GPU Excluded") == "Yes":
            continue
        model = said.get("Model", "")
        properties: dict[str, Value] = {"DevicePciBusId": place.upper(), "DeviceName": model}
        if uuid.startswith("GPU-") and "?" not in uuid:
            properties["DeviceUuid"] = uuid[4:]
        else:
            uuid = ""
        if driver:
            properties["NvidiaDriver"] = driver
        if cuda is not None:
            properties |= {"DriverVersion": round(cuda // 1000 + cuda % 1000 / 100, 2), "MaxSupportedVersion": cuda}
        capability, memory = capability_of(model), memory_of(model)
        if capability is not None:
            properties["Capability"] = capability
        parts = _parts(tree, int(minor), uuid, properties) if uuid else []
        if memory is not None and not parts:
            properties["GlobalMemoryMb"] = memory
        found += parts or [Gpu(vendor="NVIDIA", index=index, uuid=uuid, files=files_of(tree, int(minor)),
                               properties=properties)]
    return found


def _parts(tree: str, minor: int, uuid: str, properties: dict[str, Value]) -> list[Gpu]:
    """The compute instances of a device, by the names that CUDA takes of old: MIG-<GPU>/<instance>/<compute>."""
    place = os.path.join(tree, DRIVER, "capabilities", f"gpu{minor}", "mig")
    found = []
    for instance in (name[2:] for name in names_in(place) if re.fullmatch(r"gi\d+", name)):
        for compute in (name[2:] for name in names_in(f"{place}/gi{instance}") if re.fullmatch(r"ci\d+", name)):
            name = f"MIG-{uuid}/{instance}/{compute}"
            found.append(Gpu(
                vendor="NVIDIA", index=minor, uuid=name, part=True, properties=properties | {"DeviceUuid": name},
                files=files_of_part(tree, minor, int(instance), int(compute))))
    return found
