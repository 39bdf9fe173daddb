"""What follows from the name of an NVIDIA device or the version of its driver, where the driver's library is not there.

**Source**: NVIDIA's tables of compute capabilities, and of the driver that a version of CUDA needs.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["capability_of", "cores_per_unit", "cuda_of_driver", "memory_of"]

_CAPABILITIES: Final = (
    (r"\bG?B300\b", 10.3), (r"\bG?B[12]00\b", 10.0), (r"\bRTX (PRO \d+ Black|50[5-9]0)", 12.0),
    (r"\bG?H[12]00\b|\bH800\b|\bH20\b", 9.0), (r"\bL(4|20|40S?)\b|\bRTX 40[5-9]0|\bAda\b", 8.9),
    (r"\bA(100|30|800)\b", 8.0), (r"\bA(2|10G?|16|40)\b|\bRTX 30[5-9]0|\bRTX A\d{4}\b", 8.6),
    (r"\bT4\b|\bT4G\b|\bRTX 20[6-8]0|\bTITAN RTX\b|\bQuadro RTX\b|\bGTX 16[56]0|\bT1000\b|\bT600\b", 7.5),
    (r"\bV100S?\b|\bTITAN V\b|\bGV100\b", 7.0), (r"\bP100\b|\bGP100\b", 6.0),
    (r"\bP(4|40|6)\b|\bGTX 10[3-8]0|\bTITAN (X|Xp)\b|\bQuadro P\d{3,4}\b", 6.1),
    (r"\bM(4|40|60|10)\b|\bGTX 9[5-8]0|\bGTX TITAN X\b", 5.2), (r"\bK80\b", 3.7), (r"\bK(20X?m?|40[mc]?)\b", 3.5),
)
_MEMORY_MIB: Final = (
    (r"\bH200\b", 143771), (r"\bL40S?\b|\bA40\b|\bRTX A6000\b", 46068), (r"\bL4\b|\bA10\b|\bA30\b", 23028),
    (r"\bTITAN RTX\b|\bRTX (3090|4090)\b", 24564), (r"\bT4\b", 15360), (r"\bP40\b", 22919), (r"\bP4\b", 7611),
    (r"\bK80\b", 11441),
)
_CUDA: Final = (
    (580, 13000), (575, 12090), (570, 12080), (565, 12070), (560, 12060), (555, 12050), (550, 12040), (545, 12030),
    (535, 12020), (530, 12010), (525, 12000), (520, 11080), (515, 11070), (510, 11060), (495, 11050), (470, 11040),
    (465, 11030), (460, 11020), (455, 11010), (450, 11000), (440, 10020), (418, 10010), (410, 10000), (390, 9010),
)
_CORES: Final = {3.5: 192, 3.7: 192, 5.0: 128, 5.2: 128, 6.0: 64, 6.1: 128, 7.0: 64, 7.5: 64, 8.0: 64}


def capability_of(model: str) -> float | None:
    """The compute capability of a model; None: not known."""
    return next((found for pattern, found in _CAPABILITIES if re.search(pattern, model, re.IGNORECASE)), None)


def memory_of(model: str) -> int | None:
    """The memory of a model, MiB: what its name says, else its family's; None: not known."""
    said = re.search(r"(?<!\d)(\d+)\s*GB\b", model)
    if said is not None:
        return int(said[1]) * 1024
    return next((found for pattern, found in _MEMORY_MIB if re.search(pattern, model, re.IGNORECASE)), None)


def cuda_of_driver(version: str) -> int | None:
    """The newest CUDA that a driver (``535.129.03``) serves, as CUDA writes it (12020); None: not known."""
    major = re.match(r"\d+", version)
    return next((cuda for least, cuda in _CUDA if major is not None and int(major[0]) >= least), None)


def cores_per_unit(capability: float) -> int:
    """How many cores a multiprocessor has."""
    return _CORES.get(capability, 128)
