"""NVIDIA devices by the driver's own library (NVML), through its Python package (nvidia-ml-py)."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

from condor_actors.machine.devices.gpu import Gpu, Value
from condor_actors.machine.devices.nvidia_files import files_of, files_of_part
from condor_actors.machine.devices.nvidia_models import cores_per_unit

__all__ = ["by_library"]


def by_library() -> tuple[list[Gpu] | None, str]:
    """The devices, parts in the place of what they are of; None where the library cannot be asked, and why."""
    try:
        nvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None, "the Python package nvidia-ml-py is not installed"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return None, f"NVML: {error}"
    try:
        found: list[Gpu] = []
        common = _common(nvml)
        for index in range(nvml.nvmlDeviceGetCount()):
            found += _device(nvml, index, common)
        return found, ""
    except nvml.NVMLError as error:
        return None, f"NVML: {error}"
    finally:
        with contextlib.suppress(nvml.NVMLError):
            nvml.nvmlShutdown()


def _asked(nvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the library answers; None: this device does not say that."""
    try:
        return function(*arguments)
    except nvml.NVMLError:
        return None


def _text(said: Any) -> str:
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


def _common(nvml: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    driver, cuda = _asked(nvml, nvml.nvmlSystemGetDriverVersion), _asked(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    if driver is not None:
        found["NvidiaDriver"] = _text(driver)
    if cuda:
        found |= {"DriverVersion": round(cuda // 1000 + cuda % 1000 / 100, 2), "MaxSupportedVersion": cuda}
    return found


def _device(nvml: Any, index: int, common: dict[str, Value]) -> list[Gpu]:
    device = nvml.nvmlDeviceGetHandleByIndex(index)
    uuid, minor = _text(nvml.nvmlDeviceGetUUID(device)), _asked(nvml, nvml.nvmlDeviceGetMinorNumber, device)
    minor = index if minor is None else minor
    properties = {**common, **_properties(nvml, device), "DeviceUuid": uuid.removeprefix("GPU-")}
    pci = _asked(nvml, nvml.nvmlDeviceGetPciInfo, device)
    if pci is not None:
        properties["DevicePciBusId"] = _text(pci.busIdLegacy if getattr(pci, "busIdLegacy", b"") else pci.busId)
    extra = _extra(nvml, device, properties)
    mode = _asked(nvml, nvml.nvmlDeviceGetMigMode, device)
    if mode is not None and mode[0]:
        return list(_parts(nvml, device, minor, properties, extra))
    return [Gpu(vendor="NVIDIA", index=index, uuid=uuid, files=files_of("/", minor), properties=properties,
                extra=extra, dynamic=_dynamic(nvml, device))]


def _properties(nvml: Any, device: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    name, memory = _asked(nvml, nvml.nvmlDeviceGetName, device), _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, device)
    capability = _asked(nvml, nvml.nvmlDeviceGetCudaComputeCapability, device)
    ecc = _asked(nvml, nvml.nvmlDeviceGetEccMode, device)
    if name is not None:
        found["DeviceName"] = _text(name)
    if memory is not None:
        found["GlobalMemoryMb"] = int(memory.total) >> 20
    if capability is not None:
        found["Capability"] = round(capability[0] + capability[1] / 10, 1)
    if ecc is not None:
        found["ECCEnabled"] = bool(ecc[0])
    return found


def _extra(nvml: Any, device: Any, properties: dict[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    clock = _asked(nvml, nvml.nvmlDeviceGetMaxClockInfo, device, nvml.NVML_CLOCK_SM)
    cores = _asked(nvml, nvml.nvmlDeviceGetNumGpuCores, device)
    capability = properties.get("Capability")
    if clock is not None:
        found["ClockMhz"] = float(clock)
    if isinstance(capability, float):
        found["CoresPerCU"] = each = cores_per_unit(capability)
        if cores:
            found["ComputeUnits"] = cores // each
    return found


def _dynamic(nvml: Any, device: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for name, value in (
        ("BoardTempC", _asked(nvml, nvml.nvmlDeviceGetTemperature, device, nvml.NVML_TEMPERATURE_GPU)),
        ("FanSpeedPct", _asked(nvml, nvml.nvmlDeviceGetFanSpeed, device)),
        ("EccErrorsSingleBit", _asked(nvml, nvml.nvmlDeviceGetTotalEccErrors, device, 0, 0)),
        ("EccErrorsDoubleBit", _asked(nvml, nvml.nvmlDeviceGetTotalEccErrors, device, 1, 0)),
    ):
        if value is not None:
            found[name] = int(value)
    return found


def _parts(nvml: Any, device: Any, minor: int, properties: dict[str, Value], extra: dict[str, Value]) -> list[Gpu]:
    """The compute instances of a device; a part has what it does not say itself from the whole."""
    found = []
    for number in range(_asked(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, device) or 0):
        part = _asked(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, device, number)
        if part is None:
            continue
        uuid = _text(nvml.nvmlDeviceGetUUID(part))
        instance, compute = (_asked(nvml, function, part) for function in (
            nvml.nvmlDeviceGetGpuInstanceId, nvml.nvmlDeviceGetComputeInstanceId))
        own = {name: value for name, value in _properties(nvml, part).items() if name in ("DeviceName",
                                                                                          "GlobalMemoryMb")}
        found.append(Gpu(
            vendor="NVIDIA", index=minor, uuid=uuid, part=True, extra=extra,
            files=files_of_part("/", minor, instance or 0, compute or 0),
            properties={**properties, **own, "DeviceUuid": uuid}))
    return found
