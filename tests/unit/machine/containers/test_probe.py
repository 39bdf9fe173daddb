"""Whether jobs can run in images is found out beside the reactor, and told when it is something else than before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from condor_actors.machine.containers.probe import AGAIN_S, ContainerProbe

Thread = tuple[Callable[[], bool], "Deferred[Any]"]


def bench(*, works_here: bool = True) -> tuple[ContainerProbe, Clock, list[Thread], list[bool]]:
    clock, threads, told = Clock(), list[Thread](), list[bool]()

    def in_thread(function: Callable[[], bool]) -> Deferred[Any]:
        threads.append((function, Deferred()))
        return threads[-1][1]

    return ContainerProbe(clock, told.append, in_thread, lambda: True, works_here=works_here), clock, threads, told


def test_it_looks_at_once_and_each_hour_and_tells_changes() -> None:
    probe, clock, threads, told = bench()
    probe.start()
    assert not told
    assert threads[0][0]()
    for works in (True, True, False, False, True):
        threads[-1][1].callback(works)
        clock.advance(AGAIN_S)
    assert told == [True, False, True]
    assert len(threads) == 6
    threads[-1][1].errback(OSError("no room"))
    assert told[-1] is False
    probe.stop()
    assert not clock.getDelayedCalls()


def test_what_has_stopped_or_is_simulated_tells_nothing() -> None:
    probe, clock, threads, told = bench()
    probe.start()
    probe.stop()
    threads[0][1].callback(True)
    assert not told
    assert not clock.getDelayedCalls()
    probe, _, threads, _ = bench(works_here=False)
    probe.start()
    assert not threads
