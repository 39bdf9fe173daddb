"""One run of one job as its shadow sees it: from the order to its end.

Theory: the shadow stands for the user.  It puts the inputs together, hands the job to the starter that keeps the gate
of the claim, writes down what happens, brings the outputs home and reports the end until the schedd has it.  A link
that breaks changes nothing about the run: the shadow reattaches within the job's lease, and only then gives it up.

============= ==============================================================================================
state         leaves it by
============= ==============================================================================================
preparing     inputs read → activating; unreadable → ended (hold)
activating    ``Activated`` → sending or waiting; refused, unreachable → ended (failed); unknown → apart
sending       blobs sent → waiting; failed → ended
waiting       ``RunBegan`` → running
running       ``RunExited`` → bringing
apart         link up, ``Reattached`` → running; not found, lease over → ended (failed)
bringing      outputs home → ended; not writable → ended (hold)
ended         –
============= ==============================================================================================

``StopRun`` is taken in every state; a wish to suspend or continue waits for the starter.  The starter keeps a run that
has ended until the schedd has committed its end, so a process that dies in between finds it there again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_checkpoint import CheckpointHome, KeepCheckpoint
from condor_actors.cores.shadow.shadow_events import (
    BlobsFailed,
    BlobsSent,
    BringOutputs,
    InputsFailed,
    InputsReady,
    Log,
    OutputsFailed,
    OutputsHome,
    PrepareInputs,
    Report,
    ScheddBack,
    SendBlobs,
    Settled,
    ShadowState,
    Watch,
    WriteStreams,
)
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, Note, Send, SetTimer
from condor_actors.messages.codes import FileTransferEventType, HoldCode, JobEventType, JobStatus
from condor_actors.messages.envelope import Address, AskFailed, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    CheckpointKept,
    ContinueRun,
    InputsSent,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunBegan,
    RunCheckpointed,
    RunEnded,
    RunExited,
    RunProgress,
    RunUpdated,
    StartRun,
    StopRun,
    SuspendRun,
    Usage,
)

__all__ = ["ShadowRun"]

ANSWER_PATIENCE_S = 60.0
REATTACH_RETRY_S = 5.0
NOTICE_S = 150.0
"""The starter ends a run when its lease is over since it noticed that the shadow is gone, which takes up to 120 s where
nothing resets the connection.  The shadow gives the run up after that, lest the job be started a second time beside it.
"""
REFUSALS = 4
"""Refused connections in a row after which nobody waits for the lease: a starter host that is started again listens
elsewhere, and the kernel has killed the jobs of the dead one."""
UPDATE_DELAY_S = 0.5
"""A run that is over sooner is not reported as executing: its end says it all."""


class ShadowRun:
    """Decides what the shadow of one run does, from the schedd's order to the run's end.

    Args:
        order: what the schedd said.
        job: the job ad, ``$$()`` expanded.
        transfer_key: the secret of bulk transfers for this run.
    """

    def __init__(self, order: StartRun, job: ClassAd, transfer_key: str) -> None:
        self.order = order
        self.job = job
        self.state = ShadowState.APART if order.reattach else ShadowState.PREPARING
        self.ended: RunEnded | None = None
        self.attributes = ClassAd()
        self._key = transfer_key
        self._host = Address(order.starter_node, "starter-host")
        self._starter = Address(order.starter_node, f"starter/{order.run_id}")
        self._began = False
        self._stopping: StopRun | None = None
        self._wish: SuspendRun | ContinueRun | None = None
        self._exited: RunExited | None = None
        self._keeping = 0
        self._apart_since_s = 0.0
        self._told = ""
        self._suspended = order.reattach and job.get_int("JobStatus") == JobStatus.SUSPENDED
        self._claim_over = ""
        self._refusals = 0
        self._image_kib = 0
        self._sent_bytes = 0
        self._has_inputs = False
        self._asking = self._found_late = False
        self._out: list[Effect] = []
        self._now_s = 0.0
        self._table = self._make_table()

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        self._now_s = now_s
        self._out.append(Watch())
        if self.order.reattach:
            self._apart_since_s = now_s
            self._out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))
            self._reattach()
        else:
            self._out.append(PrepareInputs())
        return self._take()

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self._now_s = now_s
        act = self._table.get(type(event))
        if act is None:
            self._out.append(Note(f"run {self.order.run_id}: {type(event).__name__} means nothing here", "debug"))
        elif self.state is not ShadowState.ENDED or isinstance(event, (Settled, Answer)):
            act(event)
        return self._take()

    def _take(self) -> tuple[Effect, ...]:
        out, self._out = self._out, []
        return tuple(out)

    # ---- begin

    def _inputs_ready(self, event: InputsReady) -> None:
        if self.state is not ShadowState.PREPARING:
            return
        self.state = ShadowState.ACTIVATING
        self._has_inputs = bool(event.entries or event.manifest_digest)
        if self._has_inputs:
            self._log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.IN_STARTED)
        self._sent_bytes = sum(entry.size_bytes for entry in event.entries)
        if self._too_much("MaxTransferInputMB", self._sent_bytes, "input", HoldCode.MAX_TRANSFER_INPUT_SIZE_EXCEEDED):
            return
        order = self.order
        self._out.append(Ask(self._host, ActivateClaim(
            claim_id=order.claim_id, secret=order.secret, run_id=order.run_id, job_ad=self.job.to_bytes(),
            inputs=event.entries, inputs_digest=event.manifest_digest,
            transfer_key=self._key, lease_s=order.lease_s), ANSWER_PATIENCE_S, "activate"))

    def _too_much(self, limit: str, size_bytes: int, what: str, code: int) -> bool:
        """Whether more would travel than the job's ad allows; then the run is over, and the job held."""
        most_mb = self.job.get_int(limit, -1)
        if most_mb < 0 or size_bytes <= most_mb << 20:
            return False
        reason = f"Transfer {what} files failure: {size_bytes} bytes are more than {limit} ({most_mb} MB)"
        self._end("hold", reason, code)
        return True

    def _inputs_failed(self, event: InputsFailed) -> None:
        if self.state is ShadowState.PREPARING:
            self._end("hold", event.reason, event.code, event.subcode)

    def _answer(self, event: Answer) -> None:
        if event.tag == "activate" and self.state is ShadowState.ACTIVATING:
            self._activated(event.message)
        elif event.tag == "reattach":
            self._asking = False
            if self.state is ShadowState.APART:
                self._reattached(event.message)
            elif self.state is ShadowState.ENDED and isinstance(event.message, Reattached):
                self._found_late = True
                self._out.append(Send(self._starter, StopRun(run_id=self.order.run_id, how="fast",
                                                             reason="it was given up")))

    def _activated(self, message: Any) -> None:
        if isinstance(message, Activated) and self._stopping is not None:  # told to stop meanwhile
            self.state = ShadowState.WAITING
            self._out.append(Send(self._starter, self._stopping))
        elif isinstance(message, Activated):
            self._send_inputs(message.missing)
            self._tell_wish()
        elif isinstance(message, AskFailed) and message.reason != "unreachable":
            self._go_apart(f"no answer to the activation: {message.reason}")
        else:
            text = getattr(message, "text", "") or getattr(message, "reason", "")
            self._end("failed", f"the claim could not be activated: {text}", claim_usable=False)

    def _send_inputs(self, missing: tuple[str, ...]) -> None:
        """The starter has the job; it gets what it lacks of the inputs."""
        if missing:
            self.state = ShadowState.SENDING
            self._out.append(SendBlobs(missing))
        else:
            self.state = ShadowState.WAITING

    def _more_wanted(self, event: Activated) -> None:
        """The starter has read a manifest that came as a blob, and lacks contents that it names."""
        if self.state is ShadowState.WAITING and event.missing:
            self.state = ShadowState.SENDING
            self._out.append(SendBlobs(event.missing))

    def _blobs_sent(self, event: BlobsSent) -> None:
        if self.state is ShadowState.SENDING:
            self.state = ShadowState.WAITING
            self._out.append(Send(self._starter, InputsSent(run_id=self.order.run_id)))

    def _blobs_failed(self, event: BlobsFailed) -> None:
        if self.state is not ShadowState.SENDING:
            return
        self._out.append(Send(self._starter, StopRun(run_id=self.order.run_id, how="fast", reason=event.reason)))
        if event.local:
            self._end("hold", f"Transfer input files failure: {event.reason}", HoldCode.TRANSFER_INPUT_ERROR,
                      claim_usable=False)
        else:
            self._end("failed", f"the input files could not be sent: {event.reason}", claim_usable=False)

    # ---- while it runs

    def _began_running(self, event: RunBegan) -> None:
        if self._began:
            return
        self._began = True
        if self.state in (ShadowState.WAITING, ShadowState.SENDING, ShadowState.ACTIVATING):
            self.state = ShadowState.RUNNING
        if self._has_inputs:
            self._log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.IN_FINISHED)
        self._count_start(event.when_s)
        self._out.append(Log(
            JobEventType.EXECUTE, {"CondorScratchDir": event.scratch_dir}, event.when_s, self.order.reattach))
        self._tell("executing")

    def _count_start(self, when_s: float) -> None:
        """The program was started: once more than the job's ad says, unless it says so already."""
        job = self.job
        known_s = job.get_int("JobCurrentStartExecutingDate")
        counted = self.order.reattach and known_s >= job.get_int("JobCurrentStartDate") > 0
        self.attributes.update({
            "JobCurrentStartExecutingDate": known_s if counted else int(when_s),
            "NumJobStarts": job.get_int("NumJobStarts") + (not counted),
        })

    def _tell(self, event: str) -> None:
        """Report soon; what happens meanwhile goes along."""
        if not self._told:
            self._out.append(SetTimer("update", UPDATE_DELAY_S))
        self._told = event or self._told or " "

    def _timer(self, event: TimerFired) -> None:
        if event.key == "update":
            self._report_now(self._told.strip())
        elif event.key == "lease" and self.state is ShadowState.APART:
            self._give_up("the lease ran out while the starter was out of reach")
        elif event.key == "reattach" and self.state is ShadowState.APART:
            self._reattach()

    def _report_now(self, event: str) -> None:
        before, self._told = self._told.strip(), ""
        if before and event and before != event:
            self._report_now(before)
        self._out.append(Report(RunUpdated(run_id=self.order.run_id, attributes=self.attributes.to_bytes(),
                                           event=event)))

    def _progress(self, event: RunProgress) -> None:
        if event.streams:
            self._out.append(WriteStreams(event.streams))
        self._usage(event.usage)
        if event.state == "suspended" and not self._suspended:
            self._suspended = True
            self._log(JobEventType.JOB_SUSPENDED, NumPids=event.usage.processes or 1)
            self._report_now("suspended")
        elif event.state == "continued" and self._suspended:
            self._suspended = False
            self._log(JobEventType.JOB_UNSUSPENDED)
            self._report_now("continued")
        else:
            self._tell("")

    def _usage(self, usage: Usage) -> None:
        memory_kib = max(usage.memory_kib, usage.peak_memory_kib)
        busy_s = usage.user_cpu_s + usage.system_cpu_s
        self.attributes.update({
            "RemoteUserCpu": round(usage.user_cpu_s, 3), "RemoteSysCpu": round(usage.system_cpu_s, 3),
            "ResidentSetSize": memory_kib, "ImageSize": max(memory_kib, self._image_kib),
            "MemoryUsage": (memory_kib + 1023) // 1024, "DiskUsage": usage.disk_kib,
            "CpusUsage": round(busy_s / usage.wall_s, 4) if usage.wall_s > 0.1 else 0.0,
        })
        if memory_kib > self._image_kib * 1.1 and self._began:
            self._image_kib = memory_kib
            self._log(JobEventType.IMAGE_SIZE, ImageSize=memory_kib, ResidentSetSize=memory_kib,
                      MemoryUsage=(memory_kib + 1023) // 1024)

    def _suspend(self, event: SuspendRun | ContinueRun) -> None:
        """What the user wishes is told as soon as a starter can be; it carries it out when the program runs."""
        if self._stopping is None:
            self._wish = event
        if self.state in (ShadowState.SENDING, ShadowState.WAITING, ShadowState.RUNNING):
            self._tell_wish()

    def _tell_wish(self) -> None:
        if self._wish is not None:
            self._out.append(Send(self._starter, self._wish))
            self._wish = None

    def _stop(self, event: StopRun) -> None:
        """The user (or the schedd) wants the run to end; ``lost``: the claim is over, so nobody may be there to ask."""
        if event.how == "lost":
            self._lost(event.reason)
            return
        self._stopping, self._wish = event, None
        if self.state is ShadowState.PREPARING:
            self._end("evicted", event.reason)
        elif self.state is ShadowState.APART:
            self._leave_removed()
        elif self.state not in (ShadowState.ACTIVATING, ShadowState.BRINGING):
            self._out.append(Send(self._starter, event))  # while activating, nobody may be there yet to hear of it

    def _leave_removed(self) -> None:
        """Apart, nobody waits for a job that was removed.  Any other may be started again, so its run must be over
        before that is said: the starter hears of the stop when it is found, and ends the run with the lease if not."""
        if self._stopping is not None and self._stopping.how == "remove":
            self._end("evicted", self._stopping.reason, claim_usable=False)

    def _lost(self, reason: str) -> None:
        """The claim is over.  In touch, the starter tells how the run ended; apart, it ends here."""
        self._claim_over = reason or "the claim is over"
        if self.state is ShadowState.APART:
            self._give_up(self._claim_over)

    def _give_up(self, reason: str) -> None:
        known = self._began or self.order.reattach
        if known:
            self._log(JobEventType.JOB_RECONNECT_FAILED, DisconnectReason=reason)
        self._end("lost" if known else "failed", reason, claim_usable=False)

    # ---- links

    def _peer_down(self, event: PeerDown) -> None:
        if self.state in (ShadowState.WAITING, ShadowState.RUNNING, ShadowState.SENDING):
            self._go_apart(event.reason)

    def _go_apart(self, reason: str) -> None:
        if self._claim_over:
            self._give_up(self._claim_over)
            return
        self.state = ShadowState.APART
        self._leave_removed()
        if self.state is not ShadowState.APART:
            return
        self._apart_since_s = self._now_s
        if self._began:
            self._log(JobEventType.JOB_DISCONNECTED, DisconnectReason=reason)
        self._out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))
        self._out.append(SetTimer("reattach", REATTACH_RETRY_S))

    def _peer_up(self, event: PeerUp) -> None:
        if self.state is ShadowState.APART:
            self._reattach()

    def _reattach(self) -> None:
        if self._asking:
            return
        self._asking = True
        order = self.order
        self._out.append(Ask(self._host, ReattachRun(claim_id=order.claim_id, secret=order.secret,
                                                     run_id=order.run_id, transfer_key=self._key),
                             ANSWER_PATIENCE_S, "reattach"))

    def _reattached(self, message: Any) -> None:
        if isinstance(message, Reattached):
            self.state = ShadowState.RUNNING
            self._refusals = 0
            self._out.append(CancelTimer("lease"))
            if self._began or self.order.reattach:
                self._log(JobEventType.JOB_RECONNECTED)
                self._report_now("reconnected")
            if message.pid > 0 and not self._began:
                self._began = True
                self._count_start(self._now_s)
            if self._stopping is not None:
                self._out.append(Send(self._starter, self._stopping))
            self._tell_wish()
        elif isinstance(message, Refused) and message.code != "busy":
            self._give_up(f"the run is not to be found any more: {message.text}")
        elif isinstance(message, AskFailed) and "refused" in message.text.lower():
            self._refusals += 1
            if self._refusals >= REFUSALS:
                self._give_up("the starter host is dead: its machine answers, but nobody listens there any more")
            else:
                self._out.append(SetTimer("reattach", REATTACH_RETRY_S))
        else:
            self._refusals = 0
            self._out.append(SetTimer("reattach", REATTACH_RETRY_S))
            if isinstance(message, AskFailed) and message.reason != "unreachable":
                self._heard_perhaps()

    def _heard_perhaps(self) -> None:
        """The starter may have been asked, and its answer been lost: then its lease began anew, and ours does."""
        self._out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))

    def _saved_itself(self, event: RunCheckpointed) -> None:
        if self.state is ShadowState.RUNNING and event.number != self._keeping:
            self._keeping = event.number
            self._usage(event.usage)
            self._out.append(KeepCheckpoint(event.number, event.files, event.files_digest))

    def _checkpoint_home(self, event: CheckpointHome) -> None:
        self._keeping = 0
        self._out.append(Send(self._starter, CheckpointKept(
            run_id=self.order.run_id, number=event.number, problem=event.problem)))
        if not event.problem:
            self.attributes.update({"NumCkpts": self.job.get_int("NumCkpts") + event.number,
                                    "LastCkptTime": int(self._now_s)})
            self._log(JobEventType.CHECKPOINTED, RunCheckpointBytes=event.size_bytes)
            self._tell("")

    # ---- the end

    def _run_exited(self, event: RunExited) -> None:
        if self._exited is not None or self.state is ShadowState.ENDED:
            return
        self._exited = event
        self.state = ShadowState.BRINGING
        self._out += [CancelTimer("update"), CancelTimer("lease")]
        self._usage(event.usage)
        size_bytes = sum(entry.size_bytes for entry in event.outputs)
        if event.cause == "exited" and self._too_much(
                "MaxTransferOutputMB", size_bytes, "output", HoldCode.MAX_TRANSFER_OUTPUT_SIZE_EXCEEDED):
            return
        removed = event.cause != "exited" and self._stopping is not None and self._stopping.how == "remove"
        if (event.outputs or event.outputs_digest) and not removed:
            if event.cause == "exited":
                self._log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.OUT_STARTED)
                if event.outputs_digest or any(each.kind == "file" and each.inline is None for each in event.outputs):
                    self._report_now("transferring-output")
            self._out.append(BringOutputs(event.outputs, event.outputs_digest, event.cause in ("evicted", "killed")))
        else:
            self._finish(0)

    def _outputs_home(self, event: OutputsHome) -> None:
        exited = self._exited
        if self.state is ShadowState.BRINGING and exited is not None:
            if exited.cause == "exited" and (exited.outputs or exited.outputs_digest):
                self._log(JobEventType.FILE_TRANSFER, TransferStep=FileTransferEventType.OUT_FINISHED)
            self._finish(event.received_bytes)

    def _outputs_failed(self, event: OutputsFailed) -> None:
        if self.state is not ShadowState.BRINGING:
            return
        if event.remote:
            self._end("failed", f"the output files could not be fetched: {event.reason}", claim_usable=False)
        else:
            self._end("hold", f"Transfer output files failure: {event.reason}", HoldCode.TRANSFER_OUTPUT_ERROR,
                      event.subcode, claim_usable=self._exited is not None and self._exited.claim_open)

    def _finish(self, received_bytes: int) -> None:
        exited = self._exited
        assert exited is not None
        self.attributes.update({
            "RunBytesSent": received_bytes, "RunBytesRecvd": self._sent_bytes,
            "BytesSent": self.job.get_int("BytesSent") + received_bytes,
            "BytesRecvd": self.job.get_int("BytesRecvd") + self._sent_bytes,
        })
        if exited.cause == "exited":
            self._exit_attributes(exited)
            self._end("exited", "", claim_usable=exited.claim_open)
        elif exited.hold_code:
            self._end("hold", exited.reason, exited.hold_code, exited.hold_subcode, claim_usable=exited.claim_open)
        elif exited.cause in ("evicted", "killed"):
            self._end("evicted", exited.reason, claim_usable=exited.claim_open)
        else:
            self._end("failed", exited.reason or exited.cause, claim_usable=False)

    def _exit_attributes(self, exited: RunExited) -> None:
        by_signal = exited.exit_signal > 0
        self.attributes.update({
            "ExitBySignal": by_signal, "ExitStatus": exited.exit_signal if by_signal else exited.exit_code,
            "JobCoreDumped": exited.core_dumped, "TerminationPending": True,
            "JobCurrentFinishTransferOutputDate": int(self._now_s),
        })
        if by_signal:
            self.attributes["ExitSignal"] = exited.exit_signal
        else:
            self.attributes["ExitCode"] = exited.exit_code

    def _end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0, *, claim_usable: bool = True) -> None:
        self.state = ShadowState.ENDED
        self.ended = RunEnded(run_id=self.order.run_id, outcome=outcome, attributes=self.attributes.to_bytes(),
                              reason=reason, hold_code=code, hold_subcode=subcode, claim_usable=claim_usable)
        self._out += [CancelTimer("update"), CancelTimer("lease"), CancelTimer("reattach"), Report(self.ended)]

    def _settled(self, event: Settled) -> None:
        """The schedd has committed the end: only now may the starter forget it, also one that was found (or may be)
        after the run was given up."""
        if self._exited is not None or self._asking or self._found_late:
            self._out.append(Send(self._starter, OutputsReceived(run_id=self.order.run_id)))

    def _schedd_back(self, event: ScheddBack) -> None:
        """Say again how the run is."""
        if self._began and self.state in (ShadowState.RUNNING, ShadowState.APART):
            self._report_now("suspended" if self._suspended else "continued")

    def _log(self, event: int, **facts: Any) -> None:
        self._out.append(Log(event, facts))

    def _make_table(self) -> dict[type, Callable[[Any], None]]:
        return {
            InputsReady: self._inputs_ready, InputsFailed: self._inputs_failed, Answer: self._answer,
            Activated: self._more_wanted, BlobsSent: self._blobs_sent, BlobsFailed: self._blobs_failed,
            RunBegan: self._began_running,
            RunProgress: self._progress, RunExited: self._run_exited, OutputsHome: self._outputs_home,
            OutputsFailed: self._outputs_failed, SuspendRun: self._suspend, ContinueRun: self._suspend,
            StopRun: self._stop, PeerUp: self._peer_up, PeerDown: self._peer_down, TimerFired: self._timer,
            Settled: self._settled, ScheddBack: self._schedd_back, RunCheckpointed: self._saved_itself,
            CheckpointHome: self._checkpoint_home,
        }
