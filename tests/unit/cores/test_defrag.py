"""Which machines are drained, when, and when that is called off."""

from __future__ import annotations

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.defrag import Defrag, DefragSettings, Order

WHOLE = parse_expression("Cpus == TotalSlotCpus")


def slot(number: int, cpus: int = 1, state: str = "Unclaimed", draining: bool = False) -> ClassAd:
    return ClassAd({"Machine": f"m{number}", "MyAddress": f"<m{number}:1>", "PartitionableSlot": True, "Cpus": cpus,
                    "TotalSlotCpus": 4, "State": state, "Draining": draining, "Number": number})


def defrag(**changes: object) -> Defrag:
    return Defrag(DefragSettings(**{"interval_s": 600.0, "per_hour": 12.0, "whole": WHOLE, "cancel": WHOLE,
                                    "rank": parse_expression("Number"), **changes}))  # type: ignore[arg-type]


def drained(orders: tuple[Order, ...]) -> list[str]:
    return [order.machine for order in orders if order.drain]


def test_so_many_an_hour_the_highest_rank_first() -> None:
    core = defrag()
    slots = [slot(number) for number in range(9)]
    assert drained(core.plan(slots, 0.0)) == ["m8", "m7"]
    slots = [slot(number, draining=number > 6) for number in range(9)]
    assert drained(core.plan(slots, 1.0)) == []
    assert drained(core.plan(slots, 600.0)) == ["m6", "m5"]


def test_a_slow_rate_adds_up() -> None:
    core = defrag(per_hour=1.0)
    found = [drained(core.plan([slot(1)], 600.0 * turn)) for turn in range(8)]
    assert [len(each) for each in found] == [0, 0, 0, 0, 0, 1, 0, 0]


def test_limits() -> None:
    slots = [slot(number) for number in range(5)]
    assert len(drained(defrag(most_draining=1).plan(slots, 0.0))) == 1
    assert drained(defrag(most_draining=1).plan([*slots, slot(7, draining=True)], 0.0)) == []
    assert drained(defrag(most_whole=1).plan([*slots, slot(7, cpus=4)], 0.0)) == []
    assert len(drained(defrag(most_whole=2).plan([*slots, slot(7, cpus=4)], 0.0))) == 1
    assert drained(defrag(per_hour=0.0).plan(slots, 0.0)) == []


def test_owners_whole_machines_and_those_that_do_not_fit_are_left_alone() -> None:
    slots = [slot(1, state="Owner"), slot(2, cpus=4), slot(3), slot(4)]
    assert drained(defrag(requirements=parse_expression("Number != 4")).plan(slots, 0.0)) == ["m3"]


def test_a_drain_of_ours_is_called_off_when_there_is_enough() -> None:
    core = defrag()
    assert drained(core.plan([slot(1)], 0.0)) == ["m1"]
    there = [slot(1, cpus=4, draining=True), slot(2, cpus=4, draining=True)]
    assert core.plan(there, 600.0) == (Order("<m1:1>", "m1", False),), "m2 is an administrator's"
