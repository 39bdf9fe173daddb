"""What the host says about itself: its size, its load, who is at it.

Theory: a reading is taken, never remembered as truth: every method asks the kernel.  What cannot be read is None, with
a reason, never a guess.  Errors: the load average is the kernel's one-minute exponential mean (1 % after 5 minutes);
the pool's own load is the mean number of running job threads since the last reading, smoothed alike; the idle time of
a terminal is the age of its device's access time, which the kernel moves in steps of 8 s.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs
import psutil

from condor_actors.machine.devices.inventory_program import take_inventories
from condor_actors.machine.power.network_cards import NetworkCard, network_cards
from condor_actors.machine.run.confinement import confinement_here, stops_at_exec

__all__ = ["HostReadings", "IdleNow", "Loads", "MachineFacts", "Readings", "processes_below"]

LOAD_SPAN_S = 60.0


@attrs.frozen(kw_only=True)
class MachineFacts:
    """What does not change while the machine runs."""

    cpus: int
    physical_cpus: int
    memory_mib: int
    swap_mib: int
    boot_s: float
    kernel: str
    cpu_model: str = ""
    cpu_flags: tuple[str, ...] = ()
    node: str = ""
    confinement: tuple[str, ...] = ()
    """The parts of JOB_CONFINEMENT that work here; see :mod:`condor_actors.machine.run.confinement`."""
    stops_at_exec: bool = False
    """Whether a job can be stopped at its first instruction, for a tool daemon beside it."""
    inventories: Mapping[str, str] = attrs.field(factory=dict)
    """By resource, what its inventory program wrote."""
    not_taken: tuple[str, ...] = ()
    """Which of those programs failed, and why."""
    cards: tuple[NetworkCard, ...] = ()
    """By which the machine can be reached, and perhaps woken."""


@attrs.frozen
class Loads:
    """Load averages: of everything, and of the pool's own jobs."""

    total: float
    own: float


@attrs.frozen
class IdleNow:
    """One sensor's word: seconds since the last input, or None and why."""

    source: str
    idle_s: float | None
    text: str = ""


class Readings(Protocol):
    """What a startd needs to know of its host; the simulation has its own."""

    def facts(self) -> MachineFacts:
        """The size of the machine."""

    def disk_free_kib(self, path: str) -> int:
        """Free space of the file system that holds the folder ``path``, which is made when it is not there.

        Raises:
            OSError: it cannot be made.
        """

    def loads(self, starter_pid: int) -> Loads:
        """Load now; ``starter_pid`` is the process below which the pool's jobs run (0: none)."""

    def idle(self) -> tuple[IdleNow, ...]:
        """Every terminal and console device."""


class HostReadings:
    """The machine this process runs on.

    Args:
        console_devices: names below /dev (CONSOLE_DEVICES).
        confine: how jobs are to be shut in (JOB_CONFINEMENT).
        inventories: commands that name the units of a resource (MACHINE_RESOURCE_INVENTORY_<NAME>).
        cgroup_cpu_file: a file with the nanoseconds or microseconds that all jobs used, when there is one.
        dev: where devices are.
    """

    def __init__(self, console_devices: Sequence[str] = (), dev: str = "/dev", *, confine: Sequence[str] = (),
                 inventories: Mapping[str, str] | None = None) -> None:
        self._confine = confine
        self._inventories = inventories or {}
        self._console_devices = tuple(console_devices)
        self._dev = dev
        self._own_load = 0.0
        self._own_cpu: dict[int, float] = {}
        self._read_s: float | None = None

    def facts(self) -> MachineFacts:
        """The size of the machine."""
        memory = psutil.virtual_memory()
        model, flags = _cpu_model()
        units, not_taken = take_inventories(self._inventories)
        return MachineFacts(
            cpus=os.cpu_count() or 1, physical_cpus=psutil.cpu_count(logical=False) or os.cpu_count() or 1,
            memory_mib=memory.total >> 20, swap_mib=psutil.swap_memory().total >> 20, boot_s=psutil.boot_time(),
            kernel=platform.release(), cpu_model=model, cpu_flags=flags, node=platform.node(),
            confinement=confinement_here(self._confine), stops_at_exec=stops_at_exec(),
            inventories=units, not_taken=not_taken, cards=network_cards())

    def disk_free_kib(self, path: str) -> int:
        """Free space of the file system that holds the folder ``path``, which is made when it is not there."""
        os.makedirs(path, exist_ok=True)
        return shutil.disk_usage(path).free >> 10

    def loads(self, starter_pid: int) -> Loads:
        """The kernel's load average, and the smoothed rate at which the jobs use processors."""
        now_s = time.monotonic()
        used = _tree_cpu_s(starter_pid) if starter_pid else {}
        if self._read_s is not None and now_s > self._read_s:
            span_s = now_s - self._read_s
            gained_s = sum(max(0.0, cpu_s - self._own_cpu.get(pid, 0.0)) for pid, cpu_s in used.items())
            keep = math.exp(-span_s / LOAD_SPAN_S)
            self._own_load = keep * self._own_load + (1.0 - keep) * gained_s / span_s
        self._own_cpu, self._read_s = used, now_s
        total = os.getloadavg()[0]
        return Loads(total, min(total, self._own_load))

    def idle(self) -> tuple[IdleNow, ...]:
        """The least of: pseudo terminals, virtual consoles in use, console devices."""
        now_s = time.time()
        found = [_idle_of(f"tty:pts/{name}", f"{self._dev}/pts/{name}", now_s)
                 for name in _listed(f"{self._dev}/pts") if name.isdecimal()]
        found += [_idle_of(f"console:{name}", f"{self._dev}/{name}", now_s) for name in self._console_devices]
        found += [_idle_of(f"console:{name}", f"{self._dev}/{name}", now_s)
                  for name in _listed(self._dev) if name.startswith("tty") and name[3:].isdecimal() and name != "tty0"]
        known = [each for each in found if each.idle_s is not None]
        if known:
            return tuple(known)
        return (IdleNow("boot", max(0.0, now_s - psutil.boot_time()), "no terminal has been used since"),)


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _idle_of(source: str, path: str, now_s: float) -> IdleNow:
    try:
        facts = os.stat(path)
    except OSError as error:
        return IdleNow(source, None, error.strerror or "cannot be read")
    return IdleNow(source, max(0.0, now_s - facts.st_atime))


def _tree_cpu_s(root: int) -> dict[int, float]:
    """Processor seconds of every process below ``root``, by pid."""
    tick = os.sysconf("SC_CLK_TCK")
    return {pid: sum(int(word) for word in words[11:15]) / tick for pid, words in processes_below(root).items()}


def processes_below(root: int) -> dict[int, list[bytes]]:
    """What /proc/<pid>/stat says behind the name (state, parent, group, session, terminal …), by pid."""
    found = {}
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        for task in _listed(f"/proc/{pid}/task"):
            try:
                with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                    waiting += [int(word) for word in stream.read().split()]
            except OSError:
                continue
        if pid == root:
            continue
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                found[pid] = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
    return found


def _cpu_model() -> tuple[str, tuple[str, ...]]:
    model = ""
    flags: tuple[str, ...] = ()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                name, _, value = line.partition(":")
                if name.strip() == "model name" and not model:
                    model = value.strip()
                elif name.strip() == "flags" and not flags:
                    flags = tuple(value.split())
                elif not line.strip():
                    break
    except OSError:
        pass
    return model, flags
