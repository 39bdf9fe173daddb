"""Which machines that sleep are asked for, for which jobs."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.negotiator.cycle_settings import CycleRules, CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.matchmaking import Request
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.pool_view import HARD, NONE, PoolView
from condor_actors.cores.negotiator.user_priority import UserRecord
from condor_actors.cores.negotiator.waking.demand import AGAIN_S, PAGE, WAKE_S, TellCollectors, WakingDemand
from condor_actors.effects import Answer, Ask, Effect, Send
from condor_actors.messages.advertise import AdChange, AdKind
from condor_actors.messages.negotiate import MatchesMade, ResourceRequest, ResourceRequests

NOW = 1000.0


def change(name: str, *, sleeps: bool = True, **values: Any) -> AdChange:
    ad = ClassAd({"Name": f"slot1@{name}", "Machine": name, "MyAddress": f"<{name}:1>", "Cpus": 1, "Memory": 100,
                  "Disk": 100, "State": "Unclaimed", "Requirements": True, "Rank": 0.0,
                  "MachineResources": "Cpus Memory Disk", **({"Offline": True} if sleeps else {}), **values})
    private = ClassAd({"Capability": f"right to {name}"}).to_bytes()
    return AdChange(ad_kind=AdKind.SLOT, name=f"slot1@{name}", ad=ad.to_bytes(), private=private)


def view_of(*changes: AdChange) -> PoolView:
    view = PoolView()
    view.apply(changes)
    return view


def request(count: int = 1, requirements: str = "true", **wants: Any) -> Request:
    ad = ClassAd({"RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1, **wants})
    ad["Requirements"] = parse_expression(requirements)
    return Request(1, "1.0", count, ad, "alice@dom")


def found(demand: WakingDemand, view: PoolView, *requests: Request, now_s: float = NOW) -> list[str]:
    return [name.partition("@")[2] for name in demand.find(view.sleeping, requests, now_s)]


def test_as_many_machines_as_there_are_jobs_and_of_those_that_fit_both_ways() -> None:
    view = view_of(change("a"), change("b", Memory=5), change("c"), change("d", sleeps=False),
                   change("e", Requirements=parse_expression("TARGET.Owner == \"bob\"")))
    assert found(WakingDemand(), view, request()) == ["a"]
    assert found(WakingDemand(), view, request(9)) == ["a", "b", "c"]
    assert found(WakingDemand(), view, request(9, RequestMemory=50)) == ["a", "c"]
    assert found(WakingDemand(), view, request(9, "TARGET.Memory < 50")) == ["b"]
    assert found(WakingDemand(), view, request(1), request(1)) == ["a", "b"], "what the first has the second has not"


def test_a_divided_machine_takes_as_many_as_it_has_room_for() -> None:
    view = view_of(change("a", PartitionableSlot=True, Cpus=4, Memory=30), change("b", PartitionableSlot=True, Cpus=4))
    assert found(WakingDemand(), view, request(4)) == ["a"]
    assert found(WakingDemand(), view, request(4, RequestMemory=10)) == ["a", "b"]
    assert found(WakingDemand(), view, request(2), request(2, RequestCpus=2), request(1, RequestCpus=3)) == ["a", "b"]
    assert found(WakingDemand(), view, request(1, RequestCpus=0)) == ["a"]


def test_the_next_cycle_asks_for_the_same_machines_and_not_for_ever() -> None:
    demand = WakingDemand()
    view = view_of(change("b"), change("c"))
    assert found(demand, view, request()) == ["b"]
    view.apply([change("a")])
    assert found(demand, view, request(), now_s=NOW + 60) == ["b"]
    assert found(demand, view, request(), now_s=NOW + WAKE_S + 1) == ["a"], "b does not wake"
    assert found(demand, view, request(3), now_s=NOW + WAKE_S + 2) == ["a", "c", "b"]
    view.apply([change("b", sleeps=False)])
    assert found(demand, view, request(3), now_s=NOW + WAKE_S + 3) == ["a", "c"]
    view.apply([change("b")])
    assert found(demand, view, request(3), now_s=NOW + WAKE_S + 4) == ["a", "c", "b"], "it has slept anew: it may wake"
    assert demand.asked_s["b"] == NOW + WAKE_S + 4


def test_the_collectors_are_told_once_a_minute_in_pages() -> None:
    demand = WakingDemand()
    just_now = int(NOW - AGAIN_S + 1)
    view = view_of(change("a", MachineLastMatchTime=just_now), change("b", MachineLastMatchTime=just_now - 1),
                   change("c"))
    (effect,) = demand.tell(view.sleeping, [request(3)], NOW)
    assert isinstance(effect, TellCollectors)
    assert effect.message.names == ("slot1@b", "slot1@c")
    assert demand.tell(view.sleeping, [], NOW) == []
    many = view_of(*(change(f"m{number}") for number in range(PAGE + 1)))
    assert [len(each.message.names) for each in demand.tell(many.sleeping, [request(10**6)], NOW)
            if isinstance(each, TellCollectors)] == [PAGE, 1]


def test_it_ends_when_the_time_is_used_up() -> None:
    asked = []

    def go_on() -> bool:
        asked.append(1)
        return len(asked) < 5

    view = view_of(change("a", PartitionableSlot=True, Cpus=10**9, Memory=10**9, Disk=10**9))
    assert WakingDemand().find(view.sleeping, [request(10**9)], NOW, go_on) == ("slot1@a",)
    assert len(asked) == 5


def test_a_date_in_the_ad_is_no_reason_for_another_cycle() -> None:
    view = view_of(change("a"))
    assert view.apply([change("a", MachineLastMatchTime=5)]) == NONE
    assert view.apply([change("b")]) == HARD
    assert set(view.sleeping) == {"slot1@a", "slot1@b"}
    assert view.total_weight == 0.0, "shares are of what can be had"
    view.reset()
    assert view.sleeping == {}


# ---- in a cycle

def cycle_of(view: PoolView, count: int, users: dict[str, UserRecord] | None = None, *,
             limits: str = "", limit: float = 9.0) -> tuple[NegotiationCycle, tuple[Effect, ...]]:
    """A whole cycle for one submitter."""
    submitter = ClassAd({"Name": "alice@dom", "ScheddName": "s", "MyAddress": "<s:1>", "IdleJobs": count})
    view.apply([AdChange(ad_kind=AdKind.SUBMITTER, name="alice@dom", ad=submitter.to_bytes())])
    cycle = NegotiationCycle(CycleSettings(), MatchSettings(), view, FairShare(FairShareSettings(), users),
                             CycleRules(limit_of=lambda name: limit))
    job = request(**({"ConcurrencyLimits": limits} if limits else {})).ad.to_bytes()
    effects = cycle.begin(NOW)
    for ask in [each for each in effects if isinstance(each, Ask)]:
        asked = ResourceRequest(autocluster=1, job_id="1.0", count=count, job_ad=job)
        effects = cycle.answered(Answer(ask.tag, ResourceRequests(submitter="alice@dom", requests=(asked,))), NOW)
    return cycle, effects


def told(effects: tuple[Effect, ...]) -> list[str]:
    return [name for each in effects if isinstance(each, TellCollectors) for name in each.message.names]


def test_a_pool_that_sleeps_altogether_has_cycles_and_gives_nothing() -> None:
    _, effects = cycle_of(view_of(change("a"), change("b"), change("c")), 2)
    assert told(effects) == ["slot1@a", "slot1@b"]
    assert not [each for each in effects if isinstance(each, Send) and isinstance(each.message, MatchesMade)]


def test_machines_that_are_awake_are_given_first() -> None:
    view = view_of(change("a"), change("b", sleeps=False), change("c"))
    cycle, effects = cycle_of(view, 2)
    (matches,) = [each.message.matches for each in effects
                  if isinstance(each, Send) and isinstance(each.message, MatchesMade)]
    assert [match.slot_name for match in matches] == ["slot1@b"]
    assert told(effects) == ["slot1@a"]
    assert cycle.waking.asked_s == {"a": NOW}


@pytest.mark.parametrize(("limit", "woken"), [(0.0, []), (1.0, ["slot1@a"])])
def test_jobs_that_a_limit_keeps_waiting_wake_nobody(limit: float, woken: list[str]) -> None:
    _, effects = cycle_of(view_of(change("a")), 1, limits="licence", limit=limit)
    assert told(effects) == woken


def test_a_user_at_the_ceiling_wakes_nobody() -> None:
    record = UserRecord(name="alice@dom", ceiling=0.0)
    _, effects = cycle_of(view_of(change("a")), 1, users={"alice@dom": record})
    assert told(effects) == []
