"""Files of drivers as machines with graphics processors have them, recorded: what is read of them, in a folder."""

from __future__ import annotations

from pathlib import Path

A100 = "GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77"
T4 = "GPU-c4a646d7-aa14-1dd1-f1b0-57288cda864d"
_VERSION = """NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""
_INFORMATION = """Model: \t\t {model}
IRQ:   \t\t 251
GPU UUID: \t {uuid}
Video BIOS: \t 92.00.19.00.13
Bus Type: \t PCIe
DMA Size: \t 47 bits
DMA Mask: \t 0x7fffffffffff
Bus Location: \t {place}
Device Minor: \t {minor}
GPU Firmware: \t 535.129.03
GPU Excluded:\t {excluded}
"""
_KFD = """cpu_cores_count 0
simd_count 440
mem_banks_count 1
caches_count 205
simd_per_cu 4
gfx_target_version 90010
vendor_id 4098
device_id 29704
location_id 768
domain 0
drm_render_minor {minor}
max_engine_clk_fcompute 1700
unique_id {unique}
"""
_KFD_PROCESSOR = "cpu_cores_count 64\nsimd_count 0\nmem_banks_count 1\nunique_id 0\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def nvidia(tree: Path, *, parts: bool = False, excluded: bool = False) -> Path:
    """An A100 (in two parts, where wanted) and a T4 (left alone, where wanted)."""
    driver = tree / "proc/driver/nvidia"
    _write(driver / "version", _VERSION)
    for place, model, uuid, minor in (("0000:07:00.0", "NVIDIA A100-SXM4-40GB", A100, 0),
                                      ("0000:0a:00.0", "Tesla T4", T4, 1)):
        _write(driver / "gpus" / place / "information", _INFORMATION.format(
            model=model, uuid=uuid, place=place, minor=minor, excluded="Yes" if excluded and minor else "No"))
    if parts:
        mig = driver / "capabilities/gpu0/mig"
        for instance, caps in ((1, (12, 13)), (2, (21, 22))):
            for path, cap in ((f"gi{instance}/access", caps[0]), (f"gi{instance}/ci0/access", caps[1])):
                _write(mig / path, f"DeviceFileMinor: {cap}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        _write(tree / "dev" / name, "")
    return tree


def amd(tree: Path) -> Path:
    """An MI210 beside the processor's own node."""
    nodes = tree / "sys/class/kfd/kfd/topology/nodes"
    _write(nodes / "0/properties", _KFD_PROCESSOR)
    _write(nodes / "1/properties", _KFD.format(minor=128, unique=0x9C1D3B2A7F0E4455))
    device = tree / "sys/class/drm/renderD128/device"
    for name, text in (
        ("vendor", "0x1002"), ("mem_info_vram_total", str(64 << 30)), ("mem_info_vram_used", str(1 << 30)),
        ("gpu_busy_percent", "37"), ("product_name", "AMD INSTINCT MI210"), ("drm/card1/dev", "226:1"),
        ("uevent", "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0"),
    ):
        _write(device / name, f"{text}\n")
    _write(tree / "sys/module/amdgpu/version", "6.7.0\n")
    return tree


def intel(tree: Path) -> Path:
    """A Flex card beside the graphics of the processor."""
    for name, place, memory in (("renderD128", "0000:00:02.0", 0), ("renderD129", "0000:4d:00.0", 16 << 30)):
        device = tree / "sys/class/drm" / name / "device"
        _write(device / "vendor", "0x8086\n")
        _write(device / "device", "0x56c0\n")
        _write(device / "uevent", f"DRIVER=xe\nPCI_SLOT_NAME={place}\n")
        if memory:
            _write(device / "tile0/physical_vram_size_bytes", f"{memory:#x}\n")
    return tree
