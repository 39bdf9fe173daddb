"""Who is starved, and who only sleeps, spins or stands still."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from condor_actors.machine.run.scheduling_starvation import ProcessorWait, Reading, read, was_starved

BEFORE = Reading(when_s=100.0, used_s=5.0, waited_s=1.0, is_runnable=False)


@pytest.mark.parametrize(("used_s", "waited_s", "is_runnable", "starved"), [
    (0.0, 0.0, False, False),  # it sleeps, or is stopped
    (0.0, 0.0, True, True),  # it has waited all the time, and still does
    (0.5, 19.0, False, True),  # it got there at last
    (0.5, 12.0, True, True),
    (19.0, 0.9, True, False),  # it spins
    (9.0, 2.0, False, False),
])
def test_what_the_kernel_counts(used_s: float, waited_s: float, is_runnable: bool, starved: bool) -> None:
    now = Reading(120.0, BEFORE.used_s + used_s, BEFORE.waited_s + waited_s, is_runnable)
    assert was_starved(BEFORE, now) is starved


def test_a_process_that_sleeps_or_is_stopped_is_not_starved() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        reading = read(child.pid)
        assert reading is not None
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        wait = ProcessorWait()
        assert not wait.since_last(child.pid), "it was never asked about"
        assert not wait.since_last(child.pid)
    finally:
        child.kill()
        child.communicate()
    assert read(child.pid) is None
    assert not wait.since_last(child.pid)


def test_it_counts_from_the_last_question_about_the_same_process() -> None:
    wait = ProcessorWait()
    assert not wait.since_last(os.getpid())
    assert not wait.since_last(1)
    mine = read(os.getpid())
    assert mine is not None
    assert mine.is_runnable
    assert mine.used_s > 0.0
