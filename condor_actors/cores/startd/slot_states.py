"""The vocabulary of a slot's policy: where a slot can be, what can happen to it, what follows.

:mod:`condor_actors.cores.startd.owner_policy` has the table that binds them.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

__all__ = [
    "Action", "Activity", "BENCHMARKING", "BUSY", "CLAIMED", "ClaimCleared", "Claimed", "DRAINED", "DRAINING",
    "DrainCancelled", "DrainRequested", "EVENTS", "Event", "EvictRequested", "ForgetMatch", "KILLING", "KillJob",
    "LowerPriority", "MATCHED", "MachineEmptied", "Matched", "OWNER", "PolicyEvaluation", "RETIRING", "Released",
    "ResumeJob", "RevokeClaim", "RunFinished", "RunStarted", "SLOT_STATES", "SUSPENDED", "SlotState", "StartTimer",
    "State", "StopTimer", "SuspendJob", "TimerExpired", "UNCLAIMED", "UserSuspended", "VACATING", "VacateJob",
]


class State(str, enum.Enum):
    """As published in ``State``."""

    OWNER = "Owner"
    UNCLAIMED = "Unclaimed"
    MATCHED = "Matched"
    CLAIMED = "Claimed"
    PREEMPTING = "Preempting"
    DRAINED = "Drained"


class Activity(str, enum.Enum):
    """As published in ``Activity``."""

    IDLE = "Idle"
    BENCHMARKING = "Benchmarking"
    BUSY = "Busy"
    SUSPENDED = "Suspended"
    RETIRING = "Retiring"
    VACATING = "Vacating"
    KILLING = "Killing"


SlotState = tuple[State, Activity]

OWNER: SlotState = (State.OWNER, Activity.IDLE)
UNCLAIMED: SlotState = (State.UNCLAIMED, Activity.IDLE)
BENCHMARKING: SlotState = (State.UNCLAIMED, Activity.BENCHMARKING)
MATCHED: SlotState = (State.MATCHED, Activity.IDLE)
CLAIMED: SlotState = (State.CLAIMED, Activity.IDLE)
BUSY: SlotState = (State.CLAIMED, Activity.BUSY)
SUSPENDED: SlotState = (State.CLAIMED, Activity.SUSPENDED)
RETIRING: SlotState = (State.CLAIMED, Activity.RETIRING)
VACATING: SlotState = (State.PREEMPTING, Activity.VACATING)
KILLING: SlotState = (State.PREEMPTING, Activity.KILLING)
DRAINING: SlotState = (State.DRAINED, Activity.RETIRING)
DRAINED: SlotState = (State.DRAINED, Activity.IDLE)

SLOT_STATES = (OWNER, UNCLAIMED, BENCHMARKING, MATCHED, CLAIMED, BUSY, SUSPENDED, RETIRING, VACATING, KILLING, DRAINING,
          DRAINED)


# ---- events


@attrs.frozen(kw_only=True)
class PolicyEvaluation:
    """The policy's expressions, evaluated now."""

    is_owner: bool = False
    suspend: bool = False
    resume: bool = True
    preempt: bool = False
    kill: bool = False
    want_suspend: bool = False
    want_vacate: bool = True
    want_hold: bool = False
    hold_reason: str = ""
    hold_subcode: int = 0
    retirement_s: float = 0.0
    vacate_s: float = 600.0
    benchmark: bool = False
    lower: bool = False


@attrs.frozen
class Matched:
    """The negotiator matched the slot."""

    submitter: str


@attrs.frozen
class Claimed:
    """A schedd's request was granted."""


@attrs.frozen
class RunStarted:
    """A run was activated on the claim; ``frozen``: a startd that was started again learns of one it had suspended."""

    owner_suspended: bool = False


@attrs.frozen
class UserSuspended:
    """The run stands still because its user wants it (condor_suspend), or may go on again (``on`` False)."""

    on: bool


@attrs.frozen
class RunFinished:
    """The claim's run is over."""


@attrs.frozen
class Released:
    """The schedd gave the claim up, or its lease ran out (``reason``)."""

    reason: str


@attrs.frozen
class EvictRequested:
    """The job has to go for another reason than PREEMPT.

    ``how``: ``finish`` (it may run to its end), ``retire`` (it may use its retirement time), ``vacate`` (it may save
    its work) or ``kill``.
    """

    reason: str
    how: str = "vacate"


@attrs.frozen
class ClaimCleared:
    """Nothing of the claim is left on the machine."""


@attrs.frozen
class DrainRequested:
    """Take the slot out of service; ``how`` as in :class:`EvictRequested`."""

    how: str = "retire"


@attrs.frozen
class MachineEmptied:
    """Every slot of the draining machine is empty."""


@attrs.frozen
class DrainCancelled:
    """Back into service."""


@attrs.frozen
class TimerExpired:
    """A timer of the slot ran out: ``match``, ``retire``, ``vacate`` or ``kill``."""

    what: str


Event = Any
EVENTS = (
    PolicyEvaluation, Matched, Claimed, RunStarted, UserSuspended, RunFinished, Released, EvictRequested, ClaimCleared,
    DrainRequested, MachineEmptied, DrainCancelled, TimerExpired,
)


# ---- what follows


@attrs.frozen
class SuspendJob:
    """Suspend the whole tree of the run."""


@attrs.frozen
class ResumeJob:
    """Let it go on."""


@attrs.frozen
class LowerPriority:
    """Leave the run only idle processor and disk time of processor and disk (``on``), or its share again (LOWER)."""

    on: bool


@attrs.frozen(kw_only=True)
class VacateJob:
    """Ask the run to go within ``grace_s``; with ``hold`` its job is to be held."""

    grace_s: float
    reason: str
    hold: bool = False
    hold_subcode: int = 0


@attrs.frozen
class KillJob:
    """Kill the run."""

    reason: str


@attrs.frozen
class RevokeClaim:
    """Tell the schedd that the claim is ending."""

    reason: str


@attrs.frozen
class ForgetMatch:
    """The claim is over: forget it and tell its schedd."""

    reason: str


@attrs.frozen
class StartTimer:
    """Have :class:`TimerExpired` in ``delay_s``."""

    what: str
    delay_s: float


@attrs.frozen
class StopTimer:
    """Forget a timer."""

    what: str


Action = (
    SuspendJob | ResumeJob | LowerPriority | VacateJob | KillJob | RevokeClaim | ForgetMatch | StartTimer | StopTimer
)
