"""Partners get what the terms say and no more, local jobs come first and take machines back."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.lending import SETTLING_S
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.effects import Effect, Send
from condor_actors.messages.admin import VacateSlots
from condor_actors.messages.advertise import AdChange, AdKind
from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.messages.negotiate import MatchNotice
from condor_actors.messages.pool import KnownPartner
from tests.unit.cores.negotiator.test_negotiation_cycle import Pool, asks, gained, reasons

ALICE, GUEST, OTHER = "alice@dom", "gus@there%math", "olga@there%math"


def lend(cycle: NegotiationCycle, now_s: float = 0.0, pool: str = "math", **terms: Any) -> None:
    partner = KnownPartner(name=pool, central=f"<c%{pool}:1>", terms=FlockTerms(**terms))
    cycle.lending.learn((partner,), now_s)


def run(pool: Pool, now_s: float = 1000.0) -> tuple[Effect, ...]:
    effects = pool.cycle.begin(now_s)
    for ask in asks(effects):
        effects = pool.answer(ask, now_s)
    return effects


def has(pool: Pool, number: int, user: str, began_s: int = 0, cpus: int = 1) -> None:
    """A user's claim on a slot, as its ad shows it."""
    ad = ClassAd({"Name": f"slot{number}", "MyAddress": "<m:1>", "Cpus": cpus, "Memory": 100, "Disk": 100,
                  "State": "Claimed", "RemoteUser": user, "EnteredCurrentState": began_s, "Requirements": True,
                  "Rank": 0.0, "MachineResources": "Cpus Memory Disk"})
    pool.view.apply([AdChange(ad_kind=AdKind.SLOT, name=f"slot{number}", ad=ad.to_bytes(),
                              private=ClassAd({"Capability": f"claimed {number}"}).to_bytes())])


def vacated(effects: tuple[Effect, ...]) -> list[str]:
    return [slot for each in effects if isinstance(each, Send) and isinstance(each.message, VacateSlots)
            for slot in each.message.slots]


def test_a_partner_gets_its_quota_over_all_its_users() -> None:
    pool = Pool(10, {GUEST: 9, OTHER: 9})
    lend(pool.cycle, quota=3.0)
    effects = run(pool)
    assert sum(1 for each in effects if isinstance(each, Send) and isinstance(each.message, MatchNotice)) == 3
    assert sum(gained(effects).values()) == 3
    assert gained(run(pool, 1001.0)) == {}  # what no ad shows yet counts


def test_what_it_has_already_counts() -> None:
    pool = Pool(10, {GUEST: 9})
    lend(pool.cycle, quota=3.0)
    has(pool, 0, OTHER)
    has(pool, 1, GUEST)
    assert gained(run(pool)) == {GUEST: 1}


def test_local_jobs_are_served_first() -> None:
    pool = Pool(3, {GUEST: 9, ALICE: 2})
    lend(pool.cycle)
    assert gained(run(pool)) == {ALICE: 2, GUEST: 1}


def test_machines_jobs_users_and_hours_are_the_owners_to_say() -> None:
    for terms in ({"machines": "Memory > 1000"}, {"refuse": ("gus",)}, {"jobs": "false"}):
        pool = Pool(3, {GUEST: 9})
        lend(pool.cycle, **terms)
        effects = run(pool)
        assert gained(effects) == {}
        assert reasons(effects), terms


def test_a_pool_whose_terms_nobody_knows_gets_nothing() -> None:
    pool = Pool(3, {GUEST: 9})
    effects = run(pool)
    assert gained(effects) == {}
    assert "not known" in reasons(effects)[0]


def test_local_jobs_take_machines_back_the_youngest_claims_first_and_no_more_than_they_need() -> None:
    pool = Pool(4, {ALICE: 2})
    lend(pool.cycle)
    for number in range(4):
        has(pool, number, GUEST, began_s=100 + number)
    assert vacated(run(pool)) == ["slot3", "slot2"]
    assert vacated(run(pool, 1001.0)) == []  # they are leaving
    assert pool.cycle.lending.loans["math"].reclaimed == 2


def test_those_that_are_alike_keep_their_machines() -> None:
    pool = Pool(2, {ALICE: 2})
    lend(pool.cycle, rank="alike")
    for number in range(2):
        has(pool, number, GUEST)
    assert vacated(run(pool)) == []


def test_jobs_that_could_not_run_there_take_nothing_back() -> None:
    pool = Pool(2, {ALICE: 2}, job={"RequestCpus": 1, "Requirements": False})
    lend(pool.cycle)
    has(pool, 0, GUEST)
    has(pool, 1, GUEST)
    assert vacated(run(pool)) == []


def test_parts_of_a_machine_are_taken_back_until_the_job_fits() -> None:
    pool = Pool(0, {ALICE: 1}, job={"RequestCpus": 3})
    lend(pool.cycle)
    whole = ClassAd({"Name": "slot1@h", "MyAddress": "<m:1>", "Cpus": 1, "Memory": 100, "Disk": 100,
                     "State": "Unclaimed", "PartitionableSlot": True, "Requirements": True, "Rank": 0.0,
                     "MachineResources": "Cpus Memory Disk"})
    parts = [ClassAd({"Name": f"slot1_{number}@h", "MyAddress": "<m:1>", "Cpus": 1, "Memory": 1, "Disk": 1,
                      "State": "Claimed", "RemoteUser": GUEST, "EnteredCurrentState": number,
                      "ParentSlotName": "slot1@h", "Requirements": True, "MachineResources": "Cpus Memory Disk"})
             for number in range(4)]
    pool.view.apply([AdChange(ad_kind=AdKind.SLOT, name=ad.get_str("Name"), ad=ad.to_bytes(),
                              private=ClassAd({"Capability": ad.get_str("Name")}).to_bytes())
                     for ad in (whole, *parts)])
    assert vacated(run(pool)) == ["slot1_3@h", "slot1_2@h"]


def test_who_has_more_than_it_was_given_loses_it_and_gets_nothing_for_a_while() -> None:
    pool = Pool(6, {GUEST: 9})
    lending = pool.cycle.lending
    lend(pool.cycle, quota=2.0)
    for number in range(4):
        has(pool, number, GUEST, began_s=number)
    soon_s = SETTLING_S / 2.0
    assert [slot.key for slot, _ in lending.overdue(pool.view, soon_s)] == ["slot3", "slot2"]
    assert lending.loans["math"].strikes == 0  # the quota may just have been made smaller
    later_s = SETTLING_S + 100.0
    assert [slot.key for slot, _ in lending.overdue(pool.view, later_s)] == ["slot3", "slot2"]
    assert lending.loans["math"].strikes == 1
    for number in range(4):
        pool.view.apply([pool._slot(number)])
    effects = run(pool, later_s + 1.0)
    assert gained(effects) == {}
    assert "more than it was given" in reasons(effects)[0]
    assert gained(run(pool, later_s + 61.0)) == {GUEST: 2}


def test_who_is_admitted_no_longer_leaves() -> None:
    pool = Pool(2, {})
    lend(pool.cycle, refuse=("gus",))
    has(pool, 0, GUEST)
    has(pool, 1, OTHER)
    assert [(slot.key, "not admitted" in why) for slot, why in pool.cycle.lending.overdue(pool.view, 5.0)] == [
        ("slot0", True)]


@given(st.integers(0, 8), st.integers(0, 6), st.integers(0, 8), st.integers(0, 8), st.integers(0, 4))
def test_never_more_than_the_quota_and_never_a_slot_that_a_local_job_wants(
        slots: int, quota: int, local: int, guests: int, held: int) -> None:
    pool = Pool(slots, {name: count for name, count in ((ALICE, local), (GUEST, guests)) if count})
    lend(pool.cycle, quota=float(quota))
    for number in range(min(held, slots, quota)):
        has(pool, number, OTHER)
    free = slots - min(held, slots, quota)
    won = gained(run(pool)) if pool.wants else {}
    assert won.get(ALICE, 0) == min(local, free)
    assert won.get(GUEST, 0) <= max(0, quota - (slots - free))
    assert won.get(GUEST, 0) == min(guests, free - won.get(ALICE, 0), quota - (slots - free))


def test_the_report_has_what_is_held_and_promised() -> None:
    pool = Pool(3, {GUEST: 1})
    lend(pool.cycle, quota=2.0, times="")
    has(pool, 0, OTHER)
    run(pool)
    (ad,) = pool.cycle.lending.ads(pool.view, 1000.0)
    assert (ad.get_float("WeightHeld"), ad.get_float("WeightPending"), ad.get_float("Quota")) == (1.0, 1.0, 2.0)
