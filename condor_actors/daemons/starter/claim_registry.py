"""The starter host: one process per machine, in which each run of a job is an actor.

Theory: the startd opens and closes claims (:class:`ActiveClaim`); a shadow of a claim's owner, on the machine of the
schedd that asked for the claim, may run one job at a time there when it shows the secret. Whose claim it is comes from
that schedd's request; what a job's ad says of its owner counts for nothing. The host outlives its startd, tells it what
runs whenever they meet again, and is the parent (and, for orphans, the subreaper) of all jobs, so nothing of a job
escapes it. When the host itself is killed, the launcher's death signal ends the jobs' first processes, and the next
host sweeps what is left: groups, marked processes, scratch directories.

A starter that crashes takes its own run with it and nothing else: the host kills and frees by the run's
:class:`~condor_actors.daemons.starter.run_resources.RunResources` and tells the shadow.  When this actor crashes, its
starters go on: the rebuilt one has the table of claims, which is the process's, compares it with the starters that
live, has each say how it is, and says hello to the startd, which repeats what it wants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from twisted.python.failure import Failure

from condor_actors.actors import Actor, ChildDown
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.devices.slot_devices import SlotDevices, devices_of
from condor_actors.cores.rights import is_fetched, is_shadow_of
from condor_actors.cores.secrets import matches
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.disk_bound import DiskBound, bound_of
from condor_actors.cores.starter.run_spec import BadJob, job_of_claim, read_spec
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.daemons.starter.standard_starter import StandardStarter
from condor_actors.daemons.starter.starter import Starter
from condor_actors.daemons.starter.starter_edges import StarterEdges
from condor_actors.daemons.starter.starter_events import (
    EndAllRuns,
    LowerRun,
    RunActivity,
    RunForgotten,
    ShadowAsks,
    TellActivity,
)
from condor_actors.machine.run.cgroups import JobCgroup
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
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.run import PERIODIC, ActivateClaim, CheckpointRun, ReattachRun, RunExited, Usage
from condor_actors.messages.shadow_host import SayHello
from condor_actors.transfer.manifest import BadManifest, check_manifest

__all__ = ["ActiveClaim", "ClearAgain", "StarterHost"]

SWEEP_S = 60.0
KILL_AGAIN_S = 0.2
TELL_S = 0.02
"""How late the startd may hear of what runs on a claim, where it has not heard of any for :data:`TELL_PACE_S`."""
TELL_PACE_S = 0.2
"""How far apart reports to the startd are: of many short runs it hears the last, and of which jobs the others were."""
FROM_STARTD = (OpenClaim, CloseClaim, SuspendClaim, ContinueClaim, CheckpointClaim, LowerClaim, SayHello)
HELLO_TIMEOUT_S = 20.0
CRASHED = "its turn raised an error"


@attrs.define(eq=False, kw_only=True)
class ActiveClaim:
    """An open claim: a row of the table.

    Attributes:
        claim_id, secret, slot_name, owner, hosts, submitter, checkpoint_key: as in OpenClaim.
        slot_ad: text, for the job; cpus, memory_mib, disk: what the job may use.
        assigned: devices by resource; devices: what their runs are told of them, and which files are theirs.
        cgroup: the processes of its runs.
        run_id: the run that is active on it; empty: none.
        closing: the startd wants it back, asked_s: since when; frozen: the startd had its run suspended.
        report: what its run said last; begun: the jobs of which runs began since the startd was
            told.
        told: the last activity told to the startd, whose job_id; limits_told: the log has what its runs are held to.
    """

    claim_id: str
    secret: str
    slot_name: str
    owner: str
    hosts: tuple[str, ...]
    submitter: str
    slot_ad: bytes
    cpus: int
    memory_mib: int
    disk: DiskBound
    assigned: tuple[tuple[str, str], ...]
    checkpoint_key: bytes
    devices: SlotDevices = SlotDevices()  # noqa: RUF009 - it is frozen
    cgroup: JobCgroup | None = None
    run_id: str = ""
    closing: bool = False
    asked_s: float = 0.0
    frozen: bool = False
    report: RunActivity | None = None
    begun: tuple[str, ...] = ()
    told: str = ""
    limits_told: bool = False


@attrs.frozen
class ClearAgain:
    """Key of a timer: processes of a run whose starter has crashed were left."""

    run_id: str
    reason: str


def _starter(run_id: str) -> Address:
    return Address("", f"starter/{run_id}")


class StarterHost(Actor):
    """The actor ``starter-host``; see the module.

    A slot has one claim at a time: its control group is killed when that is closed.

    Args:
        edges: of the process.
        claims: the table of open claims, by claim id; the process's, so that it outlives this actor.
    """

    def __init__(self, edges: StarterEdges, claims: dict[str, ActiveClaim]) -> None:
        self.edges = edges
        self.claims = claims
        self._dirty: set[str] = set()
        self._idle: set[str] = set()
        self._told_s = -TELL_PACE_S
        self._startd_up = False

    # ---- turns

    def started(self) -> None:
        """Find the startd; sweep what an earlier host left, or take up what this one had."""
        if self.edges.runs or self.claims:
            self._take_up()
        else:
            self.edges.sweep()
        self.context.watch(self.edges.startd.node)
        self.context.set_timer("sweep", SWEEP_S)
        if self.edges.at_rest is not None:
            self._end_all_runs()

    def _take_up(self) -> None:
        """After a crash of this actor: what lives is asked how it is, what does not is cleared away."""
        living = self.context.children
        for claim in tuple(self.claims.values()):
            if claim.run_id and claim.run_id not in self.edges.runs:
                self._run_over(claim.run_id)
        for held in tuple(self.edges.runs.values()):
            name = f"starter/{held.run_id}"
            if name not in living:
                self._starter_failed(held.run_id, CRASHED)
                continue
            self.context.tell(Address("", name), TellActivity())
            if held.claim_id not in self.claims:
                self.context.tell(Address("", name), jr.Abandon())

    def receive(self, delivery: Delivery) -> None:
        """A word of the startd, of a shadow, of a starter."""
        message = delivery.message
        if isinstance(message, ActivateClaim):
            self._activate(delivery, message)
        elif isinstance(message, ReattachRun):
            self._reattach(delivery, message)
        elif isinstance(message, FROM_STARTD) and delivery.sender.node != self.edges.startd.node:
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
        elif hasattr(message, "KIND"):
            self.context.reply(delivery, Refused(code="invalid", text=f"a starter host does not take {message.KIND}"))
        else:
            self._local(message)

    def _local(self, message: Any) -> None:
        """An event of this process."""
        if isinstance(message, RunActivity):
            self._activity(message)
        elif isinstance(message, RunForgotten):
            self._run_over(message.run_id)
        elif isinstance(message, PeerUp) and message.node == self.edges.startd.node:
            self._startd_up = True
            self._hello()
        elif isinstance(message, PeerDown) and message.node == self.edges.startd.node:
            self._startd_up = False
        elif isinstance(message, TimerFired):
            self._timer(message.key)
        elif isinstance(message, ChildDown):
            self._starter_failed(message.name.removeprefix("starter/"), message.reason)
        elif isinstance(message, EndAllRuns):
            self._end_all_runs()

    def _timer(self, key: Any) -> None:
        if key == "tell-idle":
            self._tell_idle()
        elif key == "tell":
            self._tell_startd()
        elif key == "hello" and self._startd_up:
            self._hello()
        elif key == "sweep":
            self.edges.sweep_directories()
            self.edges.store.make_room()
            self.context.set_timer("sweep", SWEEP_S)
        elif isinstance(key, ClearAgain):
            self._starter_failed(key.run_id, key.reason)

    # ---- the startd

    def _hello(self) -> None:
        claims = tuple(self.claims.values())
        now_s = self.edges.reactor.seconds()
        hello = StarterHostHello(
            node=self.edges.node(), pid=self.edges.host.pid,
            active=tuple([(claim.claim_id, claim.run_id) for claim in claims if claim.run_id]),
            suspended=tuple([claim.claim_id for claim in claims if claim.frozen and claim.run_id]),
            closing=tuple([(claim.claim_id, max(0.0, now_s - claim.asked_s)) for claim in claims
                           if claim.closing and claim.run_id]),
            idle=tuple([claim.claim_id for claim in claims if not claim.run_id]))
        self.context.ask(self.edges.startd, hello, timeout_s=HELLO_TIMEOUT_S, then=self._welcomed)

    def _welcomed(self, answer: Delivery) -> None:
        if isinstance(answer.message, (AskFailed, Refused)):
            self.context.log.warn("the startd does not know this starter host: {why}", why=answer.message)
            self.context.set_timer("hello", 5.0)
            return
        for claim_id in self.claims:
            self._mark(claim_id)

    def _open(self, delivery: Delivery, message: OpenClaim) -> None:
        if message.claim_id not in self.claims:
            if any(other.slot_name == message.slot_name for other in self.claims.values()):
                self.context.reply(delivery, Refused(code="busy", text="what ran there before is not gone yet"))
                return
            try:
                ad = ClassAd.from_bytes(message.slot_ad)
                claim = ActiveClaim(
                    claim_id=message.claim_id, secret=message.secret, slot_name=message.slot_name,
                    owner=message.owner, hosts=message.hosts or self.edges.own_hosts(), submitter=message.submitter,
                    slot_ad=message.slot_ad, cpus=ad.get_int("Cpus", 1),
                    memory_mib=ad.get_int("Memory", 0),
                    disk=bound_of(self.edges.settings.disk, ad, message.slot_name), assigned=message.assigned,
                    checkpoint_key=message.checkpoint_key, devices=devices_of(ad, message.assigned))
                claim.cgroup = self._make_group(claim)
                self.edges.expect(message.owner)
            except (ClassAdSyntaxError, OSError) as error:
                self.context.reply(delivery, Refused(code="internal", text=str(error)))
                return
            self.claims[message.claim_id] = claim
        self.context.reply(delivery, Done())

    def _make_group(self, claim: ActiveClaim) -> JobCgroup | None:
        edges = self.edges
        group = edges.group_of(claim.slot_name)
        if group is None:
            return None
        limit = claim.memory_mib if edges.settings.memory_policy == "hard" and claim.memory_mib else None
        group.limit(cpus=claim.cpus, memory_mib=limit, processes=edges.settings.run.max_processes)
        return group

    def _close(self, message: CloseClaim) -> None:
        claim = self.claims.get(message.claim_id)
        if claim is None:
            self.context.tell(self.edges.startd, ClaimActivity(claim_id=message.claim_id, activity="closed"))
            return
        asked_s = claim.asked_s if claim.closing else self.edges.reactor.seconds()
        claim.closing, claim.asked_s, claim.frozen = True, asked_s, False  # what is to go may run
        if not claim.run_id:
            self._shut(claim)
        else:
            self.context.tell(_starter(claim.run_id), jr.CloseRun(
                grace_s=message.vacate_s, reason=message.reason, hold=message.hold, hold_code=message.hold_code,
                hold_subcode=message.hold_subcode))

    def _shut(self, claim: ActiveClaim) -> None:
        """Nothing of the claim runs any more."""
        if claim.cgroup is not None:
            self.edges.dying_groups.drop(claim.cgroup)
        self.claims.pop(claim.claim_id, None)
        self._dirty.discard(claim.claim_id)
        self.context.tell(self.edges.startd, ClaimActivity(claim_id=claim.claim_id, activity="closed",
                                                           begun=claim.begun))

    def _suspend(self, message: SuspendClaim | ContinueClaim) -> None:
        claim = self.claims.get(message.claim_id)
        if claim is not None and claim.run_id:
            suspends = isinstance(message, SuspendClaim)
            claim.frozen = suspends and not claim.closing
            self.context.tell(_starter(claim.run_id), jr.OwnerSuspends() if suspends else jr.OwnerContinues())

    def _influence(self, message: CheckpointClaim | LowerClaim) -> None:
        """The run goes on, but is to save its work, or to make do with less."""
        claim = self.claims.get(message.claim_id)
        if claim is None or not claim.run_id:
            return
        run_id = claim.run_id
        self.context.tell(_starter(run_id), LowerRun(message.on) if isinstance(message, LowerClaim)
                          else CheckpointRun(run_id=run_id, reason=PERIODIC))

    def _mark(self, claim_id: str) -> None:
        """Tell the startd in a moment: ends of runs and the starts of the next ones are one message."""
        if not self._dirty:
            paced_s = self._told_s + TELL_PACE_S - self.edges.reactor.seconds()
            self.context.set_timer("tell", max(TELL_S, min(paced_s, TELL_PACE_S)))
        self._dirty.add(claim_id)

    def _mark_idle(self, claim_id: str) -> None:
        """Tell the startd soon, where no other run begins: another user may have its machine then."""
        self._mark(claim_id)
        if not self._idle:
            self.context.set_timer("tell-idle", TELL_S)
        self._idle.add(claim_id)

    def _tell_idle(self) -> None:
        marked, self._idle = self._idle & self._dirty, set()
        idle = {claim_id for claim_id in marked if claim_id in self.claims and not self.claims[claim_id].run_id}
        self._dirty -= idle
        self._tell(idle)

    def _tell_startd(self) -> None:
        dirty, self._dirty = self._dirty, set()
        self._told_s = self.edges.reactor.seconds()
        self._tell(dirty)

    def _tell(self, claim_ids: set[str]) -> None:
        if not self._startd_up:
            return
        for claim in [self.claims[claim_id] for claim_id in self.claims if claim_id in claim_ids]:
            report = claim.report or RunActivity(run_id="", activity="idle")
            usage = report.usage
            untold = claim.begun[-1:] if claim.run_id and claim.report is None else ()  # it has not said how it is
            self.context.tell(self.edges.startd, ClaimActivity(
                claim_id=claim.claim_id, activity=report.activity, job_id=report.job_id,
                job_ad=report.job_ad if report.job_id != claim.told else b"", by_user=report.by_user,
                cpu_s=usage.user_cpu_s + usage.system_cpu_s, memory_mib=usage.memory_kib // 1024,
                disk_kib=usage.disk_kib, begun=claim.begun[:len(claim.begun) - len(untold)]))
            claim.told, claim.begun = report.job_id, untold

    # ---- shadows

    def _activate(self, delivery: Delivery, message: ActivateClaim) -> None:
        refuse = self._refuser(delivery)
        claim = self.claims.get(message.claim_id)
        if claim is None or not matches(claim.secret, message.secret):
            return refuse("denied", "no such claim is open here")
        if is_fetched(claim.owner):
            if delivery.sender.node != self.edges.startd.node:
                return refuse("denied", "the claim is for a job that this machine's startd has fetched")
        elif not is_shadow_of(delivery.identity, claim.owner, claim.hosts):
            return refuse("denied", f"the claim is {claim.owner}'s, and {delivery.identity.name} is no shadow of hers "
                                    "on the machine of the schedd that asked for it")
        if claim.closing or self.edges.at_rest is not None:
            return refuse("denied", "the claim is ending")
        if claim.run_id == message.run_id:
            return self.context.tell(_starter(claim.run_id), ShadowAsks(delivery))
        if claim.run_id:
            return refuse("busy", f"run {claim.run_id} is active on the claim")
        if message.run_id in self.edges.runs:
            return refuse("busy", "that run was here before")
        held = self.edges.hold(message, claim, Address(delivery.sender.node, f"shadow/{message.run_id}"))
        try:
            starter = _make_starter(self.edges, claim, delivery, held)
        except BadJob as error:  # no machine can run it
            held.release()
            return refuse("bad-job", str(error))
        except (BadManifest, ClassAdSyntaxError) as error:
            held.release()
            return refuse("invalid", str(error))
        except Exception:  # noqa: BLE001 - the door: what a job brings is that run's trouble alone
            held.release()
            self.context.log.failure("run {run} cannot be begun", failure=Failure(), run=message.run_id)
            return refuse("internal", "an error of the starter host")
        claim.run_id, claim.report, claim.begun = message.run_id, None, (*claim.begun, starter.spec.job_id)
        self.context.spawn(f"starter/{message.run_id}", lambda: starter, restart="temporary", survives=True)
        return None

    def _reattach(self, delivery: Delivery, message: ReattachRun) -> None:
        refuse = self._refuser(delivery)
        held = self.edges.runs.get(message.run_id)
        if held is None:
            return refuse("not-found", f"run {message.run_id} is not here")
        if not matches(held.secret, message.secret) or not held.may_be_told_by(
                delivery.identity, delivery.sender.node):
            return refuse("denied", "that is not the claim of this run")
        return self.context.tell(_starter(message.run_id), ShadowAsks(delivery))

    def _refuser(self, delivery: Delivery) -> Callable[[str, str], None]:
        def refuse(code: str, text: str) -> None:
            self.context.log.info("{kind} refused: {text}", kind=type(delivery.message).__name__, text=text)
            self.context.reply(delivery, Refused(code=code, text=text))

        return refuse

    # ---- runs

    def _claim_of(self, run_id: str) -> ActiveClaim | None:
        """The claim on which a run is active."""
        held = self.edges.runs.get(run_id)
        if held is not None:
            claim = self.claims.get(held.claim_id)
            return claim if claim is not None and claim.run_id == run_id else None
        return next((claim for claim in self.claims.values() if claim.run_id == run_id), None)

    def _activity(self, report: RunActivity) -> None:
        """A run says how it is."""
        claim = self._claim_of(report.run_id)
        if report.activity == "idle":
            if claim is not None:
                self._free(claim)
            if self.edges.at_rest is not None and report.run_id in self.edges.runs:
                self.context.tell(_starter(report.run_id), jr.Abandon())
        elif claim is not None:
            claim.report = report
            self._mark(claim.claim_id)

    def _free(self, claim: ActiveClaim) -> None:
        """Nothing runs on the claim any more."""
        claim.run_id, claim.report, claim.frozen = "", None, False
        if claim.closing:
            self._shut(claim)
        else:
            self._mark_idle(claim.claim_id)

    def _run_over(self, run_id: str) -> None:
        """Nothing of the run is left."""
        claim = self._claim_of(run_id)
        if claim is not None:
            self._free(claim)
        if self.edges.at_rest is not None and not self.edges.runs:
            self.edges.at_rest()

    def _starter_failed(self, run_id: str, reason: str) -> None:
        """The actor of a run has crashed: nothing of the run may live on, and then its shadow hears that it failed."""
        held = self.edges.runs.get(run_id)
        if held is None:
            return
        try:
            left = held.kill()
        except OSError as error:
            self.context.log.error("the processes of {run} cannot be killed: {error}", run=run_id, error=error)
            left = 1
        if left:
            self.context.set_timer(ClearAgain(run_id, reason), KILL_AGAIN_S)
            return
        claim, open_claim = self._claim_of(run_id), self.claims.get(held.claim_id)
        usage = claim.report.usage if claim is not None and claim.report is not None else Usage()
        self.context.tell(held.shadow, RunExited(
            run_id=run_id, cause="failed", usage=usage, when_s=self.context.now_s(),
            reason=f"the starter failed: {reason}", claim_open=open_claim is not None and not open_claim.closing))
        held.release()
        if claim is not None:
            self._free(claim)
        self._run_over(run_id)

    def _end_all_runs(self) -> None:
        """The process is to end: every run does."""
        for run_id in tuple(self.edges.runs):
            self.context.tell(_starter(run_id), jr.Abandon())
        if not self.edges.runs and self.edges.at_rest is not None:
            self.edges.at_rest()


def _make_starter(edges: StarterEdges, claim: ActiveClaim, question: Delivery, held: RunResources) -> Starter:
    """The starter of a run that is to begin.

    Raises:
        BadJob, BadManifest, ClassAdSyntaxError: the job cannot be understood.
    """
    message: ActivateClaim = question.message
    job = job_of_claim(ClassAd.from_bytes(message.job_ad), claim.owner)
    spec = read_spec(job)
    check_manifest(message.inputs)
    wanted = [entry.digest for entry in message.inputs
              if entry.kind == "file" and entry.inline is None and not entry.url]
    if message.inputs_digest:
        wanted.append(message.inputs_digest)
    missing = held.blobs.missing(wanted) if wanted else ()
    for digest in wanted:
        held.blobs.pin(digest, message.run_id)
    question = attrs.evolve(question, message=attrs.evolve(message, job_ad=job.to_bytes()))
    return (StandardStarter if spec.standard else Starter)(edges, claim, question, spec, missing, held)
