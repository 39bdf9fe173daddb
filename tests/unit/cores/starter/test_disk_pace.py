"""The files of a run are looked through when they may have become too many, and no more often than that is worth."""

from __future__ import annotations

import pytest

from condor_actors.cores.starter.disk_pace import GOES_S, LOOK_S, REGULAR_S, STANDS_AT_MOST_S, DiskLook, DiskPace

MIB = 1 << 10
TOTAL_KIB = 1000 * MIB


def test_a_quiet_run_is_looked_at_now_and_then() -> None:
    pace, looks = DiskPace(), 0
    pace.begin("a", 100 * MIB, 0.0)
    for now_s in range(60):
        found = pace.look(500 * MIB, TOTAL_KIB, float(now_s))
        assert not found.stand
        if found.run_id:
            pace.looked("a", 10 * MIB, 0.001, 500 * MIB, float(now_s))
            looks += 1
    assert looks == 60 // REGULAR_S - 1


def test_what_takes_the_room_is_looked_at_at_once() -> None:
    pace = DiskPace()
    pace.begin("a", 100 * MIB, 0.0)
    assert not pace.look(500 * MIB, TOTAL_KIB, 0.0).run_id
    assert not pace.look(451 * MIB, TOTAL_KIB, 1.0).run_id, "that is less than half of what it may take"
    assert pace.look(449 * MIB, TOTAL_KIB, 2.0).run_id == "a"
    pace.looked("a", 51 * MIB, 0.01, 449 * MIB, 2.0)
    assert not pace.look(430 * MIB, TOTAL_KIB, 3.0).run_id
    assert pace.look(424 * MIB, TOTAL_KIB, 4.0).run_id == "a"


def test_room_that_somebody_makes_hides_nothing_that_follows() -> None:
    pace = DiskPace()
    pace.begin("a", 100 * MIB, 0.0)
    for now_s, free_mib, run_id in ((0.0, 300, ""), (1.0, 500, ""), (2.0, 449, "a")):
        assert pace.look(free_mib * MIB, TOTAL_KIB, now_s).run_id == run_id


def test_who_may_take_the_least_is_looked_at_first_and_nobody_is_left_out() -> None:
    pace = DiskPace()
    pace.begin("large", 400 * MIB, 0.0)
    pace.begin("small", 20 * MIB, 0.0)
    pace.look(900 * MIB, TOTAL_KIB, 0.0)
    order = []
    for step in range(2):
        run_id = pace.look(500 * MIB, TOTAL_KIB, 1.0 + step).run_id
        assert not pace.look(500 * MIB, TOTAL_KIB, 1.0 + step).run_id, "one at a time"
        pace.looked(run_id, 5 * MIB, 0.1, 500 * MIB, 1.2 + step)
        order.append(run_id)
    assert order == ["small", "large"]


@pytest.mark.parametrize(("falls", "most"), [(False, 0.2), (True, 0.5)])
def test_looks_take_no_more_than_their_share_of_the_time(falls: bool, most: float) -> None:
    """Twenty runs with so many files that a look at one takes two seconds."""
    pace, now_s, looking_s, free_kib = DiskPace(), 0.0, 0.0, float(TOTAL_KIB)
    for number in range(20):
        pace.begin(str(number), 100 * MIB, 0.0)
    while now_s < 1000.0:
        found = pace.look(int(free_kib), TOTAL_KIB * 1000, now_s)
        if found.run_id:
            now_s += 2.0
            looking_s += 2.0
            pace.looked(found.run_id, 0, 2.0, int(free_kib), now_s)
        else:
            assert 0.0 < found.again_s <= LOOK_S
            now_s += found.again_s
        free_kib += -200 * MIB if falls else 0
    assert most * 0.8 < looking_s / now_s < most * 1.1


def test_where_hardly_any_room_is_left_suspects_stand_still_until_they_are_looked_at() -> None:
    pace = DiskPace()
    for run_id in ("a", "b"):
        pace.begin(run_id, 100 * MIB, 0.0)
    pace.look(300 * MIB, TOTAL_KIB, 0.0)
    found = pace.look(10 * MIB, TOTAL_KIB, 1.0)
    assert found.stand == ("a", "b")
    first = found.run_id
    second = next(each for each in found.stand if each != first)
    pace.looked(first, 1 * MIB, 0.01, 10 * MIB, 1.1)
    found = pace.look(10 * MIB, TOTAL_KIB, 1.2)
    assert (found.go_on, found.run_id, found.stand) == ((first,), second, ())
    pace.end(second)  # it was the one
    assert pace.look(300 * MIB, TOTAL_KIB, 2.0).stand == ()


def test_a_disk_that_has_been_full_for_long_stops_nobody() -> None:
    pace = DiskPace()
    pace.begin("a", 100 * MIB, 0.0)
    for now_s in range(100):
        found = pace.look(5 * MIB, TOTAL_KIB, float(now_s))
        assert not found.stand
        if found.run_id:
            pace.looked("a", 1 * MIB, 0.01, 5 * MIB, float(now_s))


def test_a_look_that_does_not_end_keeps_nobody_still() -> None:
    pace = DiskPace()
    pace.begin("a", 100 * MIB, 0.0)
    pace.look(300 * MIB, TOTAL_KIB, 0.0)
    assert pace.look(10 * MIB, TOTAL_KIB, 1.0).stand == ("a",)
    assert pace.look(10 * MIB, TOTAL_KIB, STANDS_AT_MOST_S).go_on == ()
    assert pace.look(10 * MIB, TOTAL_KIB, 1.0 + STANDS_AT_MOST_S).go_on == ("a",)
    assert pace.look(10 * MIB, TOTAL_KIB, 2.0 + STANDS_AT_MOST_S).stand == ()


def test_whether_there_has_been_room() -> None:
    pace = DiskPace()
    pace.begin("a", 100 * MIB, 0.0)
    pace.look(99 * MIB, TOTAL_KIB, 0.0)
    assert not pace.had_room("a")
    pace.look(100 * MIB, TOTAL_KIB, 1.0)
    pace.look(0, TOTAL_KIB, 2.0)
    assert pace.had_room("a")
    pace.end("a")
    assert not pace.had_room("a")
    assert pace.idle


def test_one_that_begins_right_after_a_look_has_the_room_that_was_seen() -> None:
    pace = watching({"a": 10})
    for run_id, now_s, had in (("b", LOOK_S, True), ("c", LOOK_S + 0.1, False)):
        pace.begin(run_id, 20 * MIB, now_s)
        assert pace.had_room(run_id) == had


FLOOR_KIB = 50 * MIB


def looked_at_in_turn(pace: DiskPace, used_mib: dict[str, int], free_mib: int, now_s: float) -> DiskLook:
    """Look until nobody is to be looked at any more; what follows at last."""
    for _ in range(2 * len(used_mib) + 2):
        found = pace.look(free_mib * MIB, TOTAL_KIB, now_s, floor_kib=FLOOR_KIB)
        if not found.run_id:
            break
        pace.looked(found.run_id, used_mib[found.run_id] * MIB, 0.001, free_mib * MIB, now_s + 0.01)
        now_s += 0.05
    return found


def watching(runs: dict[str, int], *, strict: bool = False) -> DiskPace:
    """Runs with 400 MiB each, of which so many are their own, on a disk with 300 MiB left."""
    pace = DiskPace()
    for run_id, own_mib in runs.items():
        pace.begin(run_id, 400 * MIB, 0.0, own_kib=own_mib * MIB, strict=strict)
    pace.look(300 * MIB, TOTAL_KIB, 0.0, floor_kib=FLOOR_KIB)
    return pace


@pytest.mark.parametrize(("used_mib", "goes"), [
    ({"a": 200, "b": 90, "c": 50}, "b"), ({"a": 100, "b": 10, "c": 100}, "c"), ({"a": 60, "b": 5, "c": 80}, "c"),
    ({"a": 4, "b": 4, "c": 4}, ""),
])
def test_who_has_taken_most_beyond_its_own_makes_room_when_the_floor_is_touched(used_mib: dict[str, int],
                                                                                goes: str) -> None:
    """a: 200 MiB of its own, b: 10, c: 100.  With 60 MiB nobody is asked to go, with 40 one."""
    pace = watching({"a": 200, "b": 10, "c": 100})
    assert not looked_at_in_turn(pace, used_mib, 60, 1.0).makes_room
    found = looked_at_in_turn(pace, used_mib, 40, 3.0)
    assert (found.makes_room, found.used_kib) == (goes, used_mib.get(goes, 0) * MIB)


def test_the_next_one_has_to_go_when_the_first_was_not_enough_and_no_sooner() -> None:
    used_mib = {"a": 90, "b": 80}
    pace = watching({"a": 10, "b": 10})
    assert looked_at_in_turn(pace, used_mib, 40, 1.0).makes_room == "a"
    for now_s in (2.0, 5.0, 9.0):
        assert not looked_at_in_turn(pace, used_mib, 40, now_s).makes_room, "it may take a while to end"
    pace.end("a")
    assert looked_at_in_turn(pace, used_mib, 40, 10.0).makes_room == "b"
    pace.end("b")
    assert pace.idle


def test_one_that_does_not_end_keeps_no_other_from_making_room() -> None:
    used_mib = {"a": 90, "b": 80}
    pace = watching({"a": 10, "b": 10})
    assert looked_at_in_turn(pace, used_mib, 40, 1.0).makes_room == "a"
    assert looked_at_in_turn(pace, used_mib, 40, 1.0 + GOES_S).makes_room == "b"


def test_nobody_has_to_go_for_room_that_is_there_again() -> None:
    pace = watching({"a": 10})
    assert pace.look(40 * MIB, TOTAL_KIB, 1.0, floor_kib=FLOOR_KIB).stand == ("a",)
    pace.looked("a", 90 * MIB, 0.001, 40 * MIB, 1.1)
    found = pace.look(300 * MIB, TOTAL_KIB, 2.0, floor_kib=FLOOR_KIB)
    assert (found.go_on, found.makes_room) == (("a",), "")


def test_runs_that_are_not_held_to_their_request_cost_little() -> None:
    """Quiet ones are looked at once a minute, and however long a look takes, no more than a fiftieth of the time."""
    for took_s, looks in ((0.001, 10), (6.0, 2)):
        pace, now_s, seen = watching({"a": 10}), 0.0, 0
        while now_s < 610.0:
            found = pace.look(300 * MIB, TOTAL_KIB, now_s, floor_kib=FLOOR_KIB)
            if found.run_id:
                seen += 1
                pace.looked("a", 10 * MIB, took_s, 300 * MIB, now_s + took_s)
            now_s += found.again_s
        assert seen <= looks


def test_where_hardly_any_room_is_left_a_large_limit_hides_nobody() -> None:
    """Half of what it may take is more than there is."""
    pace = DiskPace()
    pace.begin("a", 10 * TOTAL_KIB, 0.0, own_kib=MIB, strict=False)
    pace.look(49 * MIB, TOTAL_KIB, 0.0)
    assert pace.look(30 * MIB, TOTAL_KIB, 1.0).run_id == "a"
