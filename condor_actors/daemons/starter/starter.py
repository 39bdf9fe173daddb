"""A starter: the actor of one run.

It performs on this machine what :mod:`condor_actors.cores.starter.job_run` decides.

Theory: whatever happens to the run (a word of its shadow, of the starter host, the end of a process, what a thread has
prepared or measured) is a turn of this actor, so an error in it ends this run and no other.  What it takes of the
machine it writes down in :class:`~condor_actors.daemons.starter.run_resources.RunResources`, by which the starter host
frees it in that case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_log import RunLog
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.cores.trace_spans import RunSpans
from condor_actors.daemons.starter.hooks.job_wrapper import start_failure
from condor_actors.daemons.starter.hooks.run_hooks import RunHooks
from condor_actors.daemons.starter.interactive.visits import VISITS, Visits
from condor_actors.daemons.starter.limit_watch import LimitWatch
from condor_actors.daemons.starter.output_streams import OutputStreams
from condor_actors.daemons.starter.run_chirp import RunChirp
from condor_actors.daemons.starter.run_files import answer_read
from condor_actors.daemons.starter.run_inputs import RunInputs
from condor_actors.daemons.starter.run_launch import (
    make_places,
    open_standard,
    plan_of,
    said_of,
    start_failed,
    starts_at_once,
)
from condor_actors.daemons.starter.run_outputs import RunOutputs
from condor_actors.daemons.starter.run_resources import RunResources
from condor_actors.daemons.starter.starter_edges import StarterEdges
from condor_actors.daemons.starter.starter_events import (
    LowerRun,
    RunActivity,
    RunForgotten,
    ShadowAsks,
    TellActivity,
)
from condor_actors.daemons.starter.tokens.run_tokens import TIMER, RunTokens
from condor_actors.effects import Effect
from condor_actors.machine.run.cpu_io_priority import Share
from condor_actors.machine.run.launch import Ended, Launched, LaunchFailure, LaunchPlan, close_quietly
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account
from condor_actors.messages.codes import HoldSubCode
from condor_actors.messages.envelope import Address, Delivery, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.interactive import ReadRunFile
from condor_actors.messages.run import ActivateClaim, Activated, RunExited, StopRun, Usage
from condor_actors.transfer.service import Grant

if TYPE_CHECKING:
    from condor_actors.daemons.starter.claim_registry import ActiveClaim

__all__ = ["Starter"]

HOST = Address("", "starter-host")
STRAGGLER_S = (0.002, 0.01, 0.05, 0.2)
SPANS = {"preparing": "prepare sandbox", "deferred": "deferred", "starting": "start program", "running": "run program",
         "stopping": "stop program", "killing": "kill program", "clearing": "clean up", "saving": "keep checkpoint"}
"""What a run's states are called in its job's trace."""


class Starter(Actor):
    """The actor of one run on its execute machine.

    Args:
        edges: of the process it lives in; claim: as it was opened.
        question: the activation, answered in the first turn; its manifest is empty while a digest of it is to come.
        spec: what is to run.
        missing: digests the shadow has to send first.
        held: where the starter writes down what it takes.
    """

    def __init__(self, edges: StarterEdges, claim: ActiveClaim, question: Delivery, spec: RunSpec,
                 missing: tuple[str, ...], held: RunResources) -> None:
        message: ActivateClaim = question.message
        self.edges = edges
        self.claim = claim
        self.held = held
        self.spec = spec
        self.run_id = message.run_id
        self.job_ad = message.job_ad
        self.missing = missing
        self.account: Account | None = None
        self.core = jr.JobRun(
            message.run_id, spec, lease_s=message.lease_s, first_update_s=edges.settings.run.first_update_s,
            update_s=edges.settings.run.update_interval_s, has_inputs=bool(message.inputs or message.inputs_digest))
        self.processes: RunProcesses | None = None
        self._question: Delivery | None = question
        self._launched: Launched | None = None
        self._ended: Ended | None = None
        self._began_s = 0.0
        self._tries = 0
        self._opening = False
        self._asked: Delivery | None = None
        self.streams = OutputStreams(self)
        self.chirp = held.chirp = RunChirp(self)
        self.tokens = RunTokens(self)
        self.hooks = RunHooks(self, edges.settings.hooks.of_job(ClassAd.from_bytes(message.job_ad))
                              if edges.settings.hooks.hooks else None)
        self._watch = LimitWatch(self)
        self._inputs = RunInputs(self, message.inputs, message.inputs_digest)
        self._outputs = RunOutputs(self)
        self._lowered = False
        self.run_log = RunLog(spec.log_level)
        self._spans = None if edges.tell_span is None else RunSpans(
            edges.tell_span, ClassAd.from_bytes(message.job_ad).get_str("GlobalJobId"), message.run_id, "starter",
            SPANS, {"condor.slot": claim.slot_name})

    @property
    def shadow(self) -> Address:
        """Whose run it is."""
        return self.held.shadow

    @property
    def sandbox(self) -> Sandbox | None:
        """The scratch directory."""
        return self.held.sandbox

    def activated(self) -> Activated:
        """The answer to the activation."""
        return Activated(run_id=self.run_id, missing=self.missing)

    # ---- turns

    def started(self) -> None:
        """Answer the activation."""
        self._begin()
        if self.missing:
            self.held.open_grant(Grant(store=self.held.blobs, writable=frozenset(self.missing)))
        self.run_log.say(f"{self.spec.job_id}: on {self.claim.slot_name}, {len(self.missing)} files are to come",
                         self.context.now_s())
        self._perform(self.core.start(self.context.now_s(), missing=bool(self.missing)))

    def _begin(self) -> None:
        """Answer the activation, and hear when the shadow's link breaks."""
        question, self._question = self._question, None
        if question is not None:
            self.context.reply(question, self.activated())
        self.held.visits = Visits(self)
        self.context.watch(self.shadow.node)

    def receive(self, delivery: Delivery) -> None:
        """A message of the shadow or the starter host, a timer, a question about the sandbox."""
        message = delivery.message
        if not self.held.may_be_told_by(delivery.identity, delivery.sender.node):
            self.context.log.warn("{who} is no shadow of {owner}: {kind} refused", who=delivery.identity.name,
                                  owner=self.held.owner, kind=type(message).__name__)
            self.context.reply(delivery, Refused(code="denied", text=f"run {self.run_id} is not yours"))
        elif isinstance(message, ShadowAsks):
            self._shadow_asks(message.question)
        elif isinstance(message, PeerDown):
            self._link_lost(message.node)
        elif isinstance(message, PeerUp):
            pass  # a shadow that is back asks for its run
        elif isinstance(message, LowerRun):
            self.lower(message.on)
        elif isinstance(message, TellActivity):
            self._tell_activity("idle" if self.core.exited is not None else
                                "suspended" if self.core.suspended else "busy")
        elif isinstance(message, ReadRunFile):
            answer_read(self, delivery)
        elif isinstance(message, VISITS):
            if self.held.visits is not None:
                self.held.visits.receive(delivery)
        elif isinstance(message, TimerFired) and message.key == "measure":
            self._measure()
        elif isinstance(message, TimerFired) and message.key == "watch":
            self._watch.look()
        elif isinstance(message, TimerFired) and message.key == "stream":
            self.streams.go_on()
        elif isinstance(message, TimerFired) and message.key == "hook":
            self.hooks.timer()
        elif isinstance(message, TimerFired) and message.key in ("chirp", "gang"):
            self.chirp.timer()
        elif isinstance(message, TimerFired) and message.key == TIMER:
            self.tokens.timer()
        elif isinstance(message, TimerFired) and message.key in ("upload", "leave"):
            self._outputs.timer(message.key)
        elif isinstance(message, TimerFired) and message.key == "keep" and self._outputs.fetched_more():
            self.decide(jr.StillFetched())
        elif isinstance(message, TimerFired) and message.key == "straggler":
            # not what a checkpoint has begun since, or what sends outputs
            if self.core.state is jr.StarterState.CLEARING and not self._outputs.are_sent:
                self._kill_tree()
        else:
            if isinstance(message, StopRun) and message.how == "remove":
                self.streams.give_up()
                self.chirp.give_up()
            self._asked = delivery
            self.decide(message)
            self._asked = None

    def decide(self, event: Any) -> None:
        """Let the core decide, perform what it says."""
        self.run_log.say(f"{self.core.state.value}: {type(event).__name__}", self.context.now_s(), is_detail=True)
        self._perform(self.core.handle(event, self.context.now_s()))
        self.hooks.look()
        if self._outputs.are_sent:
            self._outputs.look()

    def _perform(self, effects: Sequence[Effect]) -> None:
        self.run_log.note(effects, self.context.now_s())
        self.context.perform(effects)
        if self._spans is not None:
            self._spans.enter(self.core.state.value, self.context.now_s())

    def _shadow_asks(self, question: Delivery) -> None:
        """A shadow has not heard the answer to its activation; or is there again, maybe another one."""
        message = question.message
        if isinstance(message, ActivateClaim):
            self.context.reply(question, self.activated())
            return
        self.context.unwatch(self.shadow.node)
        self.held.shadow = Address(question.sender.node, f"shadow/{self.run_id}")
        self.context.watch(self.shadow.node)
        if message.transfer_key and message.transfer_key != self.held.key:
            self.held.use_key(message.transfer_key)
        self._asked = question
        self.decide(message)
        self._asked = None
        self.chirp.shadow_is_back()
        self._outputs.go_on()

    def _link_lost(self, node: str) -> None:
        self.context.unwatch(node)
        if node == self.shadow.node and self.core.connected:
            if self.held.visits is not None:
                self.held.visits.close_all()  # what was on its way is lost, and their user was told the same at home
            self.decide(jr.LinkLost())

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Carry out one effect of the core."""
        _PERFORM[type(effect)](self, effect)

    # ---- effects

    def _tell(self, effect: jr.Tell) -> None:
        ends = isinstance(effect.message, RunExited) and self.core.connected
        if ends and self.chirp.before_end(lambda: self._tell(effect)):
            return
        if self.streams.paths and self.sandbox is not None and isinstance(effect.message, RunExited):
            self.streams.finish(effect.message)
        elif self.core.connected:
            self.context.tell(self.shadow, effect.message)

    def _return(self, effect: jr.ReturnTo) -> None:
        if self._asked is not None:
            self.context.reply(self._asked, effect.message)

    def _activity(self, effect: jr.Activity) -> None:
        if effect.activity == "idle":
            self.edges.run_over(self)
            self.edges.disk.end(self.run_id)
            if self._launched is None:
                self.held.kill()  # what fetches inputs or unpacks an image for a run that is over before it began
            self.held.processes = None  # none is left; the claim's control group is the next run's
        self._tell_activity(effect.activity)

    def _tell_activity(self, activity: str) -> None:
        self.context.tell(HOST, RunActivity(
            run_id=self.run_id, activity=activity, job_id=self.spec.job_id, job_ad=self.job_ad,
            by_user=self.core.by_user, usage=self.core.usage))

    def _prepare(self, effect: jr.Prepare) -> None:
        self._inputs.prepare()

    def _start(self, effect: jr.Start) -> None:
        """The folder becomes the job's and its files are opened, beside the reactor where the one is an order to the
        helper or the other touches a file system of the job's choice.  Then the program is launched, in a turn."""
        try:
            self.chirp.open()
        except OSError as error:
            self.decide(jr.StartFailed(f"Error from {self.claim.slot_name}: no port for condor_chirp: {error}", 0))
            return
        if starts_at_once(self, self._inputs):
            try:
                self._opened(self._ready())
            except OSError as error:
                self.decide(start_failed(self.claim.slot_name, error))
            return
        self._opening = True
        self.context.defer_to_turn(self.held.in_thread(self._ready), self._opened)

    def _ready(self) -> tuple[list[int], tuple[int, int, int]]:
        opened: list[int] = []
        try:
            self._make_places()
            return opened, self._open_standard(opened)
        except BaseException:
            close_quietly(*opened)
            raise

    def _opened(self, result: Any) -> None:
        """The files are open, unless something has overtaken the start meanwhile."""
        self._opening = False
        if isinstance(result, Failure):
            result.trap(OSError)
            self.decide(start_failed(self.claim.slot_name, result.value))
            return
        opened, streams = result
        if self.core.state is not jr.StarterState.STARTING:
            close_quietly(*opened)
            if self.core.state is jr.StarterState.CLEARING:
                self._kill_tree()
            else:
                self.decide(jr.StartFailed(f"Error from {self.claim.slot_name}: it was to go before it began"))
            return
        if not self.hooks.before_start(lambda: self._launch_with(opened, streams), lambda: close_quietly(*opened)):
            self._launch_with(opened, streams)

    def _launch_with(self, opened: list[int], streams: tuple[int, int, int]) -> None:
        claim = self.claim
        try:
            processes = self.processes = self.held.processes = self.edges.processes_for(claim, self.run_id)
            processes.share(self._share())
            self._began_s = self.context.now_s()
            plan = self._plan(*streams)
            self.run_log.say(said_of(plan), self._began_s)
            self._launched = self._launch(processes, plan)
        except OSError as error:
            self.decide(jr.StartFailed(f"Error from {claim.slot_name}: {error}", 0))
            return
        finally:
            close_quietly(*opened)
        if self._share().idle:
            processes.share(self._share())
        if self.core.suspended:
            processes.freeze()
        self.streams.go_on_later()

    def _make_places(self) -> None:
        make_places(self)

    def _launch(self, processes: RunProcesses, plan: LaunchPlan) -> Launched:
        """Start the program; what becomes of it are turns, but its number is forgotten as soon as it is reaped."""
        as_turn = self.context.as_turn
        start_failed, program_ended = as_turn(self._start_failed), as_turn(self._program_ended)

        def failed(failure: LaunchFailure) -> None:
            processes.leader_ended()
            start_failed(failure)

        def ended(how: Ended) -> None:
            processes.leader_ended()
            program_ended(how)

        launched = self.edges.launcher.launch(plan, as_turn(self._began), failed, ended)
        processes.leader(launched.pid)
        return launched

    def _open_standard(self, opened: list[int]) -> tuple[int, int, int]:
        return open_standard(self, opened)

    def _plan(self, stdin: int, stdout: int, stderr: int) -> LaunchPlan:
        return plan_of(self, stdin, stdout, stderr)

    def _share(self) -> Share:
        settings = self.edges.settings.run
        return Share(cpu_weight=settings.cpu_weight * self.claim.cpus, io_weight=settings.io_weight,
                     idle=settings.idle or self._lowered)

    def lower(self, on: bool) -> None:
        """The policy leaves the run only idle processor and disk time (LOWER), or gives it its share again."""
        self._lowered = on
        if self.processes is None:
            return
        done = self.processes.share(self._share())
        if on and not done:
            self.context.log.warn("run {run} cannot be lowered: no control group with weights, and the kernel refuses "
                                  "the idle classes", run=self.run_id)
        else:
            self.context.log.info("run {run} {what} ({how})", run=self.run_id, how=", ".join(done) or "as it was",
                                  what="gets only idle processor and disk time" if on else "gets its share again")

    def _began(self) -> None:
        """The program is executed: it runs, or stands still until its tool daemon does."""
        assert self._launched is not None
        if self.held.visits is None or not self.held.visits.tool.begins(self._launched.pid, self._runs):
            self._runs()

    def _runs(self) -> None:
        assert self._launched is not None
        assert self.sandbox is not None
        pid, visits = self._launched.pid, self.held.visits
        self.decide(jr.Began(pid, self.sandbox.path, visits.services.begin(pid) if visits is not None else ()))
        self._watch.begin()

    def _start_failed(self, failure: LaunchFailure) -> None:
        self.decide(start_failure(self, failure))

    def _program_ended(self, ended: Ended) -> None:
        self._ended = ended
        if self.held.visits is not None and self.held.visits.tool.keeps(lambda: self._program_ended(ended)):
            return
        how = f"signal {ended.exit_signal}" if ended.exit_signal > 0 else f"status {ended.exit_code}"
        self.run_log.say(f"the program has ended with {how}{', and dumped core' if ended.core_dumped else ''}; "
                         f"{ended.user_cpu_s:.2f} s and {ended.system_cpu_s:.2f} s (system) of processor time",
                         self.context.now_s())
        unstarted = self.held.visits.tool.failure if self.held.visits is not None else None
        if self.core.state is jr.StarterState.STARTING and unstarted is None:
            self._runs()
        self.decide(unstarted or jr.ProgramEnded(ended.exit_code, ended.exit_signal, ended.core_dumped))

    def _signal(self, effect: jr.Signal) -> None:
        if self.processes is not None:
            self.processes.signal_leader(effect.number)
            self.held.let_job_go(effect.number)

    def _freeze(self, effect: jr.Freeze) -> None:
        if self.processes is not None:
            self.processes.freeze()

    def _thaw(self, effect: jr.Thaw) -> None:
        if self.processes is not None:
            self.processes.thaw()

    def _kill_tree(self, effect: Effect | None = None) -> None:
        """Kill; when nothing is left say so, else look again soon."""
        if self._opening or self.hooks.runs:  # what is being made ready, or runs at the end, hears of it
            return
        processes = self.processes
        left = processes.kill() if processes is not None else 0
        if left == 0 and self.core.state is jr.StarterState.CLEARING:
            if not self.hooks.before_end(self._kill_tree):
                self._watch.cleared(self._ended)
        elif self.core.state is jr.StarterState.CLEARING:
            self.context.set_timer("straggler", STRAGGLER_S[min(self._tries, len(STRAGGLER_S) - 1)])
            self._tries += 1

    def _gather(self, effect: jr.Gather) -> None:
        self._outputs.gather(effect)

    def _forget(self, effect: jr.Forget) -> None:
        self.held.release()
        self.context.tell(HOST, RunForgotten(self.run_id))
        self.context.stop_actor(self.context.address.actor)

    # ---- measuring

    def usage(self) -> Usage:
        """What the run uses now."""
        ended, processes = self._ended, self.processes
        if processes is None:
            measured = None
        else:
            measured = processes.measure() if ended is None else processes.last_measure()
        wall_s = max(0.0, self.context.now_s() - self._began_s) if self._began_s else 0.0
        before = self.core.usage
        if measured is None:
            return attrs.evolve(before, wall_s=wall_s)
        user_s, system_s = measured.user_cpu_s, measured.system_cpu_s
        peak = max(before.peak_memory_kib, measured.peak_memory_kib)
        if ended is not None:
            user_s, system_s = max(ended.user_cpu_s, user_s), max(ended.system_cpu_s, system_s)
            if ended.peak_memory_kib > self.edges.host.own_peak_kib():
                peak = max(peak, ended.peak_memory_kib)
        return Usage(user_cpu_s=user_s, system_cpu_s=system_s, wall_s=wall_s, memory_kib=measured.memory_kib,
                     peak_memory_kib=peak, disk_kib=before.disk_kib, processes=measured.processes)

    def pids(self) -> list[int]:
        """The processes of the run that live."""
        return self.processes.pids() if self.processes is not None else []

    def _measure(self) -> None:
        if self.core.state in jr.ALIVE and self.sandbox is not None:
            self.context.defer_to_turn(self.edges.in_thread(self.sandbox.size_kib, self.pids()), self._measured)

    def _measured(self, disk_kib: Any) -> None:
        if self.core.state not in jr.ALIVE:
            return
        self.chirp.tell_delayed()
        usage = self.usage()
        if not isinstance(disk_kib, Failure):
            usage = attrs.evolve(usage, disk_kib=disk_kib)
        self.decide(jr.Measured(usage, self._watch.of_disk(usage), HoldSubCode.DISK_EXCEEDED))
        self._tell_activity("suspended" if self.core.suspended else "busy")
        self.hooks.update()
        self.context.set_timer("measure", self.core.update_s)

_PERFORM: dict[type, Callable[[Starter, Any], None]] = {
    jr.Tell: Starter._tell, jr.ReturnTo: Starter._return, jr.Activity: Starter._activity,
    jr.Prepare: Starter._prepare, jr.Start: Starter._start, jr.Signal: Starter._signal, jr.Freeze: Starter._freeze,
    jr.Thaw: Starter._thaw, jr.KillTree: Starter._kill_tree, jr.Gather: Starter._gather, jr.Forget: Starter._forget,
}
