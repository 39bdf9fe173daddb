"""condor_gpu_discovery: the graphics processors of this machine, as an inventory for its startd.

**Source**: the manual, condor_gpu_discovery.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from condor_actors import records
from condor_actors.classads import quote
from condor_actors.machine.devices.discovery import VENDORS, discover
from condor_actors.machine.devices.gpu import Gpu, Value
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run, values_of
from condor_actors.tools.lib.flags import Flag, Given, parse

_OPENCL = "devices are asked of their drivers, and OpenCL's names would be the same devices' once more"
FLAGS = (
    Flag("help", 1),
    Flag("version", 5),
    Flag("properties", 1),
    Flag("extra", 3),
    Flag("dynamic", 3),
    Flag("mixed", 3),
    Flag("nested", 2),
    Flag("not-nested", 6),
    Flag("no-nested", 5, alias="not-nested"),
    Flag("device", 3, 1),
    Flag("tag", 3, 1),
    Flag("tree", 4, 1),
    Flag("prefix", 3, 1),
    Flag("simulate", 3, colon=True),
    Flag("by-index", 4),
    Flag("short-uuid", 6),
    Flag("uuid", 2),
    Flag("cuda", 4),
    Flag("hip", 3),
    Flag("opencl", 6, refused=_OPENCL + "; leave it out"),
    Flag("config", 4),
    Flag("repeat", 6, 1),
    Flag("divide", 6, 1),
    Flag("packed", 4),
    Flag("cron", 4),
    Flag("verbose", 4),
    Flag("diagnostic", 4, alias="verbose"),
    Flag("nvcuda", 6, idle="the driver's library (NVML) is asked"),
    Flag("cudart", 6, idle="the driver's library (NVML) is asked"),
    Flag("dirty-environment", 4),
)

_SIMULATED = (
    ("GeForce GT 330", 1.2, 1024), ("GeForce GTX 480", 2.0, 1536), ("Tesla V100-PCIE-16GB", 7.0, 24220),
    ("TITAN RTX", 7.5, 24220), ("A100-SXM4-40GB", 8.0, 40536), ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 8.0, 4864),
    ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", 8.0, 20096),
)
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def main() -> int:
    """Entry of ``condor_gpu_discovery``."""
    return run(_read, "condor_gpu_discovery", _answer, words=Words(unknown="option {word} is not valid\n{usage}"))


def _read(words: Sequence[str]) -> Sequence[Given]:
    """-repeat and -divide may stand without a number."""
    full: list[str] = []
    for place, word in enumerate(words):
        full.append(word)
        follows = words[place + 1] if place + 1 < len(words) else ""
        if re.fullmatch(r"--?(repeat|divide)", word) and not follows.isdecimal():
            full.append("2")
    return parse(full, FLAGS)


@records.define
class _Unit:
    """A device by the name it is given out under."""

    name: str
    properties: dict[str, Value]
    dynamic: dict[str, Value]


def _answer(given: Sequence[Given]) -> int:
    values = values_of(given)
    names = {item.name for item in given}
    if stray := operands_of(given):
        raise ToolError(f"option {stray[0]} is not valid\n{reminder_of('condor_gpu_discovery')}")
    found, notes = _devices(given, values, names)
    for note in notes if "verbose" in names or "dynamic" in names else ():
        print(f"# {note}", file=sys.stderr)
    units = [_unit(each, names) for each in found]
    lines = list(_lines(units, [item for item in given if item.name in ("repeat", "divide")], names, values))
    print(*lines, sep="\n")
    return 0


def _devices(given: Sequence[Given], values: Mapping[str, str], names: set[str]) -> tuple[list[Gpu], list[str]]:
    simulated = next((item for item in given if item.name == "simulate"), None)
    if simulated is not None:
        found, notes = _simulated(simulated.qualifier), list[str]()
    else:
        wanted = [vendor for flag, vendor in (("cuda", "NVIDIA"), ("hip", "AMD")) if flag in names] or VENDORS
        tree = values.get("tree", "/")
        if not os.path.isdir(tree):
            raise ToolError(f"condor_gpu_discovery: -tree {tree}: there is no such folder")
        found, notes = discover(tree, wanted)
    only = {word for item in given if item.name == "device" for word in item.values[0].split(",")}
    if "dirty-environment" in names:
        only |= {word for name in _VISIBLE for word in os.environ.get(name, "").split(",") if word}
    if only:
        found = [each for number, each in enumerate(found) if str(number) in only or any(
            len(word) > 3 and each.uuid.startswith(word) for word in only)]
    return found, notes


def _simulated(text: str) -> list[Gpu]:
    numbers = [word for word in text.split(",") if word] or ["1", "2"]
    if len(numbers) % 2:
        numbers.append("1")
    if not all(word.isdecimal() for word in numbers) or any(int(word) >= len(_SIMULATED) for word in numbers[::2]):
        raise ToolError(f"Error: -simulate:{text}: models are 0-{len(_SIMULATED) - 1}, each with how many there are")
    found: list[Gpu] = []
    for model, count in zip(numbers[::2], numbers[1::2], strict=True):
        name, capability, memory = _SIMULATED[int(model)]
        for _ in range(min(int(count), 64)):
            index = len(found)
            uuid = f"{0xC4A646D7 + index:08x}-d7c6-4c21-8bf4-{index:012x}"
            found.append(Gpu(
                vendor="NVIDIA", index=index, uuid=f"GPU-{uuid}", extra={"ClockMhz": 1410.0}, properties={
                    "DeviceName": name, "Capability": capability, "GlobalMemoryMb": memory, "DriverVersion": 12.2,
                    "MaxSupportedVersion": 12020, "ECCEnabled": False, "DeviceUuid": uuid}))
    return found


def _unit(gpu: Gpu, names: set[str]) -> _Unit:
    if not gpu.uuid or "by-index" in names:
        name = f"{'CUDA' if gpu.vendor == 'NVIDIA' else 'GPU' if gpu.vendor == 'AMD' else 'XPU'}{gpu.index}"
        if gpu.part:
            name = gpu.uuid
    elif ("uuid" in names and "short-uuid" not in names) or gpu.part or gpu.vendor != "NVIDIA":
        name = gpu.uuid
    else:
        name = gpu.uuid[:12]
    properties: dict[str, Value] = {**gpu.properties, "Vendor": gpu.vendor, "DeviceIndex": gpu.index}
    if gpu.files:
        properties["DeviceFiles"] = " ".join(gpu.files)
    if "extra" in names:
        properties |= gpu.extra
    return _Unit(name, properties, dict(gpu.dynamic) if "dynamic" in names else {})


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else str(value)


def _lines(units: list[_Unit], times: list[Given], names: set[str], values: Mapping[str, str]) -> Iterator[str]:
    tag = values.get("tag", "GPUs")
    listed = [unit.name for unit in units]
    if times and int(times[-1].values[0]) > 0:
        count = int(times[-1].values[0])
        listed = [name for name in listed for _ in range(count)] if "packed" in names else listed * count
        if times[-1].name == "divide":
            for unit in units:
                memory = unit.properties.get("GlobalMemoryMb")
                if isinstance(memory, int):
                    unit.properties.update(DeviceMemoryMb=memory, GlobalMemoryMb=memory // count)
    if "cron" not in names:
        joined = ", ".join(listed)
        yield f"Detected{tag}={joined or 0}" if "config" in names else f"Detected{tag}=" + (
            quote(joined) if units else "0")
    if "config" in names:
        yield f"NUM_DETECTED_{tag}={len(units)}"
    if names & {"properties", "extra", "dynamic"}:
        yield from _properties(units, names, values.get("prefix", ""))


def _properties(units: list[_Unit], names: set[str], prefix: str) -> Iterator[str]:
    common: dict[str, Value] = {}
    if units and "mixed" not in names:
        common = {name: value for name, value in units[0].properties.items()
                  if name not in ("GlobalMemoryMb", "DeviceMemoryMb", "DeviceIndex", "DeviceUuid", "DeviceFiles")
                  and all(unit.properties.get(name) == value for unit in units)}
        shared = units[0].properties.get("GlobalMemoryMb")
        if shared is not None and "divide" not in names and all(
                unit.properties.get("GlobalMemoryMb") == shared for unit in units):
            common["GlobalMemoryMb"] = shared
    nested = "not-nested" not in names or "nested" in names
    if common and nested:
        yield "Common=[ " + "".join(f"{name}={_text(common[name])}; " for name in sorted(common)) + "]"
    elif common:
        yield from (f"{prefix or 'CUDA'}{name}={_text(common[name])}" for name in sorted(common))
    for number, unit in enumerate(units):
        said = {name: value for name, value in unit.properties.items() if name not in common} | unit.dynamic
        name = re.sub(r"[^A-Za-z0-9_]", "_", unit.name)
        if nested:
            yield f"{name}=[ id={quote(unit.name)}; " + "".join(
                f"{key}={_text(said[key])}; " for key in sorted(said)) + "]"
        else:
            start = f"{prefix}{number}" if prefix else name
            yield from (f"{start}{key}={_text(said[key])}" for key in sorted(said))


if __name__ == "__main__":
    sys.exit(main())
