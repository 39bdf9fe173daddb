"""What /proc says of processes that may end at any moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["command_lines", "proc_file"]


def proc_file(pid: int | str, name: str) -> bytes:
    """A file of a process; empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def command_lines() -> Iterator[tuple[str, bytes]]:
    """Process id and command line of everybody who is there."""
    for path in Path("/proc").glob("[0-9]*"):
        yield path.name, proc_file(path.name, "cmdline")
