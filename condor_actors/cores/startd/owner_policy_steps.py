"""What each event does to a slot: the entries of the table in :mod:`condor_actors.cores.startd.owner_policy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.cores.startd.slot_states import (
    BENCHMARKING,
    BUSY,
    CLAIMED,
    DRAINED,
    DRAINING,
    KILLING,
    MATCHED,
    OWNER,
    RETIRING,
    SUSPENDED,
    UNCLAIMED,
    VACATING,
    Action,
    ClaimCleared,
    Claimed,
    DrainCancelled,
    DrainRequested,
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
    StartTimer,
    StopTimer,
    SuspendJob,
    TimerExpired,
    UserSuspended,
    VacateJob,
)

if TYPE_CHECKING:
    from condor_actors.cores.startd.owner_policy import SlotStateMachine

FOREVER_S = 10 * 365 * 86400.0


def remember(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Nothing changes but what is known."""
    machine.evaluation = evaluation
    return []


def owner_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Offer the slot once the owner is gone."""
    machine.evaluation = evaluation
    if not evaluation.is_owner:
        machine.go(UNCLAIMED, now_s)
    return []


def unclaimed_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """The owner is back, or the speed is to be measured."""
    machine.evaluation = evaluation
    if evaluation.is_owner:
        machine.go(OWNER, now_s)
    else:
        machine.go(BENCHMARKING if evaluation.benchmark else UNCLAIMED, now_s)
    return []


def matched_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """The owner is back before the claim came."""
    machine.evaluation = evaluation
    if not evaluation.is_owner:
        return []
    machine.go(OWNER, now_s)
    return [StopTimer("match")]


def idle_claim_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """An idle claim ends when the owner is back."""
    machine.evaluation = evaluation
    if not (evaluation.is_owner or evaluation.preempt):
        return []
    return leave(machine, now_s, "the owner of the machine is back")


def busy_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Suspend or preempt; a job of a retiring claim comes by here too."""
    machine.evaluation = evaluation
    if evaluation.want_suspend and evaluation.suspend:
        machine.resume_to = machine.slot_state
        machine.owner_suspended = True
        machine.go(SUSPENDED, now_s)
        return [SuspendJob()]
    if evaluation.preempt and machine.slot_state != RETIRING:
        return retire(machine, now_s, evaluation.hold_reason or "PREEMPT became true", "retire")
    if evaluation.lower != machine.lowered:
        machine.lowered = evaluation.lower
        return [LowerPriority(evaluation.lower)]
    return []


def suspended_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """Preempt, or let the job go on."""
    machine.evaluation = evaluation
    if evaluation.preempt:
        return preempt(machine, now_s, evaluation.hold_reason or "suspended for too long")
    if evaluation.want_suspend and evaluation.suspend:
        if machine.owner_suspended:
            return []
        machine.owner_suspended = True
        return [SuspendJob()]
    if not (machine.owner_suspended and evaluation.resume):
        return []
    machine.owner_suspended = False
    go_on(machine, now_s)
    return [ResumeJob()]


def go_on(machine: SlotStateMachine, now_s: float) -> None:
    """Back to where the slot was when its run was frozen, unless someone else still wants it to stand still."""
    if not (machine.owner_suspended or machine.user_suspended):
        machine.go(machine.resume_to or BUSY, now_s)
        machine.resume_to = None


def user_suspends(machine: SlotStateMachine, event: UserSuspended, now_s: float) -> list[Action]:
    """The user of the run suspends it."""
    if event.on and not machine.user_suspended:
        machine.user_suspended = True
        machine.resume_to = machine.slot_state
        machine.go(SUSPENDED, now_s)
    return []


def user_wish_while_suspended(machine: SlotStateMachine, event: UserSuspended, now_s: float) -> list[Action]:
    """The user of a suspended run suspends it as well, or has done with that."""
    machine.user_suspended = event.on
    go_on(machine, now_s)
    return []


def vacating_looks(machine: SlotStateMachine, evaluation: PolicyEvaluation, now_s: float) -> list[Action]:
    """KILL ends a vacating that takes too long."""
    machine.evaluation = evaluation
    return kill(machine, now_s, "KILL became true") if evaluation.kill else []


def match(machine: SlotStateMachine, event: Matched, now_s: float) -> list[Action]:
    """Wait for the schedd, but not forever."""
    machine.go(MATCHED, now_s)
    return [StartTimer("match", machine.match_timeout_s)]


def claim(machine: SlotStateMachine, event: Claimed, now_s: float) -> list[Action]:
    """The slot is a schedd's."""
    machine.go(CLAIMED, now_s)
    machine.reason = machine.eviction = ""
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    return [StopTimer("match")]


def begin(machine: SlotStateMachine, event: RunStarted, now_s: float) -> list[Action]:
    """A job runs."""
    machine.job_began_s = now_s
    machine.lowered = machine.user_suspended = False
    machine.owner_suspended = event.owner_suspended
    machine.resume_to = BUSY if event.owner_suspended else None
    machine.go(SUSPENDED if event.owner_suspended else BUSY, now_s)
    return []


def begin_late(machine: SlotStateMachine, event: RunStarted, now_s: float) -> list[Action]:
    """A job began before the starter host heard that the claim is ending; it is being ended already."""
    machine.job_began_s = now_s
    return []


def end(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The claim waits for its next job."""
    machine.job_began_s = 0.0
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    machine.go(CLAIMED, now_s)
    return []


def end_suspended(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """As the slot were going on: a claim that was retiring is over."""
    return (end_retiring if machine.resume_to == RETIRING else end)(machine, event, now_s)


def end_retiring(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The job finished in its retirement time: the claim is over."""
    machine.job_began_s = 0.0
    return [StopTimer("retire"), *leave(machine, now_s, machine.reason)]


def end_preempting(machine: SlotStateMachine, event: RunFinished, now_s: float) -> list[Action]:
    """The run is over; Gone follows when nothing is left of it."""
    machine.job_began_s = 0.0
    return []


def released_idle(machine: SlotStateMachine, event: Released, now_s: float) -> list[Action]:
    """The schedd needs the claim no longer."""
    return leave(machine, now_s, event.reason, tell=False)


def released_running(machine: SlotStateMachine, event: Released, now_s: float) -> list[Action]:
    """The claim's holder is gone, so its run has to go as well."""
    return [StopTimer("retire"), *preempt(machine, now_s, event.reason)]


def evict_idle(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """End an idle claim."""
    return leave(machine, now_s, event.reason)


def evict_running(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """End a claim with a job on it."""
    return retire(machine, now_s, event.reason, event.how)


def evict_retiring(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """A more urgent reason ends the retirement."""
    if event.how in ("retire", "finish"):
        return []
    return [StopTimer("retire"), *retire(machine, now_s, event.reason, event.how)]


def evict_vacating(machine: SlotStateMachine, event: EvictRequested, now_s: float) -> list[Action]:
    """Nobody waits any longer."""
    return kill(machine, now_s, event.reason) if event.how == "kill" else []


def gone_unasked(machine: SlotStateMachine, event: ClaimCleared, now_s: float) -> list[Action]:
    """The starter host lost the claim: so it is over."""
    machine.job_began_s = 0.0
    actions: list[Action] = [StopTimer("retire"), ForgetMatch(machine.reason or "the starter host lost it")]
    rest(machine, now_s)
    return actions


def gone(machine: SlotStateMachine, event: ClaimCleared, now_s: float) -> list[Action]:
    """Nothing is left: the slot is free, or out of service."""
    machine.job_began_s = 0.0
    reason = machine.reason
    rest(machine, now_s)
    return [StopTimer("vacate"), StopTimer("kill"), ForgetMatch(reason)]


def drain_free(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Out of service at once."""
    machine.draining = True
    machine.go(DRAINING, now_s)
    return [StopTimer("match")]


def drain_claimed(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Out of service once the claim is over."""
    machine.draining = True
    return machine.step(EvictRequested("the machine is being drained", event.how), now_s)


def drain_again(machine: SlotStateMachine, event: DrainRequested, now_s: float) -> list[Action]:
    """Note it; the claim is ending anyhow."""
    machine.draining = True
    return []


def emptied(machine: SlotStateMachine, event: MachineEmptied, now_s: float) -> list[Action]:
    """The whole machine is empty."""
    machine.go(DRAINED, now_s)
    return []


def undrain_drained(machine: SlotStateMachine, event: DrainCancelled, now_s: float) -> list[Action]:
    """Offer the slot again, if its owner agrees."""
    machine.draining = False
    machine.go(OWNER if machine.evaluation.is_owner else UNCLAIMED, now_s)
    return []


def undrain(machine: SlotStateMachine, event: DrainCancelled, now_s: float) -> list[Action]:
    """The claim that is ending still ends, but the slot stays in service."""
    machine.draining = False
    return []


def match_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The schedd never came."""
    if event.what == "match":
        machine.go(UNCLAIMED, now_s)
    return []


def retire_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The retirement time is used up."""
    return preempt(machine, now_s, machine.reason) if event.what == "retire" else []


def vacate_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """The grace is used up."""
    return kill(machine, now_s, machine.reason) if event.what == "vacate" else []


def kill_timeout(machine: SlotStateMachine, event: TimerExpired, now_s: float) -> list[Action]:
    """Still there: kill again."""
    if event.what != "kill":
        return []
    return [KillJob(machine.reason), StartTimer("kill", machine.killing_timeout_s)]


# ---- what several steps share


def retire(machine: SlotStateMachine, now_s: float, reason: str, how: str) -> list[Action]:
    """Let the job finish while retirement time is left, else make it go; a frozen one cannot finish."""
    machine.reason = reason
    if how == "kill":
        return [RevokeClaim(reason), *kill(machine, now_s, reason, thaw=machine.slot_state == SUSPENDED)]
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
    return preempt(machine, now_s, reason)


def preempt(machine: SlotStateMachine, now_s: float, reason: str) -> list[Action]:
    """Vacate, or kill where the policy wants no vacating."""
    machine.reason = reason
    evaluation = machine.evaluation
    if not evaluation.want_vacate and not evaluation.want_hold:
        return [RevokeClaim(reason), *kill(machine, now_s, reason, thaw=machine.slot_state == SUSPENDED)]
    machine.go(VACATING, now_s)
    vacate = VacateJob(grace_s=evaluation.vacate_s, reason=reason, hold=evaluation.want_hold,
                       hold_subcode=evaluation.hold_subcode)
    return [RevokeClaim(reason), vacate, StartTimer("vacate", evaluation.vacate_s)]


def kill(machine: SlotStateMachine, now_s: float, reason: str, thaw: bool = False) -> list[Action]:
    machine.reason = reason
    machine.go(KILLING, now_s)
    return [StopTimer("vacate"), KillJob(reason), StartTimer("kill", machine.killing_timeout_s)]


def leave(machine: SlotStateMachine, now_s: float, reason: str, tell: bool = True) -> list[Action]:
    """End a claim on which nothing runs: the starter host closes it and reports it closed."""
    machine.reason = reason
    machine.go(KILLING, now_s)
    return [*([RevokeClaim(reason)] if tell else []), KillJob(reason), StartTimer("kill", machine.killing_timeout_s)]


def rest(machine: SlotStateMachine, now_s: float) -> None:
    """Where a slot goes when its claim is over."""
    machine.reason = machine.eviction = ""
    machine.resume_to = None
    machine.owner_suspended = machine.user_suspended = False
    if machine.draining:
        machine.go(DRAINING, now_s)
    else:
        machine.go(OWNER if machine.evaluation.is_owner else UNCLAIMED, now_s)
