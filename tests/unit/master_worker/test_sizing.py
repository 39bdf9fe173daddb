"""How many workers there should be."""

from __future__ import annotations

from condor_actors.master_worker.sizing import Change, Limits, change

LIMITS = Limits(least=0, most=4, idle_s=60.0)


def test_there_are_as_many_as_tasks_up_to_the_most() -> None:
    assert change(LIMITS, unfinished=2, absent=0, linked={}, quiet_s=0.0) == Change(submit=2)
    assert change(LIMITS, unfinished=900, absent=1, linked={"a": None}, quiet_s=0.0) == Change(submit=2)
    assert change(LIMITS, unfinished=900, absent=4, linked={}, quiet_s=900.0) == Change()


def test_the_least_are_there_without_tasks() -> None:
    limits = Limits(least=2, most=4, idle_s=1.0)
    assert change(limits, unfinished=0, absent=0, linked={}, quiet_s=0.0) == Change(submit=2)
    assert change(limits, unfinished=0, absent=0, linked={"a": 9.0, "b": 9.0}, quiet_s=9.0) == Change()


def test_those_that_have_nothing_leave_after_a_while_down_to_none() -> None:
    linked = {"a": 70.0, "b": 50.0, "c": None}
    assert change(LIMITS, unfinished=1, absent=0, linked=linked, quiet_s=59.0) == Change()
    assert change(LIMITS, unfinished=1, absent=0, linked=linked, quiet_s=70.0) == Change(end=("a",))
    assert change(LIMITS, unfinished=0, absent=0, linked={"a": 60.0}, quiet_s=60.0) == Change(end=("a",))


def test_those_that_have_not_come_are_the_first_to_be_given_up() -> None:
    assert change(LIMITS, unfinished=1, absent=2, linked={"a": None, "b": 90.0}, quiet_s=90.0) == Change(
        remove=2, end=("b",))
    assert change(LIMITS, unfinished=2, absent=1, linked={"a": None, "b": 90.0}, quiet_s=90.0) == Change(remove=1)
