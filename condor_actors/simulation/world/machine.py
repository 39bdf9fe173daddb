"""A simulated machine: its processes, its clock, its disk, its owner, and its jobs.

Theory: a machine has power or not.  With power a keeper (systemd's part) sees to it that a master runs; the master, as
in production, starts the daemons and starts them again; the startd starts the starter host, the schedd the shadow
hosts.  :meth:`SimulatedMachine.kill` is ``kill -9`` of one process; :meth:`SimulatedMachine.lose_power` ends them all
and takes from the disk what was not synced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from condor_actors.config import Config
from condor_actors.daemons.schedd.job_accounts import User
from condor_actors.machine.sensors.readings import IdleNow, Loads, MachineFacts
from condor_actors.messages.envelope import Identity
from condor_actors.simulation.world.disk import Disk
from condor_actors.simulation.world.jobs import JobProcess
from condor_actors.simulation.world.process import Process
from condor_actors.simulation.world.sandboxes import PROGRESS

if TYPE_CHECKING:
    from condor_actors.simulation.world.pool import Pool
    from condor_actors.simulation.world.scenario import MachineSpec

__all__ = ["SimulatedMachine"]

KEEPER_S = 2.0
START_S = {"master": 0.1, "shadow-host": 0.15, "starter-host": 0.2}
"""How long a process takes until its daemon runs; others 0.2 s."""


class SimulatedMachine:
    """A machine with its processes, clock, disk, owner and jobs.

    Attributes:
        name, spec: what it is.
        powered: whether it runs.
        processes: what lives, by pid.
        jobs: programs of the pool's jobs, by pid.
        scratch: sandboxes: path to files.
        last_input_s: when the owner touched something last, simulated seconds.
        fetched: how many jobs its hooks have fetched; told: which hooks were run, and with which arguments.
        owner_load: what the owner's own programs use.
        offset_s: how wrong the wall clock is; bad: no program starts.
        is_asleep: whether it sleeps; slept_s: for how long in all, up to when it woke last.
        disturbances: how many faults have hit it; poll_s: how often its startd looks at its owner.
    """

    def __init__(self, pool: Pool, spec: MachineSpec, identity: Identity) -> None:
        self.pool = pool
        self.spec = spec
        self.name = spec.name
        self.identity = identity
        self.speed = spec.speed
        self.clock_rate = 1.0 + spec.drift
        self.offset_s = spec.offset_s
        self.powered = self.bad = False
        self.disk = Disk()
        self.processes: dict[int, Process] = {}
        self.jobs: dict[int, JobProcess] = {}
        self.scratch: dict[str, dict[str, bytes]] = {}
        self.last_input_s = -1e9
        self.fetched = 0
        self.told: list[tuple[str, tuple[str, ...]]] = []
        self.owner_load = 0.0
        self.touched: list[Callable[[], None]] = []
        self.disturbances = 0
        self.poll_s = 5.0
        self.boots = 0
        self.keeper_wanted = True
        self.is_asleep = False
        self.slept_s = 0.0
        self._asleep_s = 0.0
        self._woken: Callable[[], None] = lambda: None
        self._pid = 100

    # ---- time and numbers

    def wall_s(self) -> float:
        """What the wall clock of this machine says."""
        clock = self.pool.clock
        return clock.epoch_s + clock.now_s * self.clock_rate + self.offset_s

    def next_pid(self) -> int:
        """A fresh process number."""
        self._pid += 1
        return self._pid

    def folder(self, name: str) -> str:
        """Where this machine's things lie."""
        return f"/sim/{self.name}/{name}"

    # ---- processes

    def boot(self) -> None:
        """Power on."""
        self.powered = True
        self.boots += 1
        self.pool.network.powered.add(self.name)
        self.pool.note(self.name, "boots")
        self.keep_master()

    # ---- sleep

    def fall_asleep(self, woken: Callable[[], None]) -> None:
        """All processes stand still, until it wakes; then ``woken`` is called."""
        if not self.powered:
            return
        self.is_asleep, self._woken, self._asleep_s = True, woken, self.pool.clock.now_s
        self.pool.note(self.name, "sleeps")
        self.pool.checkers.sleep.fell_asleep(self)
        for process in self.processes.values():
            process.freeze()

    def wake(self) -> None:
        """A packet, or its owner."""
        if not self.is_asleep:
            return
        self._end_sleep()
        self.pool.note(self.name, "wakes")
        for process in tuple(self.processes.values()):
            process.thaw()
        self._woken()

    def _end_sleep(self) -> None:
        if self.is_asleep:
            self.is_asleep = False
            self.slept_s += self.pool.clock.now_s - self._asleep_s

    def asleep_s(self) -> float:
        """For how long it has slept in all."""
        return self.slept_s + (self.pool.clock.now_s - self._asleep_s if self.is_asleep else 0.0)

    def keep_master(self) -> None:
        """Start a master if none runs."""
        if self.is_asleep:
            self.pool.clock.callLater(KEEPER_S, self.keep_master)
            return
        if self.powered and self.keeper_wanted and not any(
                each.kind == "master" for each in self.processes.values()):
            process = self.start("master", "MASTER")
            process.ended = lambda *how: (self.pool.clock.callLater(KEEPER_S, self.keep_master), None)[1]

    def start(self, kind: str, name: str, *, parent: Process | None = None, argument: str = "") -> Process:
        """Start a process; its daemon runs a moment later."""
        process = Process(self, kind, name, self.next_pid())
        process.parent_pid = parent.pid if parent is not None else 0
        self.processes[process.pid] = process
        self.pool.note(process.title, "starts")
        delay_s = START_S.get(kind, 0.2) * (0.8 + 0.4 * process.random.random())
        process.clock.callLater(delay_s, self.pool.launch, process, argument)
        return process

    def kill(self, process: Process) -> None:
        """``kill -9``."""
        self.gone(process, None, 9)

    def gone(self, process: Process, status: int | None, number: int | None, silent: bool = False) -> None:
        """A process is no more."""
        if not process.alive:
            return
        process.alive = process.frozen = False
        self.pool.note(process.title, f"is gone ({status if number is None else f'signal {number}'})")
        self.processes.pop(process.pid, None)
        if process.system is not None:
            process.system.abandon()
        self.pool.network.died(process, silent)
        if process.kind == "starter-host":
            for job in [job for job in self.jobs.values() if job.host is process]:
                job.end(-1, 9)
        if process.kind == "kbdd":
            self.touched.clear()
        if process.ended is not None and not silent:
            process.ended(status, number)
        self.pool.process_ended(process)

    def lose_power(self) -> None:
        """Everything ends at once, without a word."""
        if not self.powered:
            return
        self.powered = False
        self._end_sleep()
        self.pool.network.powered.discard(self.name)
        self.pool.note(self.name, "loses its power")
        for job in tuple(self.jobs.values()):
            job.end(-1, 9)
        for process in tuple(self.processes.values()):
            self.gone(process, None, 9, silent=True)
        self.disk.lose_power()

    def find(self, kind: str) -> Process | None:
        """A living process of a kind."""
        return next((each for each in self.processes.values() if each.kind == kind), None)

    # ---- jobs

    def job_started(self, job: JobProcess) -> None:
        """A program of a job exists."""
        self.jobs[job.pid] = job
        self.pool.job_started(self, job)

    def job_ended(self, job: JobProcess, exit_code: int, exit_signal: int) -> None:
        """A program of a job is gone."""
        self.jobs.pop(job.pid, None)
        self.pool.job_ended(self, job, exit_code, exit_signal)

    def write(self, folder: str, name: str, data: bytes) -> None:
        """A job writes a file in its sandbox."""
        if folder in self.scratch:
            self.scratch[folder][name] = data

    def written_kib(self, folder: str = "") -> int:
        """What is in a sandbox, or in all: its files, and what its program writes beside (``disk_mib``)."""
        size_bytes = sum(len(data) for path, files in self.scratch.items() if folder in ("", path)
                         for data in files.values())
        return (size_bytes >> 10) + sum(int(job.program.get("disk_mib", 0)) << 10 for job in self.jobs.values()
                                        if folder in ("", job.folder) and job.begun)

    def keep_progress(self, folder: str, done_s: float) -> None:
        """A job writes how far it has come."""
        self.write(folder, PROGRESS, f"{done_s!r}".encode())

    def progress_in(self, folder: str) -> float:
        """How far the file in a sandbox says that the job has come."""
        data = self.scratch.get(folder, {}).get(PROGRESS, b"")
        return float(data) if data else 0.0

    # ---- the owner

    def touch(self) -> None:
        """The owner presses a key."""
        self.last_input_s = self.pool.clock.now_s
        self.wake()
        for touched in tuple(self.touched):
            touched()


class SimulatedReadings:
    """``World.readings`` of a startd."""

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine

    def facts(self) -> MachineFacts:
        """The size of the machine."""
        spec = self._machine.spec
        return MachineFacts(cpus=spec.cpus, physical_cpus=spec.cpus, memory_mib=spec.memory_mib, swap_mib=0,
                            boot_s=0.0, kernel="simulated", node=spec.name)

    def disk_free_kib(self, path: str) -> int:
        """Free space."""
        return self._machine.spec.disk_kib

    def loads(self, starter_pid: int) -> Loads:
        """The owner's load and the jobs'."""
        own = float(sum(1 for job in self._machine.jobs.values() if job.begun and not job.frozen))
        return Loads(total=own + self._machine.owner_load, own=own)

    def idle(self) -> tuple[IdleNow, ...]:
        """One console."""
        machine = self._machine
        return (IdleNow("tty:console", machine.pool.clock.now_s - machine.last_input_s),)


class SimulatedScreen:
    """The display of a session: as :class:`~condor_actors.machine.sensors.x_idle.XDisplay`."""

    raw_events = True

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine
        self._touched: Callable[[], None] | None = None

    def idle_s(self) -> float:
        """Since the last key."""
        return self._machine.pool.clock.now_s - self._machine.last_input_s

    def watch(self, clock: Any, touched: Callable[[], None], lost: Callable[[str], None]) -> None:
        """Tell of each key."""
        self._touched = touched
        self._machine.touched.append(touched)

    def close(self) -> None:
        """No more."""
        if self._touched in self._machine.touched:
            self._machine.touched.remove(self._touched)


class SimulatedScreens:
    """``World.readings`` of a kbdd."""

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine

    def names(self) -> tuple[str, ...]:
        """One display."""
        return (":0",)

    def open(self, name: str) -> SimulatedScreen:
        """It lets us in."""
        return SimulatedScreen(self._machine)

    def desktop(self, told: Callable[[Any], None]) -> NoDesktop:
        """There is none."""
        return NoDesktop()


class NoDesktop:
    """A session without a bus."""

    def poll(self, clock: Any) -> None:
        """Nobody answers."""

    def stop(self) -> None:
        """Nothing to hang up."""


class MasterHost:
    """``World.processes`` of a master: as :class:`~condor_actors.machine.supervisor.master_host.Host`."""

    def __init__(self, machine: SimulatedMachine, master: Process) -> None:
        self._machine = machine
        self._master = master
        self._call: Callable[[str, int, int | None, int | None], None] | None = None

    def _watch(self, process: Process) -> None:
        def ended(status: int | None, number: int | None) -> None:
            if self._call is not None:
                self._master.clock.callLater(0.001, self._call, process.name, process.pid, status, number)

        process.ended = ended

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], errors: Path) -> int:
        """Start a daemon's process."""
        process = self._machine.start(arguments[0], name, parent=self._master)
        self._watch(process)
        return process.pid

    def configuration(self, kind: str, local_name: str | None, environment: Mapping[str, str]) -> Config:
        """What a daemon that starts now would read."""
        return self._machine.pool.config_of(self._machine, kind)

    def adopt(self, kinds: Mapping[str, str]) -> tuple[tuple[str, int, float], ...]:
        """Daemons that an earlier master left."""
        found = [each for each in self._machine.processes.values() if kinds.get(each.name) == each.kind]
        for process in found:
            self._watch(process)
        return tuple((each.name, each.pid, self._machine.pool.clock.epoch_s + each.birth_s) for each in found)

    def on_end(self, call: Callable[[str, int, int | None, int | None], None]) -> None:
        """Who is told of each end."""
        self._call = call

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a daemon."""
        for process in tuple(self._machine.processes.values()):
            if process.name == name:
                self._machine.pool.signal(process, number)

    def notify(self, text: str) -> None:
        """Nobody listens."""

    def installed_version(self) -> str:
        """Always the same."""
        return "1"

    def finish(self, how: str, renew: bool) -> None:
        """End this process."""
        self._machine.pool.clock.callLater(0.0, self._master.shut_down, how)


class StarterHosts:
    """``World.processes`` of a startd."""

    def __init__(self, machine: SimulatedMachine, startd: Process) -> None:
        self._machine = machine
        self._startd = startd

    def living(self) -> int:
        """The starter host that runs; 0: none."""
        found = self._machine.find("starter-host")
        return found.pid if found is not None else 0

    def start(self) -> int:
        """Start one."""
        return self._machine.start("starter-host", "starter-host", parent=self._startd).pid

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have ``ended(pid)`` called when it is gone."""
        process = self._machine.processes.get(pid)
        clock = self._startd.clock
        if process is None:
            clock.callLater(0.001, ended, pid)
        else:
            process.ended = lambda *how: (clock.callLater(0.001, ended, pid), None)[1]

    def stop(self, pid: int, fast: bool) -> None:
        """TERM, or QUIT when it has to be fast."""
        process = self._machine.processes.get(pid)
        if process is not None:
            self._machine.pool.signal(process, 3 if fast else 15)

    def kill(self, pid: int) -> None:
        """KILL."""
        process = self._machine.processes.get(pid)
        if process is not None:
            self._machine.kill(process)

    def lacks_processor(self, pid: int) -> bool:
        """Whether it stands still for that."""
        process = self._machine.processes.get(pid)
        return process is not None and process.frozen and process.starved


class ShadowHosts:
    """``ScheddEdges.processes``."""

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine

    def start(self, host_id: str, owner: str) -> int:
        """Start one."""
        return self._machine.start("shadow-host", "shadow-host", argument=host_id).pid

    def birth(self, pid: int) -> str:
        """When a process began; empty when there is none."""
        process = self._machine.processes.get(pid)
        return f"{self._machine.boots}.{process.birth_s:.6f}" if process is not None else ""

    def kill(self, pid: int, birth: str) -> None:
        """Kill it, if it is still the same."""
        process = self._machine.processes.get(pid)
        if process is not None and self.birth(pid) == birth:
            self._machine.kill(process)

    def find_user(self, name: str) -> User | None:
        """A user of the pool."""
        uid = self._machine.pool.uid_of(name)
        return User(name, uid, uid) if uid else None
