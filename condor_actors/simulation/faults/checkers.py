"""What must hold after every step, and what must hold in the end.

Theory: a checker that looks at everything after every step would make a seed take minutes, so each looks at what the
step changed: a program that starts is held against the others of its job, a row that becomes durable against the rows
before it, a line of a log against the lines before it.  What no single step shows (memory against store, leases,
secrets in ads) is looked at every :data:`ROUND_S` simulated seconds, and at the end.

===================================  ===========================================================================
rule                                 held against
===================================  ===========================================================================
a job runs in one place              each program that starts; of a gang, each node does, and of one run only
a completion is recorded once        each row of the history
a log tells each event once          each line of a user log, against the lines before it (``log_checker.py``)
no job is lost                       each row that becomes durable; the end
store equals memory                  a schedd and a startd that have nothing uncommitted, each round
no claim past its lease              the claims of each startd, each round
no claim without an owner            the claims of each startd and what its ads say of them, each round
no secret in an ad                   the collector's ads, each round
an owner's machine is free           a moment after the owner came
usage adds up                        each job that completes
invariants of the cores              schedd, startd, starter and shadow: each turn
no message is taken twice            each envelope that a process's door lets in
no two claims have one secret        each claim that becomes durable
a machine is not overcommitted       each program that starts
no pool has more than its quota      the claims of all startds of a pool, each round, once faults are long over
local jobs do not wait for guests    idle jobs of a pool beside guests' claims, each round, once faults are long over
only gateways speak to other pools   each connection that is made
a guest's pool may send guests       each claim that a startd grants to another pool's schedd, against FLOCK_FROM
a guest has a match for each claim   likewise, against what the negotiator has announced
a gateway bears no flood             what each gateway carries for each partner, each round
a machine that sleeps runs nothing  each program that starts, each machine that falls asleep
gangs do not wait for each other     idle gangs of a pool in which nothing runs, each round, once faults are over
jobs wake machines that sleep        idle jobs of a pool all of whose machines sleep, each round, once faults are over
a node is submitted once, in time    each cluster of a workflow, against the nodes' event log (``workflow_checker.py``)
a node succeeds once                 the end, over all runs of a workflow
the page shows the queue             each page that has been told of the last change, each round
===================================  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.cores.rights import is_fetched
from condor_actors.cores.schedd import queue_operations as q
from condor_actors.cores.schedd.gangs.gang import gang_of
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.startd.claims.claim import ClaimRecord
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.starter.job_run import JobRun
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.cores.web.rows import MOST_ROWS, STATES, View
from condor_actors.daemons.collector import Collector
from condor_actors.daemons.schedd.schedd_actor import ScheddActor
from condor_actors.daemons.startd_actor import StartdActor
from condor_actors.daemons.starter.starter import Starter
from condor_actors.daemons.web.pool_watch import PoolWatch
from condor_actors.dag.dag_run import DagRun
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Envelope, Identity
from condor_actors.simulation.faults.gang_checker import GangChecker
from condor_actors.simulation.faults.lending_checker import LendingChecker
from condor_actors.simulation.faults.log_checker import LogChecker
from condor_actors.simulation.faults.partner_checker import PartnerChecker
from condor_actors.simulation.faults.sleep_checker import SleepChecker
from condor_actors.simulation.faults.workflow_checker import WorkflowChecker
from condor_actors.simulation.world.disk import ClaimsOnDisk, LogOnDisk
from condor_actors.simulation.world.queue_disk import QueueFile

if TYPE_CHECKING:
    from condor_actors.actors.cell import Cell
    from condor_actors.actors.system import ActorSystem
    from condor_actors.simulation.world.jobs import JobProcess
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool
    from condor_actors.simulation.world.process import Process

__all__ = ["Checkers"]

ROUND_S = 20.0
LEASE_SLACK_S = 30.0
"""How much later than its lease a claim may be found: timers run, messages travel."""

FREE_IN_S = 12.0
"""How long a job may compute after the owner came: the policy suspends at the next look."""

VACATE_S = 60.0 + 30.0
"""How long a job that was asked to go may take: the policy's KILL, the last signal."""

SECRET = b"5ec4e7"


class Checkers:
    """Checks the pool's invariants after each step and at the end."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._running: dict[str, dict[str, JobProcess]] = {}
        self._known: dict[str, dict[tuple[int, int], str]] = {name: {} for name in pool.machines}
        self._logs = LogChecker()
        self._secrets: dict[str, str] = {}
        self.pages_compared = 0

        self.sleep = SleepChecker(pool)
        self.gangs = GangChecker(pool)
        self._lending = LendingChecker(pool)
        self._partners = PartnerChecker(pool)
        self._workflows = WorkflowChecker(pool)

    def start(self) -> None:
        """The first round."""
        self._pool.clock.callLater(ROUND_S, self._round)

    def joined(self, one: Process, other: Process) -> None:
        """Two processes have a connection."""
        self._partners.joined(one, other)

    def carried(self, sender: Process, target: Process, envelope: Envelope) -> None:
        """An envelope arrives."""
        self._partners.carried(sender, target, envelope)

    # ---- programs

    def job_started(self, machine: SimulatedMachine, job: JobProcess) -> None:
        """A program was launched: nothing of its job may live elsewhere."""
        self.sleep.job_started(machine)
        mine = self._running.setdefault(job.job, {})
        for other in mine.values():
            if other.alive and (other.run_id == job.run_id or gang_of(other.run_id) != gang_of(job.run_id)):
                self._pool.violate(f"job {job.job} runs twice: run {job.run_id} starts at {machine.name} while run "
                                   f"{other.run_id} is alive at {other.machine.name}", job.job)
        mine[job.run_id] = job
        if len(machine.jobs) > machine.spec.cpus:
            self._pool.violate(f"{len(machine.jobs)} programs run on the {machine.spec.cpus} processors of "
                               f"{machine.name}", job.job)

    def job_ended(self, job: JobProcess) -> None:
        """A program is gone."""
        mine = self._running.get(job.job, {})
        if mine.get(job.run_id) is job:
            del mine[job.run_id]
            if not mine:
                del self._running[job.job]

    # ---- rows

    def stored(self, machine: SimulatedMachine, operation: q.QueueOperation) -> None:
        """A row of a job queue is durable."""
        self._workflows.stored(machine, operation)
        known = self._known[machine.name]
        if type(operation) is q.InsertJobs:
            for proc, _ in operation.rows:
                if (operation.cluster, proc) in known:
                    self._pool.violate(f"job {operation.cluster}.{proc} enters the queue of {machine.name} twice")
                known[operation.cluster, proc] = "queued"
        elif type(operation) is q.ArchiveJob:
            self._archived(machine, operation, known)
        elif type(operation) is q.SaveRun:
            state = known.get((operation.cluster, operation.proc))
            if state != "queued":
                name = f"{machine.name}/{operation.cluster}.{operation.proc}"
                self._pool.violate(f"run {operation.run_id} begins although its job is {state}", name)

    def _archived(self, machine: SimulatedMachine, row: q.ArchiveJob, known: dict[tuple[int, int], str]) -> None:
        job = f"{machine.name}/{row.cluster}.{row.proc}"
        state = known.get((row.cluster, row.proc))
        if state != "queued":
            self._pool.violate(f"job {job} enters the history although it is {state}", job)
        known[row.cluster, row.proc] = "history"
        ad = ClassAd.from_bytes(row.cluster_ad + row.ad)
        record = self._pool.jobs.get(job)
        if record is None or ad.get_int("JobStatus") != JobStatus.COMPLETED or ad.get_bool("ExitBySignal"):
            return
        speed = max(each.speed for each in self._pool.machines.values())
        used_s = ad.get_float("RemoteUserCpu")
        if not ad.get_str("TransferOutput") and used_s < record.demand_s / speed * 0.99 - 0.1 and not self._pool.keeps:
            self._pool.violate(f"job {job} completed with {used_s} s of processor time, it needs {record.demand_s}",
                               job)
        sum_s = ad.get_float("CumulativeRemoteUserCpu")
        if sum_s < used_s - 0.01 or sum_s > record.cpu_s + 1.0:
            self._pool.violate(f"job {job}: CumulativeRemoteUserCpu is {sum_s}, its last run used {used_s}, all of its "
                               f"programs {record.cpu_s}", job)

    def logged(self, machine: SimulatedMachine, path: str, data: bytes) -> None:
        """Lines of a user log are durable."""
        self._workflows.logged(machine, path, data)
        for problem in self._logs.logged(f"{machine.name}:{path}", data):
            self._pool.violate(problem)

    def claim_stored(self, record: ClaimRecord) -> None:
        """A claim of a startd is durable: no other one has, or had, its secret."""
        if self._secrets.setdefault(record.secret, record.claim_id) != record.claim_id:
            self._pool.violate(f"the claims {self._secrets[record.secret]} and {record.claim_id} have one secret")

    # ---- messages

    def listen(self, process: Process) -> None:
        """Look at what the process's actors are given: nothing may come twice."""
        system = process.system
        assert system is not None
        admit, taken = system.inbound.admit, set[tuple[Hashable, str]]()

        def admitted(node: str, identity: Identity, envelope: Envelope) -> Any:
            key = (identity.bearer, envelope.message_id)
            if key in taken:
                self._pool.violate(f"{process.title} takes {envelope.kind} twice")
            taken.add(key)
            return admit(node, identity, envelope)

        self._validate_turns(system)
        system.inbound.admit = admitted  # type: ignore[method-assign]  # the door is the one place that sees them all

    def _validate_turns(self, system: ActorSystem) -> None:
        """Check the invariants of a core after every turn of its actor."""
        take_turn = system.loop.take_turn

        def taken(cell: Cell, turn: Any) -> None:
            take_turn(cell, turn)
            self._validate(cell.name, cell.actor)

        system.loop.take_turn = taken  # type: ignore[method-assign]  # the one place where every turn ends

    def _validate(self, name: str, actor: Any) -> None:
        core = getattr(actor, "core", None)
        if not isinstance(core, (ScheddCore, StartdCore, JobRun, ShadowRun, DagRun)):
            return
        try:
            core.validate()
        except InvariantBroken as error:
            self._pool.violate(f"{name}: {error}")

    # ---- rounds

    def _round(self) -> None:
        self.look()
        self._pool.clock.callLater(ROUND_S, self._round)

    def look(self) -> None:
        """Everything that no single step shows."""
        self._lending.look()
        self.sleep.look()
        self.gangs.look()
        self._partners.look()
        for machine in self._pool.machines.values():
            for process in machine.processes.values():
                if process.system is None or process.frozen:
                    continue
                actor = process.system.actor(process.kind)
                self._validate(process.title, actor)
                if isinstance(actor, StartdActor):
                    self._look_at_startd(machine, actor)
                elif isinstance(actor, ScheddActor):
                    self._look_at_schedd(machine, actor)
                elif isinstance(actor, Collector):
                    self._look_at_collector(actor)
                elif isinstance(actor, PoolWatch):
                    self._look_at_page(process.title, actor)

    def _look_at_startd(self, machine: SimulatedMachine, actor: StartdActor) -> None:
        core = actor.core
        if actor.context.system.loop.uncommitted:
            return
        now_s = actor.startd.world.wall_clock()
        for slot in core.claims:
            held = slot.claim
            if held is None:
                continue
            owner = held.record.submitter
            known = is_fetched(owner) or owner.partition("@")[0] in self._pool.users.uids
            if not known or slot.ad.get_str("RemoteOwner", owner) != owner:
                self._pool.violate(f"{machine.name}: the claim {held.claim_id} is nobody's: {owner!r}, its ad says "
                                   f"{slot.ad.get_str('RemoteOwner')!r}")
            late_s = now_s - held.renewed_s - held.record.lease_s
            preempting = slot.machine.state.value == "Preempting"
            if late_s > LEASE_SLACK_S and not preempting and not self._pool.clocks_jump:
                self._pool.violate(f"{machine.name}: the claim {held.claim_id} is {late_s:.0f} s past its lease")
        kept = actor.startd.claims
        stored = {record.claim_id for record in kept.records}
        held_ids = {slot.claim.claim_id for slot in core.claims if slot.claim is not None and slot.claim.open}
        if not held_ids <= stored | core.opening:
            self._pool.violate(f"{machine.name}: claims that are not stored: {sorted(held_ids - stored)}")
        gone = stored - {slot.claim.claim_id for slot in core.claims if slot.claim is not None}
        if gone:
            self._pool.violate(f"{machine.name}: the store has claims that the startd has not: {sorted(gone)}")

    def _look_at_schedd(self, machine: SimulatedMachine, actor: ScheddActor) -> None:
        core = actor.core
        if actor.context.system.loop.uncommitted:
            return
        queue = machine.disk.files.get(f"{core.context.settings.spool}/job_queue")
        if not isinstance(queue, QueueFile):
            return
        stored = queue.seen
        for what, memory, rows in (
                ("jobs", {(job.cluster.number, job.proc) for job in core.context.queue.jobs()}, stored.jobs.keys()),
                ("runs", core.runs.runs.keys(), stored.runs.keys()),
                ("claims", core.claims.held.keys(), stored.claims.keys()),
                ("notices", core.notices.stored, stored.notices.keys()),
                ("clusters", core.context.queue.clusters.keys(), stored.clusters.keys())):
            if set(memory) != set(rows):
                differ = sorted(map(str, set(memory) ^ set(rows)))[:5]
                self._pool.violate(f"{machine.name}: the {what} in memory and in the store differ: {differ}")
        for job in core.context.queue.jobs():
            row = ClassAd.from_bytes(stored.jobs.get((job.cluster.number, job.proc), b""))
            if row.get_int("JobStatus", int(job.status)) != int(job.status):
                self._pool.violate(f"{machine.name}: job {job.name} is {job.status.name} in memory, "
                                   f"{row.get_int('JobStatus')} in the store", f"{machine.name}/{job.name}")

    def _look_at_collector(self, actor: Collector) -> None:
        for table in actor.memory.table.tables.values():
            for record in table.values():
                if SECRET in record.data:
                    self._pool.violate(f"a secret is in an ad of the collector: {record.ad.get_str('Name')}")

    def _look_at_page(self, title: str, actor: PoolWatch) -> None:
        """What it shows of a schedd whose last change it knows is that queue, no more and no less."""
        rows = actor.known.rows
        shown: dict[str, dict[tuple[int, int], str]] = {}
        for row in rows.page(View(), 0, MOST_ROWS).rows:
            shown.setdefault(row[0], {})[row[1], row[2]] = row[4]
        for schedd in actor.known.schedds.values():
            machine = self._pool.machines.get(schedd.name.rpartition("@")[2])
            for process in machine.processes.values() if machine is not None else ():
                queue_actor = process.system.actor("schedd") if process.system is not None else None
                if not isinstance(queue_actor, ScheddActor):
                    continue
                queue = queue_actor.core.context.queue
                if (not schedd.is_whole or len(rows) > MOST_ROWS
                        or schedd.token != f"{queue.changes.life}/{queue.changes.number}"):
                    continue
                real = {(job.cluster.number, job.proc): STATES[job.status] for job in queue.jobs()}
                if shown.get(schedd.name, {}) != real:
                    differ = sorted(set(shown.get(schedd.name, {}).items()) ^ set(real.items()))[:5]
                    self._pool.violate(f"{title} shows another queue than that of {schedd.name}: {differ}")
                self.pages_compared += 1

    # ---- owners

    def owner_touched(self, machine: SimulatedMachine) -> None:
        """The owner is at the machine: soon, and as long as he stays, nothing of the pool may compute there."""
        if machine.spec.kbdd:
            self._pool.clock.callLater(FREE_IN_S + machine.poll_s, self._look_at_owner, machine, machine.disturbances)

    def _look_at_owner(self, machine: SimulatedMachine, disturbances: int) -> None:
        clock = self._pool.clock
        if machine.disturbances != disturbances or clock.now_s - machine.last_input_s > 60.0:
            return
        if any(process.frozen for process in machine.processes.values()):
            return  # what hangs obeys nobody; the startd kills a starter host two minutes later
        for job in machine.jobs.values():
            if 0.0 <= clock.now_s - job.asked_s < VACATE_S and _policy_lets_go(job):
                continue  # it may use the time that the policy gives it to go
            if job.begun and not job.frozen and clock.now_s - job.began_s > FREE_IN_S:
                self._pool.violate(f"run {job.run_id} computes at {machine.name} {FREE_IN_S + machine.poll_s:g} s "
                                   "after its owner came", job.job)

    # ---- the end

    def end(self) -> None:
        """Nothing moves any more."""
        self.look()
        self._workflows.end()
        for machine in self._pool.machines.values():
            for file in machine.disk.files.values():
                if isinstance(file, LogOnDisk):
                    file.sync()
                if isinstance(file, ClaimsOnDisk) and file.unsynced:
                    self._pool.violate(f"{machine.name}: claims were never synced")
        for job, record in self._pool.jobs.items():
            name, _, number = job.partition("/")
            home = f"/home/{record.owner}/log"
            if record.completed_s is not None and not self._logs.is_done(f"{name}:{home}", _header(number)):
                self._pool.violate(f"the user log does not say that job {job} is done", job)


def _policy_lets_go(job: JobProcess) -> bool:
    """Whether the owner's policy, and not only its user, wants it to go."""
    system = job.host.system
    starter = system.actor(f"starter/{job.run_id}") if system is not None else None
    return isinstance(starter, Starter) and not starter.core.claim_open


def _header(number: str) -> str:
    cluster, _, proc = number.partition(".")
    return f"{int(cluster):03d}.{int(proc):03d}"
