"""The table of a slot's states is total, and each of its ways is taken."""

from __future__ import annotations

import pytest

from condor_actors.cores.startd import owner_policy as op

NOW = 1000.0
EXAMPLES = {
    op.PolicyEvaluation: op.PolicyEvaluation(),
    op.Matched: op.Matched("a@x"),
    op.Claimed: op.Claimed(),
    op.RunStarted: op.RunStarted(),
    op.RunFinished: op.RunFinished(),
    op.Released: op.Released("done"),
    op.EvictRequested: op.EvictRequested("go"),
    op.ClaimCleared: op.ClaimCleared(),
    op.DrainRequested: op.DrainRequested(),
    op.MachineEmptied: op.MachineEmptied(),
    op.UserSuspended: op.UserSuspended(True),
    op.DrainCancelled: op.DrainCancelled(),
    op.TimerExpired: op.TimerExpired("vacate"),
}


def at(slot_state: op.SlotState, **evaluation: object) -> op.SlotStateMachine:
    machine = op.SlotStateMachine(slot_state=slot_state)
    machine.evaluation = op.PolicyEvaluation(**evaluation)  # type: ignore[arg-type]
    if slot_state in (op.BUSY, op.SUSPENDED, op.RETIRING, op.VACATING):
        machine.job_began_s = NOW - 10.0
    return machine


def kinds(actions: tuple[op.Action, ...]) -> list[str]:
    return [type(action).__name__ for action in actions]


@pytest.mark.parametrize("event", op.EVENTS)
@pytest.mark.parametrize("slot_state", op.SLOT_STATES)
def test_every_cell_is_filled_and_leads_to_a_place(slot_state: op.SlotState, event: type) -> None:
    machine = at(slot_state)
    machine.handle(EXAMPLES[event], NOW)
    assert machine.slot_state in op.SLOT_STATES


@pytest.mark.parametrize("slot_state", [p for p in op.SLOT_STATES if p[0] is op.State.CLAIMED])
@pytest.mark.parametrize("event", op.EVENTS)
def test_a_running_claim_is_left_only_for_preempting(slot_state: op.SlotState, event: type) -> None:
    machine = at(slot_state, want_vacate=True)
    machine.handle(EXAMPLES[event], NOW)
    if slot_state != op.CLAIMED and event is not op.ClaimCleared:
        assert machine.state in (op.State.CLAIMED, op.State.PREEMPTING)


def test_owner_leaves_and_returns() -> None:
    machine = at(op.OWNER)
    machine.handle(op.PolicyEvaluation(is_owner=False), NOW)
    assert machine.slot_state == op.UNCLAIMED
    machine.handle(op.PolicyEvaluation(is_owner=True), NOW)
    assert machine.slot_state == op.OWNER


def test_suspend_counts_only_where_it_is_wanted() -> None:
    machine = at(op.BUSY)
    assert machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=False), NOW) == ()
    assert kinds(machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)) == ["SuspendJob"]
    assert machine.slot_state == op.SUSPENDED
    assert machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True, resume=True), NOW) == ()
    assert kinds(machine.handle(op.PolicyEvaluation(resume=True, want_suspend=True), NOW)) == ["ResumeJob"]
    assert machine.slot_state == op.BUSY


def test_preempt_retires_then_vacates_then_kills() -> None:
    machine = at(op.BUSY)
    evaluation = op.PolicyEvaluation(preempt=True, retirement_s=100.0, vacate_s=50.0)
    assert kinds(machine.handle(evaluation, NOW)) == ["RevokeClaim", "StartTimer"]
    assert machine.slot_state == op.RETIRING
    actions = machine.handle(op.TimerExpired("retire"), NOW + 90.0)
    assert kinds(actions) == ["RevokeClaim", "VacateJob", "StartTimer"]
    assert machine.slot_state == op.VACATING
    assert actions[1] == op.VacateJob(grace_s=50.0, reason="PREEMPT became true")
    assert kinds(machine.handle(op.TimerExpired("vacate"), NOW + 140.0)) == ["StopTimer", "KillJob", "StartTimer"]
    assert machine.slot_state == op.KILLING
    assert kinds(machine.handle(op.TimerExpired("kill"), NOW + 170.0)) == ["KillJob", "StartTimer"]
    assert kinds(machine.handle(op.ClaimCleared(), NOW + 171.0)) == ["StopTimer", "StopTimer", "ForgetMatch"]
    assert machine.slot_state == op.UNCLAIMED


def test_without_want_vacate_the_job_is_killed_at_once() -> None:
    machine = at(op.BUSY)
    machine.handle(op.PolicyEvaluation(preempt=True, want_vacate=False), NOW)
    assert machine.slot_state == op.KILLING


def test_want_hold_vacates_with_a_hold() -> None:
    machine = at(op.BUSY)
    actions = machine.handle(op.PolicyEvaluation(preempt=True, want_hold=True, hold_reason="too big", hold_subcode=7,
                                     retirement_s=100.0), NOW)
    assert op.VacateJob(grace_s=600.0, reason="too big", hold=True, hold_subcode=7) in actions


def test_a_job_that_finishes_while_retiring_ends_the_claim() -> None:
    machine = at(op.RETIRING)
    machine.reason = "drained"
    assert "KillJob" in kinds(machine.handle(op.RunFinished(), NOW))
    machine.handle(op.ClaimCleared(), NOW)
    assert machine.slot_state == op.UNCLAIMED


def test_suspended_job_goes_when_preempted() -> None:
    machine = at(op.SUSPENDED)
    machine.handle(op.PolicyEvaluation(preempt=True, retirement_s=100.0), NOW)
    assert machine.slot_state == op.VACATING


def test_a_run_stands_still_while_its_user_or_the_policy_wants_it() -> None:
    machine = at(op.BUSY)
    assert machine.handle(op.UserSuspended(True), NOW) == ()
    assert machine.slot_state == op.SUSPENDED
    assert machine.handle(op.PolicyEvaluation(resume=True), NOW) == (), "CONTINUE does not speak for the user"
    owner_back = op.PolicyEvaluation(suspend=True, want_suspend=True)
    assert kinds(machine.handle(owner_back, NOW)) == ["SuspendJob"], "the owner is back too"
    machine.handle(op.UserSuspended(False), NOW)
    assert machine.slot_state == op.SUSPENDED
    assert kinds(machine.handle(op.PolicyEvaluation(resume=True), NOW)) == ["ResumeJob"]
    assert machine.slot_state == op.BUSY
    machine.handle(op.UserSuspended(True), NOW)
    machine.handle(op.UserSuspended(False), NOW)
    assert machine.slot_state == op.BUSY


def test_what_its_user_suspended_does_not_go_on_because_the_owner_leaves() -> None:
    machine = at(op.BUSY)
    machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)
    machine.handle(op.UserSuspended(True), NOW)
    machine.handle(op.PolicyEvaluation(resume=True), NOW)
    assert machine.slot_state == op.SUSPENDED
    machine.handle(op.UserSuspended(False), NOW)
    assert machine.slot_state == op.BUSY


def test_a_frozen_run_of_a_retiring_claim_goes_on_retiring() -> None:
    machine = at(op.RETIRING)
    machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)
    assert machine.slot_state == op.SUSPENDED
    machine.handle(op.PolicyEvaluation(resume=True), NOW)
    assert machine.slot_state == op.RETIRING
    machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)
    actions = machine.handle(op.TimerExpired("retire"), NOW)
    assert "VacateJob" in kinds(actions), "its time passes also while it is frozen"
    machine = at(op.SUSPENDED)
    machine.handle(op.DrainRequested("finish"), NOW)
    machine.handle(op.PolicyEvaluation(resume=True), NOW)
    assert machine.slot_state == op.SUSPENDED, "nothing had frozen it"
    machine = at(op.BUSY)
    machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)
    machine.handle(op.DrainRequested("finish"), NOW)
    machine.handle(op.PolicyEvaluation(resume=True), NOW)
    assert machine.slot_state == op.RETIRING, "a peaceful drain lets it finish, and no other follows"
    machine.handle(op.PolicyEvaluation(suspend=True, want_suspend=True), NOW)
    machine.handle(op.RunFinished(), NOW)
    assert machine.slot_state == op.KILLING


def test_drain_waits_for_the_claim_and_for_the_rest_of_the_machine() -> None:
    machine = at(op.BUSY, retirement_s=100.0)
    machine.handle(op.DrainRequested("retire"), NOW)
    assert machine.slot_state == op.RETIRING
    machine.handle(op.RunFinished(), NOW)
    machine.handle(op.ClaimCleared(), NOW)
    assert machine.slot_state == op.DRAINING
    machine.handle(op.MachineEmptied(), NOW)
    assert machine.slot_state == op.DRAINED
    machine.handle(op.DrainCancelled(), NOW)
    assert machine.slot_state == op.UNCLAIMED


def test_owner_is_back_while_a_claim_idles() -> None:
    machine = at(op.CLAIMED)
    assert kinds(machine.handle(op.PolicyEvaluation(is_owner=True), NOW)) == ["RevokeClaim", "KillJob", "StartTimer"]
    machine.handle(op.ClaimCleared(), NOW)
    assert machine.slot_state == op.OWNER


def test_a_match_that_is_not_claimed_lapses() -> None:
    machine = at(op.UNCLAIMED)
    machine.handle(op.Matched("a@x"), NOW)
    assert machine.slot_state == op.MATCHED
    machine.handle(op.TimerExpired("match"), NOW + 120.0)
    assert machine.slot_state == op.UNCLAIMED


def test_story_and_times_are_kept() -> None:
    machine = op.SlotStateMachine(slot_state=op.UNCLAIMED, state_since_s=0.0, activity_since_s=0.0)
    machine.handle(op.Claimed(), 10.0)
    machine.handle(op.RunStarted(), 12.0)
    assert machine.spent_s == {op.UNCLAIMED: 10.0, op.CLAIMED: 2.0}
    assert [(name, slot_state) for _, name, slot_state in machine.story] == [
        ("Claimed", "Claimed/Idle"), ("RunStarted", "Claimed/Busy")]
    assert (machine.state_since_s, machine.activity_since_s) == (10.0, 12.0)
