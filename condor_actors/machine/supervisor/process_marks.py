"""Which processes belong to a master: the mark in their environment, and their identity in ``/proc``.

A process id alone means nothing, since ids are used again; with the start time it names one process for good. The mark
is inherited, so it also finds what a daemon started. Imports little: commands use it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import attrs

__all__ = [
    "MARK", "KeptProcess", "all_processes", "command_line", "environment_of", "marked_processes", "real_uid",
    "start_ticks", "started_at_s",
]

MARK: Final = "CONDOR_KEPT"
"""The environment variable that says whose process it is: the path of the record and the name in it."""


@attrs.frozen
class KeptProcess:
    """One that runs: its id, and its start in clock ticks after boot (field 22 of ``/proc/PID/stat``)."""

    name: str
    pid: int
    ticks: int


def start_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks after boot; None when there is none, or only its exit status is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def started_at_s(process: KeptProcess) -> float:
    """When it began, in seconds since 1970."""
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("btime "):
            return int(line.split()[1]) + process.ticks / os.sysconf("SC_CLK_TCK")
    return 0.0


def marked_processes(record: str) -> dict[int, str]:
    """Every process below the record's owner: id and the name in its mark, descendants of the kept ones included."""
    wanted = f"{MARK}={record}:".encode()
    found = {}
    for pid in all_processes():
        for item in environment_of(pid):
            if item.startswith(wanted):
                found[pid] = os.fsdecode(item[len(wanted) :])
    return found


def all_processes() -> list[int]:
    """The ids of all processes but this one."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]


def environment_of(pid: int) -> list[bytes]:
    """The environment a process began with; empty when it may not be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def real_uid(pid: int) -> int | None:
    """Whose process it is; None when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")), None)


def command_line(pid: int) -> list[str]:
    """The words a process was started with; empty when it is gone."""
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]
    except OSError:
        return []
