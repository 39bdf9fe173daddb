"""The processes of one run: signal, freeze, measure, kill, by control group or by parentage."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Collection

import attrs

from condor_actors.machine.privilege.helper import send_signal
from condor_actors.machine.run import process_tree
from condor_actors.machine.run.cgroups import JobCgroup
from condor_actors.machine.run.cpu_io_priority import Share, apply_share

__all__ = ["Measurement", "RunProcesses"]

TICK = os.sysconf("SC_CLK_TCK")


@attrs.frozen(kw_only=True)
class Measurement:
    """What the living processes of a run have used."""

    user_cpu_s: float = 0.0
    system_cpu_s: float = 0.0
    memory_kib: int = 0
    peak_memory_kib: int = 0
    processes: int = 0


def _child_is_dead() -> bool:
    """Whether some child of this process is dead and not waited for yet."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


class RunProcesses:
    """Finds, signals, freezes and kills the processes of one run where there is no control group.

    Args:
        cgroup: the claim's group, when there is one.
        mark: the value of the run's mark in its environment.
        leaders: gives the first processes of all runs of this process.
    """

    def __init__(self, cgroup: JobCgroup | None, mark: str, leaders: Callable[[], Collection[int]]) -> None:
        self._cgroup = cgroup
        self._mark = mark
        self._leaders = leaders
        self._leader = 0
        self._alive = False
        self._seen: set[int] = set()
        self._stood: set[int] | None = None  # while it is frozen: what stood still before
        if cgroup is not None:
            cgroup.reset_peak()

    def leader(self, pid: int) -> None:
        """The first process."""
        self._leader, self._alive = pid, True

    def leader_ended(self) -> None:
        """It has ended and is reaped: its number means nothing any more, but as a session."""
        self._alive = False

    @property
    def pid(self) -> int:
        """The first process; 0 when it has ended."""
        return self._leader if self._alive else 0

    def pids(self) -> list[int]:
        """Everything that lives."""
        if self._cgroup is not None:
            return self._cgroup.pids()
        roots = [self._leader] if self._alive else []
        roots += process_tree.orphans_of(
            self._leader, self._mark, self._seen, self._leaders(), over=not self._alive)
        found = process_tree.descendants(roots)
        self._seen.update(found)
        return found

    def signal_leader(self, number: int) -> None:
        """Send a signal to the first process."""
        if self._alive:
            with contextlib.suppress(ProcessLookupError):
                send_signal(self._leader, number)

    def freeze(self) -> None:
        """Suspend all; repeated by parentage until no new one turns up."""
        if self._cgroup is not None:
            self._cgroup.freeze()
            return
        stopped: set[int] = set()
        if self._stood is None:
            self._stood = {pid for pid in self.pids() if process_tree.is_stopped(pid)}
        for _ in range(8):
            fresh = set(self.pids()) - stopped
            if not fresh:
                return
            process_tree.signal_all(fresh, signal.SIGSTOP)
            stopped |= fresh

    def thaw(self) -> None:
        """Let all go on that did before."""
        if self._cgroup is not None:
            self._cgroup.thaw()
        else:
            stood, self._stood = self._stood or set(), None
            process_tree.signal_all([pid for pid in self.pids() if pid not in stood], signal.SIGCONT)

    def share(self, share: Share) -> tuple[str, ...]:
        """Give the run its share of processor and disk; what of it the kernel took."""
        return apply_share(share, self._cgroup, self.pids() if self._leader else ())

    def kill(self) -> int:
        """SIGKILL to all, the first process included; returns how many are left to die."""
        if self._cgroup is not None:
            if self._alive:
                self.signal_leader(signal.SIGKILL)
            count = self._cgroup.kill()
            self._reap_orphans()
            return count
        pids = self.pids()
        process_tree.kill_all(pids)
        gone = self._reap_orphans()
        return len([pid for pid in pids if pid not in gone])

    def _reap_orphans(self) -> set[int]:
        """Collect dead processes that have become children of this process."""
        gone: set[int] = set()
        if not _child_is_dead():
            return gone
        leaders = set(self._leaders())
        for pid in process_tree.children_of(os.getpid()):
            if pid in leaders or (pid == self._leader and self._alive):
                continue
            if pid in self._seen or self._is_zombie(pid):
                with contextlib.suppress(ChildProcessError):
                    done, _ = os.waitpid(pid, os.WNOHANG)
                    if done:
                        gone.add(pid)
        return gone

    def _is_zombie(self, pid: int) -> bool:
        """A dead orphan of some run: nobody else waits for it (leaders and our own children are known)."""
        try:
            with open(f"/proc/{pid}/stat", "rb") as stream:
                words = stream.read().rpartition(b")")[2].split()
        except OSError:
            return False
        return words[0] == b"Z" and int(words[3]) not in (os.getsid(0),)

    def measure(self) -> Measurement:
        """What the living ones use; with a control group also what the dead ones have."""
        pids = self.pids()
        user = system = memory = 0
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat", "rb") as stream:
                    words = stream.read().rpartition(b")")[2].split()
            except OSError:
                continue
            user += int(words[11]) + int(words[13])
            system += int(words[12]) + int(words[14])
            memory += int(words[21]) * 4
        peak = max(memory, self._peak_kib())
        return Measurement(user_cpu_s=user / TICK, system_cpu_s=system / TICK, memory_kib=memory, peak_memory_kib=peak,
                           processes=len(pids))

    def last_measure(self) -> Measurement:
        """When nothing lives any more."""
        return Measurement(peak_memory_kib=self._peak_kib())

    def _peak_kib(self) -> int:
        return (self._cgroup.peak_memory_kib() or 0) if self._cgroup is not None else 0

    def killed_for_memory(self) -> bool:
        """Whether the kernel has killed someone of this group for lack of memory since the last time it was asked."""
        return self._cgroup is not None and self._cgroup.fresh_oom_kill()
