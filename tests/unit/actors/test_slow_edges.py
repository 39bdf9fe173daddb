"""An edge that keeps the reactor is named once, innermost; what the machine keeps it waiting is not its fault."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from condor_actors.actors import slow_edges
from condor_actors.actors.slow_edges import SAMPLE_S, SLOW_S, SlowEdges


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warn(self, form: str, **fields: Any) -> None:
        self.lines.append(form.format(**fields))


def _compute(seconds: float) -> None:
    end_s = time.thread_time() + seconds
    while time.thread_time() < end_s:
        pass


def _edges() -> tuple[SlowEdges, Log]:
    log = Log()
    return SlowEdges(log), log  # type: ignore[arg-type]


def test_the_innermost_is_named_and_once() -> None:
    edges, log = _edges()
    edges.run(lambda: "outer", edges.run, lambda: "inner", _compute, 2 * SLOW_S)
    assert len(log.lines) == 1
    assert "inner" in log.lines[0]
    assert (edges.count, edges.longest_s >= SLOW_S, edges.total_s == edges.longest_s) == (1, True, True)


def test_blocking_is_ours_as_well() -> None:
    edges, log = _edges()
    edges.run(lambda: "it", time.sleep, 2 * SLOW_S)
    assert "kept" in log.lines[0]


def test_waiting_for_a_processor_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, log = _edges()
    waited = iter([0.0, 1.0])
    monkeypatch.setattr(edges, "_waited_s", lambda: next(waited))
    edges.run(lambda: "it", time.sleep, 2 * SLOW_S)
    assert log.lines == []


def test_the_kernel_is_asked_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, _ = _edges()
    asked: list[float] = []
    now_s = 0.0
    monkeypatch.setattr(edges, "_waited_s", lambda: asked.append(now_s) or 0.0)
    monkeypatch.setattr(slow_edges.time, "perf_counter", lambda: now_s)
    for _ in range(100):
        edges.run(lambda: "it", int, "7")
        now_s += SAMPLE_S / 10
    assert len(asked) >= 9
    assert all(later - earlier >= SAMPLE_S * 0.99 for earlier, later in pairwise(asked))


def test_results_and_errors_pass() -> None:
    edges, _ = _edges()
    assert edges.run(lambda: "it", int, "7") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        edges.run(lambda: "it", int, "x")


def test_the_reactors_own_calls_are_measured() -> None:
    class Reactor:
        def runUntilCurrent(self) -> None:  # noqa: N802 - Twisted's name
            _compute(2 * SLOW_S)

    edges, log = _edges()
    reactor = Reactor()
    edges.watch_reactor(reactor)
    reactor.runUntilCurrent()
    assert "timed calls" in log.lines[0]
