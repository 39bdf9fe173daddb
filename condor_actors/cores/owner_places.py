"""The vocabulary of a slot's policy: where a slot can be, what can happen to it, what follows.

:mod:`condor_actors.cores.owner_policy` has the table that binds them.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

__all__ = [
    "Action", "Activity", "BENCHMARKING", "BUSY", "Begin", "CLAIMED", "Claim", "DRAINED", "DRAINING",
    "Drain",
    "Drop", "EVENTS", "Emptied", "End", "Event", "Evict", "Freeze", "Gone", "Halt", "KILLING", "Kill", "Look", "Lower",
    "MATCHED",
    "Match", "OWNER", "PLACES", "Place", "RETIRING", "Released", "Revoke", "SUSPENDED", "StartTimer", "State",
    "StopTimer", "Thaw", "Timeout", "UNCLAIMED", "Undrain", "VACATING", "Vacate",
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


Place = tuple[State, Activity]

OWNER: Place = (State.OWNER, Activity.IDLE)
UNCLAIMED: Place = (State.UNCLAIMED, Activity.IDLE)
BENCHMARKING: Place = (State.UNCLAIMED, Activity.BENCHMARKING)
MATCHED: Place = (State.MATCHED, Activity.IDLE)
CLAIMED: Place = (State.CLAIMED, Activity.IDLE)
BUSY: Place = (State.CLAIMED, Activity.BUSY)
SUSPENDED: Place = (State.CLAIMED, Activity.SUSPENDED)
RETIRING: Place = (State.CLAIMED, Activity.RETIRING)
VACATING: Place = (State.PREEMPTING, Activity.VACATING)
KILLING: Place = (State.PREEMPTING, Activity.KILLING)
DRAINING: Place = (State.DRAINED, Activity.RETIRING)
DRAINED: Place = (State.DRAINED, Activity.IDLE)

PLACES = (OWNER, UNCLAIMED, BENCHMARKING, MATCHED, CLAIMED, BUSY, SUSPENDED, RETIRING, VACATING, KILLING, DRAINING,
          DRAINED)


# ---- events


@attrs.frozen(kw_only=True)
class Look:
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
class Match:
    """The negotiator gave the slot to somebody."""

    submitter: str


@attrs.frozen
class Claim:
    """A schedd's request was granted."""


@attrs.frozen
class Begin:
    """A run was activated on the claim; ``frozen``: a startd that was started again learns of one it had suspended."""

    frozen: bool = False


@attrs.frozen
class Halt:
    """The run stands still because its user wants it (condor_suspend), or may go on again (``on`` False)."""

    on: bool


@attrs.frozen
class End:
    """The claim's run is over."""


@attrs.frozen
class Released:
    """The schedd gave the claim up, or its lease ran out (``reason``)."""

    reason: str


@attrs.frozen
class Evict:
    """The job has to go for another reason than PREEMPT.

    ``how``: ``finish`` (it may run to its end), ``retire`` (it may use its retirement time), ``vacate`` (it may save
    its work) or ``kill``.
    """

    reason: str
    how: str = "vacate"


@attrs.frozen
class Gone:
    """Nothing of the claim is left on the machine."""


@attrs.frozen
class Drain:
    """Take the slot out of service; ``how`` as in :class:`Evict`."""

    how: str = "retire"


@attrs.frozen
class Emptied:
    """Every slot of the draining machine is empty."""


@attrs.frozen
class Undrain:
    """Back into service."""


@attrs.frozen
class Timeout:
    """A timer of the slot ran out: ``match``, ``retire``, ``vacate`` or ``kill``."""

    what: str


Event = Any
EVENTS = (Look, Match, Claim, Begin, Halt, End, Released, Evict, Gone, Drain, Emptied, Undrain, Timeout)


# ---- what follows


@attrs.frozen
class Freeze:
    """Suspend the whole tree of the run."""


@attrs.frozen
class Thaw:
    """Let it go on."""


@attrs.frozen
class Lower:
    """Leave the run only what nobody else wants of processor and disk (``on``), or its share again (LOWER)."""

    on: bool


@attrs.frozen(kw_only=True)
class Vacate:
    """Ask the run to go within ``grace_s``; with ``hold`` its job is to be held."""

    grace_s: float
    reason: str
    hold: bool = False
    hold_subcode: int = 0


@attrs.frozen
class Kill:
    """Kill the run."""

    reason: str


@attrs.frozen
class Revoke:
    """Tell the schedd that the claim is ending."""

    reason: str


@attrs.frozen
class Drop:
    """The claim is over: forget it and tell its schedd."""

    reason: str


@attrs.frozen
class StartTimer:
    """Have :class:`Timeout` in ``delay_s``."""

    what: str
    delay_s: float


@attrs.frozen
class StopTimer:
    """Forget a timer."""

    what: str


Action = Freeze | Thaw | Lower | Vacate | Kill | Revoke | Drop | StartTimer | StopTimer
