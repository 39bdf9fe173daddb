"""Names of the system calls that the native shadow does, by the kernel's numbers (from ``native/syscalls.tbl``)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

__all__ = ["call_names"]


@cache
def call_names() -> Mapping[int, str]:
    """Number to name."""
    lines = (Path(__file__).with_name("call_names.txt")).read_text().splitlines()
    return {int(number): name for number, _, name in (line.partition(" ") for line in lines)}
