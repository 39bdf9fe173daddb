"""The simulated clock runs every call once, at its own instant, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface.verify import verifyObject

from condor_actors.simulation.world.clock import COMPACT_AT, HeapClock


def test_is_what_twisted_calls_a_clock() -> None:
    clock = HeapClock()
    assert verifyObject(IReactorTime, clock)
    assert verifyObject(IDelayedCall, clock.callLater(1, print))


def test_equal_instants_run_in_the_order_of_scheduling() -> None:
    clock, seen = HeapClock(), []
    for name in "abc":
        clock.callLater(1.0, seen.append, name)
    clock.run_until(2.0)
    assert seen == ["a", "b", "c"]
    assert clock.seconds() == 2.0
    assert clock.wall() == clock.epoch_s + 2.0


def test_a_call_made_by_a_call_runs_within_the_same_span() -> None:
    clock, seen = HeapClock(), []
    clock.callLater(1.0, lambda: clock.callLater(0.5, lambda: seen.append(clock.seconds())))
    clock.run_until(1.4)
    assert seen == []
    clock.run_until(1.6)
    assert seen == [1.5]


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(["keep", "cancel", "later", "sooner"])), max_size=60))
def test_every_call_runs_once_at_its_time_unless_cancelled(plan: list[tuple[float, str]]) -> None:
    clock = HeapClock()
    seen: list[tuple[int, float]] = []
    expected: list[tuple[float, int]] = []
    for number, (delay, fate) in enumerate(plan):
        call = clock.callLater(delay, lambda number=number: seen.append((number, clock.seconds())))
        if fate == "cancel":
            call.cancel()
            continue
        if fate == "later":
            call.delay(5.0)
        elif fate == "sooner":
            call.reset(delay / 2)
        expected.append((call.getTime(), number))
    clock.run_until(1000.0)
    assert sorted((time_s, number) for number, time_s in seen) == sorted(expected)
    assert [time_s for _, time_s in seen] == sorted(time_s for _, time_s in seen)
    assert clock.getDelayedCalls() == []


@given(st.lists(st.sampled_from(["soon", "later", "much later", "step"]), max_size=60))
def test_what_runs_soon_keeps_the_order_of_scheduling(plan: list[str]) -> None:
    clock, plain = HeapClock(soon_s=2.0), HeapClock()
    seen: list[tuple[int, float]] = []
    expected: list[tuple[int, float]] = []
    for number, word in enumerate(plan):
        if word == "step":
            clock.run_until(clock.seconds() + 1.0)
            plain.run_until(plain.seconds() + 1.0)
            continue
        delay_s = 3.0 if word == "much later" else 2.0
        plain.callLater(delay_s, lambda number=number: expected.append((number, plain.seconds())))
        if word == "soon":
            clock.soon(lambda number: seen.append((number, clock.seconds())), number)
        else:
            clock.callLater(delay_s, lambda number=number: seen.append((number, clock.seconds())))
    clock.run_until(100.0)
    plain.run_until(100.0)
    assert seen == expected
    assert clock.events == plain.events


def test_says_what_twisted_says_of_calls_that_are_over() -> None:
    clock = HeapClock()
    ran = clock.callLater(0, int)
    clock.run_until(0)
    with pytest.raises(AlreadyCalled):
        ran.cancel()
    gone = clock.callLater(1, int)
    gone.cancel()
    with pytest.raises(AlreadyCancelled):
        gone.reset(3)
    with pytest.raises(ValueError, match="ago"):
        clock.callLater(-1, int)


def test_cancelled_calls_do_not_pile_up() -> None:
    clock = HeapClock()
    for _ in range(5 * COMPACT_AT):
        clock.callLater(1e9, int).cancel()
    assert len(clock._heap) <= 2 * COMPACT_AT + 2
