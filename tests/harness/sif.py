"""Images as Apptainer makes them: a SIF file around a squashfs."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

__all__ = ["descriptor", "sif", "squashfs"]

PARTITION, SQUASHFS, PRIMARY = 0x4004, 1, 2
HEADER_BYTES, DESCRIPTOR_BYTES = 128, 585


def squashfs(folder: Path, target: Path, *options: str) -> bytes:
    """A squashfs of a folder."""
    program = shutil.which("mksquashfs")
    if program is None:
        pytest.skip("needs mksquashfs (squashfs-tools)")
    subprocess.run([program, str(folder), str(target), "-quiet", "-no-progress", "-all-root", "-noappend", *options],
                   check=True, capture_output=True, timeout=60)
    return target.read_bytes()


def descriptor(kind: int = PARTITION, system: int = SQUASHFS, purpose: int = PRIMARY, *, offset: int, length: int,
               used: bool = True) -> bytes:
    """A row of a SIF file's table."""
    head = struct.pack("<i?IIIqqqqqqq", kind, used, 1, 1, 0, offset, length, length, 0, 0, 0, 0)
    return head + b"root".ljust(128, b"\0") + struct.pack("<ii", system, purpose).ljust(384, b"\0")


def sif(*parts: bytes, rows: bytes | None = None, count: int | None = None) -> bytes:
    """A SIF file with these parts, the last of which is the root directory.

    Args:
        rows: of its table, instead of the true one; count: how many it says that there are.
    """
    begin = HEADER_BYTES + DESCRIPTOR_BYTES * max(len(parts), 1)
    if rows is None:
        rows, offset = b"", begin
        for number, part in enumerate(parts, 1):
            rows += descriptor(PARTITION if number == len(parts) else 0x4001, offset=offset, length=len(part))
            offset += len(part)
    header = b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0" + b"01\0" + b"02\0" + bytes(16) + struct.pack(
        "<qqqqqqqq", 0, 0, 0, len(parts) if count is None else count, HEADER_BYTES, len(rows), begin, 0)
    return header + rows.ljust(begin - HEADER_BYTES, b"\0") + b"".join(parts)
