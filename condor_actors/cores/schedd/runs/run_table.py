"""The runs of a schedd: begun on a claim, watched through the owner's shadow host, ended once.

Theory: a run is a row of the store from before its shadow hears of it until its end is in the queue (or the history);
both changes are one transaction each.  Its name contains the job's NumShadowStarts, so an end that is told twice, or
told by a shadow of an earlier run, names no living run and changes nothing.  A shadow whose run is over is told to
forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from condor_actors.cores.checkpoint_seals import Generation, key_of_owner, make_ticket
from condor_actors.cores.reasons import bounded_reason
from condor_actors.cores.schedd.claims.claim_table import ClaimTable
from condor_actors.cores.schedd.claims.held_claim import HeldClaim
from condor_actors.cores.schedd.gangs.gang import Gang, is_gang
from condor_actors.cores.schedd.gangs.gang_runs import GangRuns
from condor_actors.cores.schedd.job_attributes import set_by_run
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_policy import JobPolicy
from condor_actors.cores.schedd.job_status import ALIVE
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.local_jobs import LocalStarts, is_grid, runs_there
from condor_actors.cores.schedd.queue_operations import SaveRun
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.runs.job_verdict import JobVerdict, end_of
from condor_actors.cores.schedd.runs.run import Run
from condor_actors.cores.schedd.runs.run_facts import RunFacts
from condor_actors.cores.schedd.runs.run_now import Promises
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.shadow_hosts import ShadowHosts, take_some
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.run import CheckpointRun, ContinueRun, StopRun, SuspendRun
from condor_actors.messages.shadow_host import HostOrders, Notice, RunEnded, RunUpdated, ShadowHostHello, StartRun

__all__ = ["RunTable"]

ORDER_BYTES = 150_000
"""Of each kind in one :class:`HostOrders`."""



def _host_of(claim: HeldClaim | None) -> str:
    return claim.row.slot_name if claim is not None else ""


class RunTable:
    """Starts runs on claims, follows them through their shadow hosts, and ends each exactly once."""

    def __init__(self, context: ScheddContext, transitions: JobTransitions, notices: JobNotices, claims: ClaimTable,
                 hosts: ShadowHosts, policy: JobPolicy) -> None:
        self._context = context
        self._transitions = transitions
        self._notices = notices
        self._claims = claims
        self._hosts = hosts
        self._policy = policy
        self.facts = RunFacts(context, notices)
        self._verdict_on = JobVerdict(context, transitions, notices, policy)
        self.runs: dict[str, Run] = {}
        self.promises = Promises(context, self.runs, claims.may_serve, claims.joined, self.stop)
        self._verdicts: dict[str, list[tuple[str, str]]] = {}
        self._starts: dict[str, list[Run]] = {}
        self.gangs = GangRuns(context, hosts)
        self.run_lost: Callable[[str], None] = lambda run_id: None
        """Told of a run of which its machine says no more."""
        self.locals = LocalStarts(context, transitions.local, self._start_local, transitions.withdraw)

    @property
    def running(self) -> int:
        """How many there are."""
        return len(self.runs)

    def restore(self, rows: Iterable[SaveRun]) -> None:
        """Take over the runs that the store had; their shadow hosts will say which of them they still have."""
        for row in rows:
            job = self._context.queue.job(row.cluster, row.proc)
            claim = self._claims.held.get(row.claim_id)
            if job is None:
                continue
            began_s = job.ad.get_int("JobCurrentStartExecutingDate")
            run = self.runs[row.run_id] = Run(row.run_id, job, row.owner, claim, row.began_s,
                                              recorded=began_s >= job.ad.get_int("JobCurrentStartDate") > 0)
            job.run_id = self.gangs.restore(run) if is_gang(job.ad) else row.run_id
            if job.status is JobStatus.IDLE and not is_grid(job):  # released before its run, which was to end, had
                run.stop = StopRun(run_id=row.run_id, how="hold", reason="its job was held")
            if claim is not None:
                self._claims.occupy(claim, row.run_id)
            elif not row.claim_id:
                self.locals.began(row.run_id, job)

    # ---- begin

    def start(self, job: Job, claim: HeldClaim) -> None:
        """Begin a run on a claim."""
        run = self._begin(job, claim)
        self.facts.record_claim(job, claim)
        self._claims.occupy(claim, run.run_id)

    def start_gang(self, job: Job, claims: Sequence[HeldClaim]) -> None:
        """Begin a run with a member on each claim, by node: all in this turn, and in one transaction."""
        context = self._context
        number = self.facts.count_start(job, len(claims))
        owner = job.cluster.owner
        first = f"{job.name}#{number}@{context.settings.name}"
        members = [Run("", job, owner, claim, context.now_s, node=node) for node, claim in enumerate(claims)]
        self.gangs.began(first, job, members)
        job.run_id = first
        for run, claim in zip(members, claims, strict=True):
            self.runs[run.run_id] = run
            self._starts.setdefault(owner, []).append(run)
            context.persist(SaveRun(run.run_id, job.cluster.number, job.proc, owner, claim.row.claim_id, run.began_s))
            self._claims.occupy(claim, run.run_id)
        self.facts.record_claim(job, claims[0])
        names = [claim.ad.get_str("Name") or claim.row.slot_name for claim in claims]
        context.remember(job, "run", f"run {number} begins on {', '.join(names)}")
        context.queue.set(job, RemoteHosts=",".join(names))
        context.queue.set_status(job, JobStatus.RUNNING, context.now_s)

    def _start_local(self, job: Job) -> None:
        """Begin a run on this machine, or in another batch system."""
        self._transitions.withdraw(job)
        self.locals.began(self._begin(job, None).run_id, job)
        if not is_grid(job):
            self._context.queue.set(job, RemoteHost=self._context.settings.machine)

    def _begin(self, job: Job, claim: HeldClaim | None) -> Run:
        context = self._context
        number = self.facts.count_start(job, 1)
        run = Run(f"{job.name}#{number}@{context.settings.name}", job, job.cluster.owner, claim, context.now_s)
        job.run_id = run.run_id
        self.runs[run.run_id] = run
        self._starts.setdefault(run.owner, []).append(run)
        where = claim.row.slot_name if claim is not None else job.ad.get_str("GridResource") or "this machine"
        context.remember(job, "run", f"run {number} begins on {where}")
        if not is_grid(job):  # which is idle until it runs there
            context.queue.set_status(job, JobStatus.RUNNING, context.now_s)
        context.persist(SaveRun(run.run_id, job.cluster.number, job.proc, run.owner,
                             claim.row.claim_id if claim is not None else "", context.now_s))
        return run

    def _order(self, run: Run, *, reattach: bool = False) -> StartRun:
        lease_s = run.job.ad.get_float("JobLeaseDuration", self._context.settings.job_lease_s)
        if run.claim is None:
            return StartRun(run_id=run.run_id, job_ad=run.job.text, claim_id="", secret="", starter_node="",
                            slot_name="", slot_ad=b"", lease_s=lease_s, reattach=reattach)
        row = run.claim.row
        text = run.job.text if run.gang is None else self.gangs.order_text(run)
        key = key_of_owner(self._context.checkpoint_key, run.job.cluster.user)
        floor = Generation.from_text(run.job.ad.get_str("PreviousCkptGeneration"))
        return StartRun(run_id=run.run_id, job_ad=text, claim_id=row.claim_id, secret=row.secret,
                        starter_node=row.starter_node, slot_name=row.slot_name, slot_ad=row.slot_ad, lease_s=lease_s,
                        reattach=reattach, checkpoint_ticket=make_ticket(key, row.claim_id, run.run_id, floor))

    # ---- while it lasts

    def stop(self, job: Job, how: str, reason: str) -> None:
        """End the run of a job."""
        for run in self._runs_of(job):
            run.stop = StopRun(run_id=run.run_id, how=how, reason=bounded_reason(reason))
            self._hosts.tell(run.owner, run.stop)

    def _runs_of(self, job: Job) -> list[Run]:
        """Its run, or the members of it that have not ended."""
        gang = self.gangs.of_job(job)
        if gang is not None:
            return list(gang.living.values())
        run = self.runs.get(job.run_id)
        return [run] if run is not None else []

    def checkpoint(self, job: Job, reason: str) -> None:
        """Have the program of a standard-universe job take a checkpoint."""
        run = self.runs.get(job.run_id)
        if run is not None:
            self._hosts.tell(run.owner, CheckpointRun(run_id=run.run_id, reason=reason))

    def claim_gone(self, run_id: str, reason: str) -> None:
        """The startd has ended a claim, or says that nothing is left of its run: a shadow that is in touch with the
        starter hears how the run ended, one that is not need not wait for it."""
        run = self.runs.get(run_id)
        if run is not None:
            self._hosts.tell(run.owner, StopRun(run_id=run_id, how="lost", reason=reason))

    def suspend(self, job: Job) -> None:
        """Freeze it."""
        for run in self._runs_of(job):
            run.asked = SuspendRun(run_id=run.run_id)
            self._hosts.tell(run.owner, run.asked)

    def resume(self, job: Job) -> None:
        """Thaw it."""
        for run in self._runs_of(job):
            run.asked = ContinueRun(run_id=run.run_id)
            self._hosts.tell(run.owner, run.asked)

    def asked(self, job: Job) -> JobStatus | None:
        """The status to which the last :meth:`suspend` or :meth:`resume` of its run leads."""
        last = next((run.asked for run in self._runs_of(job)), None)
        return None if last is None else JobStatus.SUSPENDED if isinstance(last, SuspendRun) else JobStatus.RUNNING

    def updated(self, message: RunUpdated, owner: str) -> None:
        """A shadow reports."""
        run = self.runs.get(message.run_id)
        if run is None or run.owner != owner:
            return
        context, job = self._context, run.job
        if message.event == "disconnected":
            self.run_lost(run.run_id)
        if run.gang is not None:
            self.facts.take_report(job, self.gangs.report(run, run.gang, message.attributes))
            if run.node:
                return
        else:
            self.facts.take_report(job, message.attributes)
        if message.event == "executing":
            self.facts.record_start(run)
            if is_grid(job) and job.status is JobStatus.IDLE and run.stop is None:
                runs_there(context, job)
        if job.status not in ALIVE:
            return
        if message.event == "suspended" and job.status is not JobStatus.SUSPENDED:
            context.queue.set(job, TotalSuspensions=job.ad.get_int("TotalSuspensions") + 1,
                           LastSuspensionTime=int(context.now_s))
            context.queue.set_status(job, JobStatus.SUSPENDED, context.now_s)
        elif message.event == "continued":
            since = job.ad.get_int("LastSuspensionTime")
            if since:
                context.queue.set(job, CumulativeSuspensionTime=job.ad.get_int("CumulativeSuspensionTime")
                               + int(context.now_s) - since, LastSuspensionTime=0)
            context.queue.set_status(job, JobStatus.RUNNING, context.now_s)
        elif message.event == "transferring-output":
            context.queue.set_status(job, JobStatus.TRANSFERRING_OUTPUT, context.now_s)
        self._policy.evaluate(job)

    def set_attributes(self, run_id: str, text: bytes, owner: str) -> None:
        """A job has set attributes of itself (chirp)."""
        context, run, settings = self._context, self.runs.get(run_id), self._context.settings
        if run is None or run.owner != owner:
            context.reply(Refused(code="not-found", text=f"run {run_id} is not {owner}'s"))
            return
        values, problem = set_by_run(text, settings.immutable | settings.protected | settings.secure)
        if problem:
            context.note(f"{run.job.name}: {problem}", "warn")
            context.reply(Refused(code="denied", text=problem))
            return
        context.queue.update(run.job, values)
        self._policy.evaluate(run.job)
        context.reply(Done())

    # ---- the end

    def ended(self, message: RunEnded, owner: str) -> None:
        """A run is over; what that means for its job is decided here, once."""
        run = self.runs.get(message.run_id)
        if run is None or run.owner != owner:
            self._verdict(owner, message.run_id, "settled")
            return
        if message.outcome in ("failed", "lost"):
            self.run_lost(run.run_id)
        if run.gang is not None:
            self._member_ended(run, run.gang, message)
            return
        job, claim = run.job, run.claim
        starts = job.ad.get_int("NumShadowStarts")
        self.facts.account(run, message)
        self._notices.transferred(job, _host_of(claim), message.transfers)
        level = "warn" if message.outcome in ("failed", "lost") else "info"
        self._context.remember(job, "ended", f"run {starts} ended: {end_of(message, job.ad)}", level)
        promised = self._drop(run)
        verdict = self._verdict_on(job, message)
        self._verdict(owner, message.run_id, verdict)
        if claim is not None:
            self._freed(run, claim, message)
            self._claims.use(claim, promised)

    def _freed(self, run: Run, claim: HeldClaim, message: RunEnded) -> None:
        """Nothing runs on the claim any more."""
        self._notices.free(run.run_id, run.job, claim.row.starter_node)
        self._claims.vacate(claim)
        if message.outcome == "lost":
            self._claims.unreachable.mark_unreachable(claim.row.startd)
        if not message.claim_usable:
            claim.usable = False

    def _member_ended(self, run: Run, gang: Gang, message: RunEnded) -> None:
        """A member is over; when the gang is, its job is judged, once."""
        job, claim = run.job, run.claim
        self.facts.take_report(job, self.gangs.report(run, gang, message.attributes, final=True))
        self._context.remember(job, "ended", f"node {run.node} ended: {end_of(message, job.ad)}")
        self._notices.transferred(job, _host_of(claim), message.transfers)
        self._drop(run)
        job.run_id = gang.gang_id
        if message.outcome == "exited" and run.node == 0:
            self.facts.record_start(run)
        wall_s = max(0.0, self._context.now_s - run.began_s)
        self._context.queue.set(job, CumulativeSlotTime=job.ad.get_float("CumulativeSlotTime")
                                + round(wall_s * (claim.weight if claim is not None else 1.0), 3))
        self._verdict(run.owner, run.run_id, "settled")
        if claim is not None:
            self._freed(run, claim, message)
        self.gangs.ended(run, gang, message)
        if not gang.living:
            assert gang.outcome is not None
            self.facts.account(run, gang.outcome)
            self.gangs.over(job)
            job.run_id = ""
            if gang.outcome.outcome != "exited":  # node 0 may have ended before the gang broke
                self._context.queue.unset(job, "TerminationPending", "ExitCode", "ExitSignal")
            self._verdict_on(job, gang.outcome)
        if claim is not None:
            self._claims.use(claim)

    def _drop(self, run: Run) -> Job | None:
        """The run is no more; returns to which job its claim was promised."""
        del self.runs[run.run_id]
        self.locals.ended(run.run_id)
        run.job.run_id = ""
        self._notices.run_over(run.job, run.run_id)
        return self.promises.take(run.run_id)

    def abandon(self, job: Job) -> None:
        """End a run without waiting for its report (condor_rm -forcex)."""
        mine = self._runs_of(job)
        self.stop(job, "fast", "removed by force")
        for run in mine:
            self.run_lost(run.run_id)
            self._drop(run)
            if run.claim is not None:
                self._claims.vacate(run.claim)
                self._claims.release(run.claim, "the job was removed by force")
        self.gangs.over(job)

    # ---- verdicts

    def _verdict(self, owner: str, run_id: str, verdict: str) -> None:
        self._verdicts.setdefault(owner, []).append((run_id, verdict))

    def give_orders(self, notices: dict[str, list[Notice]]) -> None:
        """At the end of a turn: tell each shadow host all that was decided for it."""
        if not (self._verdicts or self._starts or notices):
            return
        verdicts, self._verdicts = self._verdicts, {}
        starts, self._starts = self._starts, {}
        for owner in {**verdicts, **starts, **notices}:
            first: tuple[tuple[str, str], ...] = tuple(verdicts.get(owner, ()))
            begin = starts.get(owner, ())
            lines = [*notices.get(owner, ()), *self._notices.take_of(owner, {run.job for run in begin})]
            begun = [self._order(run) for run in begin]
            while first or lines or begun:
                some = take_some(lines, lambda notice: len(notice.ad))
                now = [] if lines else take_some(begun, lambda order: len(order.job_ad) + len(order.slot_ad))
                self._hosts.tell(owner, HostOrders(verdicts=first, notices=tuple(some), starts=tuple(now)))
                first = ()

    # ---- shadow hosts come and go

    def host_said_hello(self, message: ShadowHostHello, owner: str) -> None:
        """A host is there: give it the runs that nobody has, and take away those that are no more."""
        theirs = dict.fromkeys((*message.runs, *message.unsettled))
        self.take_up(owner, theirs)
        for run_id in theirs:
            if run_id in self.runs:
                continue
            if run_id in message.runs:
                self._hosts.tell(owner, StopRun(run_id=run_id, how="fast", reason="the schedd has no such run"))
            else:
                self._verdict(owner, run_id, "settled")

    def host_lost(self, owner: str) -> None:
        """The owner's host is dead: another takes its runs up."""
        mine = [run for run in self.runs.values() if run.owner == owner]
        if mine:
            self._context.note(f"the shadow host of {owner} is dead; another takes up {len(mine)} runs", "warn")
        if mine or owner in self._notices.owners():
            self._hosts.replace(owner)

    def take_up(self, owner: str, theirs: Collection[str] = ()) -> None:
        """The owner's host, as soon as there is one, takes up the runs and the notices that a dead one left.

        Args:
            theirs: runs that it has already; those whose first order waits for it are not lost either.
        """
        mine = [run for run in self.runs.values() if run.owner == owner]
        known = {*theirs, *self._hosts.untold(owner)}
        self._hosts.tell_first(owner, [HostOrders(starts=(self._order(run, reattach=True),)) for run in mine
                                       if run.run_id not in known])
        for job in dict.fromkeys(run.job for run in mine):
            if job.status is JobStatus.REMOVED:
                self.stop(job, "remove", job.ad.get_str("RemoveReason"))
            elif job.status is JobStatus.HELD:
                self.stop(job, "hold", job.ad.get_str("HoldReason"))
            else:
                for run in self._runs_of(job):
                    if run.stop is not None:
                        self._hosts.tell(owner, run.stop)
                    elif run.asked is not None and self.asked(job) is not job.status:
                        self._hosts.tell(owner, run.asked)
        self._notices.send_again(owner)
        self.give_orders({owner: self._notices.take_of(owner, {run.job for run in mine})})

    def orphans(self) -> list[str]:
        """Owners of runs that have no host at all (after a restart)."""
        owners = dict.fromkeys(run.owner for run in self.runs.values())
        return [owner for owner in owners if owner not in self._hosts.by_owner]

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two turns: a run has a job in the queue and a claim, and they have it.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        for run_id, run in self.runs.items():
            job, claim = run.job, run.claim
            gang_id = run.gang.gang_id if run.gang is not None else run_id
            if run.run_id != run_id or job.run_id != gang_id:
                raise InvariantBroken(f"the run {run.run_id} is kept as {run_id}, its job {job.name} has "
                                      f"{job.run_id!r}")
            if self._context.queue.job(job.cluster.number, job.proc) is not job or run.owner != job.cluster.owner:
                raise InvariantBroken(f"the job of run {run_id} is not {run.owner}'s, or has left the queue")
            if job.status is JobStatus.COMPLETED or (job.status is JobStatus.IDLE and not (run.stop or is_grid(job))):
                raise InvariantBroken(f"the run {run_id} goes on, and its job is {job.status.name}")
            if claim is not None and not claim.serves(job):
                raise InvariantBroken(f"the run {run_id} of {job.cluster.user} is on a claim of {claim.row.owner}")
            if claim is not None and (self._claims.held.get(claim.row.claim_id) is not claim
                                      or claim.run_id != run_id):
                raise InvariantBroken(f"the run {run_id} is on the claim {claim.row.claim_id}, which is not held, or "
                                      f"has {claim.run_id!r}")
        self.gangs.validate(self.runs)
        self.locals.validate([run_id for run_id, run in self.runs.items() if run.claim is None])
        for claim_id, held in self._claims.held.items():
            if held.run_id and (held.run_id not in self.runs or self.runs[held.run_id].claim is not held):
                raise InvariantBroken(f"the claim {claim_id} has the run {held.run_id}, which is not on it")
        for job in self._context.queue.jobs():
            if job.run_id and job.run_id not in self.runs and self.gangs.of_job(job) is None:
                raise InvariantBroken(f"job {job.name} has the run {job.run_id}, which is over")
            if job.status in ALIVE and not job.run_id:
                raise InvariantBroken(f"job {job.name} is {job.status.name}, and has no run")
