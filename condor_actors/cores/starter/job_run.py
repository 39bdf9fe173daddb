"""One run as its starter sees it: from the activation to the moment when nothing of it is left.

Theory: the starter belongs to the machine.  It does what the shadow asks as long as the startd leaves the claim open,
and it never lets a process of the job outlive the run.

=========== ================================================================================================
state       leaves it by
=========== ================================================================================================
preparing   inputs complete → starting, or deferred until its time; failed or stopped → ended
deferred    its time has come → starting; stopped → ended
starting    the program executes → running; it cannot → ended
running     the program's end → clearing; the wish to stop it → stopping
stopping    its end → clearing; the grace is over → killing
killing     its end → clearing
clearing    nothing of the tree is left → ended; it saved its work and is to go on → saving
saving      the checkpoint is kept at home → starting; asked to go → ended
ended       outputs received, or nobody left to receive them → gone
gone        –
=========== ================================================================================================

What every event does in every state is in :mod:`condor_actors.cores.starter.job_run_table`.  Suspension is a flag
beside the state.  A frozen job that is asked to go is sent its signal and thawed, but not while the machine's owner has
it frozen and only its user wants it to go: then it stands still until the owner leaves, his policy ends the claim, or
its time is over.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.cores.starter.job_run_table import TABLE
from condor_actors.cores.starter.run_events import (
    ALIVE,
    Abandon,
    Activity,
    Began,
    CloseRun,
    Forget,
    Freeze,
    Gather,
    Gathered,
    HasToGo,
    KillTree,
    LinkLost,
    Measured,
    OwnerContinues,
    OwnerSuspends,
    Prepare,
    Prepared,
    PrepareFailed,
    ProgramEnded,
    ReturnTo,
    Signal,
    Start,
    StarterState,
    StartFailed,
    StillFetched,
    Tell,
    Thaw,
    TreeGone,
    WishChanged,
    too_much,
)
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.cores.starter.run_steps import KILL_AGAIN_S, UNCLAIMED_KEEP_S
from condor_actors.cores.state_table import InvariantBroken, event_key
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer, job_note
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import (
    MOST_PAUSES,
    RunBegan,
    RunCheckpointed,
    RunExited,
    RunProgress,
    StopRun,
    Usage,
)

__all__ = [
    "ALIVE", "Abandon", "Activity", "Began", "CloseRun", "Forget", "Freeze",
    "Gather", "Gathered", "JobRun", "KillTree", "LinkLost", "Measured", "OwnerContinues",
    "OwnerSuspends", "Prepare",
    "PrepareFailed", "Prepared", "ProgramEnded", "ReturnTo", "StarterState", "Signal", "Start", "StartFailed",
    "StillFetched", "Tell", "Thaw", "TreeGone", "too_much",
]

REMOVE_GRACE_S = 30.0
LONGEST_STORY = 64


class JobRun:
    """Decides what the starter of one run does, from activation to the last trace of the job.

    Args:
        run_id: the run; spec: what it is.
        lease_s: how long it lives without its shadow.
        first_update_s, update_s: when usage is told.
        has_inputs: whether files are transferred before.

    Attributes:
        state: see the module; suspended: whether its tree is frozen.
        by_user, by_owner: who wants it to stand still.
        connected: whether its shadow is in touch.
        cause, reason, hold: how it ends, as far as that is known.
        stopping, closing: what the shadow, and what the startd has said to make it go.
        status: exit code, signal and core of the program.
        exited: what was told of its end.
        saved: the checkpoint that is on its way home.
        began: what was told of its start, the first; pauses: when it stood still and went on, the last times.
        image_digest: of the image of a registry that it runs in; ports: the machine's that lead to its services.
        out: what follows from the event being handled.
    """

    def __init__(self, run_id: str, spec: RunSpec, *, lease_s: float, first_update_s: float = 8.0,
                 update_s: float = 300.0, has_inputs: bool = False) -> None:
        self.run_id = run_id
        self.spec = spec
        self.state = StarterState.PREPARING
        self.suspended = False
        self.by_user = self.by_owner = False
        self.connected = True
        self.pid = 0
        self.cause = "exited"
        self.reason = ""
        self.hold = (0, 0)
        self.claim_open = True
        self.waits_for_inputs = False
        self.usage = Usage()
        self.exited: RunExited | None = None
        self.events: list[tuple[float, str]] = []
        self.lease_s = lease_s
        self.first_update_s = first_update_s
        self.update_s = update_s
        self.status = (-1, -1, False)
        self.stopping: StopRun | None = None
        self.closing: CloseRun | None = None
        self.checkpointing = False
        self.checkpoints = 0
        self.saved: RunCheckpointed | None = None
        self.has_inputs = has_inputs
        self.began: RunBegan | None = None
        self.pauses: list[tuple[float, bool, int]] = []
        self.image_digest = ""
        self.ports: tuple[tuple[str, int], ...] = ()
        self.out: list[Effect] = []
        self.now_s = 0.0

    def start(self, now_s: float, *, missing: bool) -> tuple[Effect, ...]:
        """The first turn; ``missing``: the shadow sends blobs first."""
        self.now_s = now_s
        self.waits_for_inputs = missing
        self.events.append((now_s, "activated"))
        return (Activity("busy"),) if missing else (Activity("busy"), Prepare())

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self.now_s = now_s
        self.out = []
        step = TABLE.get((self.state, event_key(event)))
        if step is None:
            self.out.append(Note(f"run {self.run_id}: {type(event).__name__} means nothing to a starter", "debug"))
            return tuple(self.out)
        if (self.state is not StarterState.GONE and len(self.events) < LONGEST_STORY
                and not isinstance(event, (TimerFired, Measured))):
            self.events.append((now_s, type(event).__name__))
        step(self, event)
        return tuple(self.out)

    def note(self, kind: str, text: str, level: str = "info") -> None:
        """A line of the job's story."""
        self.out.append(job_note(self.run_id, kind, text, level))

    def follow(self, event: HasToGo | WishChanged) -> None:
        """What a step means for the state in which it leaves the run."""
        TABLE[self.state, type(event)](self, event)

    # ---- what several steps share

    def grace(self) -> tuple[float, int]:
        """Seconds that the program has to go, and the signal that says so."""
        close, stop = self.closing, self.stopping
        spans = []
        number = self.spec.kill_signal
        if stop is not None:
            number = self.spec.signal_for(stop.how)
            own_s = 0.0 if stop.how == "fast" else self.spec.vacate_s
            waits_less = stop.how == "hold" or (stop.how == "remove" and not self.spec.graceful_removal)
            spans.append(min(own_s, REMOVE_GRACE_S) if waits_less else own_s)
        if close is not None:
            spans.append(min(close.grace_s, self.spec.vacate_s) if close.grace_s > 0 else 0.0)
        return min(spans, default=0.0), number

    @property
    def failed(self) -> bool:
        """Whether the program has ended, and not as it should."""
        return self.status[0] != self.spec.success_code or self.status[1] > 0

    def kill(self) -> None:
        """Kill everything of a living run, and see to it that it is gone."""
        self.state = StarterState.KILLING
        self.out += [CancelTimer("grace"), SetTimer("again", KILL_AGAIN_S), KillTree()]

    def freeze(self) -> None:
        """Let the tree stand still."""
        self.suspended = True
        self._pause(True)
        self.note("suspended", f"stands still: {'its user' if self.by_user else 'the owner of the machine'} wants it")
        self.out += [Freeze(), Activity("suspended"), self.told_state()]

    def thaw(self) -> None:
        """Let the tree go on."""
        self.suspended = False
        self.out.append(Thaw())

    def go_on(self) -> None:
        """Thaw, and say so."""
        self.thaw()
        self._pause(False)
        self.note("continued", "goes on")
        self.out += [Activity("busy"), self.told_state()]

    def _pause(self, stands: bool) -> None:
        """It stands still from now on, or goes on: remembered, for a shadow that does not hear of it."""
        self.pauses.append((self.now_s, stands, max(1, self.usage.processes)))
        del self.pauses[:-MOST_PAUSES]

    def told_state(self) -> Tell:
        """Whether it stands still, and since when."""
        since_s = self.pauses[-1][0] if self.pauses else 0.0
        return Tell(RunProgress(run_id=self.run_id, usage=self.usage, image_digest=self.image_digest, since_s=since_s,
                                ports=self.ports, state="suspended" if self.suspended else "continued"))

    def exit(self, outputs: Gathered) -> None:
        """The program has ended and its outputs are listed."""
        code, number, core = self.status
        if self.cause != "exited":
            code, number = -1, -1
        self._say_exited(RunExited(
            run_id=self.run_id, cause=self.cause, usage=self.usage, when_s=self.now_s, exit_code=code,
            exit_signal=number, core_dumped=core, reason=self.reason, hold_code=self.hold[0],
            hold_subcode=self.hold[1], outputs=outputs.entries, outputs_digest=outputs.digest,
            claim_open=self.claim_open, began_s=self._began_s()))

    def _began_s(self) -> float:
        return self.began.when_s if self.began is not None else 0.0

    def end(self, cause: str, reason: str, hold: tuple[int, int] = (0, 0), outputs: Gathered | None = None) -> None:
        """The run is over, and not because its program has ended well: without outputs, or with some of them."""
        outputs = outputs or Gathered()
        self.cause, self.reason, self.hold = cause, reason, hold
        self.out += [CancelTimer(each) for each in ("grace", "again", "measure", "deferral")]
        self._say_exited(RunExited(
            run_id=self.run_id, cause=cause, usage=self.usage, when_s=self.now_s, reason=reason, hold_code=hold[0],
            hold_subcode=hold[1], outputs=outputs.entries, outputs_digest=outputs.digest,
            claim_open=self.claim_open, began_s=self._began_s()))

    def _say_exited(self, message: RunExited) -> None:
        self.state = StarterState.ENDED
        message = attrs.evolve(message, reason=message.reason.replace("\0", " "))  # it may quote what a program wrote
        self.exited = message
        self.saved = None
        self.note("ended", f"the run is over: {_end_of(message)}; {message.usage.wall_s:.1f} s, "
                           f"{message.usage.user_cpu_s + message.usage.system_cpu_s:.1f} s of processor time, "
                           f"{max(message.usage.peak_memory_kib, message.usage.memory_kib) // 1024} MiB")
        self.out += [Tell(message, lasting=True), Activity("idle")]
        if self.closing is not None:
            self.out.append(SetTimer("keep", UNCLAIMED_KEEP_S))

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two events.

        Raises:
            InvariantBroken: something does not; says what.
        """
        if self.state is StarterState.ENDED and self.exited is None:
            raise InvariantBroken(f"run {self.run_id} is over, and nobody was told how it ended")
        if self.exited is not None and self.state not in (StarterState.ENDED, StarterState.GONE):
            raise InvariantBroken(f"the end of run {self.run_id} was told, and it is {self.state.value}")
        if self.suspended and self.state not in ALIVE:
            raise InvariantBroken(f"run {self.run_id} is {self.state.value} and frozen: nothing thaws it any more")
        if self.suspended and not (self.by_user or self.by_owner):
            raise InvariantBroken(f"run {self.run_id} stands still, and nobody wants that")
        if self.state is StarterState.STOPPING and self.stopping is None and self.closing is None:
            raise InvariantBroken(f"run {self.run_id} is stopping, and nobody has asked it to")
        if (self.state is StarterState.SAVING) != (self.saved is not None):
            raise InvariantBroken(f"run {self.run_id} is {self.state.value}, with "
                                  f"{'a' if self.saved is not None else 'no'} checkpoint on its way home")
        if self.closing is None and not self.claim_open:
            raise InvariantBroken(f"the claim of run {self.run_id} is over, and it was never asked to go")


def _end_of(message: RunExited) -> str:
    """How a run ended, in words."""
    if message.cause == "exited":
        return f"signal {message.exit_signal}" if message.exit_signal > 0 else f"exit status {message.exit_code}"
    return f"{message.cause}{': ' if message.reason else ''}{message.reason}"
