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
FOREVER_S = 10 * 365 * 86400.0


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
        step = TABLE[before, type(event)]
        actions = step(self, event, now_s)
        if self.slot_state != before or not isinstance(event, PolicyEvaluation):
            self.story.append((now_s, type(event).__name__, "/".join(each.value for each in self.slot_state)))
        return tuple(actions)

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


# ---- the steps


def _remember(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Nothing changes but what is known."""
    machine.evaluation = evaluation
    return []


def _owner_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Offer the slot once the owner is gone."""
    machine.evaluation = evaluation
    if not evaluation.is_owner:
        machine.go(UNCLAIMED, now_s)
    return []


def _unclaimed_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """The owner is back, or the speed is to be measured."""
    machine.evaluation = evaluation
    if evaluation.is_owner:
        machine.go(OWNER, now_s)
    else:
        machine.go(BENCHMARKING if evaluation.benchmark else UNCLAIMED, now_s)
    return []


def _matched_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """The owner is back before the claim came."""
    machine.evaluation = evaluation
    if not evaluation.is_owner:
        return []
    machine.go(OWNER, now_s)
    return [StopTimer("match")]


def _idle_claim_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """An idle claim ends when the owner is back."""
    machine.evaluation = evaluation
    if not (evaluation.is_owner or evaluation.preempt):
        return []
    return _leave(machine, now_s, "the owner of the machine is back")


def _busy_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Suspend or preempt; a job of a retiring claim comes by here too."""
    machine.evaluation = evaluation
    if evaluation.want_suspend and evaluation.suspend:
        machine.resume_to = machine.slot_state
        machine.owner_suspended = True
        machine.go(SUSPENDED, now_s)
        return [SuspendJob()]
    if evaluation.preempt and machine.slot_state != RETIRING:
        return _retire(machine, now_s, evaluation.hold_reason or "PREEMPT became true", "retire")
    if evaluation.lower != machine.lowered:
        machine.lowered = evaluation.lower
        return [LowerPriority(evaluation.lower)]
    return []


def _suspended_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Preempt, or let the job go on."""
    machine.evaluation = evaluation
    if evaluation.preempt:
        return _preempt(machine, now_s, evaluation.hold_reason or "suspended for too long")
    if evaluation.want_suspend and evaluation.suspend:
        if machine.owner_suspended:
            return []
        machine.owner_suspended = True
        return [SuspendJob()]
    if not (machine.owner_suspended and evaluation.resume):
        return []
    machine.owner_suspended = False
    _go_on(machine, now_s)
    return [ResumeJob()]


def _go_on(machine: SlotStateMachine, now_s: float) -> None:
    """Back to where the slot was when its run was frozen, unless someone else still wants it to stand still."""
    if not (machine.owner_suspended or machine.user_suspended):
        machine.go(machine.resume_to or BUSY, now_s)
        machine.resume_to = None


def _halt(machine: SlotStateMachine, event: UserSuspended, now_s: float) -> list[Action]:
    """The user of the run suspends it."""
    if event.on and not machine.user_suspended:
        machine.user_suspended = True
        machine.resume_to = machine.slot_state
        machine.go(SUSPENDED, now_s)
    return []


def _halt_suspended(machine: SlotStateMachine, event: UserSuspended, now_s: float) -> list[Action]:
    """The user of a suspended run suspends it as well, or has done with that."""
    machine.user_suspended = event.on
    _go_on(machine, now_s)
    return []


def _vacating_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """KILL ends a vacating that takes too long."""
    machine.evaluation = evaluation
    return _kill(machine, now_s, "KILL became true") if evaluation.kill else []


def _match(machine: SlotStateMachine, event: Matched, now_s: float) -> list[Action]:
    """Wait for the schedd, but not forever."""
    machine.go(MATCHED, now_s)
    return [StartTimer("match", machine.match_timeout_s)]


def _claim(machine: SlotStateMachine, event: Claimed, now_s: float) -> list[Action]:
    """The slot is a schedd's."""
    machine.go(CLAIMED, now_s)
    machine.reason = machine.eviction = ""
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    return [StopTimer("match")]


def _begin(machine: SlotStateMachine, event: RunStarted, now_s: float) -> list[Action]:
    """A job runs."""
    machine.job_began_s = now_s
    machine.lowered = machine.user_suspended = False
    machine.owner_suspended = event.owner_suspended
    machine.resume_to = BUSY if event.owner_suspended else None
    machine.go(SUSPENDED if event.owner_suspended else BUSY, now_s)
    return []


def _begin_late(machine: SlotStateMachine, event: RunStarted, now_s: float) -> list[Action]:
    """A job began before the starter host heard that the claim is ending; it is being ended already."""
    machine.job_began_s = now_s
    return []


def _end(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The claim waits for its next job."""
    machine.job_began_s = 0.0
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    machine.go(CLAIMED, now_s)
    return []


def _end_suspended(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """As the slot were going on: a claim that was retiring is over."""
    return (_end_retiring if machine.resume_to == RETIRING else _end)(machine, event, now_s)


def _end_retiring(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The job finished in its retirement time: the claim is over."""
    machine.job_began_s = 0.0
    return [StopTimer("retire"), *_leave(machine, now_s, machine.reason)]


def _end_preempting(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The run is over; Gone follows when nothing is left of it."""
    machine.job_began_s = 0.0
    return []


def _released_idle(machine: SlotStateMachine, event: Released, now_s: float) -> list[Action]:
    """The schedd needs the claim no longer."""
    return _leave(machine, now_s, event.reason, tell=False)


def _released_running(machine: SlotStateMachine, event: Released, now_s: float) -> list[Action]:
    """The claim's holder is gone, so its run has to go as well."""
    return [StopTimer("retire"), *_preempt(machine, now_s, event.reason)]


def _evict_idle(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """End an idle claim."""
    return _leave(machine, now_s, event.reason)


def _evict_running(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """End a claim with a job on it."""
    return _retire(machine, now_s, event.reason, event.how)


def _evict_retiring(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """A more urgent reason ends the retirement."""
    if event.how in ("retire", "finish"):
        return []
    return [StopTimer("retire"), *_retire(machine, now_s, event.reason, event.how)]


def _evict_vacating(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """Nobody waits any longer."""
    return _kill(machine, now_s, event.reason) if event.how == "kill" else []


def _gone_unasked(machine: SlotStateMachine, event: ClaimCleared, now_s: float) -> list[Action]:
    """The starter host lost the claim: so it is over."""
    machine.job_began_s = 0.0
    actions: list[Action] = [StopTimer("retire"), ForgetMatch(machine.reason or "the starter host lost it")]
    _rest(machine, now_s)
    return actions


def _gone(machine: SlotStateMachine, event: ClaimCleared, now_s: float) -> list[Action]:
    """Nothing is left: the slot is free, or out of service."""
    machine.job_began_s = 0.0
    reason = machine.reason
    _rest(machine, now_s)
    return [StopTimer("vacate"), StopTimer("kill"), ForgetMatch(reason)]


def _drain_free(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Out of service at once."""
    machine.draining = True
    machine.go(DRAINING, now_s)
    return [StopTimer("match")]


def _drain_claimed(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Out of service once the claim is over."""
    machine.draining = True
    step = TABLE[machine.slot_state, EvictRequested]
    return step(machine, EvictRequested("the machine is being drained", event.how), now_s)


def _drain_again(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Note it; the claim is ending anyhow."""
    machine.draining = True
    return []


def _emptied(machine: SlotStateMachine, event: MachineEmptied, now_s: float) -> list[Action]:
    """The whole machine is empty."""
    machine.go(DRAINED, now_s)
    return []


def _undrain_drained(machine: SlotStateMachine, event: DrainCancelled, now_s: float) -> list[Action]:
    """Offer the slot again, if its owner agrees."""
    machine.draining = False
    machine.go(OWNER if machine.evaluation.is_owner else UNCLAIMED, now_s)
    return []


def _undrain(machine: SlotStateMachine, event: DrainCancelled, now_s: float) -> list[Action]:
    """The claim that is ending still ends, but the slot stays in service."""
    machine.draining = False
    return []


def _match_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The schedd never came."""
    if event.what == "match":
        machine.go(UNCLAIMED, now_s)
    return []


def _retire_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The retirement time is used up."""
    return _preempt(machine, now_s, machine.reason) if event.what == "retire" else []


def _vacate_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The grace is used up."""
    return _kill(machine, now_s, machine.reason) if event.what == "vacate" else []


def _kill_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """Still there: kill again."""
    if event.what != "kill":
        return []
    return [KillJob(machine.reason), StartTimer("kill", machine.killing_timeout_s)]


# ---- what several steps share


def _retire(machine: SlotStateMachine, now_s: float, reason: str, how: str) -> list[Action]:
    """Let the job finish while retirement time is left, else make it go; a frozen one cannot finish."""
    machine.reason = reason
    if how == "kill":
        return [RevokeClaim(reason), *_kill(machine, now_s, reason, thaw=machine.slot_state == SUSPENDED)]
    if how == "finish":
        if machine.slot_state == SUSPENDED:
            machine.resume_to = RETIRING
        else:
            machine.go(RETIRING, now_s)
        return [RevokeClaim(reason), StartTimer("retire", FOREVER_S)]
    left_s = machine.job_began_s + machine.evaluation.retirement_s - now_s
    if how == "retire" and left_s > 0 and machine.slot_state != SUSPENDED and not machine.evaluation.want_hold:
        machine.go(RETIRING, now_s)
        return [RevokeClaim(reason), StartTimer("retire", min(left_s, FOREVER_S))]
    return _preempt(machine, now_s, reason)


def _preempt(machine: SlotStateMachine, now_s: float, reason: str) -> list[Action]:
    """Vacate, or kill where the policy wants no vacating."""
    machine.reason = reason
    evaluation = machine.evaluation
    if not evaluation.want_vacate and not evaluation.want_hold:
        return [RevokeClaim(reason), *_kill(machine, now_s, reason, thaw=machine.slot_state == SUSPENDED)]
    machine.go(VACATING, now_s)
    vacate = VacateJob(grace_s=evaluation.vacate_s, reason=reason, hold=evaluation.want_hold,
                       hold_subcode=evaluation.hold_subcode)
    return [RevokeClaim(reason), vacate, StartTimer("vacate", evaluation.vacate_s)]


def _kill(machine: SlotStateMachine, now_s: float, reason: str, thaw: bool = False) -> list[Action]:
    machine.reason = reason
    machine.go(KILLING, now_s)
    return [StopTimer("vacate"), KillJob(reason), StartTimer("kill", machine.killing_timeout_s)]


def _leave(machine: SlotStateMachine, now_s: float, reason: str, tell: bool = True) -> list[Action]:
    """End a claim on which nothing runs: the starter host closes it and reports it closed."""
    machine.reason = reason
    machine.go(KILLING, now_s)
    return [*([RevokeClaim(reason)] if tell else []), KillJob(reason), StartTimer("kill", machine.killing_timeout_s)]


def _rest(machine: SlotStateMachine, now_s: float) -> None:
    """Where a slot goes when its claim is over."""
    machine.reason = machine.eviction = ""
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    if machine.draining:
        machine.go(DRAINING, now_s)
    else:
        machine.go(OWNER if machine.evaluation.is_owner else UNCLAIMED, now_s)


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
        _owner_looks, _unclaimed_looks, _unclaimed_looks, _matched_looks, _idle_claim_looks, _busy_looks,
        _suspended_looks, _busy_looks, _vacating_looks, _remember, _remember, _remember,
    ),
    Matched: (
        ignore("the owner has it"), _match, _match, _match, _taken, _taken, _taken, _taken, _taken, _taken,
        _out, _out,
    ),
    Claimed: (
        ignore("the owner has it"), _claim, _claim, _claim, _taken, _taken, _taken, _taken, _taken, _taken,
        _out, _out,
    ),
    RunStarted: (
        _no_claim, _no_claim, _no_claim, _no_claim, _begin, ignore("known"), ignore("known"),
        ignore("known"), _begin_late, _begin_late, _no_claim, _no_claim,
    ),
    UserSuspended: (
        _no_claim, _no_claim, _no_claim, _no_claim, _no_job, _halt, _halt_suspended, _halt, _ending, _ending,
        _no_claim, _no_claim,
    ),
    RunFinished: (
        _no_claim, _no_claim, _no_claim, _no_claim, _no_job, _end, _end_suspended, _end_retiring,
        _end_preempting, _end_preempting, _no_claim, _no_claim,
    ),
    Released: (
        _no_claim, _no_claim, _no_claim, _no_claim, _released_idle, _released_running, _released_running,
        _released_running, _ending, _ending, _no_claim, _no_claim,
    ),
    EvictRequested: (
        _no_claim, _no_claim, _no_claim, _no_claim, _evict_idle, _evict_running, _evict_running,
        _evict_retiring, _evict_vacating, _ending, _no_claim, _no_claim,
    ),
    ClaimCleared: (
        _no_claim, _no_claim, _no_claim, _no_claim, _gone_unasked, _gone_unasked, _gone_unasked, _gone_unasked,
        _gone, _gone, _no_claim, _no_claim,
    ),
    DrainRequested: (
        _drain_free, _drain_free, _drain_free, _drain_free, _drain_claimed, _drain_claimed, _drain_claimed,
        _drain_claimed, _drain_claimed, _drain_again, _drain_again, _drain_again,
    ),
    MachineEmptied: (
        _in_service, _in_service, _in_service, _in_service, _in_service, _in_service, _in_service, _in_service,
        _in_service, _in_service, _emptied, ignore("known"),
    ),
    DrainCancelled: (
        _undrain, _undrain, _undrain, _undrain, _undrain, _undrain, _undrain, _undrain, _undrain, _undrain,
        _undrain_drained, _undrain_drained,
    ),
    TimerExpired: (
        _no_timer, _no_timer, _no_timer, _match_timeout, _no_timer, _no_timer, _retire_timeout, _retire_timeout,
        _vacate_timeout, _kill_timeout, _no_timer, _no_timer,
    ),
}

TABLE: dict[tuple[SlotState, type], Step | ignore] = total_table("a slot", SLOT_STATES, _ROWS)


def table() -> dict[tuple[SlotState, type], Step | ignore]:
    """The whole table, for tests and the documentation's diagrams."""
    return dict(TABLE)
