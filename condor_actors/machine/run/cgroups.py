"""Control groups: all processes of a job, whatever they do, in one place to count, freeze and kill.

Theory: a claim has one group for all its runs (making and removing groups costs more than joining one); the launcher
joins it before it becomes the job.  Version 2 needs one directory; version 1 one in each hierarchy that is mounted:
freezer (tracks and freezes), memory (limits and measures), cpu and blkio (weights), cpuacct (measures), pids (limits).
Where neither can be used (no rights, not mounted) there are no groups, and the process tree is followed by parentage.

Source: the kernel's documentation, admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import attrs
from twisted.internet.interfaces import IReactorTime

from condor_actors.machine.privilege.helper import send_signal

__all__ = ["CgroupUsage", "Cgroups", "DyingGroups", "JobCgroup"]

ROOT = Path("/sys/fs/cgroup")
V1 = ("freezer", "memory", "cpu", "cpuacct", "pids", "blkio")
IO_FILES = {1: ("blkio.bfq.weight", "blkio.weight"), 2: ("io.weight", "io.bfq.weight")}
"""Weights of disk time; which there are depends on the I/O scheduler."""

DELEGATED = ("cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control", "cpu.idle")
"""The files of a group that belong to the user who may divide it; Source: cgroups(7), "Delegation"."""

NORMAL_IO_WEIGHT = 100
DROP_AGAIN_S = 0.25
SHORT_BYTES = 2048
"""The kernel fills a page as far as whole lines go: what is shorter than half of one is the end of a control file."""


@attrs.frozen(kw_only=True)
class CgroupUsage:
    """What the processes of a group have used; None: cannot be told."""

    cpu_s: float | None = None
    memory_kib: int | None = None
    peak_memory_kib: int | None = None


def _read(path: str) -> str:
    """A control file; empty when there is none (plain system calls: this is done several times per job)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        parts = []
        while part := os.read(descriptor, 65536):
            parts.append(part)
            if len(part) < SHORT_BYTES:
                break
        return b"".join(parts).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def _write(path: str, text: str) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode("ascii"))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


class Cgroups:
    """The groups below ``base`` (BASE_CGROUP) of this machine.

    Attributes:
        version: 1 or 2.
        parents: hierarchy (``""`` in version 2) to the directory below which jobs get theirs.
    """

    def __init__(self, version: int, parents: dict[str, str], top: str, within: str = "") -> None:
        self.version = version
        self.parents = parents
        self._top = top
        self._within = within
        self._idle_above = True

    @classmethod
    def find(cls, base: str, root: Path = ROOT) -> Cgroups | None:
        """The groups that this process may use; None when it may use none."""
        if (root / "cgroup.controllers").exists():
            return cls._find_v2(base, root)
        parents = {}
        for name in V1:
            directory = root / name / base
            if not (root / name / "cgroup.procs").exists():
                continue
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if os.access(directory / "cgroup.procs", os.W_OK):
                parents[name] = str(directory)
        return cls(1, parents, str(root / "cpu")) if "freezer" in parents else None

    @classmethod
    def _find_v2(cls, base: str, root: Path) -> Cgroups | None:
        own = next((line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")), "/")
        for above in (root, root / own.strip("/")):
            directory = above / base
            try:
                directory.mkdir(parents=True, exist_ok=True)
            except OSError:
                continue
            if not os.access(directory / "cgroup.procs", os.W_OK):
                continue
            for level in (above, directory):
                for name in ("cpu", "memory", "pids", "io"):
                    _write(str(level / "cgroup.subtree_control"), f"+{name}")
            return cls(2, {"": str(directory)}, str(above), "" if above == root else str(above))
        return None

    def give(self, uid: int, gid: int) -> None:
        """Leave the groups to an account, as root: it makes and removes groups in these, and limits them.

        Raises:
            OSError: the kernel refuses.
        """
        for parent in self.parents.values():
            os.chown(parent, uid, gid)
            for name in DELEGATED:
                with contextlib.suppress(FileNotFoundError):
                    os.chown(f"{parent}/{name}", uid, gid)
            above = os.path.dirname(parent)
            while above.startswith(f"{self._top}/"):
                os.chown(above, uid, gid)  # for the end: an empty group is removed from there
                with contextlib.suppress(FileNotFoundError):
                    os.chown(f"{above}/cpu.idle", uid, gid)
                above = os.path.dirname(above)

    def settle(self, idle: bool) -> str:
        """Make the groups above the runs' idle when all that runs below them is, and ordinary when not.

        A group is idle beside its neighbours only: what is to give way to the owner's programs has to be idle on every
        level up to the top, where those are.

        Args:
            idle: whether a run was lowered just now; else one has its share.

        Returns:
            The lowest group that cannot be idle, since others run in it too or it is not ours; empty: all are, or
            ``idle`` is false.
        """
        level = self.parents.get("" if self.version == 2 else "cpu", "")
        if not idle and not self._idle_above:
            return ""
        self._idle_above = idle
        stop = ""
        while level and level.startswith(f"{self._top}/"):
            if idle and not stop and not _all_idle(level):
                stop = level
            if not _write(f"{level}/cpu.idle", "1" if idle and not stop else "0"):
                stop = stop or level
            level = os.path.dirname(level)
        return stop or self._within if idle else ""

    def group(self, name: str) -> JobCgroup:
        """The group ``name``, made when it is not there.

        Raises:
            OSError: it cannot be made.
        """
        directories = {}
        for hierarchy, parent in self.parents.items():
            directory = f"{parent}/{name}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory)
            directories[hierarchy] = directory
        return JobCgroup(self.version, directories, self.settle)

    def leave(self) -> None:
        """Remove the (empty) directories that hold the groups."""
        for parent in self.parents.values():
            with contextlib.suppress(OSError):
                os.rmdir(parent)

    def names(self) -> tuple[str, ...]:
        """Every group there is, also those of an earlier process."""
        found: set[str] = set()
        for parent in self.parents.values():
            with contextlib.suppress(OSError), os.scandir(parent) as entries:
                found |= {entry.name for entry in entries if entry.is_dir()}
        return tuple(sorted(found))


class JobCgroup:
    """One group."""

    def __init__(self, version: int, directories: dict[str, str], settle: Callable[[bool], str]) -> None:
        self.version = version
        self._settle = settle
        self._directories = directories
        self._track = directories[""] if version == 2 else directories["freezer"]
        self._procs = f"{self._track}/cgroup.procs"
        self._oom_seen = 0
        self._io_weight = NORMAL_IO_WEIGHT
        self._shared: tuple[int, int | None] | None = None
        self._may_be_frozen = True

    @property
    def directories(self) -> Sequence[str]:
        """What the launcher joins."""
        return tuple(self._directories.values())

    def _file(self, hierarchy: str, v1_name: str, v2_name: str) -> str:
        if self.version == 2:
            return f"{self._directories['']}/{v2_name}"
        directory = self._directories.get(hierarchy)
        return f"{directory}/{v1_name}" if directory is not None else ""

    @cached_property
    def counts_processes(self) -> bool:
        """Whether it limits their number."""
        return os.path.exists(self._file("pids", "pids.max", "pids.max"))

    @cached_property
    def limits_memory(self) -> bool:
        """Whether it limits their memory."""
        return os.path.exists(self._file("memory", "memory.limit_in_bytes", "memory.max"))

    def limit(self, *, cpus: int, memory_mib: int | None, processes: int = 0) -> None:
        """Weight by ``cpus``; no more memory than ``memory_mib`` (None: no limit); at most so many processes."""
        self._shared = None
        if self.version == 2:
            _write(self._file("", "", "cpu.weight"), str(max(1, min(10000, cpus * 100))))
            _write(self._file("", "", "memory.max"), "max" if memory_mib is None else str(memory_mib << 20))
            _write(self._file("", "", "memory.oom.group"), "1")
            _write(self._file("", "", "pids.max"), str(processes) if processes else "max")
            return
        if path := self._file("cpu", "cpu.shares", ""):
            _write(path, str(max(2, min(262144, cpus * 1024))))
        if path := self._file("memory", "memory.limit_in_bytes", ""):
            _write(path, "-1" if memory_mib is None else str(memory_mib << 20))
        if path := self._file("pids", "pids.max", ""):
            _write(path, str(processes) if processes else "max")

    def share(self, cpu_weight: int, io_weight: int | None, idle: bool) -> tuple[str, ...]:
        """What the group gets where others want the same; which of it the kernel took, empty when it has it already."""
        if not idle and self._shared == (cpu_weight, io_weight):
            self._settle(False)
            return ()
        self._shared = None if idle else (cpu_weight, io_weight)
        done = []
        cpu_idle = self._file("cpu", "cpu.idle", "cpu.idle")
        if cpu_idle and os.path.exists(cpu_idle) and _write(cpu_idle, "1" if idle else "0"):
            stop = self._settle(idle)
            if idle:
                done.append(f"cpu.idle within {stop} only" if stop else "cpu.idle")
        if self.version == 2:
            weight, path = max(1, min(10000, 1 if idle else cpu_weight)), self._file("", "", "cpu.weight")
        else:
            weight = max(2, min(262144, 2 if idle else cpu_weight * 1024 // 100))
            path = self._file("cpu", "cpu.shares", "")
        if path and not done and _write(path, str(weight)):
            done.append("cpu.weight")
        if self._share_disk(NORMAL_IO_WEIGHT if io_weight is None else max(1, min(1000, io_weight))):
            done.append("io.weight")
        return tuple(done)

    def _share_disk(self, weight: int) -> bool:
        """Whether the group has this weight and it is another than usual."""
        if weight == self._io_weight:
            return weight != NORMAL_IO_WEIGHT
        for name in IO_FILES[self.version]:
            path = self._file("blkio", name, name)
            if path and os.path.exists(path) and _write(path, f"default {weight}" if self.version == 2 else str(
                    max(10, weight) if name == "blkio.weight" else weight)):
                self._io_weight = weight
                return weight != NORMAL_IO_WEIGHT
        return False

    def reset_peak(self) -> None:
        """Begin to measure a run: the peak starts anew."""
        if self.version == 1 and (path := self._file("memory", "memory.max_usage_in_bytes", "")):
            _write(path, "0")
        elif self.version == 2:
            _write(self._file("", "", "memory.peak"), "0")

    def peak_memory_kib(self) -> int | None:
        """The most memory since then, without the cache of files.

        Error: the kernel's peak counts that cache, of which only the present amount is known.  It is too much by what
        the kernel has taken back since the peak, and too little by what came to the cache after it; never less than
        what is in use now.
        """
        cached = self._file_cache_kib()
        peak = _less(_kib(_read(self._file("memory", "memory.max_usage_in_bytes", "memory.peak"))), cached)
        now = _less(_kib(_read(self._file("memory", "memory.usage_in_bytes", "memory.current"))), cached)
        return peak if peak is None or now is None else max(peak, now)

    def _file_cache_kib(self) -> int:
        """Pages of files, which the kernel reclaims when memory is short."""
        wanted = ("total_inactive_file", "total_active_file") if self.version == 1 else ("inactive_file", "active_file")
        text = _read(self._file("memory", "memory.stat", "memory.stat"))
        found = [f"\n{text}".partition(f"\n{name} ")[2].partition("\n")[0] for name in wanted]
        return sum([int(number) for number in found if number]) >> 10

    def usage(self) -> CgroupUsage:
        """What has been used."""
        if self.version == 2:
            cpu = next((line.split()[1] for line in _read(self._file("", "", "cpu.stat")).splitlines()
                        if line.startswith("usage_usec")), "")
            return CgroupUsage(
                cpu_s=int(cpu) / 1e6 if cpu else None,
                memory_kib=_less(_kib(_read(self._file("", "", "memory.current"))), self._file_cache_kib()),
                peak_memory_kib=self.peak_memory_kib())
        cpu = _read(self._file("cpuacct", "cpuacct.usage", "")).strip()
        return CgroupUsage(
            cpu_s=int(cpu) / 1e9 if cpu else None,
            memory_kib=_less(_kib(_read(self._file("memory", "memory.usage_in_bytes", ""))), self._file_cache_kib()),
            peak_memory_kib=self.peak_memory_kib())

    def oom_kills(self) -> int:
        """How often the kernel has killed for lack of memory here."""
        text = _read(self._file("memory", "memory.oom_control", "memory.events"))
        return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)

    def fresh_oom_kill(self) -> bool:
        """Whether that has happened since the last time this was asked."""
        count, before = self.oom_kills(), self._oom_seen
        self._oom_seen = count
        return count > before

    def pids(self) -> list[int]:
        """The processes in it now."""
        return [int(word) for word in _read(self._procs).split()]

    def freeze(self) -> None:
        """Stop them all at once."""
        self._may_be_frozen = True
        _write(self._file("freezer", "freezer.state", "cgroup.freeze"), "1" if self.version == 2 else "FROZEN")

    def thaw(self) -> None:
        """Let them go on."""
        state = self._file("freezer", "freezer.state", "cgroup.freeze")
        self._may_be_frozen = not _write(state, "0" if self.version == 2 else "THAWED")

    def kill(self, *, everywhere: bool = False) -> int:
        """Kill them all; returns how many there were (0: none is left).

        ``everywhere``: also what is in one of the hierarchies only, for it was about to join or to leave.
        A frozen process dies when it is thawed, so that is done after the signals; and also when there is none, if the
        group was frozen: one that joins it would stay frozen forever.
        """
        if self.version == 2 and _write(self._file("", "", "cgroup.kill"), "1"):
            self.thaw()
            return len(self.pids())
        pids = self.pids()
        if everywhere:
            pids = sorted({int(word) for directory in self._directories.values()
                           for word in _read(f"{directory}/cgroup.procs").split()})
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                send_signal(pid, signal.SIGKILL)
        if pids or self._may_be_frozen:
            self.thaw()
        return len(pids)

    def remove(self) -> bool:
        """Remove the (empty) group; False when something is left in it."""
        gone = True
        for directory in self._directories.values():
            try:
                os.rmdir(directory)
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone


class DyingGroups:
    """Groups that are to go: what is in them is killed, and they are removed when it is gone, which takes a moment.

    Args:
        clock: its timers.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._groups: dict[tuple[str, ...], JobCgroup] = {}
        self._is_waiting = False

    def drop(self, group: JobCgroup) -> None:
        """Have one gone, soon."""
        self._groups[tuple(group.directories)] = group
        self._drop_all()

    def spared(self, group: JobCgroup) -> JobCgroup:
        """This one, which is to stay now."""
        self._groups.pop(tuple(group.directories), None)
        return group

    def _drop_all(self) -> None:
        for key, group in tuple(self._groups.items()):
            group.kill(everywhere=True)
            if group.remove():
                del self._groups[key]
        if self._groups and not self._is_waiting:
            self._is_waiting = True
            self._clock.callLater(DROP_AGAIN_S, self._again)

    def _again(self) -> None:
        self._is_waiting = False
        self._drop_all()


def _all_idle(directory: str) -> bool:
    """Whether nothing runs in a group but in groups below it that are idle."""
    if _read(f"{directory}/cgroup.procs").strip():
        return False
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        return all(_read(f"{entry.path}/cpu.idle").strip() == "1" or not _runs(entry.path)
                   for entry in entries if entry.is_dir())
    return False


def _runs(directory: str) -> bool:
    """Whether there is a process in a group or below it."""
    return any(_read(f"{path}/cgroup.procs").strip() for path, _, _ in os.walk(directory))


def _less(amount: int | None, part: int) -> int | None:
    return None if amount is None else max(0, amount - part)


def _kib(text: str) -> int | None:
    word = text.strip()
    return int(word) >> 10 if word.isdecimal() else None
