"""Which machines that sleep are woken, and in which order."""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.rooster import Rooster, RoosterSettings


def slot(machine: str, number: int = 1, **values: Any) -> ClassAd:
    ad = ClassAd({"Name": f"slot{number}@{machine}", "Machine": machine, "Offline": True, "Speed": 1, **values})
    ad["Unhibernate"] = parse_expression("MachineLastMatchTime =!= undefined")
    return ad


def rooster(most: int = 0) -> Rooster:
    return Rooster(RoosterSettings(interval_s=300.0, unhibernate=parse_expression("Offline && Unhibernate"),
                                   rank=parse_expression("Speed"), most=most, command=("/bin/true",)))


def woken(core: Rooster, *slots: ClassAd) -> list[str]:
    return [ad.get_str("Machine") for ad in core.plan(slots, 0.0)]


def test_only_machines_that_sleep_and_are_wanted_are_woken() -> None:
    awake = slot("a", MachineLastMatchTime=5)
    awake["Offline"] = False
    assert woken(rooster(), awake, slot("b"), slot("c", MachineLastMatchTime=5)) == ["c"]
    assert woken(rooster(), ClassAd({"Offline": True, "MachineLastMatchTime": 5})) == [], "it has no name"


def test_a_machine_of_several_slots_is_woken_once_by_the_ad_of_its_best_slot() -> None:
    core = rooster()
    slots = [slot("a", 1, MachineLastMatchTime=5), slot("a", 2, MachineLastMatchTime=5, Speed=7), slot("a", 3)]
    (ad,) = core.plan(slots, 0.0)
    assert ad.get_str("Name") == "slot2@a"
    assert core.woken == 1


def test_the_highest_rank_comes_first_and_a_machine_that_does_not_wake_lets_others_pass() -> None:
    core = rooster(most=1)
    slots = [slot(name, Speed=speed, MachineLastMatchTime=5) for name, speed in (("slow", 1), ("fast", 9), ("mid", 5))]
    assert [woken(core, *slots)[0] for _ in range(4)] == ["fast", "mid", "slow", "fast"]
    assert woken(core, *slots[:1]) == ["slow"]
    assert woken(core, *slots) == ["fast"], "it was awake meanwhile: what was tried before does not count"


def test_a_rank_that_is_no_number_is_the_least() -> None:
    slots = [slot("a", Speed="x", MachineLastMatchTime=1), slot("b", MachineLastMatchTime=1)]
    assert woken(rooster(), *slots) == ["b", "a"]
