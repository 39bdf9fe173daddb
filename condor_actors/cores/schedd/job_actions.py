"""What users do to jobs: remove, hold, release, suspend, continue, vacate, edit.

Theory: the table of :mod:`condor_actors.cores.schedd.job_status` says what an action does in each status; here it is
carried out for each job that the ids or the constraint name, one result per id asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from condor_actors.classads import ClassAd, ClassAdSyntaxError, is_true, parse_expression
from condor_actors.cores.schedd.charging import CHARGED
from condor_actors.cores.schedd.job_attributes import Hand, attribute
from condor_actors.cores.schedd.job_queue import Cluster, Job
from condor_actors.cores.schedd.job_status import ACTIONS, Step
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.submit_commands import objection
from condor_actors.messages.codes import HoldCode, JobStatus, Universe
from condor_actors.messages.envelope import Delivery, Identity, Refused
from condor_actors.messages.queue import ActionResult, ActionResults, ActOnJobs, EditJobs, JobAction

__all__ = ["JobActions", "RunStopper"]


class RunStopper(Protocol):
    """What the actions need of the runs."""

    def stop(self, job: Job, how: str, reason: str) -> None:
        """End the run of a job: ``vacate fast remove hold``."""

    def suspend(self, job: Job) -> None:
        """Freeze it."""

    def resume(self, job: Job) -> None:
        """Thaw it."""

    def checkpoint(self, job: Job, reason: str) -> None:
        """Have it take a checkpoint."""

    def abandon(self, job: Job) -> None:
        """End it without waiting for its report."""


class JobActions:
    """Carries out what users ask of jobs: remove, hold, release, suspend, continue, vacate, edit."""

    def __init__(self, context: ScheddContext, transitions: JobTransitions, runs: RunStopper) -> None:
        self._context = context
        self._transitions = transitions
        self._runs = runs

    # ---- which jobs

    def _matching(self, constraint: str, identity: Identity) -> list[Job]:
        """Of the jobs that the caller may act on."""
        expression = parse_expression(constraint)
        now_s, sight = self._context.now_s, self._context.sight(identity)
        return [job for job in self._context.queue.jobs()
                if sight.sees_all_of(job.cluster.owner) and is_true(expression.evaluate(job.ad, None, now_s))]

    def _each(self, ids: Iterable[tuple[int, int]], constraint: str, identity: Identity,
              act: Callable[[Job], ActionResult]) -> ActionResults:
        """Act on the jobs named; one result per id, or per job for a constraint."""
        results: list[tuple[int, int, ActionResult]] = []
        count = 0
        for cluster_id, proc in ids:
            cluster = self._context.queue.clusters.get(cluster_id)
            if proc >= 0:
                job = cluster.jobs.get(proc) if cluster is not None else None
                result = self._one(job, identity, act)
            else:
                done = [self._one(job, identity, act) for job in tuple(cluster.jobs.values())] if cluster else []
                result = _of_cluster(done)
                count += done.count(ActionResult.SUCCESS)
            if proc >= 0 and result is ActionResult.SUCCESS:
                count += 1
            results.append((cluster_id, proc, result))
        if constraint:
            for job in self._matching(constraint, identity):
                result = act(job)
                count += result is ActionResult.SUCCESS
                if len(results) < 10_000:
                    results.append((job.cluster.number, job.proc, result))
        return ActionResults(results=tuple(results), count=count)

    def _one(self, job: Job | None, identity: Identity, act: Callable[[Job], ActionResult]) -> ActionResult:
        if job is None:
            return ActionResult.NOT_FOUND
        if not self._context.may_touch(identity, job.cluster.owner):
            return ActionResult.PERMISSION_DENIED
        return act(job)

    # ---- actions

    def act(self, message: ActOnJobs, delivery: Delivery) -> None:
        """Carry out an :class:`ActOnJobs`."""
        reason = self._reason(message, delivery.identity.user)
        table = ACTIONS[message.action]

        def act(job: Job) -> ActionResult:
            result, step = table[job.status]
            if step is Step.CHECKPOINT and job.ad.find("jobuniverse") != Universe.STANDARD:
                return ActionResult.BAD_STATUS
            if step is not Step.NOTHING:
                self._step(job, step, message, reason)
            return result

        try:
            self._context.reply(self._each(message.ids, message.constraint, delivery.identity, act))
        except ClassAdSyntaxError as error:
            self._context.reply(Refused(code="invalid", text=f"constraint {message.constraint!r}: {error}"))

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

    # ---- edits

    def edit(self, message: EditJobs, delivery: Delivery) -> None:
        """Carry out an :class:`EditJobs`."""
        context = self._context
        try:
            values = ClassAd.from_bytes(message.attributes)
            denied = self._denied(values, delivery.identity)
            if denied:
                context.reply(Refused(code="denied", text=denied))
                return
            names = {name.lower() for name in values}
            ids = message.ids
            if names & set(CHARGED):
                ids = tuple(self._whole(each) for each in ids)
                if message.constraint or any(proc >= 0 for _, proc in ids):
                    context.reply(Refused(code="invalid", text="the jobs of a cluster are charged together: name the "
                                                               "cluster, without a job of it or a constraint"))
                    return
            problem = objection(values, values)
            if problem is not None:
                context.reply(Refused(code="invalid", text=problem))
                return
            whole: set[int] = set()
            for cluster_id, proc in ids:
                cluster = context.queue.clusters.get(cluster_id)
                if proc < 0 and cluster is not None and context.may_touch(delivery.identity, cluster.owner):
                    self._edit_cluster(cluster, values, names)
                    whole.add(cluster_id)

            def act(job: Job) -> ActionResult:
                if job.cluster.number not in whole:
                    self._edit_job(job, values)
                return ActionResult.SUCCESS

            context.reply(self._each(ids, message.constraint, delivery.identity, act))
        except (ClassAdSyntaxError, ValueError) as error:
            context.reply(Refused(code="invalid", text=str(error)))

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

    def _whole(self, name: tuple[int, int]) -> tuple[int, int]:
        """The name of the cluster for the only job of one."""
        cluster = self._context.queue.clusters.get(name[0])
        return (name[0], -1) if cluster is not None and cluster.total == 1 and name[1] in cluster.jobs else name

    def _edit_cluster(self, cluster: Cluster, values: ClassAd, names: set[str]) -> None:
        """All jobs of a cluster at once: its own ad changes, and what jobs have of their own."""
        for name, value in values.stored_items():
            cluster.ad.store(name, value)
        cluster.changed()
        self._context.queue.charge_anew(cluster)
        self._context.persist(self._context.queue.cluster_row(cluster))
        for job in cluster.jobs.values():
            own = names & job.ad.own.keys()
            if own:
                self._context.queue.update(job, values.project(own))
            if job.order is not None:
                self._context.autoclusters.add(job)

    def _edit_job(self, job: Job, values: ClassAd) -> None:
        self._context.queue.update(job, values)
        if job.order is not None:
            self._context.autoclusters.add(job)


_TOOL = {
    JobAction.REMOVE: "rm", JobAction.REMOVE_FORCED: "rm", JobAction.HOLD: "hold", JobAction.RELEASE: "release",
    JobAction.SUSPEND: "suspend", JobAction.CONTINUE: "continue", JobAction.VACATE: "vacate_job",
    JobAction.VACATE_FAST: "vacate_job", JobAction.CHECKPOINT: "checkpoint",
}


def _of_cluster(results: list[ActionResult]) -> ActionResult:
    """What to tell about a whole cluster: success when anything was done, else the first obstacle."""
    if not results:
        return ActionResult.NOT_FOUND
    return ActionResult.SUCCESS if ActionResult.SUCCESS in results else results[0]


