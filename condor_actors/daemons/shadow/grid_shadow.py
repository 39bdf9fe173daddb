"""A job of the grid universe: handed to another batch system, and followed there, as its owner.

Theory: it is an actor of its owner's host like every shadow, so it is there as the owner, and found again when the
host or the schedd dies.  What it does is decided by :class:`~condor_actors.cores.shadow.grid_run.GridRun`; here the
batch system's commands are run and the folder of the run is read and written, and what comes of it is an event.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.actors.workers import NoAnswer
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.grid_events import (
    BatchJob,
    Bring,
    Brought,
    Cancel,
    Cancelled,
    CleanUp,
    FilesFailed,
    Fits,
    FolderRecord,
    Look,
    Looked,
    Prepare,
    Prepared,
    Submit,
    SubmitFailed,
    Submitted,
    Unavailable,
    Withdraw,
    Withdrawn,
)
from condor_actors.cores.shadow.grid_run import GridRun
from condor_actors.cores.shadow.shadow_events import Log, Report, ScheddBack, Settled
from condor_actors.cores.shadow.slurm_jobs import batch_name, submission_words, what_it_is
from condor_actors.cores.starter.run_spec import BadJob, RunSpec, read_spec
from condor_actors.daemons.shadow import grid_folder
from condor_actors.daemons.shadow.grid_manager import GridEdges
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, ShadowReport
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.daemons.shadow.submit_files import FileTrouble
from condor_actors.effects import Effect
from condor_actors.machine.grid.slurm import CommandFailed
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Delivery, Refused, TimerFired
from condor_actors.messages.grid_resources import resource_problem
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import StartRun

__all__ = ["GridShadow"]


class GridShadow(Actor):
    """Hands one job to another batch system, and follows it there."""

    def __init__(self, order: StartRun, edges: GridEdges) -> None:
        self._edges = edges
        self._job = ClassAd.from_bytes(order.job_ad)
        self.core = GridRun(order, self._job, edges.settings)
        self._name = batch_name(order.run_id, self._job)
        self._folder = os.path.join(edges.folder, self._name)
        self._submitting: Deferred[Any] | None = None

    def started(self) -> None:
        """Look, or begin."""
        problem = self._edges.problem
        if not problem and resource_problem(self._job.evaluate("GridResource")):
            problem = f"GridResource = {self._job.expression('GridResource')} cannot be used: " + resource_problem(
                self._job.evaluate("GridResource"))
        if problem:
            self.core.end("hold", problem, HoldCode.FAILED_TO_CREATE_PROCESS)
            self._event(ScheddBack())
        else:
            self.context.perform(self.core.start(self.context.now_s()))

    def receive(self, delivery: Delivery) -> None:
        """The schedd's wishes, and timers."""
        message = delivery.message
        if delivery.sender.node:
            refuse_stranger(self.context, delivery, self.core.order.run_id)
        elif isinstance(message, (StopRun, TimerFired, ScheddBack, Settled)):
            self._event(message)
        else:
            self.context.reply(delivery, Refused(code="invalid", text="a job in another batch system has no starter"))

    def _event(self, event: Any) -> None:
        self.context.perform(self.core.handle(event, self.context.now_s()))

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """The effects of a grid manager."""
        if isinstance(effect, Report):
            self.context.tell(SHADOW_HOST, ShadowReport(self.core.order.run_id, effect.message))
        elif isinstance(effect, Log):
            self._log(effect)
        else:
            steps: dict[type[Effect], Callable[[Any], None]] = {
                Look: self._look, Prepare: self._prepare, Submit: self._submit, Cancel: self._cancel,
                Withdraw: self._withdraw, Bring: self._bring, CleanUp: self._clean_up,
            }
            step = steps.get(type(effect))
            if step is None:
                super().perform_own(effect, delivery)
            else:
                step(effect)

    def _log(self, effect: Log) -> None:
        facts = self._job.copy()
        facts.update(effect.facts)
        self._edges.logs.write(effect.event, self._job.get_int("ClusterId"), [self._job.get_int("ProcId")],
                               effect.when_s or self.context.now_s(), facts, maybe_written=effect.again)

    def _then(self, work: Deferred[Any], event: Callable[[Any], Any]) -> None:
        """What comes of some work is an event."""
        self.context.defer_to_turn(work, lambda result: self._event(event(result)))

    # ---- files

    def _spec(self) -> RunSpec:
        """The job, all of whose files travel unless it says otherwise."""
        spec = read_spec(self._job)
        if spec.container is not None:
            raise BadJob("a job in another batch system has no image (container_image)")
        return spec

    def _prepare(self, effect: Prepare) -> None:
        logs, job, folder = self._edges.logs, self._job, self._folder
        try:
            spec = self._spec()
        except BadJob as error:
            self._then(succeed(FilesFailed(str(error), HoldCode.FAILED_TO_CREATE_PROCESS)), lambda event: event)
            return

        def work() -> FilesFailed | bool:
            problem = logs.problem(job)
            if problem:
                return FilesFailed(problem, HoldCode.UNABLE_TO_INIT_USER_LOG)
            return grid_folder.prepare(folder, job, spec)

        def event(result: Any) -> Any:
            if isinstance(result, FilesFailed):
                return result
            return _trouble(result, HoldCode.TRANSFER_INPUT_ERROR) or Prepared()

        self._then(self._edges.in_thread(work), event)

    def _bring(self, effect: Bring) -> None:
        status = self.core.attributes.get_int("ExitCode", -1)
        work = self._edges.in_thread(grid_folder.bring_home, self._folder, self._job, self._spec(), status)
        self._then(work, lambda result: _trouble(result, HoldCode.TRANSFER_OUTPUT_ERROR) or Brought())

    def _withdraw(self, effect: Withdraw) -> None:
        self._then(self._edges.in_thread(grid_folder.withdraw, self._folder),
                   lambda result: Withdrawn("unknown" if isinstance(result, Failure) else result))

    def _clean_up(self, effect: CleanUp) -> None:
        me = self.context.address.actor
        work = self._edges.in_thread(grid_folder.remove, self._folder)
        self.context.defer_to_turn(work, lambda _: self.context.stop_actor(me))

    # ---- the batch system

    def _submit(self, effect: Submit) -> None:
        try:
            words = submission_words(self._job, self._name, self._folder)
        except ValueError as error:
            self._then(succeed(SubmitFailed(str(error), transient=False)), lambda event: event)
            return
        self._submitting = self._edges.batch.submit(words)

        def keep(batch_id: str) -> Deferred[Submitted]:
            taken = Submitted(batch_id, float(int(self.context.now_s())))
            kept = self._edges.in_thread(grid_folder.record_batch_id, self._folder, batch_id, taken.when_s)
            return kept.addBoth(lambda _: taken)

        self.context.defer_to_turn(self._submitting.addCallback(keep), self._submission_answered)

    def _submission_answered(self, result: Submitted | Failure) -> None:
        self._submitting = None
        if isinstance(result, Failure):
            result.trap(CommandFailed)
            self._event(SubmitFailed(str(result.value), transient=getattr(result.value, "transient", True)))
        else:
            self._event(result)

    def _read(self, found: Any) -> Deferred[Any]:
        """Read the folder after the batch system was asked: what is over there has been written by then."""
        reading = self._edges.in_thread(grid_folder.record_of, self._folder)

        def both(record: FolderRecord | Failure) -> Any:
            known = FolderRecord() if isinstance(record, Failure) else record
            if isinstance(found, Failure):
                return Unavailable(str(found.value), known)
            if isinstance(record, Failure):
                return Unavailable(f"{self._folder}: {record.value}")
            return Looked(found, known)

        return reading.addBoth(both)

    def _look(self, effect: Look) -> None:
        asked: Deferred[Any] = self._edges.batch.look()
        asked.addCallback(lambda found: found.get(self._name, ()))
        if effect.batch_id:
            asked.addCallback(self._account, effect.batch_id)
        self._then(asked.addBoth(self._read), _as_event)

    def _account(self, found: tuple[BatchJob, ...], batch_id: str) -> Any:
        """Where squeue has forgotten a job, the accounting may know it."""
        if found:
            return found
        return self._edges.batch.account(batch_id).addCallback(lambda job: (job,) if job is not None else ())

    def _cancel(self, effect: Cancel) -> None:
        """After a submission that is under way: what it makes is to be found."""
        if self._submitting is not None:
            return  # its answer has it tried again
        batch, name = self._edges.batch, self._name
        work = self._edges.in_thread(grid_folder.withdraw, self._folder)
        work.addBoth(lambda _: batch.cancel(name)).addCallback(lambda _: batch.look())

        def event(result: Any) -> Any:
            if isinstance(result, Failure):
                return Unavailable(str(result.value))
            return Cancelled(all(what_it_is(each.state) is Fits.OVER for each in result.get(name, ())))

        self._then(work, event)

    def dropped(self) -> None:
        """The job goes on; another grid manager finds it."""


def _as_event(result: Any) -> Any:
    return Unavailable(str(result.value)) if isinstance(result, Failure) else result


def _trouble(result: Any, code: int) -> FilesFailed | None:
    if not isinstance(result, Failure):
        return None
    error: Any = result.value
    if isinstance(error, NoAnswer):
        return FilesFailed(f"{error.filename}: {error.strerror}", code, error.errno or 0)
    result.trap(FileTrouble)
    return FilesFailed(str(error), code, error.subcode)
