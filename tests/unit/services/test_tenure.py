"""What has lived long is set aside by the collector, and looked at again when much has come."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock

from condor_actors.services.tenure import LOOK_S, QUIET, WITHOUT_CYCLES, Tenure


class Node:
    """Part of a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = None


class Process:
    """A process whose time goes as the test says."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.cpu_s = 0.0
        self.tenure = Tenure(self.clock, lambda: self.cpu_s)

    def goes_on(self, busy: float) -> None:
        self.cpu_s += busy * LOOK_S
        self.clock.advance(LOOK_S)


@pytest.fixture
def process() -> Iterator[Process]:
    """Each collection counts as ten thousand objects that have come."""
    before = gc.get_threshold()
    gc.freeze()  # what all other tests have left is not walked again and again
    gc.set_threshold(10_000, 1, 1)
    made = Process()
    made.tenure.begin()
    yield made
    gc.callbacks.remove(made.tenure._collecting)
    gc.unfreeze()
    gc.set_threshold(*before)


def old_cycle(process: Process) -> weakref.ref[Node]:
    """A cycle that nobody holds any more, but that was set aside while someone did."""
    node = Node()
    node.other = node
    gc.collect()
    return weakref.ref(node)


def test_what_survives_is_not_walked_again(process: Process) -> None:
    kept = [Node() for _ in range(1_000)]
    gc.collect()
    assert gc.get_freeze_count() > 1_000
    assert len(gc.get_objects(generation=2)) < 100
    assert (process.tenure.whole_rounds, len(kept)) == (0, 1_000)


def test_new_cycles_go_at_once(process: Process) -> None:
    node = Node()
    node.other = node
    lives = weakref.ref(node)
    del node
    gc.collect()
    assert lives() is None


def test_old_cycles_go_in_a_quiet_moment_when_much_has_come(process: Process) -> None:
    process.tenure.least = 40_000
    lives = old_cycle(process)
    process.goes_on(busy=0.0)
    assert lives() is not None, "not much has come"
    for _ in range(3):
        gc.collect()
    process.goes_on(busy=2 * QUIET)
    assert lives() is not None, "someone may wait"
    process.goes_on(busy=0.0)
    assert lives() is None
    assert process.tenure.whole_rounds == 1
    process.goes_on(busy=0.0)
    assert process.tenure.whole_rounds == 1


def test_what_there_is_decides_how_much_is_much(process: Process) -> None:
    process.tenure.least = 0
    process.goes_on(busy=0.0)
    assert (process.tenure.whole_rounds, process.tenure._kept > 10_000) == (1, True)
    process.goes_on(busy=0.0)
    assert process.tenure.whole_rounds == 1


def test_old_cycles_go_at_last_however_busy_the_process_is(process: Process) -> None:
    process.tenure.most = 30_000
    lives = old_cycle(process)
    young = [old_cycle(process) for _ in range(2)]
    assert (lives() is None, young[0]() is None, process.tenure.whole_rounds) == (False, False, 0)
    process.tenure._found = 1_000  # of forty thousand that came
    gc.collect()
    assert (lives() is None, young[0]() is None, process.tenure.whole_rounds) == (True, True, 1)


def test_a_busy_process_in_which_hardly_any_cycles_come_goes_on_for_longer(process: Process) -> None:
    process.tenure.most = 30_000
    lives = old_cycle(process)
    for _ in range(3 * WITHOUT_CYCLES - 2):
        gc.collect()
    assert lives() is not None
    gc.collect()
    assert (lives() is None, process.tenure.whole_rounds) == (True, 1)
