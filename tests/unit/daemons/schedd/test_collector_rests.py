"""A schedd that reads its queue does not have Python's collector look through it while it grows."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.harness.submit_side import SubmitPool

JOBS = 300


@pytest.fixture
def rounds() -> Iterator[list[int]]:
    """The generations that were collected, of a collector that works all the time."""
    found: list[int] = []

    def looked(phase: str, about: dict[str, Any]) -> None:
        found.append(about["generation"])

    before = gc.get_threshold()
    gc.callbacks.append(looked)
    gc.set_threshold(10, 2, 2)
    yield found
    gc.set_threshold(*before)
    gc.callbacks.remove(looked)


def test_no_collection_runs_while_the_queue_is_read(
        tmp_path: Path, rounds: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SubmitPool(tmp_path)
    pool.submit(b'Cmd = "/bin/true"\nRequirements = false\n', procs=JOBS)
    load, marks = pool.store.load, []

    def loaded() -> Any:
        marks.append((len(rounds), gc.isenabled()))
        snapshot = load()
        marks.append((len(rounds), gc.isenabled()))
        return snapshot

    monkeypatch.setattr(pool.store, "load", loaded)
    core = pool.schedd._make_core()
    (first, was_on), (last, is_on) = marks
    assert first > 0, "the collector works, and is heard"
    assert (last - first, was_on, is_on, gc.isenabled()) == (0, False, False, True)
    assert len(core.context.queue.clusters[1].jobs) == JOBS


def test_what_was_read_is_set_aside_while_the_collector_still_rests(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path)
    resting: list[bool] = []
    pool.schedd._world = attrs.evolve(pool.schedd._world, set_aside=lambda: resting.append(not gc.isenabled()))
    pool.schedd._make_core()
    assert (resting, gc.isenabled()) == ([True], True)


def test_a_queue_that_cannot_be_read_leaves_the_collector_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = SubmitPool(tmp_path)

    def fails() -> Any:
        raise OSError("no disk")

    monkeypatch.setattr(pool.store, "load", fails)
    with pytest.raises(OSError, match="no disk"):
        pool.schedd._make_core()
    assert gc.isenabled()
