"""AMD's and Intel's devices by what the kernel shows of them: ``/sys/class/kfd``, ``/sys/class/drm``."""

from __future__ import annotations

import os
import re

from condor_actors.machine.devices.gpu import Gpu, Value, lines_of, names_in, number_in, text_of

__all__ = ["amd_devices", "intel_devices"]

NODES = "sys/class/kfd/kfd/topology/nodes"
CARDS = "sys/class/drm"
INTEL = 0x8086
INTEGRATED = "0000:00:02.0"
"""Where Intel's chips have the graphics that belongs to the processor."""


def amd_devices(tree: str) -> list[Gpu]:
    """What the compute driver (KFD) offers."""
    found: list[Gpu] = []
    nodes = [name for name in names_in(os.path.join(tree, NODES)) if name.isdecimal()]
    for node in sorted(nodes, key=int):
        said = {name: int(value) for name, value in lines_of(os.path.join(tree, NODES, node, "properties"), " ").items()
                if value.isdecimal()}
        if not said.get("simd_count"):  # a processor
            continue
        minor, unique = said.get("drm_render_minor", 0), said.get("unique_id", 0)
        device = os.path.join(tree, CARDS, f"renderD{minor}", "device")
        properties = _of_card(tree, device, said)
        target = said.get("gfx_target_version", 0)
        if target:
            properties["GfxTarget"] = f"gfx{target // 10000}{target // 100 % 100:x}{target % 100:x}"
        if unique:
            properties["DeviceUuid"] = f"{unique:016x}"
        extra: dict[str, Value] = {"ClockMhz": float(said["max_engine_clk_fcompute"])} if said.get(
            "max_engine_clk_fcompute") else {}
        if said.get("simd_per_cu"):
            extra["ComputeUnits"] = said["simd_count"] // said["simd_per_cu"]
        found.append(Gpu(
            vendor="AMD", index=len(found), uuid=f"GPU-{unique:016x}" if unique else "", properties=properties,
            extra=extra, dynamic=_busy(device), files=(*_render_files(tree, device, minor), "/dev/kfd")))
    return found


def _of_card(tree: str, device: str, said: dict[str, int]) -> dict[str, Value]:
    properties: dict[str, Value] = {}
    name = text_of(os.path.join(device, "product_name"))
    properties["DeviceName"] = name or f"AMD {said.get('device_id', 0):#06x}"
    memory = number_in(os.path.join(device, "mem_info_vram_total"))
    if memory:
        properties["GlobalMemoryMb"] = memory >> 20
    version = text_of(os.path.join(tree, "sys/module/amdgpu/version"))
    if version:
        properties["AmdDriverVersion"] = version
    bus = lines_of(os.path.join(device, "uevent"), "=").get("PCI_SLOT_NAME", "")
    if bus:
        properties["DevicePciBusId"] = bus.upper()
    return properties


def _busy(device: str) -> dict[str, Value]:
    used, busy = number_in(f"{device}/mem_info_vram_used"), number_in(f"{device}/gpu_busy_percent")
    found: dict[str, Value] = {}
    if used is not None:
        found["UsedMemoryMb"] = used >> 20
    if busy is not None:
        found["BusyPct"] = busy
    return found


def _render_files(tree: str, device: str, minor: int) -> tuple[str, ...]:
    """The device's own files: that for computing, and the one with a screen."""
    cards = [name for name in names_in(os.path.join(device, "drm")) if re.fullmatch(r"card\d+", name)]
    return tuple(f"/dev/dri/{name}" for name in (f"renderD{minor}", *cards))


def intel_devices(tree: str) -> list[Gpu]:
    """The cards that are no part of the processor: those are for computing."""
    found: list[Gpu] = []
    for name in names_in(os.path.join(tree, CARDS)):
        device = os.path.join(tree, CARDS, name, "device")
        minor = re.fullmatch(r"renderD(\d+)", name)
        if minor is None or number_in(f"{device}/vendor") != INTEL:
            continue
        said = lines_of(f"{device}/uevent", "=")
        bus = said.get("PCI_SLOT_NAME", "")
        memory = number_in(f"{device}/lmem_total_bytes") or number_in(f"{device}/tile0/physical_vram_size_bytes")
        if bus == INTEGRATED and not memory:
            continue
        properties: dict[str, Value] = {
            "DeviceName": f"Intel {number_in(f'{device}/device') or 0:#06x}", "DevicePciBusId": bus.upper()}
        if memory:
            properties["GlobalMemoryMb"] = memory >> 20
        if said.get("DRIVER"):
            properties["IntelDriver"] = said["DRIVER"]
        found.append(Gpu(vendor="Intel", index=len(found), properties=properties,
                         files=_render_files(tree, device, int(minor[1]))))
    return found
