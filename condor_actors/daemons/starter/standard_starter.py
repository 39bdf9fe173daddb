"""The starter of a standard-universe job: the runtime in an empty room, with one stream home.

Theory: nothing of the job's is laid out here.  The shadow dials a stream (:mod:`..transfer.standard_frames`),
sends the checkpoint to go on from, if there is one, dials a channel (:mod:`..machine.standard.channel`), and says that
the run may begin.  What is executed then is the
runtime, or that checkpoint, as the slot's user, in an empty root directory and namespaces of its own where the machine
allows it; everything it asks for goes home.  When the stream ends, the run does.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.checkpoint_guard import CheckpointGuard
from condor_actors.cores.starter.checkpoint_pace import CheckpointPace
from condor_actors.daemons.starter.hooks.run_hooks import RunHooks
from condor_actors.daemons.starter.run_launch import niceness_of
from condor_actors.daemons.starter.run_streams import RunStreams
from condor_actors.daemons.starter.starter import Starter
from condor_actors.effects import Effect
from condor_actors.machine.native.programs import NativeProgramMissing, runtime_path
from condor_actors.machine.run.launch import Ended, LaunchPlan, close_quietly
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.standard.channel import FarChannel
from condor_actors.machine.standard.execute_endpoint import ExecuteEndpoint
from condor_actors.machine.standard.numbered_channel import FarNumbered
from condor_actors.machine.standard.run_library import RunLibrary
from condor_actors.messages.codes import CHECKPOINT_SIGNAL, HELPERS_RUN, LauncherExit
from condor_actors.messages.envelope import Delivery, Refused, TimerFired
from condor_actors.messages.interactive import OpenPort, OpenShell, ReadRunFile
from condor_actors.messages.run import PERIODIC, CheckpointRun, StopRun

if TYPE_CHECKING:
    from condor_actors.cores.starter.run_spec import RunSpec
    from condor_actors.daemons.starter.claim_registry import ActiveClaim
    from condor_actors.daemons.starter.run_resources import RunResources
    from condor_actors.daemons.starter.starter_edges import StarterEdges

__all__ = ["StandardStarter"]

RETRY_S = 1.0
LONG_RETRY_S = 5.0
"""After a refusal that helpers are not the reason of."""
GONE_S = 5.0
"""How long a process that has closed its channel may still live."""

ROOM = "root"
"""The runtime's root directory, inside the scratch directory."""
_WORDS: dict[int, str] = {
    LauncherExit.MOVED: "the program went on elsewhere", LauncherExit.CHANNEL_LOST: "the stream home ended",
    LauncherExit.RUNTIME_FAULT: "the runtime met an error of its own",
    LauncherExit.CANNOT_START: "the checkpoint cannot be started here",
}


class StandardStarter(Starter):
    """The starter of a standard-universe job.

    Arguments as for :class:`Starter`.
    """

    def __init__(self, edges: StarterEdges, claim: ActiveClaim, question: Delivery, spec: RunSpec,
                 missing: tuple[str, ...], held: RunResources) -> None:
        super().__init__(edges, claim, question, spec, missing, held)
        self.hooks = RunHooks(self, None)
        self._ticket: bytes = question.message.checkpoint_ticket
        self._home: ExecuteEndpoint | None = None
        self._channel: FarChannel | FarNumbered | None = None
        self._image = ""
        self._laid_out = False
        self._exit_said = False
        self._lost = ""
        self._kept: tuple[int, ...] = ()
        self._pace = CheckpointPace()

    def started(self) -> None:
        """Answer the activation; the shadow dials, and says when to begin."""
        self._begin()
        guard = CheckpointGuard(self.claim.checkpoint_key, self.claim.claim_id, self.run_id, self._ticket)
        self.held.streams = RunStreams(self, self.held, self.held.key, guard, self.core.lease_s)
        self._perform(self.core.start(self.context.now_s(), missing=True))

    # ---- the stream

    def attached(self, stream: ExecuteEndpoint, answer: Callable[[str], None]) -> None:
        """The shadow's stream is here; ``answer(why not)``, if there is no place for its files."""
        if self._home is not None or self.core.state is not jr.StarterState.PREPARING:
            answer("the run has its stream already")
            return
        try:
            self.account = self.edges.account_for(self.spec, self.claim)
            sandbox = self.held.sandbox = self.edges.root.create(self.account)
            with sandbox.rights():
                os.mkdir(os.path.join(sandbox.path, ROOM), 0o755)
                os.mkdir(os.path.join(sandbox.path, ROOM, "proc"), 0o755)
        except OSError as error:
            answer(f"the scratch directory cannot be made: {error}")
            return
        self._home = stream
        answer("")

    def channelled(self, channel: FarChannel | FarNumbered, answer: Callable[[bool], None]) -> None:
        """The channel of the first process is here; ``answer(whether there is a use for it)``."""
        wanted = (self._home is not None and self._channel is None
                  and self.core.state is jr.StarterState.PREPARING)
        if wanted:
            self._channel = channel
        answer(wanted)

    def spared(self, channel: FarChannel | FarNumbered, label: int, answer: Callable[[bool], None]) -> None:
        """The channel of a helper is here, before it is needed; ``answer(whether there is a use for it)``."""
        answer(self._home is not None and self._home.spare(channel, label))

    def detached(self, stream: ExecuteEndpoint, reason: str) -> None:
        """Home is gone: whatever the program would do now, nobody would hear of it."""
        if stream is not self._home:
            return
        self._home = None
        self._exit_said = self._exit_said or stream.exit_said
        state = jr.StarterState
        if self.core.state in (state.PREPARING, state.DEFERRED, state.STARTING, *jr.ALIVE):
            self._lost = f"the stream home ended: {reason}"
            if stream.runtime_gone:  # by its own end, most likely
                self.context.set_timer("home", GONE_S)
            else:
                self.decide(StopRun(run_id=self.run_id, how="fast", reason=self._lost))

    def receive(self, delivery: Delivery) -> None:
        """Beside a starter's messages: the time is over that a process without a channel has for its end."""
        if isinstance(delivery.message, TimerFired) and delivery.message.key == "home":
            self.decide(StopRun(run_id=self.run_id, how="fast", reason=self._lost))
        elif isinstance(delivery.message, TimerFired) and delivery.message.key == "checkpoint":
            if self.core.state is jr.StarterState.STOPPING and self.processes is not None:
                self.processes.signal_leader(CHECKPOINT_SIGNAL)
        elif isinstance(delivery.message, CheckpointRun) and delivery.message.reason == PERIODIC:
            if self._pace.may_ask(self.context.now_s()):
                super().receive(delivery)
        elif isinstance(delivery.message, (ReadRunFile, OpenShell)):
            self.context.reply(delivery, Refused(code="invalid", text="a standard universe job has no files here"))
        elif isinstance(delivery.message, OpenPort):
            self.context.reply(delivery, Refused(code="invalid", text="a standard universe job has no ports here"))
        else:
            super().receive(delivery)

    def image_written(self) -> None:
        """A checkpoint is complete here and on its way: home hears what the run has used until now."""
        self._measure()

    def image_sent(self) -> None:
        """It is at home, or lost: the program goes on, unless it was its last act."""
        self._ask_again(RETRY_S)

    def image_refused(self, number: int) -> None:
        """Home takes none now: helpers run, a description is too long, a disk is full …  A program that has to go is
        asked again, whatever the reason, as long as it has time: else its work would be lost."""
        self._ask_again(RETRY_S if number == HELPERS_RUN else LONG_RETRY_S)

    def _ask_again(self, after_s: float) -> None:
        """A checkpoint is over; a program that has to go, and is still there afterwards, is asked for another.  It
        computes as long as the last one took: each may be refused at its end."""
        took_s = self._pace.over(self.context.now_s())
        if self.core.state is jr.StarterState.STOPPING:
            self.context.set_timer("checkpoint", max(after_s, took_s))

    def image_received(self, path: str) -> None:
        """The checkpoint to start from is here."""
        self._image = path

    # ---- effects

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Carry out one effect of the core."""
        own = _PERFORM.get(type(effect))
        if own is not None:
            own(self, effect)
        else:
            super().perform_own(effect, delivery)

    def _prepare(self, effect: jr.Prepare) -> None:
        if self._laid_out:
            return
        self._laid_out = True
        if self.sandbox is None or self._home is None:
            self.decide(jr.PrepareFailed("the stream home is not there"))
            return
        try:
            self._lay_program(self.sandbox)
        except (OSError, NativeProgramMissing) as error:
            self.decide(jr.PrepareFailed(f"the runtime cannot be laid out: {error}"))
            return
        self.decide(jr.Prepared())

    def _lay_program(self, sandbox: Sandbox) -> None:
        """Put the checkpoint, or the runtime, where it is executed."""
        place = os.path.join(sandbox.path, ROOM, "program")
        if self._image:
            with sandbox.rights():
                os.rename(self._image, place)
                os.chmod(place, 0o555)
            return
        with open(runtime_path(), "rb") as source, sandbox.rights():
            descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o555)
            with open(descriptor, "wb") as target:
                shutil.copyfileobj(source, target)
                os.fchmod(descriptor, 0o555)

    def _make_places(self) -> None:
        """The job enters its room and writes nothing there: the folder stays the pool's where root is dropped."""
        assert self.sandbox is not None
        self.sandbox.show()

    def _open_standard(self, opened: list[int]) -> tuple[int, int, int]:
        return (self.edges.host.null,) * 3

    def _launch_with(self, opened: list[int], streams: tuple[int, int, int]) -> None:
        super()._launch_with(opened, streams)
        close_quietly(*self._kept)  # the process has them, or never will
        self._kept = ()

    def _plan(self, stdin: int, stdout: int, stderr: int) -> LaunchPlan:
        claim, sandbox, edges = self.claim, self.sandbox, self.edges
        assert sandbox is not None
        if self._home is None or self._home.over:
            raise OSError("the stream home has ended")
        channel, more = self._open_channel(self._home)
        self._kept = (channel, *more.values())
        room = os.path.join(sandbox.path, ROOM)
        alone = edges.host.standard_isolation
        words = [str(channel), "-", *(["family"] if "pid" in alone else []),
                 *(f"{name}={descriptor}" for name, descriptor in more.items())]
        return LaunchPlan(
            program="/program" if alone else os.path.join(room, "program"), arguments=words,
            environment={MARK: f"{edges.root.path}:{self.run_id}"}, directory="/" if alone else room,
            stdin=stdin, stdout=stdout, stderr=stderr, account=self.account,
            cgroups=claim.cgroup.directories if claim.cgroup is not None else (), limits={"core": "0"},
            nice=niceness_of(self), isolate=alone, root=room if alone else "",
            keep=self._kept, filter="runtime")

    def _open_channel(self, home: ExecuteEndpoint) -> tuple[int, dict[str, int]]:
        """The runtime's end of its channel, and the descriptors that belong to it by the words that name them."""
        if self._channel is None:
            return home.open_channel(), {}
        channel, self._channel = self._channel, None
        more = {"control": home.open_control()}
        if channel.secret:
            more["key"], writer = os.pipe2(os.O_CLOEXEC)
            os.write(writer, channel.secret)
            os.close(writer)
        if self.held.streams is not None and isinstance(channel, FarChannel):
            self.held.streams.channel_used(channel)
        cache = self.edges.libraries
        if cache is not None and not self._image and not ClassAd.from_bytes(self.job_ad).get_str("JobRoot"):
            home.library = RunLibrary(cache, self.held.identity, self.edges.in_thread, self.edges.log)
            more.update(home.library.open())
        return channel.socket().detach(), more

    def _signal(self, effect: jr.Signal) -> None:
        if effect.number != CHECKPOINT_SIGNAL:
            super()._signal(effect)
        elif self._home is None or not self._home.began:
            if self.core.state is jr.StarterState.STOPPING:  # nothing has been done yet that would be lost
                super()._signal(attrs.evolve(effect, number=9))
        else:
            if self.core.state is jr.StarterState.STOPPING:
                self._home.vacate()
            self._pace.asked(self.context.now_s())
            super()._signal(effect)

    def _program_ended(self, ended: Ended) -> None:
        stream = self._home
        if stream is not None:
            stream.catch_up()
        said = self._exit_said or (stream is not None and stream.exit_said)
        if not said and ended.exit_code >= 0:  # not the program's own end
            if self.core.state is jr.StarterState.STARTING:
                self._began()
            reason = _WORDS.get(ended.exit_code, f"the launcher ended with {ended.exit_code}")
            if self.core.state is jr.StarterState.RUNNING and ended.exit_code in (
                    LauncherExit.MOVED, LauncherExit.CHANNEL_LOST):
                self.decide(StopRun(run_id=self.run_id, how="fast", reason=reason))
            elif self.core.state is jr.StarterState.RUNNING:  # tried again, later and later
                if self.processes is not None:
                    self.processes.kill()
                self.decide(jr.StartFailed(f"Error from {self.claim.slot_name}: {reason}", 0))
        super()._program_ended(ended)

    def _gather(self, effect: jr.Gather) -> None:
        self.decide(jr.Gathered())

    def _activity(self, effect: jr.Activity) -> None:
        """When it is over nothing here is needed, whenever the shadow hears of that."""
        super()._activity(effect)
        if self.core.state is jr.StarterState.ENDED:
            self.held.remove_sandbox()

    def _forget(self, effect: jr.Forget) -> None:
        self._home = self._channel = None
        super()._forget(effect)  # cuts them


_PERFORM: dict[type, Callable[[StandardStarter, Any], None]] = {
    jr.Prepare: StandardStarter._prepare, jr.Signal: StandardStarter._signal,
    jr.Gather: StandardStarter._gather, jr.Activity: StandardStarter._activity, jr.Forget: StandardStarter._forget,
}
