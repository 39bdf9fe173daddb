"""One run of a standard-universe job as its shadow sees it: its files stay at home, and it can go on elsewhere.

Theory: such a run is a :class:`~condor_actors.cores.shadow.shadow_run.ShadowRun` without files that travel.  In their
place it has a *home*: a session that does the program's system calls, and the stream that brings them.  A program
without a home can change nothing any more, so a run whose home has ended is over at once, wherever its process may
still be: another may begin from the last checkpoint without waiting for any lease.

================= ==========================================================================================
event             what follows
================= ==========================================================================================
``HomeOpen``      the starter may begin
``HomeFailed``    ended: tried again, or held
``Checkpointed``  the queue and the log hear of it; asked for again after the interval
``NotTaken``      asked for again soon when helpers run, else told in the log
``ProgramExited`` the exit status, known here before the starter tells it
``HomeEnded``     with an exit: waits for the starter's word; without: the run is lost, or its end is on the way
================= ==========================================================================================

Before a new shadow host takes up a run of a dead one, the program's home has died with that: it ends the run and lets
the job go on from its last checkpoint, unless a note at home says that the program had ended by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.effects import CancelTimer, Effect, Note, Send, SetTimer
from condor_actors.messages.codes import HELPERS_RUN, HoldCode, JobEventType
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import (
    CheckpointRun,
    InputsSent,
    Reattached,
    RunExited,
    StartRun,
    StopRun,
)

__all__ = [
    "CheckpointFacts", "Checkpointed", "CloseHome", "HomeEnded", "HomeFailed", "HomeOpen", "HomeStatistics", "NotTaken",
    "OpenHome", "ProgramExited", "Refusal", "StandardRun",
]

APART_S = 60.0
"""How long a run whose starter is out of reach waits for it while its stream still lives."""
EXIT_PATIENCE_S = 20.0
"""How long the two words about an end (home's and the starter's) wait for each other."""
RETRY_S = 1.0
"""A checkpoint that could not be taken because helpers run is asked for again after this."""
RETRIES = 600


# ---- effects


@attrs.frozen
class OpenHome(Effect):
    """Open the session and the stream and send the checkpoint; comes back as HomeOpen or HomeFailed."""


@attrs.frozen
class CloseHome(Effect):
    """End the session and the stream, now."""


# ---- events


@attrs.frozen
class HomeOpen:
    """Home is there; ``restarted``: the program goes on from a checkpoint."""

    restarted: bool


@attrs.frozen
class HomeFailed:
    """It could not be opened; ``hold_code`` 0: it may be tried elsewhere."""

    reason: str
    hold_code: int = 0
    hold_subcode: int = 0


@attrs.frozen(kw_only=True)
class CheckpointFacts:
    """What is known of a checkpoint.

    Attributes:
        digest: names it; size_bytes: with holes; stored_bytes: without; sent_bytes: over the wire.
        cpu_level: of the processor it needs; threads: of the program; took_s: how long the program waited.
    """

    digest: str
    size_bytes: int
    stored_bytes: int
    sent_bytes: int
    cpu_level: int
    threads: int
    took_s: float


@attrs.frozen
class Checkpointed:
    """A checkpoint is whole and at home; ``last``: it was the program's last act on its machine."""

    facts: CheckpointFacts
    last: bool = False


@attrs.frozen
class NotTaken:
    """A checkpoint could not be taken; the program goes on."""

    number: int
    reason: str


@attrs.frozen
class ProgramExited:
    """The program has ended by itself; ``problem``: it could not even be started (errno, and why in words)."""

    status: int
    problem: int = 0
    why: str = ""


@attrs.frozen
class HomeEnded:
    """The session and its stream are over."""

    reason: str


@attrs.frozen
class Refusal:
    """A call of the program's was refused (for the log)."""

    call: str


@attrs.frozen(kw_only=True)
class HomeStatistics:
    """What the run did at home so far: see the attributes of the job's ad that bear the names."""

    calls: int = 0
    read_calls: int = 0
    write_calls: int = 0
    seek_calls: int = 0
    opened_files: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    checkpoint_bytes: int = 0
    local_cpu_s: float = 0.0
    by_name: tuple[tuple[str, int], ...] = ()


class StandardRun(ShadowRun):
    """Decides what the shadow of a standard-universe run does.

    Args:
        order, job, transfer_key: as for every run.
        exited: exit status of this very run, when a former shadow host has noted it.
    """

    def __init__(self, order: StartRun, job: ClassAd, transfer_key: str, exited: int | None = None) -> None:
        super().__init__(order, job, transfer_key)
        self._home = False
        self._home_ended = ""
        self._noted_exit = exited
        self._status: int | None = None
        self._problem = 0
        self._why = ""
        self._wanted = 0
        self._base = job.copy()
        self._received_bytes = 0
        self.vacated_with_checkpoint = False

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        if self._noted_exit is None:
            return super().start(now_s)
        self._now_s = now_s
        self._status = self._noted_exit
        self._exit_at_home()
        return self._take()

    # ---- begin

    def _send_inputs(self, missing: tuple[str, ...]) -> None:
        self.state = ShadowState.SENDING
        self._out.append(OpenHome())

    def _home_open(self, event: HomeOpen) -> None:
        if self.state is not ShadowState.SENDING:
            self._out.append(CloseHome())
            return
        self._home = True
        self.state = ShadowState.WAITING
        if event.restarted:
            self.attributes["NumRestarts"] = self.job.get_int("NumRestarts") + 1
        self.attributes["VacatedWithCheckpoint"] = False
        self._out.append(Send(self._starter, InputsSent(run_id=self.order.run_id)))

    def _home_failed(self, event: HomeFailed) -> None:
        if self.state is not ShadowState.SENDING:
            return
        self._out.append(Send(self._starter, StopRun(run_id=self.order.run_id, how="fast", reason=event.reason)))
        if event.hold_code:
            self._end("hold", event.reason, event.hold_code, event.hold_subcode, claim_usable=False)
        else:
            self._end("failed", event.reason, claim_usable=False)

    # ---- checkpoints

    def _checkpoint(self, event: CheckpointRun) -> None:
        """A checkpoint is wanted now."""
        if self.state is ShadowState.RUNNING:
            self._wanted = RETRIES
            self._out.append(Send(self._starter, event))

    def _checkpointed(self, event: Checkpointed) -> None:
        facts, job = event.facts, self.job
        self._wanted = 0
        count = self.attributes.get_int("NumCkpts", job.get_int("NumCkpts")) + 1
        self.attributes.update({
            "NumCkpts": count, "NumCkpts_RAW": count, "LastCkptTime": int(self._now_s),
            "LastCkptDigest": facts.digest, "CkptCpuLevel": facts.cpu_level, "CkptArch": "X86_64",
            "CkptOpSys": "LINUX", "CkptSize": facts.size_bytes // 1024, "CkptStoredSize": facts.stored_bytes // 1024,
            "CkptThreads": facts.threads, "LastCkptSeconds": round(facts.took_s, 3),
            "CkptBytesSent": self.attributes.get_int("CkptBytesSent", job.get_int("CkptBytesSent")) + facts.sent_bytes,
        })
        self.vacated_with_checkpoint = event.last
        self._log(JobEventType.CHECKPOINTED, **self._usage_facts(), RunCheckpointBytes=facts.sent_bytes)
        self._report_now("")

    def _usage_facts(self) -> dict[str, Any]:
        names = ("RemoteUserCpu", "RemoteSysCpu", "LocalUserCpu", "LocalSysCpu")
        return {name: self.attributes.get_float(name) for name in names}

    def _not_taken(self, event: NotTaken) -> None:
        if event.number == HELPERS_RUN and self._wanted > 0:
            self._wanted -= 1
            self._out.append(SetTimer("checkpoint", RETRY_S))
        else:
            self._wanted = 0
            self._out.append(Note(f"run {self.order.run_id}: no checkpoint: {event.reason}"))
        self.attributes["LastCkptProblem"] = event.reason or f"error {event.number}"
        self._tell("")

    def _timer(self, event: TimerFired) -> None:
        if event.key == "checkpoint":
            if self.state is ShadowState.RUNNING and self._wanted > 0:
                self._out.append(Send(self._starter, CheckpointRun(run_id=self.order.run_id, reason="again")))
        elif event.key == "home" and self.state is ShadowState.BRINGING:
            self._finish(0)
        elif event.key == "word" and self.state is ShadowState.RUNNING:
            self._give_up(self._home_ended)
        else:
            super()._timer(event)

    def _statistics(self, event: HomeStatistics) -> None:
        """What the papers measure: what the run cost at home, and what it got for it."""
        base, attributes = self._base, self.attributes
        for name, value in (
            ("NumRemoteSysCalls", event.calls), ("FileReadCount", event.read_calls),
            ("FileWriteCount", event.write_calls), ("FileSeekCount", event.seek_calls),
            ("FileOpenCount", event.opened_files), ("FileReadBytes", event.read_bytes),
            ("FileWriteBytes", event.written_bytes), ("CkptBytesSent", event.checkpoint_bytes),
        ):
            attributes[name] = base.get_int(name) + value
        if event.by_name:
            record = "; ".join(f"'{name}' = {count}" for name, count in event.by_name)
            attributes["RemoteSysCalls"] = parse_expression(f"[ {record} ]")
        attributes["LocalUserCpu"] = 0.0
        attributes["LocalSysCpu"] = round(event.local_cpu_s, 6)
        attributes["CumulativeLocalUserCpu"] = 0.0
        attributes["CumulativeLocalSysCpu"] = round(base.get_float("CumulativeLocalSysCpu") + event.local_cpu_s, 6)
        self._set_leverage()
        self._sent_bytes = event.read_bytes
        self._received_bytes = event.written_bytes + event.checkpoint_bytes

    def _set_leverage(self) -> None:
        """Remote processor time for one second of the home's."""
        remote_s = sum(self._base.get_float(f"CumulativeRemote{name}") + self.attributes.get_float(f"Remote{name}")
                       for name in ("UserCpu", "SysCpu"))
        local_s = self.attributes.get_float("CumulativeLocalSysCpu")
        if local_s > 0.0:
            self.attributes["Leverage"] = round(remote_s / local_s, 1)

    # ---- the end

    def _program_exited(self, event: ProgramExited) -> None:
        self._status, self._problem, self._why = event.status, event.problem, event.why

    def _home_over(self, event: HomeEnded) -> None:
        self._home, self._home_ended = False, event.reason or "its home is gone"
        if self.state is ShadowState.SENDING:
            self._home_failed(HomeFailed(f"the stream to the starter host ended: {event.reason}"))
        elif self.state is ShadowState.BRINGING:
            self._finish(0)
        elif self.state is ShadowState.APART:
            self._give_up(self._home_ended)
        elif self.state in (ShadowState.WAITING, ShadowState.RUNNING):
            self._out.append(SetTimer("word", EXIT_PATIENCE_S))

    def _run_exited(self, event: RunExited) -> None:
        if self._exited is not None or self.state is ShadowState.ENDED:
            return
        self._exited = event
        self.state = ShadowState.BRINGING
        self._out += [CancelTimer("update"), CancelTimer("lease"), CancelTimer("word"), CancelTimer("checkpoint")]
        self._usage(event.usage)
        if self._home:  # it has answered everything; what happened there last is still to be told
            self._out += [SetTimer("home", EXIT_PATIENCE_S), CloseHome()]
        else:
            self._finish(0)

    def _finish(self, received_bytes: int) -> None:
        exited = self._exited
        assert exited is not None
        if exited.cause == "exited" and self._problem:
            name = self.job.get_str("Cmd")
            self._end("hold", f"Error from {self.order.slot_name}: Failed to execute '{name}': "
                              f"{self._why}", HoldCode.FAILED_TO_CREATE_PROCESS, self._problem,
                      claim_usable=exited.claim_open)
            return
        if exited.cause == "exited" and self._status is not None and exited.exit_signal <= 0:
            self._exited = attrs.evolve(exited, exit_code=self._status & 0xFF)
        elif exited.cause != "exited" and self._status is not None and not self._problem:
            self._exit_at_home(claim_usable=exited.claim_open)
            return
        self.attributes["VacatedWithCheckpoint"] = self.vacated_with_checkpoint
        self._set_leverage()
        super()._finish(received_bytes or self._received_bytes)

    def _exit_at_home(self, *, claim_usable: bool = False) -> None:
        """Home knows that the program has ended; the starter's word never came, or says less."""
        assert self._status is not None
        code = self._status & 0xFF
        self.attributes.update({"ExitBySignal": False, "ExitStatus": code, "ExitCode": code,
                                "TerminationPending": True})
        self._end("exited", "", claim_usable=claim_usable)

    def _give_up(self, reason: str) -> None:
        if self._status is not None and not self._problem:
            self._exit_at_home()
        else:
            super()._give_up(reason)

    def _end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0, *, claim_usable: bool = True) -> None:
        super()._end(outcome, reason, code, subcode, claim_usable=claim_usable)
        self._out += [CancelTimer("home"), CancelTimer("word"), CancelTimer("checkpoint"), CloseHome()]

    # ---- links

    def _go_apart(self, reason: str) -> None:
        super()._go_apart(reason)
        if self.state is ShadowState.APART:
            if self._home_ended:
                self._give_up(self._home_ended)
            else:
                self._out.append(SetTimer("lease", min(APART_S, self.order.lease_s)))

    def _heard_perhaps(self) -> None:
        """Its program depends on its home, not on a lease."""

    def _reattached(self, message: Any) -> None:
        if not isinstance(message, Reattached) or self._home:
            super()._reattached(message)
            return
        self.state = ShadowState.RUNNING
        self._began = True
        self._home_ended = self._home_ended or "its shadow host has died"
        self._out += [CancelTimer("lease"), SetTimer("word", EXIT_PATIENCE_S)]
        if not message.ended:
            self._out.append(Send(self._starter, StopRun(run_id=self.order.run_id, how="fast",
                                                         reason=self._home_ended)))

    def _make_table(self) -> dict[type, Callable[[Any], None]]:
        return {
            **super()._make_table(), HomeOpen: self._home_open, HomeFailed: self._home_failed,
            CheckpointRun: self._checkpoint, Checkpointed: self._checkpointed, NotTaken: self._not_taken,
            HomeStatistics: self._statistics, ProgramExited: self._program_exited, HomeEnded: self._home_over,
            Refusal: self._refusal,
        }

    def _refusal(self, event: Refusal) -> None:
        known = self.attributes.get_str("RefusedCalls", self.job.get_str("RefusedCalls"))
        if event.call not in known.split(","):
            self.attributes["RefusedCalls"] = f"{known},{event.call}" if known else event.call
            self._tell("")


