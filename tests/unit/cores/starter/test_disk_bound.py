"""How much disk a run may use, and what its job is told."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.config.parameters import default_text
from condor_actors.cores.starter.disk_bound import DiskBound, DiskSettings, bound_of, floor_kib

MIB = 1 << 10


def slot(**values: int) -> ClassAd:
    return ClassAd({"TotalDisk": 1000 * MIB, "TotalCpus": 4, "Cpus": 1, "Disk": 10 * MIB, **values})


def bound(limit: str, *, enforce: bool = False, leaves_mib: int = 0, **values: int) -> DiskBound:
    settings = DiskSettings(enforce=enforce, limit=parse_expression(limit), leaves_kib=leaves_mib * MIB)
    return bound_of(settings, slot(**values), "slot1@here")


@pytest.mark.parametrize(("values", "mib"), [
    ({}, 250), ({"Cpus": 2}, 500), ({"Disk": 400 * MIB}, 400), ({"Cpus": 4}, 1000), ({"TotalCpus": 0}, 10),
])
def test_by_default_it_is_the_slots_disk_or_its_processors_share_of_the_machines(values: dict[str, int],
                                                                                 mib: int) -> None:
    found = bound(str(default_text("JOB_DISK_LIMIT")), **values)
    assert (found.limit_kib, found.own_kib, found.strict) == (mib * MIB, values.get("Disk", 10 * MIB), False)


@pytest.mark.parametrize(("limit", "kib"), [
    ("0", 0), ("-5", 0), ("7.9", 7), ("undefined", 10 * MIB), ("\"much\"", 10 * MIB), ("true", 10 * MIB),
    ("1.0E300", 10 * MIB), ("real(\"NaN\")", 10 * MIB), ("NoSuch * 3", 10 * MIB),
])
def test_what_is_no_number_is_as_good_as_the_slots_disk(limit: str, kib: int) -> None:
    assert bound(limit).limit_kib == kib


def test_one_that_is_held_to_its_request_has_no_more() -> None:
    found = bound("99999999", enforce=True)
    assert (found.limit_kib, found.strict) == (10 * MIB, True)
    assert not found.exceeded(10 * MIB)
    assert "10 MB that were its own (RequestDisk)" in found.exceeded(10 * MIB + 1)
    assert found.is_to_blame(10 * MIB + 1, 50 * MIB)


def test_it_is_told_the_numbers_and_the_remedy() -> None:
    text = bound("256000").exceeded(300 * MIB)
    for part in ("300 MB of disk on slot1@here", "250 MB (JOB_DISK_LIMIT)", "slot has 10 MB", "request_disk"):
        assert part in text
    assert not bound("0").exceeded(1 << 50)


def test_who_is_to_blame_for_a_full_disk() -> None:
    found = bound("256000", leaves_mib=50)
    assert found.takes_room(60 * MIB, 50 * MIB)[1]
    text, to_blame = found.takes_room(59 * MIB, 50 * MIB)
    assert not to_blame
    assert "tried again" in text
    assert not found.is_to_blame(10 * MIB, 0)


def test_a_log_says_which_it_is() -> None:
    assert str(bound("0")) == "as it is"
    assert str(bound("0", leaves_mib=50)) == "any amount, 50 MB stay free"
    assert str(bound("256000", leaves_mib=50)) == "250 MB (JOB_DISK_LIMIT, looked at), 50 MB stay free"
    assert str(bound("0", enforce=True)) == "10 MB (RequestDisk, looked at)"


def test_the_floor_is_at_most_a_twentieth_of_the_disk() -> None:
    assert floor_kib(1000, 10000) == 500
    assert floor_kib(100, 10000) == 100
