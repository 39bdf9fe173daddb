"""A job of the grid universe: handed to another batch system, and followed there, as its owner.

Theory: it is an actor of its owner's host like every shadow, so it is there as the owner, and found again when the
host or the schedd dies.  What it does is decided by :class:`~condor_actors.cores.shadow.grid_run.GridRun`; the work is
done by the run's :class:`~condor_actors.daemons.shadow.grid.grid_resource.GridResource`, one class for each kind of
batch system, and what comes of it is an event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow.grid_run import GridRun
from condor_actors.cores.shadow.shadow_events import Log, Report, ScheddBack, Settled
from condor_actors.daemons.shadow.grid.condor_run import CondorRun
from condor_actors.daemons.shadow.grid.grid_manager import GridEdges
from condor_actors.daemons.shadow.grid.grid_resource import GridResource
from condor_actors.daemons.shadow.grid.slurm_run import SlurmRun
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, ShadowReport
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.effects import Effect, SetTimer
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Delivery, Refused, TimerFired
from condor_actors.messages.references.grid_resources import resource_problem, schedd_of
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import StartRun

__all__ = ["GridShadow"]


class GridShadow(Actor):
    """Hands one job to another batch system, and follows it there."""

    def __init__(self, order: StartRun, edges: GridEdges) -> None:
        self._edges = edges
        self._job = ClassAd.from_bytes(order.job_ad)
        kind = CondorRun if schedd_of(self._job.evaluate("GridResource")) is not None else SlurmRun
        self._resource: GridResource = kind(order.run_id, self._job, edges,
                                            lambda: self.context.now_s())  # noqa: PLW0108 - there is none yet
        self.core = GridRun(order, self._job, edges.settings, self._resource.kind)
        self._submitting = False

    def started(self) -> None:
        """Look, or begin."""
        problem = self._edges.problem
        if not problem and resource_problem(self._job.evaluate("GridResource")):
            problem = f"GridResource = {self._job.expression('GridResource')} cannot be used: " + resource_problem(
                self._job.evaluate("GridResource"))
        if problem:
            self.core.end("hold", problem, HoldCode.FAILED_TO_CREATE_PROCESS)
            self.context.perform(self.core.take())
        else:
            self.context.perform(self.core.start(self.context.now_s()))

    def receive(self, delivery: Delivery) -> None:
        """The schedd's wishes, and timers."""
        message = delivery.message
        if delivery.sender.node:
            refuse_stranger(self.context, delivery, self.core.order.run_id)
        elif isinstance(message, TimerFired) and message.key == "clean up":
            self._clean_up()
        elif isinstance(message, (StopRun, TimerFired, ScheddBack, Settled)):
            self._event(message)
        else:
            self.context.reply(delivery, Refused(code="invalid", text="a job in another batch system has no starter"))

    def _event(self, event: Any) -> None:
        if isinstance(event, Failure):
            event.raiseException()  # a fault of ours: the run has another actor after that
        self.context.perform(self.core.handle(event, self.context.now_s()))

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """The effects of a grid manager."""
        resource = self._resource
        works: dict[type[Effect], Callable[[], Deferred[Any]]] = {
            gr.Prepare: resource.prepare, gr.Withdraw: resource.withdraw,
            gr.Look: lambda: resource.look(getattr(effect, "batch_id", "")),
            gr.Bring: lambda: resource.bring(self.core.attributes.get_int("ExitCode", -1)),
        }
        if isinstance(effect, Report):
            self.context.tell(SHADOW_HOST, ShadowReport(self.core.order.run_id, effect.message))
        elif isinstance(effect, Log):
            self._log(effect)
        elif isinstance(effect, gr.Submit):
            self._submitting = True
            self.context.defer_to_turn(resource.submit(), self._submission_answered)
        elif isinstance(effect, gr.Cancel):
            if not self._submitting:  # what it makes is to be found: its answer has this tried again
                self.context.defer_to_turn(resource.cancel(), self._event)
        elif isinstance(effect, gr.CleanUp):
            self._clean_up()
        elif type(effect) in works:
            self.context.defer_to_turn(works[type(effect)](), self._event)
        else:
            super().perform_own(effect, delivery)

    def _submission_answered(self, event: Any) -> None:
        self._submitting = False
        self._event(event)

    def _log(self, effect: Log) -> None:
        facts = self._job.copy()
        facts.update(effect.facts)
        self._edges.logs.write(effect.event, self._job.get_int("ClusterId"), [self._job.get_int("ProcId")],
                               effect.when_s or self.context.now_s(), facts, maybe_written=effect.again,
                               once_since_s=effect.once_since_s)

    def _clean_up(self) -> None:
        me = self.context.address.actor

        def cleaned(is_clean: bool) -> None:
            if is_clean:
                self.context.stop_actor(me)
            else:
                self.context.perform((SetTimer("clean up", self._edges.settings.unavailable_s),))

        self.context.defer_to_turn(self._resource.clean_up(), cleaned)

    def dropped(self) -> None:
        """The job goes on; another grid manager finds it."""
