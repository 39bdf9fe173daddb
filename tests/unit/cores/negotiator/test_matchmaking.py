"""The matchmaker against an oracle that asks every slot about every job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from condor_actors.classads import ClassAd, match_ads, parse_expression, rank
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.matchmaking import Matchmaker, Pick, Request
from condor_actors.cores.negotiator.pool_view import HARD, NONE, SOFT, PoolView
from condor_actors.messages.advertise import AdChange, AdKind

ALICE, BOB = "alice@dom", "bob@dom"


def slot_change(name: str, capability: str = "", **values: Any) -> AdChange:
    ad = ClassAd({"Name": name, "Machine": name, "MyAddress": "<m:1>", "State": "Unclaimed", "Cpus": 1, "Memory": 1000,
                  "Disk": 1000, "SlotID": 1, "Rank": 0.0, "CurrentRank": 0.0, "Arch": "X86_64",
                  "MachineResources": "Cpus Memory Disk Swap"})
    ad.insert_text("Requirements", "(TARGET.RequestCpus ?: 1) <= MY.Cpus && (TARGET.RequestMemory ?: 1) <= MY.Memory")
    for key, value in values.items():
        if isinstance(value, str) and value.startswith("="):
            ad.insert_text(key, value[1:])
        else:
            ad[key] = value
    private = ClassAd({"Capability": capability or f"right to {name}"})
    return AdChange(ad_kind=AdKind.SLOT, name=name, ad=ad.to_bytes(), private=private.to_bytes())


def request(count: int = 1, submitter: str = ALICE, priority: float = 500.0, **values: Any) -> Request:
    ad = ClassAd({"RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1, "Requirements": True, "Rank": 0.0})
    for key, value in values.items():
        if isinstance(value, str) and value.startswith("="):
            ad.insert_text(key, value[1:])
        else:
            ad[key] = value
    return Request(1, "1.0", count, ad, submitter, priority)


def matchmaker(*changes: AdChange, **options: Any) -> tuple[Matchmaker, PoolView]:
    view = PoolView()
    view.apply(changes)
    made = Matchmaker(MatchSettings(**options), {ALICE: 500.0, BOB: 5000.0}.__getitem__,
                      lambda wanting, holding: holding > 1.2 * wanting)
    made.begin(view, 0.0)
    return made, view


def choose(made: Matchmaker, wanted: Request, permitted: Callable[[float], bool] = lambda weight: True) -> Pick | None:
    return made.choose(wanted, permitted, lambda candidate: True)[0]


def name_of(pick: Pick | None) -> str:
    return pick.candidate.slot.key if pick is not None else ""


SLOTS = st.fixed_dictionaries({
    "Cpus": st.integers(1, 8), "Memory": st.integers(1, 4).map(lambda n: n * 500),
    "Arch": st.sampled_from(["X86_64", "ARM"]), "HasGPU": st.booleans(), "KFlops": st.integers(0, 3),
    "Start": st.sampled_from([True, False, "=TARGET.Owner == \"alice\"", "=TARGET.ImageSize < MY.Memory"]),
    "Rank": st.sampled_from([0.0, '=TARGET.Owner == "alice"']),
})
JOBS = st.fixed_dictionaries({
    "RequestCpus": st.integers(1, 8), "RequestMemory": st.sampled_from([1, 600, 1400]),
    "Owner": st.sampled_from(["alice", "bob"]), "ImageSize": st.integers(0, 2000),
    "Requirements": st.sampled_from([
        True, "=TARGET.Memory >= RequestMemory", '=TARGET.Arch == "ARM"',
        "=TARGET.HasGPU =!= true && TARGET.Memory > 500", "=TARGET.Memory * TARGET.Cpus > ImageSize",
        "=MY.Owner == \"alice\" || TARGET.KFlops > 1"]),
    "Rank": st.sampled_from([0.0, "=TARGET.Memory", "=-TARGET.KFlops"]),
})


@settings(max_examples=150, deadline=None)
@given(st.lists(SLOTS, min_size=1, max_size=12), st.lists(JOBS, min_size=1, max_size=6), st.booleans())
def test_the_best_fitting_slot_is_chosen_as_if_all_were_asked(slots: list[dict[str, Any]], jobs: list[dict[str, Any]],
                                                              partitionable: bool) -> None:
    changes = []
    for number, values in enumerate(slots):
        extra: dict[str, Any] = {"PartitionableSlot": True, "SlotType": "Partitionable"} if partitionable else {}
        changes.append(slot_change(f"s{number}", Requirements=(
            "=Start && TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory"), **values, **extra))
    made, _ = matchmaker(*changes)
    pre, post = made.settings.pre_job_rank, made.settings.post_job_rank
    assert pre is not None
    assert post is not None
    for values in jobs:
        wanted = request(2, **values)
        for _ in range(2):
            ranks = {
                each.slot.key: (pre.evaluate(each.ad, wanted.ad), rank(wanted.ad, each.ad),
                                post.evaluate(each.ad, wanted.ad))
                for each in made.candidates if match_ads(wanted.ad, each.ad, 0.0)
            }
            pick = choose(made, wanted)
            assert bool(ranks) == (pick is not None)
            if pick is None:
                break
            assert ranks[name_of(pick)] == max(ranks.values())
            made.take(pick, 10.0, {})


def test_a_request_with_a_smaller_share_takes_a_smaller_slot() -> None:
    made, _ = matchmaker(slot_change("big", Cpus=4, SlotWeight=4.0, KFlops=9), slot_change("small", Cpus=1, KFlops=1),
                         pre_job_rank=None)
    assert name_of(choose(made, request())) == "big"
    assert name_of(choose(made, request(), lambda weight: weight <= 1)) == "small"
    assert choose(made, request(), lambda weight: weight <= 0.5) is None


def test_what_partitionable_slots_lack_is_said() -> None:
    made, _ = matchmaker(slot_change("s", Cpus=4, Memory=1000, PartitionableSlot=True, Requirements=True))
    wanted = request(RequestMemory=5000)
    assert choose(made, wanted) is None
    assert made.why_not(wanted) == {"have too little memory": 1}


def test_causes_of_refusal() -> None:
    made, _ = matchmaker(slot_change("a"), slot_change("b", Requirements=False), slot_change("c", Memory=1))
    wanted = request(Requirements="=TARGET.Memory < 10", RequestMemory=100)
    assert choose(made, wanted) is None
    assert made.why_not(wanted) == {"are rejected by your job's requirements": 2,
                                    "reject your job because of their own requirements": 1}


def test_slots_that_the_schedd_cannot_reach_are_left_to_others() -> None:
    made, _ = matchmaker(slot_change("dead", MyAddress="<m:2>"), slot_change("alive"))
    avoiding = request(count=2)
    avoiding.avoided = frozenset({"<m:2>"})
    assert name_of(choose(made, avoiding)) == "alive"
    assert name_of(choose(made, request())) == "dead"
    made.candidates.take_whole(made.candidates.by_key["alive"])
    pick, causes = made.choose(avoiding, lambda weight: True, lambda candidate: True)
    assert (pick, causes["do not answer your schedd"]) == (None, 1)


def test_slots_whose_grants_the_schedd_does_not_believe_are_left_to_others() -> None:
    made, _ = matchmaker(slot_change("lies", MyAddress="<m:2>"))
    wary = request()
    wary.disbelieved = frozenset({"<m:2>"})
    pick, causes = made.choose(wary, lambda weight: True, lambda candidate: True)
    assert (pick, causes["gave your schedd grants that it does not believe (its log says why)"]) == (None, 1)
    assert name_of(choose(made, request())) == "lies"


def test_preemption_prefers_idle_slots_and_asks_both_priorities() -> None:
    rules = parse_expression("RemoteUserPrio > 1000")
    busy = slot_change("busy", State="Claimed", RemoteUser=BOB)
    made, _ = matchmaker(busy, slot_change("idle"), preemption_requirements=rules)
    assert name_of(choose(made, request())) == "idle"
    made, _ = matchmaker(busy, preemption_requirements=rules)
    pick = choose(made, request())
    assert pick is not None
    assert pick.preempting
    assert choose(made, request(priority=4900.0)) is None
    assert choose(made, request(submitter=BOB, priority=1.0)) is None
    made, _ = matchmaker(busy, preemption_requirements=parse_expression("false"))
    assert len(made.candidates) == 0, "what cannot be preempted is not even looked at"


def test_a_job_is_left_the_time_it_was_promised() -> None:
    busy = slot_change("busy", State="Claimed", RemoteUser=BOB, MaxJobRetirementTime=100, JobStart=-50,
                       Rank="=TARGET.RequestCpus")
    made, view = matchmaker(busy)
    wanted = request()
    assert choose(made, wanted) is None
    assert made.why_not(wanted) == {"have promised their job more time (MaxJobRetirementTime)": 1}
    made.begin(view, 60.0)
    assert name_of(choose(made, request())) == "busy"
    made, _ = matchmaker(busy, early_preemption=True)
    assert name_of(choose(made, request())) == "busy"


def test_what_a_change_means_for_the_next_cycle() -> None:
    view = PoolView()
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=2)]) == HARD
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=2, MyCurrentTime=77)]) == SOFT
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=2, MyCurrentTime=78)]) == NONE
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=2, MyCurrentTime=78, LoadAvg=0.5)]) == SOFT
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=1, MyCurrentTime=78)]) == NONE
    assert view.apply([slot_change("s", PartitionableSlot=True, Cpus=2, MyCurrentTime=78)]) == HARD
    assert view.apply([slot_change("s", State="Claimed", RemoteUser=ALICE)]) == NONE
    assert view.held == {ALICE: (1.0, 1)}
    assert view.apply([slot_change("s")]) == HARD
    assert view.held == {}
    assert view.apply([AdChange(ad_kind=AdKind.SLOT, name="s")]) == NONE
    assert view.total_weight == 0.0


@pytest.mark.parametrize(("before", "after"), [
    ({"State": "Owner"}, {}),
    ({"Requirements": False}, {"Requirements": "=TARGET.RequestCpus < 2"}),
    ({"Requirements": "=KeyboardIdle > 900", "KeyboardIdle": 899}, {"Requirements": "=KeyboardIdle > 900",
                                                                  "KeyboardIdle": 901}),
    ({"Start": "=TARGET.Owner == \"ann\""}, {"Start": "=TARGET.Owner == \"bob\""}),
])
def test_a_slot_that_takes_more_than_before_asks_for_a_cycle_once_in_an_interval(
        before: dict[str, Any], after: dict[str, Any]) -> None:
    view = PoolView()
    first, second = slot_change("s", Disk=500, **before), slot_change("s", Disk=400, **after)
    view.apply([first])
    assert view.apply([second]) == HARD, "though it has less disk than before"
    view.apply([slot_change("s", Disk=400, **before)])
    assert view.apply([slot_change("s", Disk=300, **after)]) == SOFT, "an owner comes and goes"
    view.apply([slot_change("s", Disk=300, **before)])
    view.new_interval()
    assert view.apply([slot_change("s", Disk=200, **after)]) == HARD


def test_an_owner_who_comes_back_is_no_reason_for_a_cycle() -> None:
    view = PoolView()
    view.apply([slot_change("s", Disk=500)])
    assert view.apply([slot_change("s", State="Owner", Disk=400)]) == NONE


def test_what_a_claim_holds_no_more_is_a_reason_for_a_cycle() -> None:
    view = PoolView()
    held = {"State": "Claimed", "RemoteUser": ALICE}
    view.apply([slot_change("s", ConcurrencyLimits="licence", **held)])
    assert view.apply([slot_change("s", ConcurrencyLimits="licence", Disk=1, **held)]) == NONE
    assert view.apply([slot_change("s", ConcurrencyLimits="other", **held)]) == HARD
    assert view.apply([slot_change("s", **held)]) == HARD
    assert view.apply([AdChange(ad_kind=AdKind.SLOT, name="s")]) == HARD, "the user's quota is free"


def test_submitters_that_want_more_ask_for_a_cycle() -> None:
    def submitter(idle: int, number: int = 0) -> AdChange:
        ad = ClassAd({"Name": ALICE, "ScheddName": "s", "MyAddress": "<s:1>", "IdleJobs": idle, "DemandNumber": number})
        return AdChange(ad_kind=AdKind.SUBMITTER, name=f"{ALICE}\ns", ad=ad.to_bytes())

    view = PoolView()
    assert view.apply([submitter(2)]) == HARD
    assert view.apply([submitter(1)]) == NONE
    assert view.apply([submitter(1)]) == NONE
    assert view.apply([submitter(2)]) == HARD
    assert view.apply([submitter(2, 1)]) == HARD, "as many, but others"
    assert view.apply([submitter(0, 2)]) == NONE
    assert view.apply([submitter(2, 2)]) == HARD
    assert [each.name for each in view.wanting()] == [ALICE]


def test_a_partitionable_slot_that_is_used_up_is_no_candidate() -> None:
    made, view = matchmaker(slot_change("s", Cpus=2, Memory=4000, PartitionableSlot=True))
    wanted = request(3)
    for left in (1, 0):
        pick = choose(made, wanted)
        assert pick is not None
        made.take(pick, 100.0, {})
        assert len(made.candidates) == left
    view.apply([slot_change("s", Cpus=0, Memory=3000, PartitionableSlot=True)])
    made.begin(view, 1.0)
    assert len(made.candidates) == 0
    view.apply([slot_change("s", Cpus=1, Memory=3500, PartitionableSlot=True)])
    made.begin(view, 2.0)
    assert len(made.candidates) == 1


@pytest.mark.parametrize(("ad", "left", "meaning"), [
    ({"Cpus": 2, "DynamicSlotsMade": 7}, 0, HARD), ({"Cpus": 1, "DynamicSlotsMade": 7}, 0, HARD),
    ({"Cpus": 2, "DynamicSlotsMade": 6}, 1, HARD),
    ({"Cpus": 1, "DynamicSlotsMade": 6, "Disk": 999}, 1, NONE),
    ({"Cpus": 2, "DynamicSlotsMade": 5, "Memory": 3999}, 2, NONE), ({"Cpus": 2, "DynamicSlotsMade": 0}, 0, HARD)])
def test_a_part_that_came_back_before_an_ad_showed_it_can_be_given_again(
        ad: dict[str, int], left: int, meaning: int) -> None:
    """A short job's slot is made and gone between two ads; they count what was made."""
    made, view = matchmaker(slot_change("s", Memory=4000, PartitionableSlot=True, Cpus=2, DynamicSlotsMade=5))
    for _ in range(2):
        pick = choose(made, request(1, RequestCpus=1, RequestMemory=0))
        assert pick is not None
        made.take(pick, 100.0, {})
    assert view.apply([slot_change("s", PartitionableSlot=True, **{"Memory": 4000, **ad})]) == meaning
    assert len(view.slots["s"].handouts) == left


def test_parts_that_were_handed_out_are_given_back_as_the_ad_shows_them() -> None:
    made, view = matchmaker(slot_change("s", Cpus=4, Memory=4000, PartitionableSlot=True))
    wanted = request(3, RequestCpus=1, RequestMemory=1000)
    for _ in range(3):
        pick = choose(made, wanted)
        assert pick is not None
        made.take(pick, 100.0, {})
    view.apply([slot_change("s", Cpus=2, Memory=2000, PartitionableSlot=True)])
    assert len(view.slots["s"].handouts) == 1
    made.begin(view, 1.0)
    (candidate,) = made.candidates
    assert candidate.ad["Cpus"] == 1
    assert view.expire_handouts(101.0) is None
    made.begin(view, 101.0)
    (candidate,) = made.candidates
    assert candidate.ad["Cpus"] == 2
