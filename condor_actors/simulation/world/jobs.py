"""Jobs as processes of a simulated machine: what they need, how they end, what they leave behind.

Theory: the starter launches a program with arguments; here the arguments say what the program does:
``cpu_s=3600 exit=0 signal=0 stubborn=1 keeps=1 memory_mib=64``.  A program makes progress while it runs and is not
frozen, at its machine's speed.  A program that ``keeps`` writes what it has done to a file when it is asked to go
(SIGTERM) and goes on from there when the file is with it the next time: a self-checkpointing job.

=============  ==========================================================================================
argument       meaning
=============  ==========================================================================================
``cpu_s``      seconds of a machine of speed 1 until it ends; ``inf``: it hangs forever
``exit``       its exit code
``signal``     it dies of this signal instead
``stubborn``   1: SIGTERM does not impress it
``keeps``      1: it writes its progress to ``progress`` when it is asked to go
``memory_mib`` what it uses
``disk_mib``   what it writes as soon as it begins
``start_s``    how long it takes to begin (to be placed, to load)
=============  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.run_processes import Measurement
from condor_actors.machine.run.users import Account
from condor_actors.simulation.world.sandboxes import MemoryBlobs, SimulatedSandboxes

if TYPE_CHECKING:
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.process import Process

__all__ = ["JobProcess", "SimulatedLauncher", "SimulatedRunHost"]

START_S = 0.01
DIES_IN_S = 0.003


def program_of(arguments: Sequence[str]) -> dict[str, float]:
    """What the arguments say; see the module."""
    found: dict[str, float] = {}
    for word in arguments:
        name, equals, value = word.partition("=")
        if equals:
            found[name] = float(value)
    return found


class JobProcess:
    """One running program.

    Attributes:
        pid, run_id, job: its number, its run, and ``machine/cluster.proc``.
        done_s: how much it has computed, as of ``since_s``.
        asked_s: since when it is to go.
        frozen, alive: whether it makes progress, and exists.
    """

    def __init__(
        self, machine: SimulatedMachine, host: Process, plan: LaunchPlan, ended: Callable[[Ended], None]
    ) -> None:
        self.machine = machine
        self.host = host
        self.pid = machine.next_pid()
        self.run_id = plan.environment.get(MARK, "").rpartition(":")[2]
        self.program = program_of(plan.arguments)
        self.job = machine.pool.users.job_of(self.program, self.run_id)
        self.folder = plan.directory
        self.wants_s = self.program.get("cpu_s", 60.0)
        self.done_s = self.began_with_s = machine.progress_in(self.folder)
        self.since_s = machine.pool.clock.now_s
        self.began_s = self.since_s
        self.frozen = False
        self.asked_s = float("inf")
        self.alive = True
        self.begun = False
        self.reaped = False
        self._ended: Callable[[Ended], None] | None = ended
        self._end_call: Any = None

    def begin(self) -> None:
        """The program executes."""
        self.begun = True
        self.since_s = self.began_s = self.machine.pool.clock.now_s
        self._plan_end()

    def _plan_end(self) -> None:
        if self._end_call is not None and self._end_call.active():
            self._end_call.cancel()
        self._end_call = None
        if self.frozen or not self.begun or not self.alive:
            return
        left_s = (self.wants_s - self.done_s) / self.machine.speed
        if left_s < float("inf"):
            self._end_call = self.machine.pool.clock.callLater(max(0.0, left_s), self._finished)

    def advance(self) -> None:
        """Bring ``done_s`` up to now."""
        now_s = self.machine.pool.clock.now_s
        if self.begun and not self.frozen and self.alive:
            self.done_s += (now_s - self.since_s) * self.machine.speed
        self.since_s = now_s

    @property
    def cpu_s(self) -> float:
        """What it has used in this run."""
        self.advance()
        return (self.done_s - self.began_with_s) / self.machine.speed

    def freeze(self) -> None:
        """SIGSTOP."""
        self.advance()
        self.frozen = True
        self._plan_end()

    def thaw(self) -> None:
        """SIGCONT.  What was asked to go and stood still since has its time to go from now on."""
        self.advance()
        if self.frozen and self.asked_s < self.machine.pool.clock.now_s:
            self.asked_s = self.machine.pool.clock.now_s
        self.frozen = False
        self._plan_end()

    def _finished(self) -> None:
        self.advance()
        self.done_s = self.wants_s
        number = int(self.program.get("signal", 0))
        self.end(-1 if number else int(self.program.get("exit", 0)), number or -1)

    def signal(self, number: int) -> None:
        """A signal: 9 ends it, 15 and its like ask it to go."""
        if not self.alive:
            return
        self.asked_s = min(self.asked_s, self.machine.pool.clock.now_s)
        if number == 9:
            self.machine.pool.clock.callLater(DIES_IN_S, self.end, -1, 9)
        elif not self.program.get("stubborn"):
            self.advance()
            if self.program.get("keeps"):
                self.machine.keep_progress(self.folder, self.done_s)
            self.machine.pool.clock.callLater(DIES_IN_S, self.end, -1, number)

    def end(self, exit_code: int, exit_signal: int) -> None:
        """It is gone."""
        if not self.alive:
            return
        self.advance()
        self.alive = False
        if self._end_call is not None and self._end_call.active():
            self._end_call.cancel()
        if exit_signal <= 0:
            self.machine.write(self.folder, "_condor_stdout",
                               f"run {self.run_id} did {self.wants_s:g} s\n".encode())
        self.machine.job_ended(self, exit_code, exit_signal)
        ended, self._ended = self._ended, None
        if ended is not None and self.host.alive:
            self.host.clock.run(ended, Ended(
                exit_code=exit_code, exit_signal=exit_signal, core_dumped=False, user_cpu_s=self.cpu_s,
                system_cpu_s=0.0, peak_memory_kib=int(self.program.get("memory_mib", 1)) << 10))


class SimulatedLauncher:
    """Starts jobs: ``World.processes`` of a starter host."""

    def __init__(self, machine: SimulatedMachine, host: Process) -> None:
        self._machine = machine
        self._host = host

    def launch(self, plan: LaunchPlan, began: Callable[[], None], failed: Callable[[LaunchFailure], None],
               ended: Callable[[Ended], None]) -> JobProcess:
        """See :class:`~condor_actors.machine.run.launch.Launcher`."""
        job = JobProcess(self._machine, self._host, plan, ended)
        if self._machine.bad:
            job.alive = False
            self._host.clock.callLater(START_S, failed, LaunchFailure("the machine's libraries are broken"))
            return job
        self._machine.job_started(job)
        delay_s = START_S + job.program.get("start_s", 0.0)

        def go() -> None:
            if job.alive:
                job.begin()
                self._host.clock.run(began)

        self._machine.pool.clock.callLater(delay_s, go)
        return job


class SimulatedProcesses:
    """The processes of one run: as :class:`~condor_actors.machine.run.run_processes.RunProcesses`."""

    def __init__(self, machine: SimulatedMachine, run_id: str) -> None:
        self._machine = machine
        self._run_id = run_id
        self._leader = 0
        self._alive = False

    def _jobs(self) -> list[JobProcess]:
        return [job for job in self._machine.jobs.values() if job.run_id == self._run_id]

    def leader(self, pid: int) -> None:
        """The first process."""
        self._leader, self._alive = pid, True

    def leader_ended(self) -> None:
        """It has ended."""
        self._alive = False

    @property
    def pid(self) -> int:
        """The first process; 0 when it has ended."""
        return self._leader if self._alive else 0

    def signal_leader(self, number: int) -> None:
        """Send a signal."""
        for job in self._jobs():
            job.signal(number)

    def freeze(self) -> None:
        """Suspend."""
        for job in self._jobs():
            job.freeze()

    def thaw(self) -> None:
        """Let go on."""
        for job in self._jobs():
            job.thaw()

    def pids(self) -> list[int]:
        """What lives."""
        return [job.pid for job in self._jobs()]

    def share(self, share: Any) -> tuple[str, ...]:
        """A smaller share of the machine is not played."""
        return ()

    def kill(self) -> int:
        """SIGKILL; returns how many are left to die."""
        jobs = self._jobs()
        for job in jobs:
            job.signal(9)
        return len(jobs)

    def measure(self) -> Measurement:
        """What they use."""
        jobs = self._jobs()
        memory_kib = sum(int(job.program.get("memory_mib", 1)) << 10 for job in jobs)
        return Measurement(user_cpu_s=sum(job.cpu_s for job in jobs), memory_kib=memory_kib,
                           peak_memory_kib=memory_kib, processes=len(jobs))

    def last_measure(self) -> Measurement:
        """When nothing lives any more."""
        return Measurement()

    def killed_for_memory(self) -> bool:
        """Never."""
        return False


class SimulatedRunHost:
    """``World.host`` of a starter host."""

    null = -1

    def __init__(self, machine: SimulatedMachine, process: Process) -> None:
        self._machine = machine
        self._process = process
        self.pid = process.pid
        self.own_account = Account("root", 0, 0, "/root")

    def may_change_user(self) -> bool:
        """Accounts are not played."""
        return False

    def account(self, name: str) -> Account | None:
        """None."""
        return None

    def sandboxes(self, execute: str, account: Account | None) -> SimulatedSandboxes:
        """EXECUTE."""
        return SimulatedSandboxes(self._machine, execute, self.pid)

    def disk_room(self, path: str) -> tuple[int, int]:
        """What the programs have left of it."""
        total_kib = self._machine.spec.disk_kib
        return max(0, total_kib - self._machine.written_kib()), total_kib

    def blobs(self, folder: Any, quota_bytes: int, floor_bytes: int) -> MemoryBlobs:
        """No content."""
        return MemoryBlobs()

    def libraries(self, folder: Any, limit_bytes: int, floor_bytes: int) -> None:
        """None."""

    def standard_isolation(self) -> tuple[str, ...]:
        """None."""
        return ()

    def confinement(self, wanted: Collection[str]) -> tuple[str, ...]:
        """None."""
        return ()

    def open_files_limit(self) -> str:
        """None."""
        return "unlimited"

    def process_limit(self, account: Account, processes: int) -> str:
        """Processes are not played."""
        return str(processes)

    @property
    def mount_isolation(self) -> tuple[str, ...]:
        """None."""
        return ()

    def become_parent_of_orphans(self) -> None:
        """Jobs here have no children."""

    def kill_marked(self, mark: str) -> None:
        """Kill what former hosts left."""
        for job in tuple(self._machine.jobs.values()):
            if job.host is not self._process:
                job.end(-1, 9)

    def processes(self, cgroup: Any, mark: str, leaders: Any) -> SimulatedProcesses:
        """The processes of a run to be started."""
        return SimulatedProcesses(self._machine, mark.rpartition(":")[2])

    def remove_tree(self, path: str) -> bool:
        """Remove a sandbox."""
        self._machine.scratch.pop(path, None)
        return True

    def own_peak_kib(self) -> int:
        """Nothing."""
        return 0
