"""The negotiator from the ads of slots and submitters to matches, on an in-memory network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.messages.advertise import AdKind, AdsChanged, AdsPage, QueryAds
from condor_actors.messages.envelope import Address, Done, Refused
from condor_actors.messages.negotiate import QueryPriorities, QueryTrace, RequestCycle, SetPriority
from tests.harness.local_post import LocalNetwork
from tests.unit.daemons.central import (
    ALICE,
    BOB,
    CM,
    NEGOTIATOR,
    Machine,
    Schedd,
    ask,
    central_network,
    configuration,
    start_collector,
    start_negotiator,
)

net = pytest.fixture(central_network, name="net")



def test_a_job_is_matched_within_milliseconds_and_both_sides_hear_of_it(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    net.run(1.0)
    schedd.want(ALICE, (1, {}))
    net.run(0.02)
    ((submitter, match),) = schedd.matches
    assert (submitter, match.slot_name, match.startd_address) == (ALICE, "slot1@m", "<m:1>")
    assert match.capability == "right to slot1@m"
    assert b"slot1@m" in match.slot_ad
    assert [notice.submitter for notice in machine.notices] == [ALICE]
    assert schedd.asked[0].limit == 200
    assert "requestcpus" in schedd.asked[0].significant_attributes


def test_a_slot_is_not_given_twice_while_its_ad_is_old(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    net.run(1.0)
    schedd.want(ALICE, (3, {}))
    net.run(1.0)
    machine.show("slot1@m", LoadAvg=0.5)
    net.run(5.0)
    assert len(schedd.matches) == 1
    machine.show("slot1@m", "another right", State="Claimed", RemoteUser=ALICE)
    net.run(1.0)
    assert len(schedd.matches) == 1
    machine.show("slot1@m", "a third right")
    net.run(1.0)
    assert [match.capability for _, match in schedd.matches] == ["right to slot1@m", "a third right"]


def test_a_match_that_nobody_used_is_given_up_after_a_while(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    net.run(1.0)
    schedd.want(ALICE, (2, {}))
    net.run(1.0)
    assert len(schedd.matches) == 1
    net.run(20.0)
    assert len(schedd.matches) == 2


def test_requirements_of_both_sides_and_ranks_decide(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("small@m", Memory=100)
    machine.show("big@m", Memory=4000)
    machine.show("bigger@m", Memory=5000)
    machine.show("choosy@m", Memory=9000, Start='=TARGET.Owner == "bob"')
    net.run(1.0)
    schedd.want(ALICE, (1, {"Requirements": "=TARGET.Memory >= 4000", "Rank": "=TARGET.Memory", "Owner": "alice"}))
    net.run(1.0)
    assert schedd.slots == ["big@m"], "NEGOTIATOR_PRE_JOB_RANK prefers the smaller machine"
    schedd.want(BOB, (1, {"Requirements": "=TARGET.Memory >= 6000", "Owner": "bob"}))
    net.run(1.0)
    assert schedd.slots == ["big@m", "choosy@m"]


def test_a_partitionable_slot_is_split_several_times_in_one_cycle(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", Cpus=4, Memory=4000, SlotType="Partitionable", PartitionableSlot=True)
    net.run(1.0)
    schedd.want(ALICE, (3, {"RequestMemory": 1500}), (2, {}))
    net.run(0.1)
    assert [match.autocluster for _, match in schedd.matches] == [1, 1, 2, 2]
    assert "memory" in schedd.rejections[0][1]
    machine.show("slot1@m", Cpus=0, Memory=800, SlotType="Partitionable", PartitionableSlot=True)
    net.run(5.0)
    assert len(schedd.matches) == 4
    machine.show("slot1@m", Cpus=4, Memory=4000, SlotType="Partitionable", PartitionableSlot=True)
    net.run(0.1)
    assert len(schedd.matches) == 5


def test_shares_follow_priorities(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    assert isinstance(ask(net, schedd.probe, SetPriority(submitter=ALICE, what="factor", value=3000.0)), Done)
    schedd.want(ALICE, (100, {}))
    schedd.want(BOB, (100, {}))
    net.run(0.1)
    for number in range(8):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    gained = [submitter for submitter, _ in schedd.matches]
    assert (gained.count(ALICE), gained.count(BOB)) == (2, 6)


def test_what_one_cannot_use_another_gets(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    schedd.want(ALICE, (100, {}))
    schedd.want(BOB, (100, {"Requirements": "=TARGET.Memory > 5000"}))
    net.run(0.1)
    for number in range(8):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    assert [submitter for submitter, _ in schedd.matches] == [ALICE] * 8
    assert any(submitter == BOB and "requirements" in reason for submitter, reason in schedd.rejections)
    page = ask(net, schedd.probe, QueryTrace(submitter=BOB))
    assert isinstance(page, AdsPage)
    trace = ClassAd.from_bytes(page.ads[0])
    assert (trace["Unmatched"], trace["JobId"]) == (100, "1.0")


def test_requests_are_paged(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE": "2"})
    machine, schedd = Machine(net), Schedd(net)
    for number in range(5):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    schedd.want(ALICE, *[(1, {"JobPrio": number}) for number in range(5)])
    net.run(1.0)
    assert [match.autocluster for _, match in schedd.matches] == [1, 2, 3, 4, 5]


def test_what_cannot_be_matched_does_not_hide_what_comes_behind_it(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE": "2"})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    net.run(1.0)
    no = (50, {"Requirements": "=TARGET.Memory > 10000"})
    schedd.want(ALICE, no, no, no, no, no, (1, {}), no, no, no)
    net.run(0.1)
    assert [match.autocluster for _, match in schedd.matches] == [6]
    assert len(schedd.asked) < 5, "once the slot is given nobody is asked for more"
    assert len({question.cycle for question in schedd.asked}) == 1


def test_a_schedd_that_does_not_answer_holds_nobody_up(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, good, bad = Machine(net), Schedd(net), Schedd(net, "<s:2>", "bad")
    bad.silent = True
    bad.want(BOB, (1, {}))
    good.want(ALICE, (1, {}))
    machine.show("slot1@m")
    net.run(3.0)
    assert good.slots == ["slot1@m"]


def test_preemption_by_the_rank_of_the_machine(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE, Rank='=TARGET.Owner == "bob"', CurrentRank=0.0)
    machine.show("slot2@m", State="Claimed", RemoteUser=ALICE)
    net.run(1.0)
    schedd.want(BOB, (2, {"Owner": "bob"}))
    net.run(1.0)
    ((_, match),) = schedd.matches
    assert match.preempting
    assert match.slot_name == "slot1@m"


def test_preemption_by_priority_only_where_the_pool_allows_it(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"PREEMPTION_REQUIREMENTS": 'Memory > 1500', "PRIORITY_HALFLIFE": "100"})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE)
    machine.show("slot2@m", State="Claimed", RemoteUser=ALICE, Memory=2000)
    net.run(1000.0)
    machine.show("slot2@m", State="Claimed", RemoteUser=ALICE, Memory=2000)
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE)
    net.run(10.0)
    schedd.want(BOB, (2, {}))
    net.run(1.0)
    assert schedd.slots == ["slot2@m"]


def test_usage_is_accounted_and_survives_kill_9(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE, Cpus=2)
    net.run(0.5)
    net.run(500.0)
    before = user(ask(net, schedd.probe, QueryPriorities()), ALICE)
    assert before["WeightedAccumulatedUsage"] == pytest.approx(1000.0, rel=0.01)
    assert before["ResourcesUsed"] == 1
    assert before["Priority"] > 500.0
    net.run(100.0)
    net.crash(NEGOTIATOR)
    start_negotiator(net, tmp_path)
    after = user(ask(net, schedd.probe, QueryPriorities()), ALICE)
    assert after["WeightedAccumulatedUsage"] >= before["WeightedAccumulatedUsage"]
    refused = ask(net, schedd.probe, SetPriority(submitter=ALICE, what="factor", value=0.5))
    assert isinstance(refused, Refused)
    assert ask(net, schedd.probe, SetPriority(submitter=ALICE, what="delete")) == Done()


def test_the_collector_may_die_and_come_back(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    net.crash(CM)
    net.run(1.0)
    start_collector(net)
    net.run(10.0)
    machine.show("slot1@m")
    schedd.want(ALICE, (1, {}))
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]
    assert ask(net, schedd.probe, RequestCycle()) == Done()


def user(page: Any, name: str) -> ClassAd:
    assert isinstance(page, AdsPage)
    return next(ad for ad in map(ClassAd.from_bytes, page.ads) if ad["Name"] == name)


def test_concurrency_limits_hold_across_cycles(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"LICENCE_LIMIT": "3"})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("busy@m", State="Claimed", RemoteUser=ALICE, ConcurrencyLimits="licence")
    for number in range(5):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    schedd.want(ALICE, (5, {"ConcurrencyLimits": "licence"}))
    net.run(1.0)
    assert len(schedd.matches) == 2
    assert any("licence is reached" in reason for _, reason in schedd.rejections)
    assert isinstance(ask(net, schedd.probe, RequestCycle()), Done)
    assert len(schedd.matches) == 2
    machine.show("busy@m")
    net.run(1.0)
    assert len(schedd.matches) == 3


def test_groups_get_their_quotas_first_and_surplus_where_it_is_accepted(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"GROUP_NAMES": "a, b", "GROUP_QUOTA_a": "2", "GROUP_QUOTA_b": "3",
                                     "GROUP_ACCEPT_SURPLUS_b": "true"})
    machine, schedd = Machine(net), Schedd(net)
    schedd.want("a.alice@dom", (10, {}))
    schedd.want("b.bob@dom", (10, {}))
    net.run(0.1)
    for number in range(8):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    gained = [submitter for submitter, _ in schedd.matches]
    assert (gained.count("a.alice@dom"), gained.count("b.bob@dom")) == (2, 6)
    page = ask(net, schedd.probe, QueryPriorities())
    assert (user(page, "b")["ConfigQuota"], user(page, "b")["SurplusPolicy"], user(page, "a")["Requested"]) == (
        3.0, "yes", 10.0)


def test_ceilings(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    ask(net, schedd.probe, SetPriority(submitter=ALICE, what="ceiling", value=2.0))
    for number in range(4):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    schedd.want(ALICE, (4, {}))
    net.run(1.0)
    assert len(schedd.matches) == 2


def test_up_down_lets_the_light_user_in_when_a_heavy_one_has_everything(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"PRIORITY_POLICY": "UP_DOWN", "UP_DOWN_INTERVAL": "24"})
    machine, schedd = Machine(net), Schedd(net)
    for number in range(4):
        machine.show(f"slot{number}@m", State="Claimed", RemoteUser=ALICE, RemoteOwner=ALICE)
    net.run(240.0)
    schedd.want(BOB, (3, {}))
    net.run(1.0)
    assert [match.preempting for _, match in schedd.matches] == [True, True, True]
    page = ask(net, schedd.probe, QueryPriorities())
    assert user(page, ALICE)["Priority"] == 40.0


def test_who_has_no_idle_jobs_any_more_is_not_denied_anything(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"PRIORITY_POLICY": "UP_DOWN", "NEGOTIATOR_CONSIDER_PREEMPTION": "false"})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", Memory=1)
    net.run(1.0)
    schedd.want(BOB, (3, {"Requirements": "=TARGET.Memory > 5"}))
    net.run(240.5)
    assert user(ask(net, schedd.probe, QueryPriorities()), BOB)["Priority"] == -2.0
    schedd.want(BOB, (0, {}))
    net.run(120.0)
    assert user(ask(net, schedd.probe, QueryPriorities()), BOB)["Priority"] == -1.0


def test_up_down_serves_slot_by_slot_the_lowest_index_first(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"PRIORITY_POLICY": "UP_DOWN"})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("held@m", State="Claimed", RemoteUser=ALICE, Cpus=1)
    net.run(250.0)
    schedd.want(ALICE, (10, {"Requirements": '=TARGET.Name =!= "held@m"'}))
    schedd.want(BOB, (10, {"Requirements": '=TARGET.Name =!= "held@m"'}))
    net.run(0.1)
    for number in range(4):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    gained = [submitter for submitter, _ in schedd.matches]
    assert (gained.count(ALICE), gained.count(BOB)) == (1, 3)


def test_a_lost_change_makes_it_ask_for_everything_again(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    net.run(1.0)
    actor: Any = net.systems[NEGOTIATOR].actor("negotiator")
    actor._next -= 1
    actor.core.view.slots.clear()
    schedd.want(ALICE, (1, {}))
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]


def test_only_the_collector_it_subscribed_to_is_believed(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    schedd = Schedd(net)
    schedd.probe.tell(Address(NEGOTIATOR, "negotiator"), AdsChanged(sequence=1, changes=(), snapshot=True))
    machine = Machine(net)
    machine.show("slot1@m")
    schedd.want(ALICE, (1, {}))
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]


def test_submitters_may_be_left_to_another_negotiator(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path, {"NEGOTIATOR_SUBMITTER_CONSTRAINT": f'Name == "{BOB}"'})
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m")
    schedd.want(ALICE, (1, {}))
    net.run(1.0)
    assert schedd.slots == []
    schedd.want(BOB, (1, {}))
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]


def test_slots_may_count_as_one_each_and_requests_for_one_job(net: LocalNetwork, tmp_path: Path) -> None:
    settings = {"NEGOTIATOR_USE_SLOT_WEIGHTS": "false", "USE_RESOURCE_REQUEST_COUNTS": "false"}
    daemon = start_negotiator(net, tmp_path, settings)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("held@m", State="Claimed", RemoteUser=ALICE, Cpus=8)
    machine.show("slot1@m", Cpus=4)
    machine.show("slot2@m", Cpus=4)
    net.run(1.0)
    assert user(ask(net, schedd.probe, QueryPriorities()), ALICE)["WeightedResourcesUsed"] == 1.0
    schedd.want(BOB, (2, {}))
    net.run(0.1)
    assert len(schedd.matches) == 1
    daemon.reconfigure(configuration(tmp_path))
    machine.show("slot2@m", Cpus=5)
    net.run(0.1)
    assert user(ask(net, schedd.probe, QueryPriorities()), ALICE)["WeightedResourcesUsed"] == 8.0


def test_reconfiguration_takes_effect_at_once(net: LocalNetwork, tmp_path: Path) -> None:
    daemon = start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", Memory=500)
    machine.show("slot2@m")
    net.run(1.0)
    daemon.reconfigure(configuration(tmp_path, {"NEGOTIATOR_SLOT_CONSTRAINT": "Memory < 800"}))
    schedd.want(ALICE, (2, {}))
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]


def test_what_can_place_a_job_now_does_not_wait_for_the_next_interval(net: LocalNetwork, tmp_path: Path) -> None:
    """Higher limits of a user and of the pool, and limits that a claim's next job does not hold."""
    daemon = start_negotiator(net, tmp_path, {"LICENCE_LIMIT": "1"})
    machine, schedd = Machine(net), Schedd(net)
    claimed = {"State": "Claimed", "RemoteUser": BOB}
    machine.show("busy@m", ConcurrencyLimits="licence", **claimed)
    for number in range(4):
        machine.show(f"slot{number}@m")
    net.run(1.0)
    schedd.want(ALICE, (4, {"ConcurrencyLimits": "licence"}))
    net.run(1.0)
    assert schedd.slots == []
    machine.show("busy@m", ConcurrencyLimits="other", **claimed)
    net.run(0.1)
    assert len(schedd.slots) == 1, "the claim's next job needs no licence"
    daemon.reconfigure(configuration(tmp_path, {"LICENCE_LIMIT": "2"}))
    net.run(0.1)
    assert len(schedd.slots) == 2, "the pool has one licence more"
    for name in schedd.slots:
        machine.show(name, State="Claimed", RemoteUser=ALICE, ConcurrencyLimits="licence")
    net.run(0.1)
    ask(net, schedd.probe, SetPriority(submitter=ALICE, what="ceiling", value=2.0))
    daemon.reconfigure(configuration(tmp_path, {"LICENCE_LIMIT": "9"}))
    net.run(0.1)
    assert len(schedd.slots) == 2, "the user has enough"
    ask(net, schedd.probe, SetPriority(submitter=ALICE, what="ceiling", value=3.0))
    net.run(0.1)
    assert len(schedd.slots) == 3, "the user may have one more"


def test_a_machine_whose_owner_has_left_is_matched_at_once(net: LocalNetwork, tmp_path: Path) -> None:
    """Also while the negotiator rests from long cycles, and though its disk has less room than before."""
    daemon = start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", State="Owner", Requirements=False, Disk=1000)
    net.run(1.0)
    schedd.want(ALICE, (1, {}))
    net.run(1.0)
    assert schedd.slots == []
    daemon._core.cycle.busy_s = 0.5
    machine.show("slot1@m", State="Unclaimed", Disk=900)
    net.run(1.0)
    assert schedd.slots == ["slot1@m"]


def test_the_collector_learns_of_cycles_and_users(net: LocalNetwork, tmp_path: Path) -> None:
    start_negotiator(net, tmp_path)
    machine, schedd = Machine(net), Schedd(net)
    machine.show("slot1@m", State="Claimed", RemoteUser=ALICE)
    machine.show("slot2@m")
    net.run(1.0)
    schedd.want(BOB, (1, {}))
    net.run(70.0)
    expected = ((AdKind.NEGOTIATOR, "LastNegotiationCycleNumber0"), (AdKind.ACCOUNTING, "WeightedResourcesUsed"))
    for kind, name in expected:
        schedd.probe.answers.clear()
        schedd.probe.ask(Address(CM, "collector"), QueryAds(ad_kind=kind))
        net.run(0.1)
        (page,) = schedd.probe.answers
        assert max(ClassAd.from_bytes(ad)[name] for ad in page.ads) >= 1
