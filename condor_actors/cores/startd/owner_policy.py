"""The states of a slot: when it serves the pool, and how a job makes way for the owner.

Theory: the owner comes first.  A slot is always at one of the twelve *places* (state, activity) below; every event has
its entry for every place in one table, so nothing is left to chance.  The policy expressions are evaluated outside
(:mod:`condor_actors.cores.startd.policy_evaluation`) and arrive as a :class:`PolicyEvaluation`.

===========================  ======================================================================================
place                        meaning
===========================  ======================================================================================
Owner / Idle                 the machine is its owner's; nothing is offered
Unclaimed / Idle             offered to the pool
Unclaimed / Benchmarking     offered, and measuring its own speed meanwhile
Matched / Idle               the negotiator gave it to a schedd that has not claimed it yet
Claimed / Idle               a schedd has it; no job runs
Claimed / Busy               a job runs
Claimed / Suspended          its job is frozen, by the policy or by its user
Claimed / Retiring           its job has to go, and may finish within its retirement time
Preempting / Vacating        its job was asked to go
Preempting / Killing         its job is being killed
Drained / Retiring           out of service; other slots of the machine are still being emptied
Drained / Idle               out of service
===========================  ======================================================================================

Claimed is left only for Preempting (or, with nothing running, for what comes after it); SUSPEND counts only where
WANT_SUSPEND holds; PREEMPT leads to Retiring while retirement time is left, then to Vacating where WANT_VACATE holds,
else to Killing.

Source: HTCondor's manual, "Policy configuration for execution points", states and activities.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import attrs

from condor_actors.cores.startd import owner_policy_steps as steps
from condor_actors.cores.startd.slot_states import (
    BENCHMARKING,
    BUSY,
    CLAIMED,
    DRAINED,
    DRAINING,
    EVENTS,
    KILLING,
    MATCHED,
    OWNER,
    RETIRING,
    SLOT_STATES,
    SUSPENDED,
    UNCLAIMED,
    VACATING,
    Action,
    Activity,
    ClaimCleared,
    Claimed,
    DrainCancelled,
    DrainRequested,
    Event,
    EvictRequested,
    ForgetMatch,
    KillJob,
    LowerPriority,
    MachineEmptied,
    Matched,
    PolicyEvaluation,
    Released,
    ResumeJob,
    RevokeClaim,
    RunFinished,
    RunStarted,
    SlotState,
    StartTimer,
    State,
    StopTimer,
    SuspendJob,
    TimerExpired,
    UserSuspended,
    VacateJob,
)
from condor_actors.cores.state_table import ignore, total_table

__all__ = [
    "Action", "Activity", "BENCHMARKING", "BUSY", "CLAIMED", "ClaimCleared", "Claimed", "DRAINED", "DRAINING",
    "DrainCancelled", "DrainRequested", "EVENTS", "Event", "EvictRequested", "ForgetMatch", "KILLING", "KillJob",
    "LowerPriority", "MATCHED", "MachineEmptied", "Matched", "OWNER", "PolicyEvaluation", "RETIRING", "Released",
    "ResumeJob", "RevokeClaim", "RunFinished", "RunStarted", "SLOT_STATES", "SUSPENDED", "SlotState",
    "SlotStateMachine", "StartTimer", "State", "StopTimer", "SuspendJob", "TimerExpired", "UNCLAIMED", "UserSuspended",
    "VACATING", "VacateJob", "table",
]

Step = Callable[["SlotStateMachine", Event, float], list[Action]]

STORY_LENGTH = 64


@attrs.define(eq=False)
class SlotStateMachine:
    """The policy state of one slot.

    Attributes:
        place: where it is.
        state_since_s, activity_since_s: when it got there.
        look: the last evaluation.
        job_began_s: when the running job began; 0: none runs.
        reason: why the claim is ending; empty while it is not.
        lowered: whether its run has only idle processor and disk time.
        frozen: whether the policy had it frozen; halted: whether its user did; while one holds the slot is suspended.
        resume_to: where a suspended slot goes on.
        draining: whether the slot leaves service when its claim is over.
        story: what happened to it last: (when, event, place afterwards).
    """

    slot_state: SlotState
    match_timeout_s: float = 120.0
    killing_timeout_s: float = 30.0
    state_since_s: float = 0.0
    activity_since_s: float = 0.0
    evaluation: PolicyEvaluation = attrs.field(factory=PolicyEvaluation)
    job_began_s: float = 0.0
    reason: str = ""
    draining: bool = False
    eviction: str = ""
    resume_to: SlotState | None = None
    lowered: bool = False
    owner_suspended: bool = False
    user_suspended: bool = False
    spent_s: dict[SlotState, float] = attrs.field(factory=dict)
    story: deque[tuple[float, str, str]] = attrs.field(factory=lambda: deque(maxlen=STORY_LENGTH))

    @property
    def state(self) -> State:
        """The published state."""
        return self.slot_state[0]

    @property
    def activity(self) -> Activity:
        """The published activity."""
        return self.slot_state[1]

    @property
    def claimable(self) -> bool:
        """Whether a claim can be granted without displacing anyone."""
        return self.slot_state in (UNCLAIMED, BENCHMARKING, MATCHED)

    def handle(self, event: Event, now_s: float) -> tuple[Action, ...]:
        """What follows from ``event``."""
        before = self.slot_state
        actions = self.step(event, now_s)
        if self.slot_state != before or not isinstance(event, PolicyEvaluation):
            self.story.append((now_s, type(event).__name__, "/".join(each.value for each in self.slot_state)))
        return tuple(actions)

    def step(self, event: Event, now_s: float) -> list[Action]:
        """The table's entry for ``event`` where the slot is now, carried out."""
        return TABLE[self.slot_state, type(event)](self, event, now_s)

    def go(self, slot_state: SlotState, now_s: float) -> None:
        """Be at ``place`` from now on."""
        if slot_state == self.slot_state:
            return
        spent = max(0.0, now_s - self.activity_since_s)
        self.spent_s[self.slot_state] = self.spent_s.get(self.slot_state, 0.0) + spent
        if slot_state[0] is not self.slot_state[0]:
            self.state_since_s = now_s
        self.activity_since_s = now_s
        self.slot_state = slot_state


# ---- the table

_no_claim = ignore("there is no claim")
_no_job = ignore("no job runs")
_taken = ignore("the slot is not free")
_ending = ignore("the claim is ending")
_in_service = ignore("the slot is in service")
_no_timer = ignore("no such timer runs here")
_out = ignore("the slot is out of service")

_ROWS: dict[type, Sequence[Step | ignore]] = {
    # Owner, Unclaimed, Benchmarking, Matched | Claimed: Idle, Busy, Suspended, Retiring | Vacating, Killing |
    # Draining, Drained
    PolicyEvaluation: (
        steps.owner_looks, steps.unclaimed_looks, steps.unclaimed_looks, steps.matched_looks, steps.idle_claim_looks,
        steps.busy_looks, steps.suspended_looks, steps.busy_looks, steps.vacating_looks, steps.remember, steps.remember,
        steps.remember,
    ),
    Matched: (
        ignore("the owner has it"), steps.match, steps.match, steps.match, _taken, _taken, _taken, _taken, _taken,
        _taken, _out, _out,
    ),
    Claimed: (
        ignore("the owner has it"), steps.claim, steps.claim, steps.claim, _taken, _taken, _taken, _taken, _taken,
        _taken, _out, _out,
    ),
    RunStarted: (
        _no_claim, _no_claim, _no_claim, _no_claim, steps.begin, ignore("known"), ignore("known"),
        ignore("known"), steps.begin_late, steps.begin_late, _no_claim, _no_claim,
    ),
    UserSuspended: (
        _no_claim, _no_claim, _no_claim, _no_claim, _no_job, steps.user_suspends, steps.user_wish_while_suspended,
        steps.user_suspends, _ending, _ending, _no_claim, _no_claim,
    ),
    RunFinished: (
        _no_claim, _no_claim, _no_claim, _no_claim, _no_job, steps.end, steps.end_suspended, steps.end_retiring,
        steps.end_preempting, steps.end_preempting, _no_claim, _no_claim,
    ),
    Released: (
        _no_claim, _no_claim, _no_claim, _no_claim, steps.released_idle, steps.released_running, steps.released_running,
        steps.released_running, _ending, _ending, _no_claim, _no_claim,
    ),
    EvictRequested: (
        _no_claim, _no_claim, _no_claim, _no_claim, steps.evict_idle, steps.evict_running, steps.evict_running,
        steps.evict_retiring, steps.evict_vacating, _ending, _no_claim, _no_claim,
    ),
    ClaimCleared: (
        _no_claim, _no_claim, _no_claim, _no_claim, steps.gone_unasked, steps.gone_unasked, steps.gone_unasked,
        steps.gone_unasked, steps.gone, steps.gone, _no_claim, _no_claim,
    ),
    DrainRequested: (
        steps.drain_free, steps.drain_free, steps.drain_free, steps.drain_free, steps.drain_claimed,
        steps.drain_claimed, steps.drain_claimed, steps.drain_claimed, steps.drain_claimed, steps.drain_again,
        steps.drain_again, steps.drain_again,
    ),
    MachineEmptied: (
        _in_service, _in_service, _in_service, _in_service, _in_service, _in_service, _in_service, _in_service,
        _in_service, _in_service, steps.emptied, ignore("known"),
    ),
    DrainCancelled: (
        steps.undrain, steps.undrain, steps.undrain, steps.undrain, steps.undrain, steps.undrain, steps.undrain,
        steps.undrain, steps.undrain, steps.undrain, steps.undrain_drained, steps.undrain_drained,
    ),
    TimerExpired: (
        _no_timer, _no_timer, _no_timer, steps.match_timeout, _no_timer, _no_timer, steps.retire_timeout,
        steps.retire_timeout, steps.vacate_timeout, steps.kill_timeout, _no_timer, _no_timer,
    ),
}

TABLE: dict[tuple[SlotState, type], Step | ignore] = total_table("a slot", SLOT_STATES, _ROWS)


def table() -> dict[tuple[SlotState, type], Step | ignore]:
    """The whole table, for tests and the documentation's diagrams."""
    return dict(TABLE)
