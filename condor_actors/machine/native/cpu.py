"""Which level of the x86-64 architecture this machine has (1 to 4, as the ABI's processor supplement counts).

A checkpoint needs a machine of at least the level of the best machine its program has been on, because libraries
choose their code by it when they are loaded.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["level_of_flags", "level_of_machine"]

# The kernel's names for what each level adds to the one before.
_LEVELS = (
    frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
)


def level_of_flags(flags: frozenset[str]) -> int:
    """Return the level of a processor with these FLAGS of /proc/cpuinfo."""
    level = 1
    for needed in _LEVELS:
        if not needed <= flags:
            break
        level += 1
    return level


def level_of_machine() -> int:
    """Return the level of this machine: 1 where it cannot be told."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return level_of_flags(frozenset(line.partition(":")[2].split()))
    except OSError:
        pass
    return 1
