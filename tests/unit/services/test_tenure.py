"""What has lived long is set aside by the collector, and looked at again when much has come."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from condor_actors.services.tenure import Tenure


class Node:
    """Part of a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = None


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_survives_is_not_walked_again(thresholds: None) -> None:
    tenure = Tenure(least_objects=10**9)
    tenure.begin()
    try:
        kept = [Node() for _ in range(1_000)]
        gc.collect()
        assert gc.get_freeze_count() > 1_000
        assert len(gc.get_objects(generation=2)) < 100
        assert (tenure.rounds, tenure.whole_rounds) == (1, 0)
        assert len(kept) == 1_000
    finally:
        tenure.end()
    assert gc.get_freeze_count() == 0


def test_new_cycles_go_at_once_and_old_ones_when_everything_is_looked_at(thresholds: None) -> None:
    gc.set_threshold(10_000, 1, 1)
    tenure = Tenure(least_objects=20_000)
    tenure.begin()
    try:
        old, new = Node(), Node()
        old.other, new.other = old, new
        old_lives, new_lives = weakref.ref(old), weakref.ref(new)
        del new
        gc.collect()
        assert new_lives() is None
        del old  # it was set aside while somebody held it
        gc.callbacks.remove(tenure._collecting)
        gc.collect()
        assert old_lives() is not None
        gc.callbacks.append(tenure._collecting)
        gc.collect()
        assert old_lives() is None
        assert tenure.whole_rounds == 1
    finally:
        tenure.end()
