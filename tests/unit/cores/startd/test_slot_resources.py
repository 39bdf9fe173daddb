"""Machines divided into slots, and slots carved for requests."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.startd.slot_resources import (
    Custom,
    Request,
    Share,
    SlotTypeError,
    carve,
    parse_machine_resource,
    plan_slots,
    read_request,
)

MACHINE = Share(cpus=8, memory_mib=16000, disk_kib=1_000_000, swap_mib=4000,
                custom={"GPUs": Custom(3, ("G0", "G1", "G2")), "Tokens": Custom(10)})


def plan(**settings: object) -> list[tuple[int, int, int, bool]]:
    given = {"types": {}, "counts": {}, "partitionable": {}, **settings}
    plans = plan_slots(MACHINE, **given)  # type: ignore[arg-type]
    return [(each.share.cpus, each.share.memory_mib, each.share.custom["GPUs"].amount, each.partitionable)
            for each in plans]


def test_default_is_one_partitionable_slot_with_everything() -> None:
    assert plan() == [(8, 16000, 3, True)]


def test_num_slots_are_equal_and_static() -> None:
    assert plan(num_slots=4) == [(2, 4000, 1, False), (2, 4000, 1, False), (2, 4000, 1, False), (2, 4000, 0, False)]


def test_types_with_numbers_percents_fractions_and_auto() -> None:
    assert plan(types={1: "cpus=2, ram=25%, gpus=1", 2: "1/4"}, counts={1: 1, 2: 2}) == [
        (2, 4000, 1, False), (2, 4000, 0, False), (2, 4000, 0, False)]
    assert plan(types={1: "cpus=4 mem=8G", 2: "cpus=auto"}, counts={1: 1, 2: 2}, partitionable={1: True})[0] == (
        4, 8192, 1, True)


def test_devices_are_given_once() -> None:
    plans = plan_slots(MACHINE, types={1: "gpus=1"}, counts={1: 3}, partitionable={})
    assert [each.share.custom["GPUs"].ids for each in plans] == [("G0",), ("G1",), ("G2",)]


@pytest.mark.parametrize(
    ("text", "words"),
    [("cpus=banana", "not a share"), ("bananas=1", "unknown resource 'bananas'"), ("cpus=120%", "more than the whole"),
     ("cpus=1/0", "divides by zero"), ("cpus=1, 3", "has no name")],
)
def test_wrong_types_say_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(SlotTypeError, match=words):
        plan(types={1: text})


def test_too_many_slots_are_refused() -> None:
    with pytest.raises(SlotTypeError, match="want 12 of cpus"):
        plan(types={1: "cpus=4"}, counts={1: 3})
    with pytest.raises(SlotTypeError, match="no cpu"):
        plan(num_slots=9)


def test_carving_takes_first_devices_and_says_what_is_short() -> None:
    share = carve(MACHINE, Request(cpus=2, memory_mib=128, disk_kib=1024, custom={"GPUs": 2, "Tokens": 4}))
    assert isinstance(share, Share)
    assert share.custom["GPUs"] == Custom(2, ("G0", "G1"))
    left = MACHINE.minus(share)
    assert (left.cpus, left.custom["GPUs"].ids, left.custom["Tokens"].amount) == (6, ("G2",), 6)
    assert left.plus(share) == MACHINE
    assert carve(MACHINE, Request(cpus=9)) == "it wants 9 cpus, 8 are left"
    assert carve(MACHINE, Request(custom={"GPUs": 4})) == "it wants 4 GPUs, 3 are left"


def test_requests_are_rounded_up() -> None:
    job = ClassAd.from_text("RequestCpus = 1\nRequestMemory = 129\nRequestDisk = 1\nRequestGPUs = 1\n")
    request = read_request(job, ClassAd(), ("GPUs", "Tokens"))
    assert request == Request(cpus=1, memory_mib=256, disk_kib=1024, custom={"GPUs": 1, "Tokens": 0})


def test_machine_resources() -> None:
    assert parse_machine_resource("X", "4") == Custom(4)
    assert parse_machine_resource("X", "a, b c") == Custom(3, ("a", "b", "c"))
    with pytest.raises(SlotTypeError):
        parse_machine_resource("X", "-1")
