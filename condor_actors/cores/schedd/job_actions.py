"""What users do to jobs: remove, hold, release, suspend, continue, vacate, edit.

Theory: the table of :mod:`condor_actors.cores.schedd.job_status` says what an action does in each status; here it is
carried out for each job that the ids or the constraint name, one result per id asked for.  What names many jobs is done
in many turns, so that nobody waits for it: each changes what it can, and the last one answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Protocol

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.classads.evaluation.budget import TURN_STEPS, spent
from condor_actors.cores.schedd.charging import CHARGED, CHARGED_TO
from condor_actors.cores.schedd.factories.factories import Factories
from condor_actors.cores.schedd.job_attributes import Hand, attribute
from condor_actors.cores.schedd.job_status import ACTIONS, Step
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.submit_commands import objection
from condor_actors.effects import GoOn
from condor_actors.messages.codes import HoldCode, JobStatus, Universe
from condor_actors.messages.envelope import Delivery, Identity, Refused
from condor_actors.messages.pages import MOST_AD_BYTES
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, EditJobs, JobAction

__all__ = ["ActionRest", "JobActions", "RunStopper"]

LOOK = 1
PLACE = 2
ACT = 10
SLICE = 5_000
"""What one turn may cost: jobs that are only looked at, put in their place anew, acted on."""
MOST_RESULTS = 10_000
"""Jobs that are named one by one in the answer about a constraint; the others are only counted."""

LOOKED_AT, SMALL_BYTES = 500, 1024
"""An ad of so many attributes, or that gets so many bytes, is measured when it is edited."""

Act = Callable[[Job], ActionResult]
OnCluster = Callable[[Cluster], ActionResult | None]


def _not_on(cluster: Cluster) -> None:
    """Nothing is done to clusters as such."""


def _common(cluster: Cluster) -> ClassAd:
    """What a constraint sees of a cluster that may make more jobs: what they have in common, but for their status."""
    ad = cluster.ad.copy()
    del ad["JobStatus"]
    return ad


@attrs.define(eq=False)
class ActionRest:
    """What is left of an action or an edit; also the event with which it goes on.

    Attributes:
        delivery: the question.
        steps: does it, a job at a time; yields what that cost.
        results, count: the answer so far.
    """

    delivery: Delivery
    steps: Iterator[int] = attrs.field(factory=lambda: iter(()))
    results: list[tuple[int, int, ActionResult]] = attrs.field(factory=list)
    count: int = 0


class RunStopper(Protocol):
    """What the actions need of the runs."""

    def stop(self, job: Job, how: str, reason: str) -> None:
        """End the run of a job: ``vacate fast remove hold``."""

    def suspend(self, job: Job) -> None:
        """Freeze it."""

    def resume(self, job: Job) -> None:
        """Thaw it."""

    def asked(self, job: Job) -> JobStatus | None:
        """The status to which the last of these two leads; None: its run was asked neither."""

    def checkpoint(self, job: Job, reason: str) -> None:
        """Have it take a checkpoint."""

    def abandon(self, job: Job) -> None:
        """End it without waiting for its report."""


class JobActions:
    """Carries out what users ask of jobs: remove, hold, release, suspend, continue, vacate, edit.

    Attributes:
        is_regrouped: whether a waiting job was edited so that it may match other slots; the core sets it back.
    """

    def __init__(self, context: ScheddContext, transitions: JobTransitions, runs: RunStopper,
                 factories: Factories) -> None:
        self._context = context
        self._transitions = transitions
        self._runs = runs
        self._factories = factories
        self.is_regrouped = False

    # ---- which jobs

    def _each(self, rest: ActionRest, ids: Iterable[tuple[int, int]], act: Act, on_cluster: OnCluster = _not_on
              ) -> Iterator[int]:
        """Act on the jobs named, and on clusters as such; one result per id."""
        clusters, identity = self._context.queue.clusters, rest.delivery.identity
        for cluster_id, proc in ids:
            cluster = clusters.get(cluster_id)
            result: ActionResult | None = None
            allowed = cluster is not None and self._context.may_touch(identity, cluster.owner)
            if proc < 0 and cluster is not None and allowed:
                result = on_cluster(cluster)
            for job in (cluster.jobs_after(-1) if proc < 0 else (cluster.jobs.get(proc),)) if cluster else ():
                done = (ActionResult.NOT_FOUND if job is None else act(job) if allowed
                        else ActionResult.PERMISSION_DENIED)
                rest.count += done is ActionResult.SUCCESS
                result = done if result is None or done is ActionResult.SUCCESS else result
                yield ACT
            rest.results.append((cluster_id, proc, result or ActionResult.NOT_FOUND))

    def _matching(self, rest: ActionRest, constraint: Expr | None, act: Act, on_cluster: OnCluster = _not_on
                  ) -> Iterator[int]:
        """Act on those of the jobs that are there now that the caller may act on; one result per job."""
        if constraint is None:
            return
        context = self._context
        sight, clusters = context.sight(rest.delivery.identity), context.queue.clusters
        for number in sorted(clusters):
            cluster = clusters.get(number)
            yield LOOK
            if cluster and cluster.may_make_more and sight.sees_all_of(cluster.owner) and is_true(
                    constraint.evaluate(_common(cluster), None, context.now_s)):
                on_cluster(cluster)
            for job in cluster.jobs_after(-1) if cluster and sight.sees_all_of(cluster.owner) else ():
                if not is_true(constraint.evaluate(job.ad, None, context.now_s)):
                    yield LOOK
                    continue
                result = act(job)
                rest.count += result is ActionResult.SUCCESS
                if len(rest.results) < MOST_RESULTS:
                    rest.results.append((number, job.proc, result))
                yield ACT

    def go_on(self, rest: ActionRest) -> None:
        """Do what a turn may do of an action; answer when it is done."""
        left, steps_before = SLICE, spent()[0]
        for cost in rest.steps:
            left -= cost
            if left <= 0 or spent()[0] - steps_before > TURN_STEPS:
                self._context.out.append(GoOn(rest))
                return
        self._context.reply(ActionResults(results=tuple(rest.results), count=rest.count), rest.delivery)

    # ---- actions

    def act(self, message: ActOnJobs, delivery: Delivery) -> None:
        """Carry out an :class:`ActOnJobs`."""
        reason = self._reason(message, delivery.identity.user)
        table = ACTIONS[message.action]

        def act(job: Job) -> ActionResult:
            result, step = table[self._standing(job, message.action)]
            if step is Step.CHECKPOINT and job.ad.find("jobuniverse") != Universe.STANDARD:
                return ActionResult.BAD_STATUS
            if step in (Step.SUSPEND, Step.CONTINUE) and job.ad.find("jobuniverse") == Universe.GRID:
                return ActionResult.BAD_STATUS  # other batch systems let nobody but their administrators do that
            if step is not Step.NOTHING:
                if step is Step.LEAVE:
                    self._remove_others(job, reason, delivery)
                self._step(job, step, message, reason)
            return result

        try:
            constraint = parse_expression(message.constraint) if message.constraint else None
        except ClassAdSyntaxError as error:
            self._context.reply(Refused(code="invalid", text=f"constraint {message.constraint!r}: {error}"))
            return
        rest = ActionRest(delivery)

        def on_cluster(cluster: Cluster) -> ActionResult | None:
            return self._factories.act(cluster, message.action, reason)

        rest.steps = chain(self._each(rest, message.ids, act, on_cluster),
                           self._matching(rest, constraint, act, on_cluster))
        self.go_on(rest)

    def _standing(self, job: Job, action: JobAction) -> JobStatus:
        """The status in which it is acted on: a run that was just asked for the opposite is about to get there."""
        asked = self._runs.asked(job) if job.status in (JobStatus.RUNNING, JobStatus.SUSPENDED) else None
        opposite = {JobAction.SUSPEND: JobStatus.RUNNING, JobAction.CONTINUE: JobStatus.SUSPENDED}.get(action)
        return asked if asked is not None and asked is opposite else job.status

    @staticmethod
    def _reason(message: ActOnJobs, user: str) -> str:
        """What the job's ad will say; the tools' own sentence when there is none."""
        if message.reason:
            return f"{message.reason} (by user {user})"
        return f"via condor_{_TOOL.get(message.action, message.action.value)} (by user {user})"

    def _step(self, job: Job, step: Step, message: ActOnJobs, reason: str) -> None:
        transitions, runs = self._transitions, self._runs
        if step is Step.LEAVE:
            self._remove(job, reason, forced=message.action is JobAction.REMOVE_FORCED)
        elif step is Step.STOP and message.action is JobAction.REMOVE:
            transitions.mark_removed(job, reason)
            runs.stop(job, "remove", reason)
        elif step is Step.STOP:
            transitions.hold(job, reason, HoldCode.USER_REQUEST, message.subcode)
            runs.stop(job, "hold", reason)
        elif step is Step.HOLD:
            transitions.hold(job, reason, HoldCode.USER_REQUEST, message.subcode)
            if job.run_id:
                runs.stop(job, "hold", reason)
        elif step is Step.RELEASE:
            transitions.release(job, reason)
        elif step is Step.SUSPEND:
            runs.suspend(job)
        elif step is Step.CONTINUE:
            runs.resume(job)
        elif step is Step.CHECKPOINT:
            runs.checkpoint(job, reason)
        elif step is Step.VACATE:
            runs.stop(job, "fast" if message.action is JobAction.VACATE_FAST else "vacate", reason)

    def _remove(self, job: Job, reason: str, *, forced: bool) -> None:
        done = job.status is JobStatus.COMPLETED
        if job.run_id and not forced:
            self._transitions.mark_removed(job, reason)
            self._runs.stop(job, "remove", reason)
            return
        if job.run_id:
            self._runs.abandon(job)
        if done:
            self._transitions.leave(job)
            return
        if job.status is not JobStatus.REMOVED:
            self._transitions.mark_removed(job, reason)
        if forced:
            self._context.queue.set(job, LeaveJobInQueue=False)
        self._transitions.leave_removed(job)

    def _remove_others(self, job: Job, reason: str, delivery: Delivery) -> None:
        """With a job that has no run the others go that it names, those of a workflow; they are its owner's."""
        try:
            wanted = parse_expression(job.ad.get_str("OtherJobRemoveRequirements") or "false")
        except ClassAdSyntaxError:
            return
        owner = job.cluster.owner

        def act(other: Job) -> ActionResult:
            result, step = ACTIONS[JobAction.REMOVE][other.status]
            if other.cluster.owner != owner or other is job:
                return ActionResult.NOT_FOUND
            if step is Step.LEAVE:
                self._remove(other, reason, forced=False)
            elif step is Step.STOP:
                self._transitions.mark_removed(other, reason)
                self._runs.stop(other, "remove", reason)
            return result

        def stop_making(cluster: Cluster) -> ActionResult | None:
            return self._factories.act(cluster, JobAction.REMOVE, reason) if cluster.owner == owner else None

        if job.ad.find("otherjobremoverequirements") is not None:
            rest = ActionRest(attrs.evolve(delivery, answerable=False))
            rest.steps = self._matching(rest, wanted, act, stop_making)
            self._context.out.append(GoOn(rest))

    # ---- edits

    def edit(self, message: EditJobs, delivery: Delivery) -> None:
        """Carry out an :class:`EditJobs`."""
        context = self._context
        try:
            values = ClassAd.from_bytes(message.attributes)
            constraint = parse_expression(message.constraint) if message.constraint else None
            denied = self._denied(values, delivery.identity)
            if denied:
                context.reply(Refused(code="denied", text=denied))
                return
            names = {name.lower() for name in values}
            if names & set(CHARGED) and CHARGED_TO not in names:
                context.reply(Refused(code="invalid", text=(
                    "AccountingGroup alone says whom a job is charged to: edit it as well (group.user, or user)")))
                return
            problem = objection(values, values)
            if problem is not None:
                context.reply(Refused(code="invalid", text=problem))
                return
        except (ClassAdSyntaxError, ValueError) as error:
            context.reply(Refused(code="invalid", text=str(error)))
            return

        def edit(job: Job) -> ActionResult:
            if _outgrows(job.ad, values):
                return ActionResult.ERROR
            self._edit_job(job, values)
            return ActionResult.SUCCESS

        rest = ActionRest(delivery)
        rest.steps = chain(self._edit_ids(rest, message.ids, values, edit), self._matching(rest, constraint, edit))
        self.go_on(rest)

    def _edit_ids(self, rest: ActionRest, ids: Iterable[tuple[int, int]], values: ClassAd, edit: Act) -> Iterator[int]:
        """Whole clusters by their own ad, else job by job."""
        for cluster_id, proc in ids:
            cluster = self._context.queue.clusters.get(cluster_id)
            if proc >= 0 or cluster is None or not self._context.may_touch(rest.delivery.identity, cluster.owner):
                yield from self._each(rest, ((cluster_id, proc),), edit)
                continue
            if _outgrows(cluster.ad, values):
                rest.results.append((cluster_id, proc, ActionResult.ERROR))
                continue
            rest.count += len(cluster.jobs)
            yield from self._edit_cluster(cluster, values)
            rest.results.append((cluster_id, proc, ActionResult.SUCCESS))

    def _denied(self, values: ClassAd, identity: Identity) -> str:
        """Why these attributes are not the caller's to edit; empty when they are.

        SECURE_JOB_ATTRS are taken out of ``values`` where IGNORE_ATTEMPTS_TO_SET_SECURE_JOB_ATTRS says so.
        """
        settings = self._context.settings
        names = {name.lower() for name in values}
        for name in sorted(names):
            editor = attribute(name).edited_by
            if editor is Hand.NOBODY or name in settings.immutable:
                return f"attribute {name} cannot be edited"
            if name in settings.secure and not settings.ignores_secure:
                return f"attribute {name} is set by the schedd alone"
            if name not in settings.secure and (editor is Hand.ADMINISTRATOR or name in settings.protected) \
                    and not self._context.is_super(identity):
                return f"attribute {name} cannot be edited but by a super user of the queue"
        for name in names & settings.secure:
            del values[name]
        return self._context.charge_objection(identity, values)

    def _edit_cluster(self, cluster: Cluster, values: ClassAd) -> Iterator[int]:
        """All jobs of a cluster: its own ad changes at once, then what jobs have of their own, and where they stand."""
        context = self._context
        names = {name.lower() for name in values}
        for name, value in values.stored_items():
            cluster.ad.store(name, value)
        cluster.changed()
        self._factories.edited(cluster, names)
        context.queue.charge_anew(cluster)
        context.persist(context.queue.cluster_row(cluster))
        unsettled = context.autoclusters.unsettled
        unsettled.add(cluster.number)
        for job in cluster.jobs_after(-1):
            own = names & job.ad.own.keys()
            if own:
                context.queue.update(job, values.project(own))
            self._offer_again(job)
            yield ACT if own else PLACE
        unsettled.discard(cluster.number)

    def _edit_job(self, job: Job, values: ClassAd) -> None:
        self._context.queue.update(job, values)
        self._offer_again(job)

    def _offer_again(self, job: Job) -> None:
        """An edited job may stand elsewhere in the queue, or begin at another time."""
        if self._transitions.scheduled.concerns(job):
            if job.ready:
                self._transitions.withdraw(job)
                self._transitions.scheduled.sleep(job)
        elif job.order is not None:
            before = job.autocluster
            self._context.autoclusters.add(job)
            self.is_regrouped |= job.autocluster != before


def _outgrows(ad: ClassAd, values: ClassAd) -> bool:
    """Whether an ad with these values would be larger than a job's ad may be; small edits are not looked at often."""
    if len(ad.own) < LOOKED_AT and len(values.to_bytes()) < SMALL_BYTES:
        return False
    whole = ad.flat()
    for name, value in values.stored_items():
        whole.store(name, value)
    return len(whole.to_bytes()) > MOST_AD_BYTES


_TOOL = {
    JobAction.REMOVE: "rm", JobAction.REMOVE_FORCED: "rm", JobAction.HOLD: "hold", JobAction.RELEASE: "release",
    JobAction.SUSPEND: "suspend", JobAction.CONTINUE: "continue", JobAction.VACATE: "vacate_job",
    JobAction.VACATE_FAST: "vacate_job", JobAction.CHECKPOINT: "checkpoint",
}

