"""The table of a slot's states is total, and each of its ways is taken."""

from __future__ import annotations

import pytest

from condor_actors.cores import owner_policy as op

NOW = 1000.0
EXAMPLES = {
    op.Look: op.Look(), op.Match: op.Match("a@x"), op.Claim: op.Claim(), op.Begin: op.Begin(), op.End: op.End(),
    op.Released: op.Released("done"), op.Evict: op.Evict("go"), op.Gone: op.Gone(), op.Drain: op.Drain(),
    op.Emptied: op.Emptied(), op.Halt: op.Halt(True), op.Undrain: op.Undrain(), op.Timeout: op.Timeout("vacate"),
}


def at(place: op.Place, **look: object) -> op.Machine:
    machine = op.Machine(place=place)
    machine.look = op.Look(**look)  # type: ignore[arg-type]
    if place in (op.BUSY, op.SUSPENDED, op.RETIRING, op.VACATING):
        machine.job_began_s = NOW - 10.0
    return machine


def kinds(actions: tuple[op.Action, ...]) -> list[str]:
    return [type(action).__name__ for action in actions]


@pytest.mark.parametrize("event", op.EVENTS)
@pytest.mark.parametrize("place", op.PLACES)
def test_every_cell_is_filled_and_leads_to_a_place(place: op.Place, event: type) -> None:
    machine = at(place)
    machine.handle(EXAMPLES[event], NOW)
    assert machine.place in op.PLACES


@pytest.mark.parametrize("place", [p for p in op.PLACES if p[0] is op.State.CLAIMED])
@pytest.mark.parametrize("event", op.EVENTS)
def test_a_running_claim_is_left_only_for_preempting(place: op.Place, event: type) -> None:
    machine = at(place, want_vacate=True)
    machine.handle(EXAMPLES[event], NOW)
    if place != op.CLAIMED and event is not op.Gone:
        assert machine.state in (op.State.CLAIMED, op.State.PREEMPTING)


def test_owner_leaves_and_returns() -> None:
    machine = at(op.OWNER)
    machine.handle(op.Look(is_owner=False), NOW)
    assert machine.place == op.UNCLAIMED
    machine.handle(op.Look(is_owner=True), NOW)
    assert machine.place == op.OWNER


def test_suspend_counts_only_where_it_is_wanted() -> None:
    machine = at(op.BUSY)
    assert machine.handle(op.Look(suspend=True, want_suspend=False), NOW) == ()
    assert kinds(machine.handle(op.Look(suspend=True, want_suspend=True), NOW)) == ["Freeze"]
    assert machine.place == op.SUSPENDED
    assert machine.handle(op.Look(suspend=True, want_suspend=True, resume=True), NOW) == ()
    assert kinds(machine.handle(op.Look(resume=True, want_suspend=True), NOW)) == ["Thaw"]
    assert machine.place == op.BUSY


def test_preempt_retires_then_vacates_then_kills() -> None:
    machine = at(op.BUSY)
    look = op.Look(preempt=True, retirement_s=100.0, vacate_s=50.0)
    assert kinds(machine.handle(look, NOW)) == ["Revoke", "StartTimer"]
    assert machine.place == op.RETIRING
    actions = machine.handle(op.Timeout("retire"), NOW + 90.0)
    assert kinds(actions) == ["Revoke", "Vacate", "StartTimer"]
    assert machine.place == op.VACATING
    assert actions[1] == op.Vacate(grace_s=50.0, reason="PREEMPT became true")
    assert kinds(machine.handle(op.Timeout("vacate"), NOW + 140.0)) == ["StopTimer", "Kill", "StartTimer"]
    assert machine.place == op.KILLING
    assert kinds(machine.handle(op.Timeout("kill"), NOW + 170.0)) == ["Kill", "StartTimer"]
    assert kinds(machine.handle(op.Gone(), NOW + 171.0)) == ["StopTimer", "StopTimer", "Drop"]
    assert machine.place == op.UNCLAIMED


def test_without_want_vacate_the_job_is_killed_at_once() -> None:
    machine = at(op.BUSY)
    machine.handle(op.Look(preempt=True, want_vacate=False), NOW)
    assert machine.place == op.KILLING


def test_want_hold_vacates_with_a_hold() -> None:
    machine = at(op.BUSY)
    actions = machine.handle(op.Look(preempt=True, want_hold=True, hold_reason="too big", hold_subcode=7,
                                     retirement_s=100.0), NOW)
    assert op.Vacate(grace_s=600.0, reason="too big", hold=True, hold_subcode=7) in actions


def test_a_job_that_finishes_while_retiring_ends_the_claim() -> None:
    machine = at(op.RETIRING)
    machine.reason = "drained"
    assert "Kill" in kinds(machine.handle(op.End(), NOW))
    machine.handle(op.Gone(), NOW)
    assert machine.place == op.UNCLAIMED


def test_suspended_job_goes_when_preempted() -> None:
    machine = at(op.SUSPENDED)
    machine.handle(op.Look(preempt=True, retirement_s=100.0), NOW)
    assert machine.place == op.VACATING


def test_a_run_stands_still_while_its_user_or_the_policy_wants_it() -> None:
    machine = at(op.BUSY)
    assert machine.handle(op.Halt(True), NOW) == ()
    assert machine.place == op.SUSPENDED
    assert machine.handle(op.Look(resume=True), NOW) == (), "CONTINUE does not speak for the user"
    assert kinds(machine.handle(op.Look(suspend=True, want_suspend=True), NOW)) == ["Freeze"], "the owner is back too"
    machine.handle(op.Halt(False), NOW)
    assert machine.place == op.SUSPENDED
    assert kinds(machine.handle(op.Look(resume=True), NOW)) == ["Thaw"]
    assert machine.place == op.BUSY
    machine.handle(op.Halt(True), NOW)
    machine.handle(op.Halt(False), NOW)
    assert machine.place == op.BUSY


def test_what_its_user_suspended_does_not_go_on_because_the_owner_leaves() -> None:
    machine = at(op.BUSY)
    machine.handle(op.Look(suspend=True, want_suspend=True), NOW)
    machine.handle(op.Halt(True), NOW)
    machine.handle(op.Look(resume=True), NOW)
    assert machine.place == op.SUSPENDED
    machine.handle(op.Halt(False), NOW)
    assert machine.place == op.BUSY


def test_a_frozen_run_of_a_retiring_claim_goes_on_retiring() -> None:
    machine = at(op.RETIRING)
    machine.handle(op.Look(suspend=True, want_suspend=True), NOW)
    assert machine.place == op.SUSPENDED
    machine.handle(op.Look(resume=True), NOW)
    assert machine.place == op.RETIRING
    machine.handle(op.Look(suspend=True, want_suspend=True), NOW)
    assert "Vacate" in kinds(machine.handle(op.Timeout("retire"), NOW)), "its time passes also while it is frozen"
    machine = at(op.SUSPENDED)
    machine.handle(op.Drain("finish"), NOW)
    machine.handle(op.Look(resume=True), NOW)
    assert machine.place == op.SUSPENDED, "nothing had frozen it"
    machine = at(op.BUSY)
    machine.handle(op.Look(suspend=True, want_suspend=True), NOW)
    machine.handle(op.Drain("finish"), NOW)
    machine.handle(op.Look(resume=True), NOW)
    assert machine.place == op.RETIRING, "a peaceful drain lets it finish, and no other follows"
    machine.handle(op.Look(suspend=True, want_suspend=True), NOW)
    machine.handle(op.End(), NOW)
    assert machine.place == op.KILLING


def test_drain_waits_for_the_claim_and_for_the_rest_of_the_machine() -> None:
    machine = at(op.BUSY, retirement_s=100.0)
    machine.handle(op.Drain("retire"), NOW)
    assert machine.place == op.RETIRING
    machine.handle(op.End(), NOW)
    machine.handle(op.Gone(), NOW)
    assert machine.place == op.DRAINING
    machine.handle(op.Emptied(), NOW)
    assert machine.place == op.DRAINED
    machine.handle(op.Undrain(), NOW)
    assert machine.place == op.UNCLAIMED


def test_owner_is_back_while_a_claim_idles() -> None:
    machine = at(op.CLAIMED)
    assert kinds(machine.handle(op.Look(is_owner=True), NOW)) == ["Revoke", "Kill", "StartTimer"]
    machine.handle(op.Gone(), NOW)
    assert machine.place == op.OWNER


def test_a_match_that_is_not_claimed_lapses() -> None:
    machine = at(op.UNCLAIMED)
    machine.handle(op.Match("a@x"), NOW)
    assert machine.place == op.MATCHED
    machine.handle(op.Timeout("match"), NOW + 120.0)
    assert machine.place == op.UNCLAIMED


def test_story_and_times_are_kept() -> None:
    machine = op.Machine(place=op.UNCLAIMED, state_since_s=0.0, activity_since_s=0.0)
    machine.handle(op.Claim(), 10.0)
    machine.handle(op.Begin(), 12.0)
    assert machine.spent_s == {op.UNCLAIMED: 10.0, op.CLAIMED: 2.0}
    assert [(name, place) for _, name, place in machine.story] == [
        ("Claim", "Claimed/Idle"), ("Begin", "Claimed/Busy")]
    assert (machine.state_since_s, machine.activity_since_s) == (10.0, 12.0)
