"""The starter host: one process per machine, in which each run of a job is an actor.

Theory: the startd opens and shuts gates (:class:`ActiveClaim`, one per claim); a caller who shows the secret of an open
gate may run one job at a time there.  The host outlives its startd, tells it what runs whenever they meet again, and
is the parent (and, for orphans, the subreaper) of all jobs, so nothing of a job escapes it.  When the host itself is
killed, the launcher's death signal ends the jobs' first processes, and the next host sweeps what is left: groups,
marked processes, scratch directories.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred

from condor_actors.actors import Actor, ChildDown
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.secrets import matches
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import BadJob, RunSpec, read_spec
from condor_actors.daemons.starter.shells import Shells
from condor_actors.daemons.starter.standard_starter import StandardStarter
from condor_actors.daemons.starter.starter import Starter
from condor_actors.machine.run.cgroups import JobCgroup
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account
from condor_actors.messages.claim import (
    CheckpointClaim,
    ClaimActivity,
    CloseClaim,
    ContinueClaim,
    LowerClaim,
    OpenClaim,
    StarterHostHello,
    SuspendClaim,
)
from condor_actors.messages.codec import MalformedMessage, decode_parts, encode_parts
from condor_actors.messages.envelope import AskFailed, Delivery, Done, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.run import ActivateClaim, CheckpointRun, FileEntry, ReattachRun, RunExited, SayHello
from condor_actors.transfer.manifest import BadManifest, check_manifest

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter_host import StarterHostDaemon

__all__ = ["ActiveClaim", "StarterHost"]

MANIFEST_LIMIT = 1000
SHARED_MEMORY = "/dev/shm"
SWEEP_S = 60.0
KILL_AGAIN_S = 0.2
FROM_STARTD = (OpenClaim, CloseClaim, SuspendClaim, ContinueClaim, CheckpointClaim, LowerClaim, SayHello)
HELLO_TIMEOUT_S = 20.0


@attrs.define(eq=False, kw_only=True)
class ActiveClaim:
    """An open claim.

    Attributes:
        claim_id, secret, slot_name, submitter: as in OpenClaim.
        slot_ad: text, for the job; cpus, memory_mib, disk_kib: what the job may use.
        assigned: devices by resource.
        cgroup: the processes of its runs.
        run: the run that is active on it.
        closing: the startd wants it back, asked_s: since when; frozen: the startd had its run suspended.
        told: the last activity told to the startd; job: whose.
    """

    claim_id: str
    secret: str
    slot_name: str
    submitter: str
    slot_ad: bytes
    cpus: int
    memory_mib: int
    disk_kib: int
    assigned: tuple[tuple[str, str], ...]
    cgroup: JobCgroup | None = None
    run: Starter | None = None
    closing: bool = False
    asked_s: float = 0.0
    frozen: bool = False
    activity: str = "idle"
    told: tuple[str, str] = ("idle", "")


class StarterHost(Actor):
    """The actor ``starter-host``; see the module.

    A slot has one gate at a time: its control group is killed when that is shut.
    """

    def __init__(self, daemon: StarterHostDaemon) -> None:
        self.daemon = daemon
        self.reactor: Any = daemon.world.reactor_time
        self.in_thread = daemon.in_thread
        self.settings = daemon.run_settings
        self.root = daemon.root
        self.launcher = daemon.launcher
        self.store = daemon.store
        self.bulk = daemon.bulk
        self.cgroups = daemon.cgroups
        self.host = daemon.host
        self.null = daemon.host.null
        self.own_account = daemon.host.own_account
        self.enforce_disk = daemon.enforce_disk
        self.manifest_limit = MANIFEST_LIMIT
        self.shells = Shells(self)
        self.gates: dict[str, ActiveClaim] = {}
        self.runs: dict[str, Starter] = {}
        self.streams: dict[str, StandardStarter] = {}
        self.living: set[str] = set()
        self.leaving: dict[str, Deferred[None]] = {}
        self._dirty: dict[str, ActiveClaim] = {}
        self._nodes: dict[str, int] = {}
        self._startd_up = False

    # ---- turns

    def started(self) -> None:
        """Find the startd; sweep what an earlier host left."""
        self.daemon.sweep()
        self.context.watch(self.daemon.startd.node)
        self.context.set_timer("sweep", SWEEP_S)

    def receive(self, delivery: Delivery) -> None:
        """A word of the startd or of a shadow."""
        message = delivery.message
        if isinstance(message, ActivateClaim):
            self._activate(delivery, message)
        elif isinstance(message, ReattachRun):
            self._reattach(delivery, message)
        elif isinstance(message, FROM_STARTD) and delivery.sender.node != self.daemon.startd.node:
            self.context.reply(delivery, Refused(code="denied", text="only this machine's startd says that"))
        elif isinstance(message, OpenClaim):
            self._open(delivery, message)
        elif isinstance(message, SayHello):
            self._hello()
        elif isinstance(message, CloseClaim):
            self._close(message)
        elif isinstance(message, (SuspendClaim, ContinueClaim)):
            self._suspend(message)
        elif isinstance(message, (CheckpointClaim, LowerClaim)):
            self._influence(message)
        elif isinstance(message, PeerUp):
            self._peer_up(message.node)
        elif isinstance(message, PeerDown):
            self._peer_down(message.node)
        elif isinstance(message, TimerFired):
            self._timer(message.key)
        elif isinstance(message, ChildDown):
            self._starter_failed(message)
        elif hasattr(message, "KIND"):
            self.context.reply(delivery, Refused(code="invalid", text=f"a starter host does not take {message.KIND}"))

    def _timer(self, key: Any) -> None:
        if key == "tell":
            self._tell_startd()
        elif key == "hello" and self._startd_up:
            self._hello()
        elif key == "sweep":
            self._sweep_directories()
            self.context.set_timer("sweep", SWEEP_S)
        elif isinstance(key, ChildDown):
            self._starter_failed(key)

    # ---- the startd

    def _peer_up(self, node: str) -> None:
        if node == self.daemon.startd.node:
            self._startd_up = True
            self._hello()

    def _peer_down(self, node: str) -> None:
        if node == self.daemon.startd.node:
            self._startd_up = False
            return
        self._nodes.pop(node, None)
        self.context.unwatch(node)
        for run in tuple(self.runs.values()):
            if run.shadow.node == node and run.core.connected:
                run.decide(jr.LinkLost())

    def _hello(self) -> None:
        active = tuple((gate.claim_id, gate.run.run_id) for gate in self.gates.values() if gate.run is not None)
        suspended = tuple(gate.claim_id for gate in self.gates.values() if gate.frozen and gate.run is not None)
        now_s = self.reactor.seconds()
        closing = tuple((gate.claim_id, max(0.0, now_s - gate.asked_s)) for gate in self.gates.values()
                        if gate.closing and gate.run is not None)
        idle = tuple(gate.claim_id for gate in self.gates.values() if gate.run is None)
        hello = StarterHostHello(node=self.daemon.public_node, pid=self.host.pid, active=active, suspended=suspended,
                                 closing=closing, idle=idle)
        self.context.ask(self.daemon.startd, hello, timeout_s=HELLO_TIMEOUT_S, then=self._welcomed)

    def _welcomed(self, answer: Delivery) -> None:
        if isinstance(answer.message, (AskFailed, Refused)):
            self.context.log.warn("the startd does not know this starter host: {why}", why=answer.message)
            self.context.set_timer("hello", 5.0)
            return
        for gate in self.gates.values():
            self._mark(gate)

    def _open(self, delivery: Delivery, message: OpenClaim) -> None:
        gate = self.gates.get(message.claim_id)
        if gate is None:
            if any(other.slot_name == message.slot_name for other in self.gates.values()):
                self.context.reply(delivery, Refused(code="busy", text="what ran there before is not gone yet"))
                return
            try:
                ad = ClassAd.from_bytes(message.slot_ad)
                gate = ActiveClaim(
                    claim_id=message.claim_id, secret=message.secret, slot_name=message.slot_name,
                    submitter=message.submitter, slot_ad=message.slot_ad, cpus=ad.get_int("Cpus", 1),
                    memory_mib=ad.get_int("Memory", 0), disk_kib=ad.get_int("Disk", 0), assigned=message.assigned)
                self._make_group(gate)
            except (ClassAdSyntaxError, OSError) as error:
                self.context.reply(delivery, Refused(code="internal", text=str(error)))
                return
            self.gates[message.claim_id] = gate
        self.context.reply(delivery, Done())

    def _make_group(self, gate: ActiveClaim) -> None:
        if self.cgroups is None:
            return
        gate.cgroup = self.cgroups.group(gate.slot_name.partition("@")[0])
        limit = gate.memory_mib if self.daemon.memory_policy == "hard" and gate.memory_mib else None
        gate.cgroup.limit(cpus=gate.cpus, memory_mib=limit, processes=self.settings.max_processes)

    def _close(self, message: CloseClaim) -> None:
        gate = self.gates.get(message.claim_id)
        if gate is None:
            self.context.tell(self.daemon.startd, ClaimActivity(claim_id=message.claim_id, activity="closed"))
            return
        if not gate.closing:
            gate.closing, gate.asked_s = True, self.reactor.seconds()
        gate.frozen = False  # what is to go may run
        if gate.run is None:
            self._shut(gate)
        else:
            gate.run.decide(jr.CloseRun(
                grace_s=message.vacate_s, reason=message.reason, hold=message.hold, hold_code=message.hold_code,
                hold_subcode=message.hold_subcode))

    def _shut(self, gate: ActiveClaim) -> None:
        """Nothing of the claim runs any more."""
        self.gates.pop(gate.claim_id, None)
        self._dirty.pop(gate.claim_id, None)
        if gate.cgroup is not None:
            gate.cgroup.kill()
            gate.cgroup.remove()
        self.context.tell(self.daemon.startd, ClaimActivity(claim_id=gate.claim_id, activity="closed"))

    def _suspend(self, message: SuspendClaim | ContinueClaim) -> None:
        gate = self.gates.get(message.claim_id)
        if gate is not None and gate.run is not None:
            gate.frozen = isinstance(message, SuspendClaim) and not gate.closing
            gate.run.decide(jr.OwnerSuspends() if isinstance(message, SuspendClaim) else jr.OwnerContinues())

    def _influence(self, message: CheckpointClaim | LowerClaim) -> None:
        """The run goes on, but is to save its work, or to make do with less."""
        gate = self.gates.get(message.claim_id)
        if gate is None or gate.run is None:
            return
        if isinstance(message, LowerClaim):
            gate.run.lower(message.on)
        else:
            gate.run.decide(CheckpointRun(run_id=gate.run.run_id, reason="periodic"))

    def activity(self, run: Starter, activity: str) -> None:
        """A run is busy, suspended, or over."""
        gate = run.gate
        if gate.run is not run:
            return
        gate.activity = activity
        if activity == "idle":
            gate.run = None
            gate.frozen = False
            if gate.closing:
                self._shut(gate)
                return
        self._mark(gate)

    def _mark(self, gate: ActiveClaim) -> None:
        """Tell the startd at the end of this iteration; changes in between are one message."""
        if not self._dirty:
            self.context.set_timer("tell", 0.0)
        self._dirty[gate.claim_id] = gate

    def _tell_startd(self) -> None:
        dirty, self._dirty = self._dirty, {}
        if not self._startd_up:
            return
        for gate in dirty.values():
            run = gate.run
            job_id = run.spec.job_id if run is not None else ""
            usage = run.core.usage if run is not None else None
            fresh = gate.told[1] != job_id
            gate.told = (gate.activity, job_id)
            self.context.tell(self.daemon.startd, ClaimActivity(
                claim_id=gate.claim_id, activity=gate.activity, job_id=job_id,
                job_ad=run.job_ad if run is not None and fresh else b"",
                by_user=run is not None and run.core.by_user,
                cpu_s=usage.user_cpu_s + usage.system_cpu_s if usage is not None else 0.0,
                memory_mib=usage.memory_kib // 1024 if usage is not None else 0,
                disk_kib=usage.disk_kib if usage is not None else 0))

    # ---- shadows

    def _activate(self, delivery: Delivery, message: ActivateClaim) -> None:
        refuse = self._refuser(delivery)
        gate = self.gates.get(message.claim_id)
        if gate is None or not matches(gate.secret, message.secret):
            return refuse("denied", "no such claim is open here")
        if gate.closing:
            return refuse("denied", "the claim is ending")
        if gate.run is not None and gate.run.run_id == message.run_id:
            return self.context.reply(delivery, gate.run.activated())
        if gate.run is not None:
            return refuse("busy", f"run {gate.run.run_id} is active on the claim")
        if message.run_id in self.runs:
            return refuse("busy", "that run was here before")
        try:
            spec = read_spec(ClassAd.from_bytes(message.job_ad))
            check_manifest(message.inputs)
        except (BadJob, BadManifest, ClassAdSyntaxError) as error:
            return refuse("invalid", str(error))
        wanted = [entry.digest for entry in message.inputs
                  if entry.kind == "file" and entry.inline is None and not entry.url]
        if message.inputs_digest:
            wanted.append(message.inputs_digest)
        missing = self.store.missing(wanted) if wanted else ()
        for digest in wanted:
            self.store.pin(digest, message.run_id)
        run = (StandardStarter if spec.standard else Starter)(self, gate, delivery, spec, message.inputs, missing)
        gate.run = run
        self.runs[message.run_id] = run
        self._watch(delivery.sender.node)
        self.context.spawn(f"starter/{message.run_id}", lambda: run, restart="temporary")
        return None

    def _reattach(self, delivery: Delivery, message: ReattachRun) -> None:
        refuse = self._refuser(delivery)
        run = self.runs.get(message.run_id)
        if run is None:
            return refuse("not-found", f"run {message.run_id} is not here")
        if not matches(run.secret, message.secret):
            return refuse("denied", "that is not the claim of this run")
        self._watch(delivery.sender.node)
        run.reattach(delivery)
        return None

    def _refuser(self, delivery: Delivery) -> Callable[[str, str], None]:
        def refuse(code: str, text: str) -> None:
            self.context.log.info("{kind} refused: {text}", kind=type(delivery.message).__name__, text=text)
            self.context.reply(delivery, Refused(code=code, text=text))

        return refuse

    def _watch(self, node: str) -> None:
        if node and node not in self._nodes:
            self._nodes[node] = 1
            self.context.watch(node)

    def _starter_failed(self, event: ChildDown) -> None:
        """The actor of a run has crashed: nothing of the run may live on, and then its shadow hears that it failed."""
        run = self.runs.get(event.name.removeprefix("starter/"))
        if run is None:
            return
        run.core.state = jr.StarterState.GONE
        if run.processes is not None and run.processes.kill():
            self.context.set_timer(event, KILL_AGAIN_S)
            return
        self.context.tell(run.shadow, RunExited(
            run_id=run.run_id, cause="failed", usage=run.core.usage, when_s=self.context.now_s(),
            reason=f"the starter failed: {event.reason}", claim_open=not run.gate.closing))
        run.discard()

    def forgotten(self, run: Starter) -> None:
        """Nothing of the run is left."""
        self.runs.pop(run.run_id, None)
        self.store.unpin(run.run_id)
        self.shells.close_all(run)
        if run.gate.run is run:
            self.activity(run, "idle")

    def remove(self, sandbox: Sandbox) -> None:
        """Take a scratch directory away beside the reactor: the disk's journal may hold an ``rmdir`` up for long."""
        def removed(result: Any) -> None:
            del self.leaving[sandbox.path]
            if result is not True:
                self.context.log.warn("{path} cannot be removed yet: {why}", path=sandbox.path, why=result)

        removing = self.in_thread(sandbox.remove)
        self.leaving[sandbox.path] = removing
        removing.addBoth(removed)

    # ---- what runs need

    def processes_for(self, gate: ActiveClaim, run_id: str) -> RunProcesses:
        """The processes of a run to be started."""
        return self.host.processes(gate.cgroup, f"{self.root.path}:{run_id}", self._leaders)

    def _leaders(self) -> list[int]:
        return [run.processes.pid for run in self.runs.values() if run.processes is not None and run.processes.pid]

    def account_for(self, spec: RunSpec, gate: ActiveClaim) -> Account | None:
        """As whom a run is run; None: as this process's user."""
        if not self.host.may_change_user():
            return None
        daemon = self.daemon
        if daemon.allow_owner and spec.run_as_owner is not False and spec.domain == self.settings.uid_domain:
            account = self.host.account(spec.owner)
            if account is not None and account.uid != 0:
                return account
        return daemon.slot_account(gate.slot_name)

    def own_peak_kib(self) -> int:
        """See :class:`RunHost`."""
        return self.host.own_peak_kib()

    def home_name(self, run: Starter, attribute: str) -> str:
        """The name at home of a streamed file."""
        return ClassAd.from_bytes(run.job_ad).get_str(attribute)

    @property
    def standard_isolation(self) -> tuple[str, ...]:
        """Namespaces of standard-universe jobs."""
        return self.host.standard_isolation

    @property
    def isolation(self) -> tuple[str, ...]:
        """Namespaces of other jobs: for folders and shared memory that are theirs alone and go when they do."""
        allowed = self.host.mount_isolation
        if not self.daemon.private_memory:
            allowed = tuple(name for name in allowed if name != "ipc")
        return allowed if self.daemon.private_memory or self.daemon.private_folders else ()

    def own_places(self, sandbox: Sandbox, needed: Collection[str],
                   ) -> tuple[Sequence[tuple[str, str]], Sequence[str]]:
        """Private folders of a run (MOUNT_UNDER_SCRATCH), and its memory to share (MOUNT_PRIVATE_DEV_SHM).

        Raises:
            OSError: see :meth:`Sandbox.private`.
        """
        if not self.isolation:
            return (), ()
        shared = (SHARED_MEMORY,) if self.daemon.private_memory and os.path.isdir(SHARED_MEMORY) else ()
        return sandbox.private(self.daemon.private_folders, needed), shared

    def read_manifest(self, digest: str) -> tuple[FileEntry, ...]:
        """A manifest that came as a blob.

        Raises:
            BadManifest: it is none.
        """
        try:
            entries = decode_parts(FileEntry, self.store.read(digest))
        except MalformedMessage as error:
            raise BadManifest(f"the manifest cannot be read: {error}") from None
        check_manifest(entries)
        return entries

    def write_manifest(self, entries: tuple[FileEntry, ...]) -> str:
        """Keep a manifest as a blob; its digest."""
        return self.store.put_bytes(encode_parts(entries))

    def _sweep_directories(self) -> None:
        used = set(self.leaving) | {run.sandbox.path for run in self.runs.values() if run.sandbox is not None}
        for path in self.root.leftovers(used):
            self.host.remove_tree(path)
