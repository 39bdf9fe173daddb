"""The run of a fetched job: what a shadow and a schedd do for other jobs, as far as such a job has need of it.

Theory: the startd's process has the claim, so it activates it at the machine's own starter host, keeps its lease, and
gives it back when the job has ended.  A startd that is started again finds the claim in its store, with the job and the
name of its run, and asks for that run by it.  The starter host is looked for again and again, for either of the two may
be another process by now; so it does not matter which message was lost.

==============  ===================================================================================
activating      the starter host was asked to begin the run, or whether it has it
running         it has it
leaving         the run is over, or the startd takes the claim back; its end is waited for
over            nothing is left
==============  ===================================================================================
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.fetched_work.fetched_job import run_of
from condor_actors.cores.fetched_work.fetching import LEASE_S, STARTD, RunIsOver
from condor_actors.cores.state_table import ignore, total_table
from condor_actors.effects import Answer, Ask, Effect, Note, Reply, Send, SetTimer
from condor_actors.messages.claim import ClaimRevoked, ClaimsRenewed, ReleaseClaim, RenewClaims
from condor_actors.messages.envelope import Address, Done, Refused, TimerFired
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunBegan,
    RunExited,
    RunProgress,
)

__all__ = ["FetchedClaim", "FetchedRun", "State", "TABLE", "TellOver"]

LOOK_S = 2.0
ASK_S = 20.0
LEAVE_S = 60.0
"""How long the startd may take to say that the claim is over."""


class State(enum.Enum):
    """How far a run is."""

    ACTIVATING = "activating"
    RUNNING = "running"
    LEAVING = "leaving"
    OVER = "over"


@attrs.frozen(kw_only=True)
class FetchedClaim:
    """The claim of a fetched job.

    Attributes:
        slot: that fetched it; claim_id, secret: of the claim.
        job, slot_ad: text.
        is_known: whether the run may have begun: a startd before this one had it.
    """

    slot: str
    claim_id: str
    secret: str
    job: bytes
    slot_ad: bytes
    is_known: bool = False

    @property
    def run_id(self) -> str:
        """The name of the run; empty: the job has none."""
        return run_of(ClassAd.from_bytes(self.job))


@attrs.frozen
class TellOver(Effect):
    """Tell the slot's machine."""

    over: RunIsOver


class FetchedRun:
    """The core; see the module.

    Args:
        claim: of the job.
        starter: where the starter host is now; None: there is none.
    """

    def __init__(self, claim: FetchedClaim, starter: Callable[[], Address | None]) -> None:
        self.claim = claim
        self.state = State.ACTIVATING
        self.run_id = claim.run_id
        self._starter = starter
        self._at: Address | None = None
        self._asks = claim.is_known
        self._ended_well = False
        self._told_evicted = False
        self._effects: list[Effect] = []

    def start(self) -> tuple[Effect, ...]:
        """The first turn."""
        self._effects = []
        self._renew()
        self._look()
        return tuple(self._effects)

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event``; ``now_s`` does not matter."""
        self._effects = []
        key: Any = type(event)
        if isinstance(event, TimerFired):
            key = f"timer {event.key}"
        elif isinstance(event, Answer):
            key = f"answer {event.tag}"
        if (self.state, key) in TABLE:
            TABLE[self.state, key](self, event)
        else:
            self._effects.append(Reply(Refused(code="denied", text="a fetched job has no home that could do that")))
        return tuple(self._effects)

    # ---- steps

    def _look(self, event: Any = None) -> None:
        """Speak to the starter host that there is now, unless it was spoken to."""
        self._effects.append(SetTimer("look", LOOK_S))
        starter = self._starter()
        if starter is None or starter == self._at:
            return
        self._at = starter
        claim = self.claim
        message: Any = ActivateClaim(claim_id=claim.claim_id, secret=claim.secret, run_id=self.run_id, job_ad=claim.job,
                                     lease_s=LEASE_S)
        if self._asks:
            message = ReattachRun(claim_id=claim.claim_id, secret=claim.secret, run_id=self.run_id)
        self._effects.append(Ask(starter, message, ASK_S, "run"))

    def _run_answered(self, event: Answer) -> None:
        """The starter host has begun the run, or has it; or not."""
        if isinstance(event.message, (Activated, Reattached)):
            self._asks = True
            if self.state is State.ACTIVATING:
                self.state = State.RUNNING
        elif isinstance(event.message, Refused) and event.message.code != "busy":
            self._give_back(f"the starter host does not have it: {event.message.text}", driven_out=True)
        else:
            self._at = None  # asked again at the next look

    def _began(self, event: RunBegan) -> None:
        self._asks = True
        self._effects.append(Note(f"the fetched job of run {self.run_id} runs, pid {event.pid}"))

    def _progress(self, event: RunProgress) -> None:
        self._effects.append(Reply(Done()))

    def _exited(self, event: RunExited) -> None:
        """The job is gone; what it has left there was its hook's to take."""
        self._ended_well = self._ended_well or event.cause == "exited"
        if self._at is not None:
            starter = Address(self._at.node, f"starter/{self.run_id}")
            self._effects.append(Send(starter, OutputsReceived(run_id=self.run_id)))
        if self.state is State.LEAVING:
            return
        how = f"signal {event.exit_signal}" if event.exit_signal > 0 else f"status {event.exit_code}"
        text = f"it ended with {how}" if event.cause == "exited" else f"{event.cause}: {event.reason}"
        self._give_back(text, driven_out=not self._ended_well)

    def _revoked(self, event: ClaimRevoked) -> None:
        """The startd takes the claim back, or has."""
        if not self._ended_well and self.state is not State.LEAVING:
            self._tell(event.reason, driven_out=True, is_last=False)
        self.state = State.LEAVING
        self._effects.append(SetTimer("leave", LEAVE_S))
        if event.final:
            self._over(event.reason)

    def _renew(self, event: Any = None) -> None:
        self._effects += [SetTimer("renew", LEASE_S / 4), Ask(STARTD, RenewClaims(
            claims=((self.claim.claim_id, self.claim.secret),)), ASK_S, "renewed")]

    def _renewed(self, event: Answer) -> None:
        if isinstance(event.message, ClaimsRenewed) and self.claim.claim_id in event.message.gone:
            self._over("the startd does not know its claim any more")

    def _left(self, event: Any) -> None:
        """The end of the claim was not told."""
        self._over("")

    # ---- parts of steps

    def _give_back(self, reason: str, *, driven_out: bool) -> None:
        self.state = State.LEAVING
        if driven_out:
            self._tell(reason, driven_out=True, is_last=False)
        self._effects += [
            Note(f"the fetched job of run {self.run_id}: {reason}"),
            Ask(STARTD, ReleaseClaim(claim_id=self.claim.claim_id, secret=self.claim.secret,
                                     reason="the fetched job has ended"), ASK_S, "released"),
            SetTimer("leave", LEAVE_S)]

    def _over(self, reason: str) -> None:
        driven_out = self.state in (State.ACTIVATING, State.RUNNING)
        self.state = State.OVER
        self._tell(reason if driven_out else "", driven_out=driven_out, is_last=True)

    def _tell(self, reason: str, *, driven_out: bool, is_last: bool) -> None:
        told, self._told_evicted = self._told_evicted, self._told_evicted or driven_out
        self._effects.append(TellOver(RunIsOver(
            slot=self.claim.slot, job=self.claim.job, slot_ad=self.claim.slot_ad, driven_out=driven_out and not told,
            is_last=is_last, reason=f"the fetched job of run {self.run_id}: {reason}" if reason else "")))


_GOES = ignore("it is on its way out")
_GONE = ignore("nothing is left")

_Step = Callable[[FetchedRun, Any], None]
_ROWS: dict[type | str, tuple[_Step | ignore, ...]] = {
    # activating, running, leaving, over
    "timer look": (FetchedRun._look, FetchedRun._look, ignore("its end does not depend on the starter host"), _GONE),
    "timer renew": (FetchedRun._renew, FetchedRun._renew, FetchedRun._renew, _GONE),
    "timer leave": (ignore("it does not leave"), ignore("it does not leave"), FetchedRun._left, _GONE),
    "answer run": (FetchedRun._run_answered, FetchedRun._run_answered, _GOES, _GONE),
    "answer renewed": (FetchedRun._renewed, FetchedRun._renewed, FetchedRun._renewed, _GONE),
    "answer released": (_GOES, _GOES, _GOES, _GONE),
    RunBegan: (FetchedRun._began, FetchedRun._began, _GOES, _GONE),
    RunProgress: (FetchedRun._progress, FetchedRun._progress, FetchedRun._progress, _GONE),
    RunExited: (FetchedRun._exited, FetchedRun._exited, FetchedRun._exited, _GONE),
    ClaimRevoked: (FetchedRun._revoked, FetchedRun._revoked, FetchedRun._revoked, _GONE),
}
TABLE: Final = total_table("the run of a fetched job", State, _ROWS)
