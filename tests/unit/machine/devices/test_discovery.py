"""condor_gpu_discovery against the files of drivers, and against a library with the driver's interface."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.cores.devices.inventory import Inventory, read_inventory
from tests.harness import driver_trees

LIBRARY = Path(driver_trees.__file__).with_name("nvml_library.c")


def found(*words: str, environment: dict[str, str] | None = None) -> tuple[Inventory, str]:
    done = subprocess.run([sys.executable, "-m", "condor_actors.tools.pool.gpu_discovery", *words], check=False,
                          capture_output=True, text=True, env={**os.environ, **(environment or {})})
    assert done.returncode == 0, done.stderr
    return read_inventory("GPUs", done.stdout), done.stdout


def test_nvidias_files_name_model_capability_and_device_files(tmp_path: Path) -> None:
    inventory, text = found("-tree", str(driver_trees.nvidia(tmp_path)), "-properties")
    assert inventory.ids == ("GPU-5d5ba0d6", "GPU-c4a646d7")
    first, second = (inventory.properties[name] for name in inventory.ids)
    assert (first["Capability"], first["GlobalMemoryMb"], first["DeviceName"]) == (8.0, 40960, "NVIDIA A100-SXM4-40GB")
    assert (second["Capability"], second["GlobalMemoryMb"], second["DevicePciBusId"]) == (7.5, 15360, "0000:0A:00.0")
    assert first["MaxSupportedVersion"] == second["MaxSupportedVersion"] == 12020
    assert second["DeviceFiles"] == "/dev/nvidia1 /dev/nvidiactl /dev/nvidia-uvm"
    assert text.startswith('DetectedGPUs="GPU-5d5ba0d6, GPU-c4a646d7"\nCommon=[ ')


def test_parts_stand_for_the_whole_and_have_files_of_their_own(tmp_path: Path) -> None:
    inventory, _ = found("-tree", str(driver_trees.nvidia(tmp_path, parts=True, excluded=True)), "-properties")
    assert inventory.ids == tuple(f"MIG-{driver_trees.A100}/{number}/0" for number in (1, 2))
    files = [inventory.properties[name]["DeviceFiles"].split() for name in inventory.ids]
    assert files[0][0] == files[1][0] == "/dev/nvidia0"
    assert files[0][-2:] == ["/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"]
    assert files[1][-2:] == ["/dev/nvidia-caps/nvidia-cap21", "/dev/nvidia-caps/nvidia-cap22"]


def test_amds_and_intels_by_what_the_kernel_shows(tmp_path: Path) -> None:
    inventory, _ = found("-tree", str(driver_trees.amd(tmp_path / "amd")), "-extra", "-dynamic")
    (name,) = inventory.ids
    properties = inventory.properties[name]
    assert name == "GPU-9c1d3b2a7f0e4455"
    assert (properties["GlobalMemoryMb"], properties["ComputeUnits"], properties["GfxTarget"]) == (65536, 110, "gfx90a")
    assert (properties["BusyPct"], properties["UsedMemoryMb"]) == (37, 1024)
    assert properties["DeviceFiles"] == "/dev/dri/renderD128 /dev/dri/card1 /dev/kfd"
    inventory, _ = found("-tree", str(driver_trees.intel(tmp_path / "intel")), "-properties")
    assert inventory.ids == ("XPU0",)
    assert inventory.properties["XPU0"]["GlobalMemoryMb"] == 16384
    assert inventory.files == ("/dev/dri/renderD129",)


@pytest.mark.parametrize(("words", "ids"), [
    (("-by-index",), ("CUDA0", "CUDA1")), (("-uuid",), (driver_trees.A100, driver_trees.T4)),
    (("-device", "1"), ("GPU-c4a646d7",)), (("-hip",), ()),
    (("-repeat",), ("GPU-5d5ba0d6", "GPU-c4a646d7") * 2),
    (("-divide", "2", "-packed"), ("GPU-5d5ba0d6",) * 2 + ("GPU-c4a646d7",) * 2),
])  # fmt: skip
def test_names_and_repetitions(words: tuple[str, ...], ids: tuple[str, ...], tmp_path: Path) -> None:
    inventory, _ = found("-tree", str(driver_trees.nvidia(tmp_path)), "-properties", *words)
    assert inventory.ids == ids
    if "-divide" in words:
        assert inventory.properties["GPU-5d5ba0d6"]["GlobalMemoryMb"] == 20480
        assert inventory.properties["GPU-5d5ba0d6"]["DeviceMemoryMb"] == 40960


def test_attributes_instead_of_records_and_configuration(tmp_path: Path) -> None:
    tree = str(driver_trees.nvidia(tmp_path))
    _, text = found("-tree", tree, "-not-nested", "-properties", "-prefix", "GPU")
    assert 'GPU0DeviceName="NVIDIA A100-SXM4-40GB"' in text
    assert "GPUMaxSupportedVersion=12020" in text
    done = subprocess.run([sys.executable, "-m", "condor_actors.tools.pool.gpu_discovery", "-tree", tree, "-config"],
                          capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["DetectedGPUs=GPU-5d5ba0d6, GPU-c4a646d7", "NUM_DETECTED_GPUs=2"]


def test_the_drivers_library_tells_more(tmp_path: Path) -> None:
    pytest.importorskip("pynvml")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libnvidia-ml.so.1", LIBRARY], check=True)
    inventory, text = found("-cuda", "-extra", "-dynamic", environment={"LD_LIBRARY_PATH": str(tmp_path)})
    assert inventory.ids == ("MIG-41b3359c-e721-56e5-8009-12e5797ed514", "MIG-65b79fff-6d3c-5490-a288-b31ec705f310",
                             "GPU-c4a646d7"), text
    part, whole = inventory.properties[inventory.ids[0]], inventory.properties["GPU-c4a646d7"]
    assert (part["Capability"], part["GlobalMemoryMb"]) == (8.0, 20097)
    assert (whole["Capability"], whole["GlobalMemoryMb"], whole["ECCEnabled"]) == (7.5, 15360, True)
    assert (whole["ClockMhz"], whole["BoardTempC"], whole["ComputeUnits"]) == (1410.0, 41, 108)
