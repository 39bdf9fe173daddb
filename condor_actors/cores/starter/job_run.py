"""One run as its starter sees it: from the activation to the moment when nothing of it is left.

Theory: the starter belongs to the machine.  It does what the shadow asks as long as the startd leaves the gate open,
and it never lets a process of the job outlive the run.

=========== ================================================================================================
state       leaves it by
=========== ================================================================================================
preparing   inputs complete → starting; failed or stopped → ended
starting    the program executes → running; it cannot → ended
running     the program's end → clearing; the wish to stop it → stopping
stopping    its end → clearing; the grace is over → killing
killing     its end → clearing
clearing    nothing of the tree is left → ended; it saved its work and is to go on → saving
saving      the checkpoint is kept at home → starting; asked to go → ended
ended       outputs received, or nobody left to receive them → gone
gone        –
=========== ================================================================================================

Suspension is a flag beside the state.  A frozen job that is asked to go is sent its signal and thawed, but not while
the machine's owner has it frozen and only its user wants it to go: then it stands still until the owner leaves, his
policy ends the claim, or its time is over.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

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
)
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer
from condor_actors.messages.codes import CHECKPOINT_SIGNAL, HoldCode, HoldSubCode
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import (
    CheckpointKept,
    CheckpointRun,
    ContinueRun,
    InputsSent,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunBegan,
    RunCheckpointed,
    RunExited,
    RunProgress,
    StopRun,
    SuspendRun,
    Usage,
)

__all__ = [
    "ALIVE", "Abandon", "Activity", "Began", "CloseRun", "Forget", "Freeze",
    "Gather", "Gathered", "JobRun", "KillTree", "LinkLost", "Measured", "OwnerContinues",
    "OwnerSuspends", "Prepare",
    "PrepareFailed", "Prepared", "ProgramEnded", "ReturnTo", "StarterState", "Signal", "Start", "StartFailed",
    "StillFetched", "Tell", "Thaw", "TreeGone",
]

UNCLAIMED_KEEP_S = 600.0
"""How long outputs of a run wait for its shadow after its claim, or the lease of its job, is over, or since the last of
them has moved."""

KILL_AGAIN_S = 2.0
REMOVE_GRACE_S = 30.0


class JobRun:
    """Decides what the starter of one run does, from activation to the last trace of the job.

    Args:
        run_id: the run; spec: what it is.
        lease_s: how long it lives without its shadow.
        first_update_s, update_s: when usage is told.
    """

    def __init__(self, run_id: str, spec: RunSpec, *, lease_s: float, first_update_s: float = 8.0,
                 update_s: float = 300.0) -> None:
        self.run_id = run_id
        self.spec = spec
        self.state = StarterState.PREPARING
        self.suspended = False
        self.by_user = self._by_owner = False
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
        self._lease_s = lease_s
        self._first_update_s = first_update_s
        self._update_s = update_s
        self._status = (-1, -1, False)
        self._stop: StopRun | None = None
        self._close: CloseRun | None = None
        self.checkpointing = False
        self.checkpoints = 0
        self._checkpoint: RunCheckpointed | None = None
        self._out: list[Effect] = []
        self._now_s = 0.0
        self._table = self._make_table()

    def start(self, now_s: float, *, missing: bool) -> tuple[Effect, ...]:
        """The first turn; ``missing``: the shadow sends blobs first."""
        self._now_s = now_s
        self.waits_for_inputs = missing
        self.events.append((now_s, "activated"))
        return (Activity("busy"),) if missing else (Activity("busy"), Prepare())

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self._now_s = now_s
        self._out = []
        act = self._table.get(type(event))
        if act is None:
            self._out.append(Note(f"run {self.run_id}: {type(event).__name__} means nothing to a starter", "debug"))
        elif self.state is not StarterState.GONE:
            if not isinstance(event, (TimerFired, Measured)) and len(self.events) < 64:
                self.events.append((now_s, type(event).__name__))
            act(event)
        return tuple(self._out)

    # ---- begin

    def _inputs_sent(self, event: InputsSent) -> None:
        if self.state is StarterState.PREPARING:
            self.waits_for_inputs = False
            self._out.append(Prepare())

    def _prepared(self, event: Prepared) -> None:
        if self.state is StarterState.PREPARING:
            self.state = StarterState.STARTING
            self._out.append(Start())

    def _prepare_failed(self, event: PrepareFailed) -> None:
        if self.state is StarterState.PREPARING:
            self._end("transfer-failed", event.reason, (event.hold_code, event.hold_subcode))

    def _start_failed(self, event: StartFailed) -> None:
        if self.state in (StarterState.STARTING, *ALIVE):
            self._end("start-failed", event.reason, (event.hold_code, 0))

    def _began(self, event: Began) -> None:
        self.pid = event.pid
        if self.state is not StarterState.STARTING:
            return
        self.state = StarterState.RUNNING
        self._out.append(Tell(RunBegan(run_id=self.run_id, when_s=self._now_s, pid=event.pid,
                                       scratch_dir=event.scratch_dir)))
        self._out.append(SetTimer("measure", self._first_update_s))
        if self._stop is not None or self._close is not None:
            self._go()
        self._look_whether_to_stand_still()

    # ---- stop

    def _stop_run(self, event: StopRun) -> None:
        """The shadow wants the run to end."""
        self._stop = event
        if self._close is None:
            self.cause = "evicted" if event.how == "vacate" else "killed"
            self.reason = event.reason
        self._go()

    def _close_run(self, event: CloseRun) -> None:
        """The startd wants the claim back."""
        self.claim_open = False
        if self.state in (StarterState.ENDED, StarterState.CLEARING):
            self._close = event
            if self.state is StarterState.ENDED:
                self._out.append(SetTimer("keep", UNCLAIMED_KEEP_S))
            return
        self._close = event
        self.cause, self.reason = "evicted", event.reason
        if event.hold:
            self.cause, self.hold = "hold", (event.hold_code, event.hold_subcode)
        self._go()

    def _go(self) -> None:
        """Make the program end, gently while there is time."""
        if self.state is StarterState.PREPARING:
            self._end(self.cause, self.reason, self.hold)
            return
        if self.state is StarterState.SAVING:
            self._end(self.cause, self.reason, self.hold)
            return
        if self.state not in ALIVE:
            return
        grace_s, number = self._grace()
        if grace_s <= 0.0:
            self._kill()
            return
        if self.state is StarterState.KILLING:
            return
        if self.state is not StarterState.STOPPING:
            self.state = StarterState.STOPPING
            self._out.append(Signal(number))
        if self.suspended and (self._close is not None or not self._by_owner):
            self._thaw()
        self._out.append(SetTimer("grace", grace_s))

    def _grace(self) -> tuple[float, int]:
        close, stop = self._close, self._stop
        spans = []
        number = self.spec.kill_signal
        if stop is not None:
            number = self.spec.signal_for(stop.how)
            own_s = 0.0 if stop.how == "fast" else self.spec.vacate_s
            spans.append(min(own_s, REMOVE_GRACE_S) if stop.how in ("remove", "hold") else own_s)
        if close is not None:
            spans.append(min(close.grace_s, self.spec.vacate_s) if close.grace_s > 0 else 0.0)
        return min(spans, default=0.0), number

    def _kill(self) -> None:
        if self.state is not StarterState.KILLING:
            self.state = StarterState.KILLING
            self._out += [CancelTimer("grace"), KillTree()]
        self._out.append(SetTimer("again", KILL_AGAIN_S))

    def _checkpoint_now(self, event: CheckpointRun) -> None:
        """A checkpoint is wanted; the program goes on afterwards.  One that takes no signal saves when it likes."""
        number = CHECKPOINT_SIGNAL if self.spec.standard else self.spec.checkpoint_signal
        if number is not None and self.state is StarterState.RUNNING and not self.suspended:
            self._out.append(Signal(number))

    # ---- suspend

    def _suspend(self, event: SuspendRun) -> None:
        """Also a program that does not run yet, or that has saved its work and is to go on."""
        if self._stop is None and self._close is None:
            self._wish_of_user(True)

    def _resume(self, event: ContinueRun) -> None:
        self._wish_of_user(False)

    def _wish_of_user(self, stand_still: bool) -> None:
        """The startd hears of it also where the owner of the machine had the run frozen already."""
        changed, was = self.by_user != stand_still, self.suspended
        self.by_user = stand_still
        self._look_whether_to_stand_still()
        if changed and was and self.suspended:
            self._out.append(Activity("suspended"))

    def _owner_suspends(self, event: OwnerSuspends) -> None:
        """Also a program that does not run yet: it stands still as soon as it does."""
        self._by_owner = True
        self._look_whether_to_stand_still()

    def _owner_continues(self, event: OwnerContinues) -> None:
        self._by_owner = False
        self._look_whether_to_stand_still()

    def _look_whether_to_stand_still(self) -> None:
        """The run goes on when both its user and the machine's owner let it.

        One that its user asked to go stands still for an owner who is there or comes meanwhile, and its time runs
        on; one that the startd asked to go may use the time that the owner's policy gives it.
        """
        going = self.state is StarterState.STOPPING and self._close is None
        wanted = self._by_owner if going else self.by_user or self._by_owner
        if wanted and not self.suspended and (going or self.state is StarterState.RUNNING):
            self.suspended = True
            self._out += [Freeze(), Activity("suspended"),
                          Tell(RunProgress(run_id=self.run_id, usage=self.usage, state="suspended"))]
        elif self.suspended and not wanted:
            self._thaw()
            self._out += [Activity("busy"),
                          Tell(RunProgress(run_id=self.run_id, usage=self.usage, state="continued"))]

    def _thaw(self) -> None:
        self.suspended = False
        self._out.append(Thaw())

    # ---- end

    def _program_ended(self, event: ProgramEnded) -> None:
        if self.state not in (*ALIVE, StarterState.STARTING):
            return
        self._status = (event.exit_code, event.exit_signal, event.core_dumped)
        self.checkpointing = event.exit_code >= 0 and event.exit_code == self.spec.checkpoint_code
        if self.state is StarterState.RUNNING and not self.hold[0]:
            self.cause = "exited"
        self.state = StarterState.CLEARING
        if self.suspended:  # it ended in that moment; what is started next begins by not standing still
            self._thaw()
        self._out += [CancelTimer("grace"), CancelTimer("again"), CancelTimer("measure"), KillTree(),
                      SetTimer("again", KILL_AGAIN_S)]

    def _tree_gone(self, event: TreeGone) -> None:
        if self.state is not StarterState.CLEARING:
            return
        self.usage = event.usage
        self._out.append(CancelTimer("again"))
        if event.oom and self.cause == "exited" and self._status[0] != 0:
            self._end("hold", "The job used more memory than it asked for (RequestMemory) and was killed.",
                      (HoldCode.JOB_OUT_OF_RESOURCES, HoldSubCode.MEMORY_EXCEEDED))
            return
        spec = self.spec
        if not spec.transfers:
            self._exit(Gathered())
        elif self.cause == "exited" and self.checkpointing:
            self._out.append(Gather(complete=True, everything=True))
        elif self.cause == "exited":
            failed = self._status[0] != spec.success_code or self._status[1] > 0
            if spec.when == "ON_SUCCESS" and failed:
                self._out.append(Gather(complete=False, everything=False))
            else:
                self._out.append(Gather(complete=not self._status[1] > 0, everything=True))
        elif self.cause in ("evicted", "killed") and (spec.when == "ON_EXIT_OR_EVICT" or self.checkpointing):
            self._out.append(Gather(complete=False, everything=True))
        else:
            self._exit(Gathered())

    def _gathered(self, event: Gathered) -> None:
        if self.state is not StarterState.CLEARING:
            return
        if event.error:
            self._end("hold", f"The output files cannot be read: {event.error}", (HoldCode.TRANSFER_OUTPUT_ERROR, 0))
        elif event.missing:
            names = ", ".join(event.missing)
            self._end("hold", f"Transfer output files failure: the job did not make {names}",
                      (HoldCode.TRANSFER_OUTPUT_ERROR, errno.ENOENT))
        elif self.cause == "exited" and self.checkpointing:
            self._save(event)
        else:
            self._exit(event)

    # ---- self-checkpointing

    def _save(self, files: Gathered) -> None:
        """The program has ended to be started again: first its work goes home."""
        if self._close is not None or self._stop is not None:
            self.cause = "evicted"
            self.reason = self._close.reason if self._close is not None else self.reason
            self._exit(files)
            return
        self.state = StarterState.SAVING
        self.checkpoints += 1
        self._checkpoint = RunCheckpointed(run_id=self.run_id, number=self.checkpoints, usage=self.usage,
                                           files=files.entries, files_digest=files.digest)
        self._out.append(Tell(self._checkpoint, lasting=True))

    def _kept(self, event: CheckpointKept) -> None:
        """It is home: go on from there."""
        if self.state is not StarterState.SAVING or event.number != self.checkpoints:
            return
        self._checkpoint = None
        if event.problem:
            self._end("transfer-failed", event.problem)
            return
        self.checkpointing = False
        self.state = StarterState.STARTING
        self._out.append(Start())

    def _exit(self, outputs: Gathered) -> None:
        code, number, core = self._status
        if self.cause != "exited":
            code, number = -1, -1
        self._say_exited(RunExited(
            run_id=self.run_id, cause=self.cause, usage=self.usage, when_s=self._now_s, exit_code=code,
            exit_signal=number, core_dumped=core, reason=self.reason, hold_code=self.hold[0],
            hold_subcode=self.hold[1], outputs=outputs.entries, outputs_digest=outputs.digest,
            claim_open=self.claim_open))

    def _end(self, cause: str, reason: str, hold: tuple[int, int] = (0, 0)) -> None:
        self.cause, self.reason, self.hold = cause, reason, hold
        self._out += [CancelTimer("grace"), CancelTimer("again"), CancelTimer("measure")]
        self._say_exited(RunExited(
            run_id=self.run_id, cause=cause, usage=self.usage, when_s=self._now_s, reason=reason, hold_code=hold[0],
            hold_subcode=hold[1], claim_open=self.claim_open))

    def _say_exited(self, message: RunExited) -> None:
        self.state = StarterState.ENDED
        self.exited = message
        self._out += [Tell(message, lasting=True), Activity("idle")]
        if self._close is not None:
            self._out.append(SetTimer("keep", UNCLAIMED_KEEP_S))

    def _received(self, event: OutputsReceived) -> None:
        """The run's end is committed: one that was given up while its program ran is over as well."""
        self._abandon(Abandon())

    def _still_fetched(self, event: StillFetched) -> None:
        if self.state is StarterState.ENDED:
            self._out.append(SetTimer("keep", UNCLAIMED_KEEP_S))

    def _gone(self) -> None:
        self.state = StarterState.GONE
        self._out += [CancelTimer("keep"), CancelTimer("lease"), Forget()]

    def _abandon(self, event: Abandon) -> None:
        """Nobody asks any more: end everything."""
        if self.state is StarterState.ENDED:
            self._gone()
        else:
            self.cause, self.reason = "killed", "abandoned"
            self._close = CloseRun(grace_s=0.0, reason="abandoned")
            self._go()

    # ---- link and time

    def _link_lost(self, event: LinkLost) -> None:
        self.connected = False
        self._out.append(SetTimer("lease", self._lease_s))

    def _reattach(self, event: ReattachRun) -> None:
        self.connected = True
        self._out += [CancelTimer("lease"),
                      ReturnTo(Reattached(run_id=self.run_id, pid=self.pid, ended=self.state is StarterState.ENDED))]
        if self.exited is not None:
            self._out += [CancelTimer("keep"), Tell(self.exited, lasting=True)]
        elif self.state is StarterState.PREPARING and self.waits_for_inputs:  # their sender has stopped
            self._end("transfer-failed", "the link broke while the input files were on their way")
        elif self._checkpoint is not None:
            self._out.append(Tell(self._checkpoint, lasting=True))
        elif self.state is StarterState.RUNNING:  # what was said of it while the link was broken was not heard
            self._out.append(Tell(RunProgress(run_id=self.run_id, usage=self.usage,
                                              state="suspended" if self.suspended else "continued")))

    def _measured(self, event: Measured) -> None:
        if self.state not in ALIVE:
            return
        self.usage = event.usage
        if event.limit and self.state is StarterState.RUNNING:
            self.hold = (HoldCode.JOB_OUT_OF_RESOURCES, event.limit_subcode)
            self.cause, self.reason = "hold", event.limit
            self._kill()
            return
        self._out.append(Tell(RunProgress(run_id=self.run_id, usage=event.usage, streams=event.streams)))

    def _timer(self, event: TimerFired) -> None:
        if event.key == "grace" and self.state in ALIVE:
            self._kill()
        elif event.key == "again" and self.state in (StarterState.KILLING, StarterState.CLEARING):
            self._out += [KillTree(), SetTimer("again", KILL_AGAIN_S)]
        elif event.key == "lease" and not self.connected:
            if self.state is StarterState.ENDED:
                self._gone()
            else:
                self._out.append(Note(f"run {self.run_id}: its shadow did not come back within the lease", "warn"))
                self._close = CloseRun(grace_s=0.0, reason="the job's lease ran out")
                self.cause, self.reason = "evicted", "the job's lease ran out"
                self._go()
        elif event.key == "keep" and self.state is StarterState.ENDED:
            self._gone()

    @property
    def update_s(self) -> float:
        """Seconds between measurements that are told."""
        return self._update_s

    def _make_table(self) -> dict[type, Callable[[Any], None]]:
        return {
            InputsSent: self._inputs_sent, Prepared: self._prepared, PrepareFailed: self._prepare_failed,
            Began: self._began, StartFailed: self._start_failed, ProgramEnded: self._program_ended,
            TreeGone: self._tree_gone, Gathered: self._gathered, Measured: self._measured, StopRun: self._stop_run,
            CloseRun: self._close_run, SuspendRun: self._suspend, ContinueRun: self._resume,
            OwnerSuspends: self._owner_suspends, OwnerContinues: self._owner_continues,
            OutputsReceived: self._received, ReattachRun: self._reattach, LinkLost: self._link_lost,
            Abandon: self._abandon, CheckpointRun: self._checkpoint_now, CheckpointKept: self._kept,
            StillFetched: self._still_fetched, TimerFired: self._timer,
        }
