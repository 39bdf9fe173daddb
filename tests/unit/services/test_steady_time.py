"""A clock that someone sets."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.services.steady_time import MAX_SLEW, SteadyClock


class Machine:
    """A machine's two clocks."""

    def __init__(self) -> None:
        self.elapsed_s = 1000.0
        self.offset_s = 1.7e9

    def wall(self) -> float:
        return self.elapsed_s + self.offset_s

    def elapsed(self) -> float:
        return self.elapsed_s


def test_it_follows_the_machine() -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.elapsed)
    for _ in range(10):
        machine.elapsed_s += 60.0
        machine.offset_s += 0.01
        assert clock() == pytest.approx(machine.wall())


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_jump_is_made_up_for_slowly(jump_s: float) -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.elapsed)
    before_s = clock()
    machine.offset_s += jump_s
    assert clock() == pytest.approx(before_s)
    machine.elapsed_s += 100.0
    assert clock() == pytest.approx(before_s + 100.0 + (10.0 if jump_s > 0 else -10.0))
    for _ in range(100):
        machine.elapsed_s += 600.0
        clock()
    assert clock() == pytest.approx(machine.wall())


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(-1e6, 1e6)), max_size=30))
def test_it_never_goes_back_nor_runs(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.elapsed)
    last_s = clock()
    for span_s, jump_s in steps:
        machine.elapsed_s += span_s
        machine.offset_s += jump_s
        now_s = clock()
        assert span_s * (1 - MAX_SLEW) - 1e-3 <= now_s - last_s <= span_s * (1 + MAX_SLEW) + 1e-3
        last_s = now_s


def test_timers_run_although_the_clock_is_set_back() -> None:
    code = """
import time
from twisted.internet import reactor
from condor_actors.services.steady_time import steady_timers
steady_timers(reactor)
real = time.time
reactor.callWhenRunning(setattr, time, "time", lambda: real() - 3600)
reactor.callLater(0.05, reactor.stop)
reactor.run()
print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "stopped\n", done
