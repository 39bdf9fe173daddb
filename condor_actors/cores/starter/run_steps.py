"""What each event does to a run at its starter, in the order of a run's life.

Which of them counts in which state is the table of :mod:`condor_actors.cores.starter.job_run_table`.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

from condor_actors.cores.starter.run_events import (
    Abandon,
    Activity,
    Began,
    CloseRun,
    Forget,
    Gather,
    Gathered,
    HasToGo,
    KillTree,
    LinkLost,
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
    TreeGone,
    WishChanged,
    too_much,
)
from condor_actors.effects import CancelTimer, SetTimer
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
    StopRun,
    SuspendRun,
)

if TYPE_CHECKING:
    from condor_actors.cores.starter.job_run import JobRun

UNCLAIMED_KEEP_S = 600.0
"""How long outputs of a run wait for its shadow after its claim, or the lease of its job, is over, or since the last of
them has moved."""
KILL_AGAIN_S = 2.0
CLOCK_LOOK_S = 60.0
"""How often a run that waits for its time looks at the wall clock."""


# ---- begin


def inputs_complete(run: JobRun, event: InputsSent) -> None:
    """The shadow has sent all blobs."""
    run.waits_for_inputs = False
    run.out.append(Prepare())


def start_in_time(run: JobRun, event: Prepared | TimerFired) -> None:
    """The sandbox is ready: launch the program, at its time if it has one.

    The wall clock of this machine decides, and it may be set: it is looked at every minute.
    """
    if isinstance(event, Prepared):
        run.image_digest = event.image_digest
    begins_s, window_s = run.spec.begins_s, run.spec.window_s
    late_s = run.now_s - begins_s if begins_s is not None else 0.0
    if late_s < 0.0:
        run.state = StarterState.DEFERRED
        run.out.append(SetTimer("deferral", min(CLOCK_LOOK_S, -late_s)))
    elif late_s > window_s + (CLOCK_LOOK_S if run.state is StarterState.DEFERRED else 0.0):
        run.end("hold", f"Job missed deferred execution time: it was ready to begin {late_s:.0f} seconds after its "
                f"time, and may be {window_s:g} seconds late (DeferralWindow)",
                (HoldCode.MISSED_DEFERRED_EXECUTION_TIME, 0))
    else:
        run.state = StarterState.STARTING
        run.out.append(Start())


def cannot_prepare(run: JobRun, event: PrepareFailed) -> None:
    """There will be no sandbox."""
    cause = "checkpoint-damaged" if event.damaged else "transfer-failed"
    run.end(cause, event.reason, (event.hold_code, event.hold_subcode))


def cannot_start(run: JobRun, event: StartFailed) -> None:
    """The program could not be executed, or only its word of having begun was wrong."""
    if run.suspended:
        run.thaw()
    if not event.hold_code and (run.stopping is not None or run.closing is not None):  # it was asked to go meanwhile
        run.end(run.cause, run.reason, run.hold)
    else:
        run.end("start-failed", event.reason, (event.hold_code, event.hold_subcode))


def begin(run: JobRun, event: Began) -> None:
    """The program executes; what was wanted of it meanwhile counts now."""
    run.pid, run.ports = event.pid, event.ports
    run.state = StarterState.RUNNING
    run.note("began", f"the program runs, pid {event.pid}, in {event.scratch_dir}")
    began = RunBegan(run_id=run.run_id, when_s=run.now_s, pid=event.pid, scratch_dir=event.scratch_dir,
                     image_digest=run.image_digest, ports=run.ports)
    run.began = run.began or began
    run.out.append(Tell(began))
    run.out.append(SetTimer("measure", run.first_update_s))
    if run.stopping is not None or run.closing is not None:
        run.follow(HasToGo())
    run.follow(WishChanged())


def remember_pid(run: JobRun, event: Began) -> None:
    """The word of a launch that something has overtaken."""
    run.pid = event.pid


# ---- stop


def stop_wanted(run: JobRun, event: StopRun) -> None:
    """The shadow wants the run to end."""
    run.stopping = event
    run.note("to go", f"its user's side wants it to go ({event.how}): {event.reason}")
    if run.closing is None:
        run.cause = "evicted" if event.how == "vacate" else "killed"
        run.reason = event.reason
    run.follow(HasToGo())


def close(run: JobRun, event: CloseRun) -> None:
    """The startd wants the claim back."""
    run.claim_open = False
    run.closing = event
    run.note("evicted", f"the machine wants it to go{' and be held' if event.hold else ''} within {event.grace_s:g} s: "
                        f"{event.reason}")
    run.cause, run.reason = "evicted", event.reason
    if event.hold:
        run.cause, run.hold = "hold", (event.hold_code, event.hold_subcode)
    run.follow(HasToGo())


def close_cleared(run: JobRun, event: CloseRun) -> None:
    """The program has ended in time: how is not the startd's to say."""
    run.claim_open = False
    run.closing = event


def close_ended(run: JobRun, event: CloseRun) -> None:
    """The outputs wait for the shadow, now without a claim."""
    close_cleared(run, event)
    run.out.append(SetTimer("keep", UNCLAIMED_KEEP_S))


def abandon(run: JobRun, event: Abandon | OutputsReceived) -> None:
    """Nobody asks any more, or the end is committed of a run that was given up while its program ran."""
    run.cause, run.reason = "killed", "abandoned"
    run.closing = CloseRun(grace_s=0.0, reason="abandoned")
    run.follow(HasToGo())


def lease_over(run: JobRun, event: TimerFired) -> None:
    """Its shadow did not come back in time."""
    if run.connected:
        return
    run.note("lease", "its shadow did not come back within the lease", "warn")
    run.closing = CloseRun(grace_s=0.0, reason="the job's lease ran out")
    run.cause, run.reason = "evicted", "the job's lease ran out"
    run.follow(HasToGo())


def go_unstarted(run: JobRun, event: HasToGo) -> None:
    """No program runs: it is over at once."""
    run.end(run.cause, run.reason, run.hold)


def stop(run: JobRun, event: HasToGo) -> None:
    """Make the program end, gently while there is time."""
    grace_s, number = run.grace()
    if grace_s <= 0.0:
        run.kill()
        return
    run.state = StarterState.STOPPING
    run.out.append(Signal(number))
    time_to_go(run, grace_s)


def stop_sooner(run: JobRun, event: HasToGo) -> None:
    """It has its signal already; its time may be another now."""
    grace_s, _ = run.grace()
    if grace_s <= 0.0:
        run.kill()
    else:
        time_to_go(run, grace_s)


def time_to_go(run: JobRun, grace_s: float) -> None:
    """A frozen program cannot go; it is thawed, unless the owner is there and only its user wants it to go."""
    if run.suspended and (run.closing is not None or not run.by_owner):
        run.thaw()
    run.out.append(SetTimer("grace", grace_s))


def wait_on(run: JobRun, event: HasToGo) -> None:
    """It is being killed; one who gives it no time has it killed again soon."""
    if run.grace()[0] <= 0.0:
        run.out.append(SetTimer("again", KILL_AGAIN_S))


def grace_over(run: JobRun, event: TimerFired) -> None:
    """It had its time."""
    run.kill()


def kill_later(run: JobRun, event: TimerFired) -> None:
    """A grace that was set before the last kill."""
    run.out.append(SetTimer("again", KILL_AGAIN_S))


def kill_again(run: JobRun, event: TimerFired) -> None:
    """Something of the tree is still there."""
    run.out += [SetTimer("again", KILL_AGAIN_S), KillTree()]


def ask_checkpoint(run: JobRun, event: CheckpointRun) -> None:
    """A checkpoint is wanted; the program goes on afterwards.  One that takes no signal saves when it likes."""
    number = CHECKPOINT_SIGNAL if run.spec.standard else run.spec.checkpoint_signal
    if number is not None and not run.suspended:
        run.out.append(Signal(number))


# ---- suspend


def suspend(run: JobRun, event: SuspendRun) -> None:
    """Also a program that does not run yet, or that has saved its work and is to go on; not one that has to go."""
    if run.stopping is None and run.closing is None:
        wish_of_user(run, True)


def resume(run: JobRun, event: ContinueRun) -> None:
    """The user lets it go on."""
    wish_of_user(run, False)


def wish_of_user(run: JobRun, stand_still: bool) -> None:
    """The startd hears of it also where the owner of the machine had the run frozen already."""
    changed, was = run.by_user != stand_still, run.suspended
    run.by_user = stand_still
    run.follow(WishChanged())
    if changed and was and run.suspended:
        run.out.append(Activity("suspended"))


def owner_suspends(run: JobRun, event: OwnerSuspends) -> None:
    """Also a program that does not run yet: it stands still as soon as it does."""
    run.by_owner = True
    run.follow(WishChanged())


def owner_continues(run: JobRun, event: OwnerContinues) -> None:
    """The owner is gone."""
    run.by_owner = False
    run.follow(WishChanged())


def freeze_or_thaw(run: JobRun, event: WishChanged) -> None:
    """The run goes on when both its user and the machine's owner let it."""
    wanted = run.by_user or run.by_owner
    if wanted and not run.suspended:
        run.freeze()
    elif run.suspended and not wanted:
        run.go_on()


def freeze_going(run: JobRun, event: WishChanged) -> None:
    """One that its user asked to go stands still for an owner who is there or comes meanwhile, and its time runs on;
    one that the startd asked to go may use the time that the owner's policy gives it."""
    if run.closing is not None:
        thaw_if_free(run, event)
    elif run.by_owner and not run.suspended:
        run.freeze()
    elif run.suspended and not run.by_owner:
        run.go_on()


def thaw_if_free(run: JobRun, event: WishChanged) -> None:
    """It is not frozen any more; what was suspended may continue."""
    if run.suspended and not (run.by_user or run.by_owner):
        run.go_on()


# ---- end


def exited(run: JobRun, event: ProgramEnded) -> None:
    """It has ended by itself, unless it used too much."""
    if not run.hold[0]:
        run.cause = "exited"
    clear(run, event)


def clear(run: JobRun, event: ProgramEnded) -> None:
    """The first process has ended: nothing else of the tree may live on.  The timer is set first: that nothing is left
    may be said while the tree is killed, and from then on what sends outputs is not to be killed."""
    run.status = (event.exit_code, event.exit_signal, event.core_dumped)
    run.checkpointing = event.exit_code >= 0 and event.exit_code == run.spec.checkpoint_code
    run.state = StarterState.CLEARING
    if run.suspended:  # it ended in that moment; what is started next begins by not standing still
        run.thaw()
    run.out += [CancelTimer("grace"), CancelTimer("again"), CancelTimer("measure"),
                SetTimer("again", KILL_AGAIN_S), KillTree()]


def gather(run: JobRun, event: TreeGone) -> None:
    """Nothing of the tree is left: list the outputs that go home."""
    run.usage = event.usage
    run.out.append(CancelTimer("again"))
    if event.unstarted and run.cause == "exited":
        run.end("start-failed", event.unstarted)
        return
    if event.oom and run.cause == "exited" and run.status[0] != 0:
        run.end("hold", too_much("memory", event.usage.peak_memory_kib, event.memory_mib << 10, "RequestMemory",
                                 event.slot_name), (HoldCode.JOB_OUT_OF_RESOURCES, HoldSubCode.MEMORY_EXCEEDED))
        return
    if event.over_disk and run.cause == "exited" and run.failed:
        run.end("hold", event.over_disk, (HoldCode.JOB_OUT_OF_RESOURCES, HoldSubCode.DISK_EXCEEDED))
        return
    if event.no_room and run.cause == "exited" and run.failed:
        run.end("evicted", event.no_room)
        return
    spec = run.spec
    if not spec.transfers:
        run.exit(Gathered())
    elif run.cause == "exited" and run.checkpointing:
        run.out.append(Gather(complete=True, everything=True))
    elif run.cause == "exited":
        if spec.when == "ON_SUCCESS" and run.failed:
            run.out.append(Gather(complete=False, everything=False))
        else:
            run.out.append(Gather(complete=not run.status[1] > 0, everything=True))
    elif run.cause in ("evicted", "killed") and (spec.when == "ON_EXIT_OR_EVICT" or run.checkpointing):
        run.out.append(Gather(complete=False, everything=True))
    else:
        run.exit(Gathered())


def outputs_listed(run: JobRun, event: Gathered) -> None:
    """The outputs are listed: the run is over, or saves its work to go on."""
    if event.error:
        run.end("hold", f"The output files cannot be read: {event.error}", (HoldCode.TRANSFER_OUTPUT_ERROR, 0))
    elif event.unsent and run.closing is not None:  # the machine is wanted back: it is sent by another run
        run.cause, run.reason = "evicted", run.closing.reason
        run.exit(Gathered())
    elif event.unsent and run.cause == "exited":
        what = "checkpoint" if run.checkpointing else "output"
        hold_for_outputs(run, event, f"Transfer {what} files failure: {event.unsent}", event.unsent_subcode)
    elif event.unsent:
        run.exit(Gathered())
    elif event.missing:
        names = ", ".join(event.missing)
        hold_for_outputs(run, event, f"Transfer output files failure: the job did not make {names}", errno.ENOENT)
    elif run.cause == "exited" and run.checkpointing:
        save(run, event)
    else:
        run.exit(event)


def hold_for_outputs(run: JobRun, event: Gathered, reason: str, subcode: int) -> None:
    """Some of its outputs are not to be had: the others go home, since they may say why."""
    run.end("hold", reason, (HoldCode.TRANSFER_OUTPUT_ERROR, subcode),
            Gathered() if run.checkpointing else event)


def save(run: JobRun, files: Gathered) -> None:
    """The program has ended to be started again: first its work goes home, or the list of it where it is elsewhere."""
    leaves = run.closing is not None or run.stopping is not None
    if leaves and not files.serial:
        run.cause = "evicted"
        run.reason = run.closing.reason if run.closing is not None else run.reason
        run.exit(files)
        return
    run.state = StarterState.SAVING
    run.checkpoints += 1
    run.saved = RunCheckpointed(run_id=run.run_id, number=run.checkpoints, usage=run.usage, files=files.entries,
                                files_digest=files.digest, when_s=run.now_s, serial=files.serial,
                                before=run.spec.checkpoints_before)
    run.out.append(Tell(run.saved, lasting=True))
    if leaves:
        run.cause = "evicted"
        run.reason = run.closing.reason if run.closing is not None else run.reason
        run.follow(HasToGo())


def start_again(run: JobRun, event: CheckpointKept) -> None:
    """The checkpoint is home: go on from there."""
    if event.number != run.checkpoints:
        return
    run.saved = None
    if event.problem:
        run.end("transfer-failed", event.problem)
        return
    run.checkpointing = False
    run.state = StarterState.STARTING
    run.out.append(Start())


def keep_on(run: JobRun, event: StillFetched) -> None:
    """The outputs move."""
    run.out.append(SetTimer("keep", UNCLAIMED_KEEP_S))


def forget(run: JobRun, event: Any) -> None:
    """Nobody will ask for the run again."""
    run.state = StarterState.GONE
    run.out += [CancelTimer("keep"), CancelTimer("lease"), Forget()]


def forget_lost(run: JobRun, event: TimerFired) -> None:
    """It has ended, and its shadow did not come back for its outputs."""
    if not run.connected:
        forget(run, event)


# ---- link and time


def link_lost(run: JobRun, event: LinkLost) -> None:
    """From now on the lease counts."""
    run.connected = False
    run.out.append(SetTimer("lease", run.lease_s))


def reattach(run: JobRun, event: ReattachRun) -> None:
    """A shadow is there again: it hears what it, or one before it, may not have heard."""
    run.connected = True
    began = run.began
    run.out += [CancelTimer("lease"), ReturnTo(Reattached(
        run_id=run.run_id, pid=run.pid, ended=run.state is StarterState.ENDED, has_inputs=run.has_inputs,
        began_s=began.when_s if began is not None else 0.0, scratch_dir=began.scratch_dir if began is not None else "",
        pauses=tuple(run.pauses)))]


def reattach_preparing(run: JobRun, event: ReattachRun) -> None:
    """The sender of the inputs has stopped."""
    reattach(run, event)
    if run.waits_for_inputs:
        run.end("transfer-failed", "the link broke while the input files were on their way")


def reattach_running(run: JobRun, event: ReattachRun) -> None:
    """What was said of it while the link was broken was not heard."""
    reattach(run, event)
    run.out.append(run.told_state())


def reattach_saving(run: JobRun, event: ReattachRun) -> None:
    """The checkpoint may not have been heard of."""
    reattach(run, event)
    run.out.append(Tell(run.saved, lasting=True))


def reattach_ended(run: JobRun, event: ReattachRun) -> None:
    """Say again how it ended."""
    reattach(run, event)
    run.out += [CancelTimer("keep"), Tell(run.exited, lasting=True)]
