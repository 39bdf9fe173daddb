"""What every event does to a run at its shadow, in every state.

The steps come first, in the order of a run's life; the rows that put them into states are at the end.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.cores.checkpoints.destination import NUMBER
from condor_actors.cores.shadow.shadow_checkpoint import (
    CheckpointAside,
    CheckpointHome,
    KeepCheckpoint,
    SetCheckpointAside,
)
from condor_actors.cores.shadow.shadow_events import (
    BlobsFailed,
    BlobsSent,
    InputsFailed,
    InputsReady,
    OutputsFailed,
    OutputsHome,
    OutputsNewer,
    Report,
    ScheddBack,
    SendBlobs,
    SendLogged,
    Settled,
    ShadowState,
    WriteStreams,
)
from condor_actors.cores.state_table import EventKey, ignore, total_table
from condor_actors.effects import Answer, Ask, CancelTimer, Send
from condor_actors.messages.codes import FileTransferEventType, HoldCode, JobEventType
from condor_actors.messages.envelope import AskFailed, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    CheckpointKept,
    ContinueRun,
    InputsSent,
    OutputsReceived,
    Reattached,
    RunBegan,
    RunCheckpointed,
    RunExited,
    RunProgress,
    StopRun,
    SuspendRun,
)

if TYPE_CHECKING:
    from condor_actors.cores.shadow.shadow_run import ShadowRun

__all__ = ["ANSWER_PATIENCE_S", "ROWS", "Step", "TABLE"]

ANSWER_PATIENCE_S = 60.0
PROGRAM_OVER = ("exited", "hold")
"""Causes of a run's end whose outputs go home to stay, all of them or what there is."""
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""What cannot be written now may be written later."""

Step = Callable[[Any, Any], Any]


# ---- begin


def _activate(run: ShadowRun, event: InputsReady) -> None:
    """The inputs are read: hand the job to the starter host."""
    run.state = ShadowState.ACTIVATING
    if run.job.get_bool("SkipIfDataflow"):
        run.attributes["DataflowJobSkipped"] = False
    run.has_inputs = bool(event.entries or event.manifest_digest)
    if run.has_inputs:
        run.log_inputs_begin()
        run.files_leave("INPUT")
        run.input_files = sum(entry.kind == "file" for entry in event.entries)
    run.sent_bytes = sum(entry.size_bytes for entry in event.entries)
    if run.too_much("MaxTransferInputMB", run.sent_bytes, "input", HoldCode.MAX_TRANSFER_INPUT_SIZE_EXCEEDED):
        return
    order = run.order
    run.out.append(Ask(run.host, ActivateClaim(
        claim_id=order.claim_id, secret=order.secret, run_id=order.run_id, job_ad=run.job.to_bytes(),
        inputs=event.entries, inputs_digest=event.manifest_digest,
        transfer_key=run.key, lease_s=order.lease_s, checkpoint_ticket=order.checkpoint_ticket),
        ANSWER_PATIENCE_S, "activate"))


def _inputs_failed(run: ShadowRun, event: InputsFailed) -> None:
    """An input cannot be read."""
    run.end("hold", event.reason, event.code, event.subcode)


def _skip(run: ShadowRun, event: OutputsNewer) -> None:
    """What the job would make is there: it is as if it had run and ended with 0."""
    run.log(JobEventType.DATAFLOW_JOB_SKIPPED)
    run.attributes.update({"DataflowJobSkipped": True, "ExitBySignal": False, "ExitCode": 0})
    run.end("exited", "")


def _activated(run: ShadowRun, event: Answer) -> None:
    """The starter host has the job, or not, or nobody can say."""
    message = event.message
    if isinstance(message, Activated) and run.stopping is not None:  # told to stop meanwhile
        run.state = ShadowState.WAITING
        run.out.append(Send(run.starter, run.stopping))
    elif isinstance(message, Activated):
        run.send_inputs(message.missing)
        run.tell_wish()
    elif isinstance(message, AskFailed) and message.reason != "unreachable":
        run.go_apart(f"no answer to the activation: {message.reason}")
    elif isinstance(message, Refused) and message.code == "bad-job":
        run.end("hold", f"Error from {run.order.slot_name}: {message.text}", HoldCode.FAILED_TO_CREATE_PROCESS,
                claim_usable=False)
    else:
        text = getattr(message, "text", "") or getattr(message, "reason", "")
        run.end("failed", f"the claim could not be activated: {text}", claim_usable=False)


def _more_wanted(run: ShadowRun, event: Activated) -> None:
    """The starter has read a manifest that came as a blob, and lacks contents that it names."""
    if event.missing:
        run.state = ShadowState.SENDING
        run.out.append(SendBlobs(event.missing))


def _blobs_sent(run: ShadowRun, event: BlobsSent) -> None:
    """The starter has all contents."""
    run.state = ShadowState.WAITING
    run.out.append(Send(run.starter, InputsSent(run_id=run.order.run_id)))


def _blobs_failed(run: ShadowRun, event: BlobsFailed) -> None:
    """The contents could not be sent: a file here cannot be read, or something is wrong with the machine."""
    run.out.append(Send(run.starter, StopRun(run_id=run.order.run_id, how="fast", reason=event.reason)))
    run.files_there("INPUT", run.input_files, run.sent_bytes, event.reason)
    if event.local:
        run.end("hold", f"Transfer input files failure: {event.reason}", HoldCode.TRANSFER_INPUT_ERROR,
                claim_usable=False)
    else:
        run.end("failed", f"the input files could not be sent to {run.order.slot_name}: {event.reason}",
                claim_usable=False)


# ---- while it runs


def _begin(run: ShadowRun, event: RunBegan) -> None:
    """The program executes."""
    if not run.began:
        run.state = ShadowState.RUNNING
        _note_began(run, event)


def _begin_unanswered(run: ShadowRun, event: RunBegan) -> None:
    """It executes before the starter host has answered: what was kept for the answer is told now."""
    if not run.began:
        _begin(run, event)
        if run.stopping is not None:
            run.out.append(Send(run.starter, run.stopping))
        run.tell_wish()


def _note_began(run: ShadowRun, event: RunBegan) -> None:
    """The program began, as is heard only now."""
    run.note_image(event.image_digest)
    run.note_ports(event.ports)
    if run.began:
        return
    run.note("began", f"the program runs on {run.order.slot_name}")
    run.note_began(event.when_s, event.scratch_dir)
    run.tell("executing")


def _report(run: ShadowRun, event: TimerFired) -> None:
    """What happened lately goes to the schedd."""
    run.report_now(run.told.strip())


def _progress(run: ShadowRun, event: RunProgress) -> None:
    """The starter says what the run uses, and whether it stands still."""
    if event.streams:
        run.out.append(WriteStreams(event.streams))
    run.note_usage(event.usage)
    run.note_image(event.image_digest)
    run.note_ports(event.ports)
    stands = event.state == "suspended"
    if event.state and stands != run.suspended:
        run.note_pause(event.since_s, stands, event.usage.processes or 1)
        run.report_now(event.state)
    else:
        run.tell("")


def _wish(run: ShadowRun, event: SuspendRun | ContinueRun) -> None:
    """What the user wishes is told as soon as a starter can be; it carries it out when the program runs."""
    if run.stopping is None:
        run.wish = event


def _tell_wish(run: ShadowRun, event: SuspendRun | ContinueRun) -> None:
    """The starter is in touch."""
    _wish(run, event)
    run.tell_wish()


def _saved_itself(run: ShadowRun, event: RunCheckpointed) -> None:
    """The program has ended to be started again: keep its work."""
    if event.number != run.keeping:
        run.keeping = event.number
        run.files_leave("CHECKPOINT")
        run.note_usage(event.usage)
        run.out.append(KeepCheckpoint(event.number, event.files, event.files_digest, event.when_s, event.serial,
                                      event.before))


def _checkpoint_home(run: ShadowRun, event: CheckpointHome) -> None:
    """Its work is kept, or cannot be."""
    run.keeping = 0
    run.files_there("CHECKPOINT", event.files, event.size_bytes, event.problem)
    if not event.problem:
        run.attributes.update({"NumCkpts": max(event.before, 0) + event.number,
                               "LastCkptTime": int(run.now_s)})
        if event.serial:
            run.attributes[NUMBER] = event.serial
        run.log_once(JobEventType.CHECKPOINTED, event.when_s, RunCheckpointBytes=event.size_bytes)
        run.tell("")
    run.out.append(SendLogged(run.starter, CheckpointKept(
        run_id=run.order.run_id, number=event.number, problem=event.problem)))


def _say_again(run: ShadowRun, event: ScheddBack) -> None:
    """The schedd may not know how the run is."""
    if run.began:
        run.report_now("suspended" if run.suspended else "continued")


def _end_again(run: ShadowRun, event: ScheddBack) -> None:
    """Who asks has not heard that the run is over: the turn in which it was told crashed."""
    assert run.ended is not None
    run.out.append(Report(run.ended, again=True))


# ---- stop; ``lost``: the claim is over, so nobody may be there to ask


def _claim_lost(run: ShadowRun, event: StopRun) -> bool:
    """Whether the claim is over; in touch, the starter tells how the run ended."""
    if event.how != "lost":
        run.stopping, run.wish = event, None
        return False
    run.claim_over = event.reason or "the claim is over"
    return True


def _stop_unbegun(run: ShadowRun, event: StopRun) -> None:
    """No starter knows of it."""
    if not _claim_lost(run, event):
        run.end("evicted", event.reason)


def _stop_noted(run: ShadowRun, event: StopRun) -> None:
    """Nobody may be there yet to hear of it, or it has ended already."""
    _claim_lost(run, event)


def _stop_told(run: ShadowRun, event: StopRun) -> None:
    """The starter makes it end."""
    if not _claim_lost(run, event):
        run.out.append(Send(run.starter, event))


def _stop_apart(run: ShadowRun, event: StopRun) -> None:
    """The starter hears of it when it is found; a claim that is over need not be found."""
    if _claim_lost(run, event):
        run.give_up(run.claim_over)
    else:
        run.leave_removed()


# ---- links


def _link_lost(run: ShadowRun, event: PeerDown) -> None:
    """The run goes on without us."""
    run.go_apart(event.reason)


def _look_for_it(run: ShadowRun, event: PeerUp | TimerFired) -> None:
    """Is the run still there?"""
    run.ask_reattach()


def _lease_over(run: ShadowRun, event: TimerFired) -> None:
    """The starter has ended the run by now."""
    run.give_up("the lease ran out while the starter was out of reach")


def _found(run: ShadowRun, event: Answer) -> None:
    """The starter host has said whether it has the run."""
    run.asking = False
    run.reattached(event.message)


def _found_otherwise(run: ShadowRun, event: Answer) -> None:
    """The run has been heard of meanwhile."""
    run.asking = False


def _found_late(run: ShadowRun, event: Answer) -> None:
    """The run was given up: what was found has to go."""
    run.asking = False
    if isinstance(event.message, Reattached):
        run.found_late = True
        run.out.append(Send(run.starter, StopRun(run_id=run.order.run_id, how="fast", reason="it was given up")))


# ---- the end


def _bring(run: ShadowRun, event: RunExited) -> None:
    """The run is over at its starter: bring the outputs home."""
    run.exited = event
    run.state = ShadowState.BRINGING
    run.out += [CancelTimer("update"), CancelTimer("lease")]
    run.note_usage(event.usage)
    if not run.began and event.began_s:
        run.note_began(event.began_s)
    if event.cause == "transfer-failed":
        run.files_there("INPUT", run.input_files, run.sent_bytes, event.reason or event.cause)
    if event.cause == "checkpoint-damaged":
        run.out.append(SetCheckpointAside(event.hold_subcode))
        return
    size_bytes = sum(entry.size_bytes for entry in event.outputs)
    is_over = event.cause in PROGRAM_OVER
    if is_over and run.too_much(
            "MaxTransferOutputMB", size_bytes, "output", HoldCode.MAX_TRANSFER_OUTPUT_SIZE_EXCEEDED):
        return
    removed = event.cause != "exited" and run.stopping is not None and run.stopping.how == "remove"
    if (event.outputs or event.outputs_digest) and not removed:
        if is_over:
            run.log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.OUT_STARTED)
            if event.outputs_digest or any(each.kind == "file" and each.inline is None for each in event.outputs):
                run.report_now("transferring-output")
        run.files_leave("OUTPUT")
        run.out.append(run.bring_outputs(event))
    else:
        run.finish(0)


def _checkpoint_aside(run: ShadowRun, event: CheckpointAside) -> None:
    """The checkpoint before it is used; without one, its user decides whether it begins anew."""
    exited = run.exited
    assert exited is not None
    if event.problem:
        run.end("hold", f"{exited.reason}, and it cannot be set aside: {event.problem}", exited.hold_code,
                claim_usable=exited.claim_open)
    elif event.left:
        run.note("damaged", f"{exited.reason}; the job goes on from the one before it", "warn")
        run.end("evicted", f"{exited.reason}; the job goes on from the one before it", claim_usable=exited.claim_open)
    else:
        run.end("hold", f"Transfer input files failure: {exited.reason}, and there is none before it; condor_release "
                        "has the job begin anew", exited.hold_code, claim_usable=exited.claim_open)


def _outputs_home(run: ShadowRun, event: OutputsHome) -> None:
    """Everything is written."""
    exited = run.exited
    run.files_there("OUTPUT", event.files, event.received_bytes)
    if exited is not None and exited.cause in PROGRAM_OVER and (exited.outputs or exited.outputs_digest):
        run.log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.OUT_FINISHED)
    run.finish(event.received_bytes)


def _outputs_failed(run: ShadowRun, event: OutputsFailed) -> None:
    """Something cannot be written at home, or not be fetched; a full disk may have room again soon."""
    if not event.remote and event.subcode in NO_ROOM and run.may_wait_for_room(event.reason):
        return
    run.files_there("OUTPUT", problem=event.reason)
    if event.remote:
        run.end("failed", f"the output files could not be fetched from {run.order.slot_name}: {event.reason}",
                claim_usable=False)
    else:
        run.end("hold", f"Transfer output files failure: {event.reason}", HoldCode.TRANSFER_OUTPUT_ERROR, event.subcode,
                claim_usable=run.exited is not None and run.exited.claim_open)


def _bring_again(run: ShadowRun, event: TimerFired) -> None:
    """There may be room now."""
    if run.exited is not None:
        run.out.append(run.bring_outputs(run.exited))


def _stop_bringing(run: ShadowRun, event: StopRun) -> None:
    """The program has ended already; nobody waits for room for the outputs of a job that is not to go on."""
    _claim_lost(run, event)
    if run.no_room_since_s is not None and event.how != "lost" and run.exited is not None:
        run.end("evicted", event.reason, claim_usable=run.exited.claim_open)


def _settled(run: ShadowRun, event: Settled) -> None:
    """The schedd has committed the end: only now may the starter forget it, also one that was found (or may be)
    after the run was given up."""
    if run.exited is not None or run.asking or run.found_late:
        run.out.append(Send(run.starter, OutputsReceived(run_id=run.order.run_id)))


# ---- the table

_unread = ignore("the inputs are being read")
_read = ignore("the inputs are read")
_asked = ignore("the starter host has not answered yet")
_known = ignore("the starter host has answered, or the run was found otherwise")
_sending = ignore("the blobs are on their way")
_sent = ignore("no blobs are on their way")
_in_touch = ignore("the starter is in touch, or not needed yet")
_no_link = ignore("no starter is needed")
_not_running = ignore("no program of it is known to run")
_apart = ignore("the starter is out of reach already")
_home = ignore("the run has ended at its starter")
_not_home = ignore("no outputs are on their way")
_over = ignore("the run is over")

ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    # preparing, activating, sending | waiting, running, apart | bringing, ended
    InputsReady: (_activate, *(_read,) * 6, _over),
    InputsFailed: (_inputs_failed, *(_read,) * 6, _over),
    OutputsNewer: (_skip, *(_read,) * 6, _over),
    "answer activate": (_unread, _activated, *(_known,) * 5, _over),
    Activated: (_unread, _asked, _sending, _more_wanted, *(_sent,) * 3, _over),
    BlobsSent: (_sent, _sent, _blobs_sent, *(_sent,) * 4, _over),
    BlobsFailed: (_sent, _sent, _blobs_failed, *(_sent,) * 4, _over),
    RunBegan: (_note_began, _begin_unanswered, _begin, _begin, *(_note_began,) * 3, _over),
    "timer update": (*(_report,) * 7, _over),
    RunProgress: (*(_progress,) * 7, _over),
    SuspendRun: (_wish, _wish, _tell_wish, _tell_wish, _tell_wish, _wish, _wish, _over),
    ContinueRun: (_wish, _wish, _tell_wish, _tell_wish, _tell_wish, _wish, _wish, _over),
    RunCheckpointed: (*(_not_running,) * 4, _saved_itself, _apart, _home, _over),
    CheckpointHome: (*(_checkpoint_home,) * 7, _over),
    CheckpointAside: (*(_not_home,) * 6, _checkpoint_aside, _over),
    ScheddBack: (*(_not_running,) * 4, _say_again, _say_again, _home, _end_again),
    StopRun: (
        _stop_unbegun, _stop_noted, _stop_told, _stop_told, _stop_told, _stop_apart, _stop_bringing, _over,
    ),
    PeerDown: (_no_link, _asked, _link_lost, _link_lost, _link_lost, _apart, _home, _over),
    PeerUp: (*(_in_touch,) * 5, _look_for_it, _home, _over),
    "timer reattach": (*(_in_touch,) * 5, _look_for_it, _home, _over),
    "timer lease": (*(_in_touch,) * 5, _lease_over, _home, _over),
    "answer reattach": (*(_found_otherwise,) * 5, _found, _found_otherwise, _found_late),
    RunExited: (*(_bring,) * 6, _home, _over),
    OutputsHome: (*(_not_home,) * 6, _outputs_home, _over),
    OutputsFailed: (*(_not_home,) * 6, _outputs_failed, _over),
    "timer room": (*(_not_home,) * 6, _bring_again, _over),
    Settled: (_settled,) * 8,
}

TABLE: dict[tuple[ShadowState, EventKey], Step | ignore] = total_table("a run at its shadow", ShadowState, ROWS)
