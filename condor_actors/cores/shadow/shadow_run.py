"""One run of one job as its shadow sees it: from the order to its end.

Theory: the shadow stands for the user.  It puts the inputs together, hands the job to the starter of the claim,
writes down what happens, brings the outputs home and reports the end until the schedd has it.  A link
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
bringing      outputs home → ended; no room → bringing, again; not writable → ended (hold)
ended         –
============= ==============================================================================================

What every event does in every state is in :mod:`condor_actors.cores.shadow.shadow_run_table`.  ``StopRun`` is taken in
every state; a wish to suspend or continue waits for the starter.  The starter keeps a run that has ended until the
schedd has committed its end, so a process that dies in between finds it there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from condor_actors.addresses import MOST_PORT
from condor_actors.classads import UNDEFINED, ClassAd
from condor_actors.cores.job_images import HOST_PORT, BadService, asks_always, services_of
from condor_actors.cores.reasons import bounded_reason
from condor_actors.cores.shadow.shadow_events import (
    BringOutputs,
    Log,
    PrepareInputs,
    Report,
    SendBlobs,
    ShadowState,
    Watch,
)
from condor_actors.cores.shadow.shadow_run_table import ANSWER_PATIENCE_S, TABLE, Step
from condor_actors.cores.state_table import EventKey, InvariantBroken, event_key, ignore
from condor_actors.effects import Ask, CancelTimer, Effect, Note, Send, SetTimer, job_note
from condor_actors.messages.codes import FileTransferEventType, JobEventType, JobStatus, Universe
from condor_actors.messages.envelope import Address, AskFailed, Refused
from condor_actors.messages.references.image_reference import DIGEST, IMAGE_DIGEST
from condor_actors.messages.run import ContinueRun, Reattached, ReattachRun, RunExited, StopRun, SuspendRun, Usage
from condor_actors.messages.shadow_host import (
    MOST_TRANSFERS,
    PROBLEM_CHARACTERS,
    RunEnded,
    RunUpdated,
    StartRun,
    Transfer,
)
from condor_actors.numerals import whole

__all__ = ["ShadowRun"]

REATTACH_RETRY_S = 5.0
UNANSWERED = frozenset({"busy", "internal"})
"""Refusals that say nothing about the run: it may well be alive, and is asked for again within its lease."""
NOTICE_S = 150.0
"""The starter ends a run when its lease is over since it noticed that the shadow is gone, which takes up to 120 s where
nothing resets the connection.  The shadow gives the run up after that, so that the job is not
started a second time beside it.
"""
ROOM_RETRY_S = 15.0
ROOM_PATIENCE_S = 900.0
"""How long, and how often, the outputs of a program that has ended are brought where a disk at home is full.  The
starter keeps them meanwhile; then the job is held, and the reason names the file."""
REFUSALS = 4
"""Refused connections in a row after which nobody waits for the lease: a starter host that is started again listens
elsewhere, and the kernel has killed the jobs of the dead one."""
LATELY_S = 600.0
"""A start that the queue has known for longer is in the user log."""
UPDATE_DELAY_S = 0.5
"""A run that is over sooner is not reported as executing: its end says it all."""
MOST_USED = 1 << 53
"""That a run can have used of anything, in the unit of the figure."""
MOST_STATUS = (1 << 31) - 1


def _status(number: int) -> int:
    """A status or code of a machine's making, as the systems of this world have them: 32 bits."""
    return max(-MOST_STATUS - 1, min(number, MOST_STATUS))


def _sentence(text: str) -> str:
    """A text of a machine's making: one line that fits into an ad."""
    return " ".join(bounded_reason(text).splitlines())


def _sentences(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of an event, its texts as sentences."""
    return {name: _sentence(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}


class ShadowRun:
    """Decides what the shadow of one run does, from the schedd's order to the run's end.

    Args:
        order: what the schedd said.
        job: the job ad, ``$$()`` expanded.
        transfer_key: the secret of bulk transfers for this run.

    Attributes:
        state: see the module.
        ended: what was told of its end.
        attributes: what the run has made of the job's ad so far.
        began: whether its program is known to have begun; suspended: whether it is known to stand still.
        stopping: the wish to end it; wish: the user's, to suspend or continue, that no starter has heard yet.
        exited: how the starter says that it ended.
        no_room_since_s: since when its outputs wait for room at home; None: they do not.
        claim_over: why its claim is over; empty: it is not.
        transfers: how its files travelled; under_way: kinds of files that do, since when.
        input_files: how many go to the machine.
        asking: whether a reattachment is asked for; found_late: one was answered when the run had been given up.
        out: what follows from the event being handled.
    """

    table: ClassVar[Mapping[tuple[ShadowState, EventKey], Step | ignore]] = TABLE

    def __init__(self, order: StartRun, job: ClassAd, transfer_key: str) -> None:
        self.order = order
        self.job = job
        self.state = ShadowState.APART if order.reattach else ShadowState.PREPARING
        self.ended: RunEnded | None = None
        self.attributes = ClassAd()
        self.key = transfer_key
        self.host = Address(order.starter_node, "starter-host")
        self.starter = Address(order.starter_node, f"starter/{order.run_id}")
        self.began = False
        self.stopping: StopRun | None = None
        self.wish: SuspendRun | ContinueRun | None = None
        self.exited: RunExited | None = None
        self.no_room_since_s: float | None = None
        self.keeping = 0
        self.told = ""
        self.suspended = order.reattach and job.get_int("JobStatus") == JobStatus.SUSPENDED
        self.claim_over = ""
        self._refusals = 0
        self._image_kib = 0
        self._changed_s = 0.0
        self.sent_bytes = 0
        self.has_inputs = False
        self.transfers: list[Transfer] = []
        self.under_way: dict[str, float] = {}
        self.input_files = 0
        self.asking = self.found_late = False
        self.out: list[Effect] = []
        self.now_s = 0.0

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        self.now_s = now_s
        self.out.append(Watch())
        if self.order.reattach:
            self.out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))
            self.ask_reattach()
        else:
            self.out.append(PrepareInputs())
        return self._take()

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self.now_s = now_s
        step = self.table.get((self.state, event_key(event)))
        if step is None:
            self.out.append(Note(f"run {self.order.run_id}: {type(event).__name__} means nothing here", "debug"))
        else:
            step(self, event)
        return self._take()

    def _take(self) -> tuple[Effect, ...]:
        out, self.out = self.out, []
        return tuple(out)

    def note(self, kind: str, text: str, level: str = "info") -> None:
        """A line of the job's story."""
        self.out.append(job_note(self.order.run_id, kind, text, level))

    def too_much(self, limit: str, size_bytes: int, what: str, code: int) -> bool:
        """Whether more would travel than the job's ad allows; then the run is over, and the job held."""
        most_mb = self.job.get_int(limit, -1)
        if most_mb < 0 or size_bytes <= most_mb << 20:
            return False
        reason = f"Transfer {what} files failure: {size_bytes} bytes are more than {limit} ({most_mb} MB)"
        self.end("hold", reason, code)
        return True

    def send_inputs(self, missing: tuple[str, ...]) -> None:
        """The starter has the job; it gets what it lacks of the inputs."""
        if missing:
            self.state = ShadowState.SENDING
            self.out.append(SendBlobs(missing))
        else:
            self.state = ShadowState.WAITING

    @property
    def counted_s(self) -> int:
        """When the program was started, as the job's ad says; 0: it does not know of it."""
        known_s = self.job.get_int("JobCurrentStartExecutingDate")
        return known_s if self.order.reattach and known_s >= self.job.get_int("JobCurrentStartDate") > 0 else 0

    def count_start(self, when_s: float) -> None:
        """The program was started: once more than the job's ad says, unless it says so already."""
        job, known_s = self.job, self.counted_s
        counted = known_s > 0
        self.attributes.update({
            "JobCurrentStartExecutingDate": known_s if counted else whole(when_s),
            "NumJobStarts": job.get_int("NumJobStarts") + (not counted),
        })

    def files_leave(self, kind: str) -> None:
        """Files of a kind are on their way."""
        self.under_way.setdefault(kind, self.now_s)
        if kind != "CHECKPOINT":
            self.attributes["TransferInStarted" if kind == "INPUT" else "TransferOutStarted"] = int(self.now_s)

    def files_there(self, kind: str, files: int = 0, size_bytes: int = 0, problem: str = "") -> None:
        """They have arrived, or will not; nothing where none were on their way."""
        began_s = self.under_way.pop(kind, None)
        if began_s is None:
            return
        if kind != "CHECKPOINT" and not problem:
            self.attributes["TransferInFinished" if kind == "INPUT" else "TransferOutFinished"] = int(self.now_s)
        self.transfers.append(Transfer(kind=kind, began_s=began_s, ended_s=self.now_s, files=files,
                                       size_bytes=size_bytes, problem=_sentence(problem)[:PROBLEM_CHARACTERS]))
        del self.transfers[:-MOST_TRANSFERS]

    def note_image(self, digest: str) -> None:
        """What its image's name means is decided by the first run, for all that follow, unless each is to ask."""
        known = IMAGE_DIGEST in self.attributes or (IMAGE_DIGEST in self.job and not asks_always(self.job))
        if DIGEST.match(digest) and not known:
            self.attributes[IMAGE_DIGEST] = digest

    def note_ports(self, ports: tuple[tuple[str, int], ...]) -> None:
        """The ports of the machine that lead to the job's services; of others nothing is believed."""
        if ports:
            self.attributes.update({f"{name}{HOST_PORT}": port for name, port in ports
                                    if name in self._services() and 0 < port <= MOST_PORT})

    def _services(self) -> tuple[str, ...]:
        try:
            return tuple(name for name, _ in services_of(self.job))
        except BadService:
            return ()

    def note_began(self, when_s: float, scratch_dir: str = "") -> None:
        """The program began: it runs, or has ended."""
        self.began = True
        self.count_start(when_s)
        self.files_there("INPUT", self.input_files, self.sent_bytes)
        if 0 < self.counted_s < self.now_s - LATELY_S:
            return
        if self.has_inputs and self.order.reattach:
            self.log_inputs_begin()
        if self.has_inputs:
            self.log_once(JobEventType.FILE_TRANSFER, when_s, TransferStep=FileTransferEventType.IN_FINISHED)
        self.log_once(JobEventType.EXECUTE, when_s, CondorScratchDir=scratch_dir)

    def log_inputs_begin(self) -> None:
        """Its inputs are on their way, since a date that all shadows of the run know."""
        self.log_once(JobEventType.FILE_TRANSFER, self.job.get_float("JobCurrentStartDate") or self.now_s,
                      TransferStep=FileTransferEventType.IN_STARTED)

    def note_pause(self, since_s: float, stands: bool, processes: int) -> None:
        """It stands still, or goes on again."""
        self.suspended, self._changed_s = stands, since_s
        self.note("suspended" if stands else "continued", "stands still" if stands else "goes on")
        if stands:
            self.log_once(JobEventType.JOB_SUSPENDED, since_s, NumPids=processes)
        else:
            self.log_once(JobEventType.JOB_UNSUSPENDED, since_s)

    def tell(self, event: str) -> None:
        """Report soon; what happens meanwhile goes along."""
        if not self.told:
            self.out.append(SetTimer("update", UPDATE_DELAY_S))
        self.told = event or self.told or " "

    def report_now(self, event: str) -> None:
        """Report what happened, and before that what was to be reported soon."""
        before, self.told = self.told.strip(), ""
        if before and event and before != event:
            self.report_now(before)
        self.out.append(Report(RunUpdated(run_id=self.order.run_id, attributes=self.attributes.to_bytes(),
                                           event=event)))

    def note_usage(self, usage: Usage) -> None:
        """What the run uses goes into the job's ad, and a size that grew into the log; figures of a machine that
        nothing can use count as the nearest that something can."""
        usage = Usage(**{name: min(max(used, 0), MOST_USED) for name, used in attrs.asdict(usage).items()})
        memory_kib = max(usage.memory_kib, usage.peak_memory_kib)
        busy_s = usage.user_cpu_s + usage.system_cpu_s
        self.attributes.update({
            "RemoteUserCpu": round(usage.user_cpu_s, 3), "RemoteSysCpu": round(usage.system_cpu_s, 3),
            "ResidentSetSize": memory_kib, "ImageSize": max(memory_kib, self._image_kib),
            "MemoryUsage": (memory_kib + 1023) // 1024, "DiskUsage": usage.disk_kib,
            "CpusUsage": round(busy_s / usage.wall_s, 4) if usage.wall_s > 0.1 else 0.0,
        })
        if memory_kib > self._image_kib * 1.1 and self.began:
            self._image_kib = memory_kib
            self.log(JobEventType.IMAGE_SIZE, ImageSize=memory_kib, ResidentSetSize=memory_kib,
                      MemoryUsage=(memory_kib + 1023) // 1024)

    def tell_wish(self) -> None:
        """Tell the starter what the user wishes, once."""
        if self.wish is not None:
            self.out.append(Send(self.starter, self.wish))
            self.wish = None

    def leave_removed(self) -> None:
        """Apart, nobody waits for a job that was removed.  Any other may be started again, so its run must be over
        before that is said: the starter hears of the stop when it is found, and ends the run with the lease if not."""
        if self.stopping is not None and self.stopping.how == "remove":
            self.end("evicted", self.stopping.reason, claim_usable=False)

    def give_up(self, reason: str) -> None:
        """The run is lost to its shadow, or never was more than an order.

        A member of a gang that was told to end decides nothing about its job: it is not said to be started again.
        """
        known = self.began or self.order.reattach
        is_judged = self.stopping is not None and self.job.get_int("JobUniverse") == Universe.PARALLEL
        if known and not is_judged:
            self.out.append(Log(  # the date of a run's end is each shadow's own
                JobEventType.JOB_RECONNECT_FAILED, _sentences({"DisconnectReason": reason}), again=self.order.reattach,
                once_since_s=self.job.get_int("JobCurrentStartDate") + 1))
        self.end("lost" if known else "failed", reason, claim_usable=False)

    def go_apart(self, reason: str) -> None:
        """The link is gone: the run goes on without us, for the time of its lease."""
        if self.claim_over:
            self.give_up(self.claim_over)
            return
        self.state = ShadowState.APART
        self.leave_removed()
        if self.state is not ShadowState.APART:
            return
        self.note("apart", f"out of touch with {self.order.slot_name}: {reason}; it goes on for its lease")
        if self.began:
            self.log(JobEventType.JOB_DISCONNECTED, DisconnectReason=reason)
            self.report_now("disconnected")
        self.out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))
        self.out.append(SetTimer("reattach", REATTACH_RETRY_S))

    def ask_reattach(self) -> None:
        """Ask the starter host for the run."""
        if self.asking:
            return
        self.asking = True
        order = self.order
        self.out.append(Ask(self.host, ReattachRun(claim_id=order.claim_id, secret=order.secret,
                                                    run_id=order.run_id, transfer_key=self.key),
                            ANSWER_PATIENCE_S, "reattach"))

    def reattached(self, message: Any) -> None:
        """Whether the run was found, or is not there, or nobody can say."""
        if isinstance(message, Reattached):
            self.state = ShadowState.RUNNING
            self._refusals = 0
            self.note("found", f"found again on {self.order.slot_name}")
            self.out.append(CancelTimer("lease"))
            if self.began or self.order.reattach:
                self.log(JobEventType.JOB_RECONNECTED)
                self.report_now("reconnected")
            self.catch_up(message)
            if self.stopping is not None:
                self.out.append(Send(self.starter, self.stopping))
            self.tell_wish()
        elif isinstance(message, Refused) and message.code not in UNANSWERED:
            self.give_up(f"the run is not to be found any more: {message.text}")
        elif isinstance(message, AskFailed) and message.nobody_listens:
            self._refusals += 1
            if self._refusals >= REFUSALS:
                self.give_up("the starter host is dead: its machine answers, but nobody listens there any more")
            else:
                self.out.append(SetTimer("reattach", REATTACH_RETRY_S))
        else:
            self._refusals = 0
            self.out.append(SetTimer("reattach", REATTACH_RETRY_S))
            if isinstance(message, AskFailed) and message.reason != "unreachable":
                self.heard_perhaps()

    def catch_up(self, found: Reattached) -> None:
        """What happened to the run while no shadow heard of it, or one that is gone."""
        if found.began_s and not self.began:
            self.has_inputs = self.has_inputs or found.has_inputs
            self.note_began(found.began_s, found.scratch_dir)
            self.tell("executing")
        new = [pause for pause in found.pauses if pause[0] > self._changed_s]
        for since_s, stands, processes in new:
            self.note_pause(since_s, stands, processes)
        if new:
            self.report_now("suspended" if self.suspended else "continued")

    def heard_perhaps(self) -> None:
        """The starter may have been asked, and its answer been lost: then its lease began anew, and ours does."""
        self.out.append(SetTimer("lease", self.order.lease_s + NOTICE_S))

    def bring_outputs(self, exited: RunExited) -> BringOutputs:
        """What brings the outputs home."""
        return BringOutputs(exited.outputs, exited.outputs_digest, exited.cause in ("evicted", "killed"),
                            exited.cause == "hold")

    def may_wait_for_room(self, reason: str) -> bool:
        """Try again when there may be room at home; whether it is not too late, and the job goes on."""
        if self.stopping is not None:
            return False
        if self.no_room_since_s is None:
            self.no_room_since_s = self.now_s
            self.note("no room", f"its outputs wait for room: {reason}", "warn")
        if self.now_s - self.no_room_since_s >= ROOM_PATIENCE_S:
            return False
        self.out.append(SetTimer("room", ROOM_RETRY_S))
        return True

    def finish(self, received_bytes: int) -> None:
        """The outputs are home: say how the run ended."""
        exited = self.exited
        assert exited is not None
        self.attributes.update({
            "RunBytesSent": received_bytes, "RunBytesRecvd": self.sent_bytes,
            "BytesSent": self.job.get_int("BytesSent") + received_bytes,
            "BytesRecvd": self.job.get_int("BytesRecvd") + self.sent_bytes,
        })
        if exited.cause == "exited":
            self._exit_attributes(exited)
            self.end("exited", "", claim_usable=exited.claim_open)
        elif exited.hold_code:
            self.end("hold", exited.reason, exited.hold_code, exited.hold_subcode, claim_usable=exited.claim_open)
        elif exited.cause in ("evicted", "killed"):
            self.end("evicted", exited.reason, claim_usable=exited.claim_open)
        else:
            self.end("failed", exited.reason or exited.cause, claim_usable=False)

    def _exit_attributes(self, exited: RunExited) -> None:
        by_signal = exited.exit_signal > 0
        self.attributes.update({
            "ExitBySignal": by_signal, "ExitStatus": _status(exited.exit_signal if by_signal else exited.exit_code),
            "JobCoreDumped": exited.core_dumped, "TerminationPending": True,
            "JobCurrentFinishTransferOutputDate": int(self.now_s),
        })
        if by_signal:
            self.attributes["ExitSignal"] = _status(exited.exit_signal)
        else:
            self.attributes["ExitCode"] = _status(exited.exit_code)

    def end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0, *, claim_usable: bool = True) -> None:
        """The run is over: tell the schedd until it has committed that."""
        self.state = ShadowState.ENDED
        code, subcode, reason = _status(code), _status(subcode), _sentence(reason)
        held = f" (hold code {code}, subcode {subcode})" if code else ""
        where = self.order.slot_name
        self.attributes.update({f"{name}{HOST_PORT}": UNDEFINED for name in self._services()})
        self.note("ended", f"the run on {where} is over: {outcome}{held}{': ' if reason else ''}{reason}")
        self.ended = RunEnded(run_id=self.order.run_id, outcome=outcome, attributes=self.attributes.to_bytes(),
                              reason=reason, hold_code=code, hold_subcode=subcode, claim_usable=claim_usable,
                              transfers=tuple(self.transfers))
        self.out += [CancelTimer("update"), CancelTimer("lease"), CancelTimer("reattach"), CancelTimer("room"),
                     Report(self.ended)]

    def log(self, event: int, **facts: Any) -> None:
        """Write an event to the user log."""
        self.out.append(Log(event, _sentences(facts)))

    def log_once(self, event: int, when_s: float, **facts: Any) -> None:
        """Write an event of a known time, unless another shadow of the run has."""
        self.out.append(Log(event, _sentences(facts), when_s, self.order.reattach))

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two events.

        Raises:
            InvariantBroken: something does not; says what.
        """
        over = self.state is ShadowState.ENDED
        if over != (self.ended is not None):
            raise InvariantBroken(f"run {self.order.run_id} is {self.state.value}, and the schedd was "
                                  f"{'' if self.ended is not None else 'not '}told its end")
        if self.exited is not None and self.state not in (ShadowState.BRINGING, ShadowState.ENDED):
            raise InvariantBroken(f"run {self.order.run_id} has ended at its starter, and is {self.state.value}")
        if self.state is ShadowState.BRINGING and self.exited is None:
            raise InvariantBroken(f"run {self.order.run_id} brings the outputs of a program that has not ended")
        if self.wish is not None and self.stopping is not None:
            raise InvariantBroken(f"run {self.order.run_id} is to stop, and still to hear {self.wish}")
        if self.state is ShadowState.RUNNING and self.wish is not None:
            raise InvariantBroken(f"run {self.order.run_id} runs, and was not told {self.wish}")
