"""The three priority policies, each alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import parse_expression
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.up_down import UpDown, UpDownSettings
from condor_actors.cores.negotiator.update_prio import UpdatePrio, UpdatePrioSettings
from condor_actors.cores.negotiator.user_priority import UserRecord

ALICE, BOB = "alice@dom", "bob@dom"


def test_fair_share_follows_what_is_held_with_the_half_life() -> None:
    policy = FairShare(FairShareSettings(half_life_s=100.0))
    policy.holds({ALICE: (10.0, 10)}, 0.0)
    assert policy.effective(ALICE, 100.0) == pytest.approx((0.5 * 0.5 + 0.5 * 10.0) * 1000.0)
    policy.holds({ALICE: (0.0, 0)}, 100.0)
    assert policy.effective(ALICE, 200.0) == pytest.approx(0.5 * (0.5 * 0.5 + 0.5 * 10.0) * 1000.0)
    assert policy.effective(ALICE, 1e6) == pytest.approx(500.0)
    record = policy.users[ALICE]
    assert (record.weighted_usage_s, record.usage_s) == (1000.0, 1000.0)


@given(st.lists(st.floats(min_value=0.1, max_value=500.0), min_size=1, max_size=20))
def test_fair_share_does_not_depend_on_when_it_is_looked_at(spans: list[float]) -> None:
    often, once = FairShare(FairShareSettings(half_life_s=300.0)), FairShare(FairShareSettings(half_life_s=300.0))
    for policy in (often, once):
        policy.holds({ALICE: (7.0, 3)}, 0.0)
    now_s = 0.0
    for span_s in spans:
        now_s += span_s
        often.effective(ALICE, now_s)
    assert often.effective(ALICE, now_s) == pytest.approx(once.effective(ALICE, now_s))
    assert often.users[ALICE].usage_s == pytest.approx(once.users[ALICE].usage_s)


def test_factors_by_kind_of_user() -> None:
    policy = FairShare(FairShareSettings(local_domain="dom", group_factors={"physics": 50.0, "physics.hep": 20.0}))
    assert policy.factor(ALICE) == 1000.0
    assert policy.factor("nice-user.alice@dom") == 1e10
    assert policy.factor("alice@elsewhere") == 1e7
    assert policy.factor("Physics.alice@dom") == 50.0
    assert policy.factor("physics.hep.alice@dom") == 20.0
    policy.user(ALICE, 0.0).factor = 7.0
    assert policy.factor(ALICE) == 7.0


def test_up_down_rises_with_what_is_held_and_falls_with_what_is_denied() -> None:
    policy = UpDown(UpDownSettings(step=2.0, interval_s=120.0))
    policy.holds({ALICE: (3.0, 3)}, 0.0)
    policy.wants({BOB}, 0.0)
    assert policy.effective(ALICE, 1200.0) == 10 * 3 * 2.0
    assert policy.effective(BOB, 1200.0) == -20.0
    assert policy.beats(policy.effective(BOB, 1200.0), policy.effective(ALICE, 1200.0))


def test_up_down_drifts_to_zero_and_drops_to_the_ceiling_at_once() -> None:
    policy = UpDown(UpDownSettings(), {ALICE: UserRecord(ALICE, priority=5000.0, policy="UP_DOWN"),
                                       BOB: UserRecord(BOB, priority=-3.0, policy="UP_DOWN")})
    assert policy.effective(ALICE, 120.0) == 120.0
    assert policy.effective(ALICE, 240.0) == 119.0
    assert policy.effective(BOB, 240.0) == -1.0
    assert policy.effective(BOB, 12000.0) == 0.0
    assert policy.effective(ALICE, 1e6) == 0.0


def test_up_down_applies_whole_passes_only() -> None:
    policy = UpDown(UpDownSettings(interval_s=120.0))
    policy.holds({ALICE: (1.0, 1)}, 0.0)
    assert policy.effective(ALICE, 119.0) == 0.0
    assert policy.effective(ALICE, 121.0) == 1.0
    assert policy.effective(ALICE, 239.0) == 1.0
    assert policy.effective(ALICE, 240.0) == 2.0


def test_update_prio_is_the_expression_between_its_bounds() -> None:
    policy = UpdatePrio(UpdatePrioSettings(interval_s=10.0, least=-50.0, most=50.0))
    policy.holds({ALICE: (3.0, 3)}, 0.0)
    policy.wants({BOB}, 0.0)
    assert policy.effective(ALICE, 20.0) == 4.0, "the highest Prio is served first: the effective one is its negative"
    assert policy.effective(BOB, 20.0) == -2.0
    assert policy.effective(ALICE, 1e5) == 50.0
    policy.holds({ALICE: (0.0, 0)}, 1e5)
    assert policy.effective(ALICE, 1e5 + 20.0) == 48.0


def test_update_prio_keeps_what_an_expression_cannot_change() -> None:
    policy = UpdatePrio(UpdatePrioSettings(expression=parse_expression("Prio / 0"), interval_s=10.0))
    policy.wants({BOB}, 0.0)
    assert policy.effective(BOB, 100.0) == 0.0


def test_an_index_of_another_policy_counts_for_nothing() -> None:
    policy = UpDown(UpDownSettings(), {ALICE: UserRecord(ALICE, priority=77.0, weighted_usage_s=5.0)})
    assert policy.effective(ALICE, 0.0) == 0.0
    assert policy.users[ALICE].weighted_usage_s == 5.0
