"""The simulated pool: machines, network, users, trace; runs a :class:`Scenario`.

Theory: one heap of events, one ``Random`` made from the seed, and no other source of time or chance: the trace (each
envelope that arrives, each process that starts or ends, each program of a job, each fault) is the same to the byte
every time.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from zlib import crc32

from twisted.python.failure import Failure

from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.config import Config, load_config
from condor_actors.cores.schedd.queue_operations import ArchiveJob, QueueOperation
from condor_actors.messages.envelope import Envelope, Identity
from condor_actors.messages.pool import KnownPartner
from condor_actors.simulation.faults.checkers import Checkers
from condor_actors.simulation.faults.faults import Faults, parse_schedule
from condor_actors.simulation.faults.trips import Injected, Trips
from condor_actors.simulation.world.clock import HeapClock
from condor_actors.simulation.world.disk import DiskTrouble
from condor_actors.simulation.world.hosting import PORTS, host
from condor_actors.simulation.world.jobs import JobProcess
from condor_actors.simulation.world.machine import SimulatedMachine
from condor_actors.simulation.world.memory import unhurried_collector
from condor_actors.simulation.world.network import Network, Path
from condor_actors.simulation.world.process import Process
from condor_actors.simulation.world.queue_disk import QueueFile
from condor_actors.simulation.world.scenario import JobRecord, Result, Scenario
from condor_actors.simulation.world.users import Users
from condor_actors.wire.authorization import Authorization

__all__ = ["Pool"]

SUBSYSTEM = {"shadow-host": "SHADOW", "starter-host": "STARTER"}
LINES = 5_000
OPERATING_SYSTEM = {"ARCH": "X86_64", "OPSYS": "LINUX", "OPSYSANDVER": "Debian12", "OPSYS_NAME": "Debian",
                    "OPSYS_VER": "12"}
"""Of every machine: what the simulation runs on does not show in it."""

QUIET_S = 60.0
"""How long after the last fault a run goes on at least."""

TOUCH_S = 15.0


@contextmanager
def universal_time() -> Iterator[None]:
    """Daemons that look at the local time see that of Greenwich, wherever the simulation runs."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


class Pool:
    """Runs one :class:`Scenario` on simulated machines.

    Attributes:
        machines: by name.
        jobs: what became of each, by ``machine/cluster.proc``.
        violations: what the checkers found.
        lines: what the daemons logged last: (when, process, level, format, fields).
    """

    domain = "pool"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.clock = HeapClock()
        self.random = Random(scenario.seed)
        self.network = Network(self.clock, Random(self.random.getrandbits(64)))
        self.network.carried = self._carried
        self.network.usual.delay_s = scenario.delay_s
        self.machines: dict[str, SimulatedMachine] = {}
        self.jobs: dict[str, JobRecord] = {}
        self.violations: list[str] = []
        self.lines: deque[tuple[float, str, str, str, dict[str, Any]]] | None = deque(maxlen=LINES)
        self.incidents = 0
        self.suspects: list[str] = []
        self.faults = Faults(self, parse_schedule(scenario.faults, [spec.name for spec in scenario.machines]))
        self.trips = Trips()
        self.raises = any("raise" in (fault.kind, fault.moment) for fault in self.faults.faults)
        self.clocks_jump = any(fault.kind == "clock" for fault in self.faults.faults)
        self.keeps = any("keeps" in each.program for each in scenario.submissions)
        self._digest = hashlib.sha256()
        self._configs: dict[tuple[str, str], Config] = {}
        self._authorizations: dict[tuple[str, str], Authorization] = {}
        for spec in scenario.machines:
            roles = {"master", *(["collector", "negotiator"] if spec.central else []),
                     *(["schedd"] if spec.submits else []), *(["startd"] if spec.executes else []),
                     *(["gateway"] if spec.gateway else [])}
            identity = Identity(name=f"condor@{spec.name}", roles=frozenset(roles), host=spec.name, method="tls")
            machine = self.machines[spec.name] = SimulatedMachine(self, spec, identity)
            machine.poll_s = float({**scenario.config, **spec.config}.get("POLLING_INTERVAL", machine.poll_s))
        self.centrals = {spec.pool: spec.name for spec in reversed(scenario.machines) if spec.central}
        self._gateways = {pool: tuple(
            f"<{spec.name}%{pool}:{PORTS['gateway']}>" for spec in scenario.machines
            if spec.gateway and spec.pool == pool and pool not in scenario.hidden) for pool in self.centrals}
        gates = [spec for spec in scenario.machines if spec.gateway]
        self.network.far = {(one.name, other.name): Path(delay_s=scenario.delays[one.pool, other.pool])
                            for one in gates for other in gates if (one.pool, other.pool) in scenario.delays}
        self.users = Users(self)
        self.checkers = Checkers(self)
        self.network.joined = self.checkers.joined
        if scenario.prepare is not None:
            scenario.prepare(self)

    # ---- what processes ask

    def config_of(self, machine: SimulatedMachine, kind: str) -> Config:
        """The configuration of a daemon there."""
        found = self._configs.get((machine.name, kind))
        if found is None:
            spec = machine.spec
            daemons = ["MASTER", *(["COLLECTOR", "NEGOTIATOR"] if spec.central else []),
                       *(["SCHEDD"] if spec.submits else []), *(["STARTD"] if spec.executes else []),
                       *(["KBDD"] if spec.kbdd else []), *(["WEB"] if spec.web else []),
                       *(["GATEWAY"] if spec.gateway else []), *(["ROOSTER"] if spec.rooster else [])]
            overrides = {
                "FULL_HOSTNAME": machine.name, "HOSTNAME": machine.name, "UID_DOMAIN": self.domain,
                "FILESYSTEM_DOMAIN": machine.name, "COLLECTOR_HOST": f"<{self.centrals[spec.pool]}:9618>",
                "DAEMON_LIST": " ".join(daemons), "USE_CGROUPS": "false", "START": "true",
                "DETECTED_CPUS": str(spec.cpus), "DETECTED_MEMORY": str(spec.memory_mib),
                **OPERATING_SYSTEM, "DETECTED_CPUS_LIMIT": str(spec.cpus), "DISK": str(spec.disk_kib),
                **{name.upper(): machine.folder(name) for name in ("run", "spool", "execute", "log")},
                "JOB_DISK_LIMIT": "0", "JOB_DISK_LEAVES": "0",  # looks at disks would be most of a quiet month's events
                **self.scenario.config, **spec.config,
            }
            subsystem = SUBSYSTEM.get(kind, kind.upper())
            found = self._configs[machine.name, kind] = load_config(
                subsystem=subsystem, environ={"CONDOR_CONFIG": "ONLY_ENV"}, files=(), overrides=overrides)
        return found

    def partners_of(self, name: str) -> tuple[KnownPartner, ...]:
        """The pools that one trusts, with its terms for them."""
        return tuple(KnownPartner(name=other, central=f"<{self.centrals[other]}%{other}:9618>", terms=terms,
                                  gateways=self._gateways.get(other, ()))
                     for (own, other), terms in self.scenario.terms.items() if own == name)

    def authorization(self, kind: str, config: Config, own: str = "") -> Authorization:
        """Who may do what at a daemon of the pool ``own``."""
        key = (kind, str(config.path("RUN")))
        found = self._authorizations.get(key)
        if found is None:
            found = self._authorizations[key] = Authorization(
                config, own_uid=0, partners=lambda: self.partners_of(own))
        return found

    def uid_of(self, name: str) -> int:
        """The number of a user; 0: there is none."""
        return self.users.uids.get(name, 0)

    def user_name(self, uid: int) -> str:
        """The user with that number."""
        return next((name for name, number in self.users.uids.items() if number == uid), f"uid{uid}")

    # ---- what happens

    def note(self, who: str, text: str) -> None:
        """A line of the trace."""
        line = f"{self.clock.now_s:.6f} {who} {text}"
        self._digest.update(line.encode())
        if self.scenario.trace is not None:
            self.scenario.trace(line)

    def _carried(self, sender: Process, target: Process, envelope: Envelope) -> None:
        self.note(sender.title, f"> {target.title} {envelope.kind} {envelope.to} {crc32(envelope.body):08x}")
        if sender.machine.spec.pool or target.machine.spec.pool:
            self.checkers.carried(sender, target, envelope)

    def trouble(self, process: Process, failure: Failure, what: str) -> None:
        """Something in a process raised what it should not have."""
        self.incidents += 1
        self.note(process.title, f"fails: {what}: {type(failure.value).__name__}")
        if not failure.check(DiskTrouble, StoreUnavailable, Injected):
            self.violate(f"{process.title}: {what}: {failure.getErrorMessage()}\n{failure.getTraceback()}")

    def violate(self, text: str, job: str = "") -> None:
        """A checker found something, about a job perhaps."""
        if self.scenario.checks:
            self.violations.append(f"at {self.clock.now_s:.6f}: {text}")
            self.clock.stop()
            self.suspects.append(job)

    def launch(self, process: Process, argument: str) -> None:
        """A process's interpreter has started."""
        host(process, argument)

    def signal(self, process: Process, number: int) -> None:
        """A signal to a daemon."""
        if number == 9:
            process.machine.kill(process)
        else:
            process.clock.callLater(0.001, process.shut_down, "fast" if number == 3 else "graceful")

    def stored(self, machine: SimulatedMachine, row: QueueOperation) -> None:
        """A row of a job queue is durable."""
        self.checkers.stored(machine, row)
        if type(row) is ArchiveJob:
            self.note(machine.name, f"job {row.cluster}.{row.proc} is in the history")
            self.users.completed(f"{machine.name}/{row.cluster}.{row.proc}")

    def logged(self, machine: SimulatedMachine, path: str, data: bytes) -> None:
        """Lines of a user log are durable."""
        self.checkers.logged(machine, path, data)

    def disturbed(self, machine: SimulatedMachine, kind: str) -> None:
        """A fault begins, or a process that was frozen goes on."""
        if kind != "owner":
            machine.disturbances += 1

    def owner_comes(self, machine: SimulatedMachine, span_s: float) -> None:
        """Someone sits down at a machine for so long, and touches it now and then."""
        self._owner_touches(machine, self.clock.now_s + span_s)

    def _owner_touches(self, machine: SimulatedMachine, until_s: float) -> None:
        machine.touch()
        self.checkers.owner_touched(machine)
        if self.clock.now_s + TOUCH_S < until_s:
            self.clock.callLater(TOUCH_S, self._owner_touches, machine, until_s)

    def process_ended(self, process: Process) -> None:
        """For the checkers."""

    def job_started(self, machine: SimulatedMachine, job: JobProcess) -> None:
        """A program of a job exists."""
        self.note(machine.name, f"program of run {job.run_id} starts")
        self.checkers.job_started(machine, job)
        record = self.jobs.get(job.job)
        if record is not None:
            record.starts += 1
            if record.first_start_s is None:
                record.first_start_s = self.clock.now_s

    def job_ended(self, machine: SimulatedMachine, job: JobProcess, exit_code: int, exit_signal: int) -> None:
        """A program of a job is gone."""
        self.note(machine.name, f"program of run {job.run_id} ends ({exit_code}, {exit_signal})")
        self.checkers.job_ended(job)
        record = self.jobs.get(job.job)
        if record is not None:
            record.cpu_s += job.cpu_s

    def at_rest(self) -> bool:
        """Whether nothing of what the users submitted is under way any more: queues are empty, notices written."""
        for machine in self.machines.values():
            if machine.jobs:
                return False
            for file in machine.disk.files.values():
                if isinstance(file, QueueFile) and (file.seen.jobs or file.seen.notices or file.seen.claims):
                    return False
        return True

    # ---- the run

    def run(self) -> Result:
        """Simulate from the first boot to the end of the scenario."""
        began_s = time.perf_counter()
        scenario = self.scenario
        for machine in self.machines.values():
            self.clock.callLater(self.random.random() * 2.0, machine.boot)
        self.users.start()
        self.faults.start()
        if scenario.checks:
            self.checkers.start()
        quiet_s = max(scenario.quiet_s, self.faults.last_s + QUIET_S if self.faults.faults else 0.0)
        with universal_time(), unhurried_collector():
            self.clock.run_until(scenario.span_s, from_s=quiet_s if scenario.drain else float("inf"),
                                 done=lambda: self.users.all_done() and self.at_rest())
        if not self.violations and scenario.drain and not self.users.all_done():
            unfinished = self.users.unfinished()
            self.violate(f"not all jobs are done at the end: {', '.join(unfinished[:5])}", unfinished[0])
        if not self.violations and scenario.checks:
            self.checkers.end()
        return Result(
            scenario=scenario, jobs=self.jobs, violations=tuple(self.violations), digest=self._digest.hexdigest(),
            events=self.clock.events, simulated_s=self.clock.now_s, wall_s=time.perf_counter() - began_s, pool=self)
