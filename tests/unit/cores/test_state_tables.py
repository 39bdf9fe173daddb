"""Every cell of every state table is filled, taken, and leaves the run with what always holds."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.cores.schedd.shadow_host_table import TABLE as HOST
from condor_actors.cores.schedd.shadow_host_table import HostState
from condor_actors.cores.shadow.grid_events import GridState
from condor_actors.cores.shadow.grid_run_table import TABLE as GRID
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.cores.shadow.shadow_run_table import TABLE as SHADOW
from condor_actors.cores.shadow.standard_run_table import TABLE as STANDARD
from condor_actors.cores.starter.job_run_table import TABLE as STARTER
from condor_actors.cores.starter.run_events import HasToGo, StarterState, WishChanged
from condor_actors.cores.state_table import InvariantBroken, TableError, event_key, ignore, total_table
from condor_actors.effects import Note

sys.path.insert(0, str(Path(__file__).parents[3] / "docs"))
import run_samples as samples  # noqa: E402  # what the documentation's diagrams are drawn from
import state_diagram  # noqa: E402
import state_tables  # noqa: E402

INSIDE = {HasToGo, WishChanged}
"""Events that only steps give to a table."""

RUNS: tuple[tuple[str, dict[Any, Any], type[enum.Enum], Sequence[Any], Callable[[], list[Any]]], ...] = (
    ("starter", STARTER, StarterState, samples.STARTER_EVENTS, samples.starters),
    ("shadow", SHADOW, ShadowState, samples.SHADOW_EVENTS, samples.shadows),
    ("standard", STANDARD, ShadowState, samples.STANDARD_EVENTS, samples.standards),
    ("grid", GRID, GridState, samples.GRID_EVENTS, samples.grids),
    ("shadow host", HOST, HostState, samples.HOST_EVENTS, samples.shadow_hosts),
)


@pytest.mark.parametrize(("name", "table", "states", "events", "runs"), RUNS, ids=[each[0] for each in RUNS])
def test_a_walk_takes_every_cell(name: str, table: dict[Any, Any], states: type[enum.Enum], events: Sequence[Any],
                                 runs: Callable[[], list[Any]]) -> None:
    left = {(state, event) for state, event in table if event not in INSIDE}
    assert {event_key(event) for event in events} == {event for _, event in left}
    assert {state for state, _ in left} == set(states)
    for state, event, after in state_diagram.walk(runs(), events):
        left.discard((state, event_key(event)))
        after.validate()
    assert not left


@pytest.mark.parametrize(("name", "table", "states", "events", "runs"), RUNS, ids=[each[0] for each in RUNS])
def test_what_is_ignored_has_a_reason_and_no_effect(
        name: str, table: dict[Any, Any], states: type[enum.Enum], events: Sequence[Any],
        runs: Callable[[], list[Any]]) -> None:
    for run in runs():
        for event in events:
            step = table[run.state, event_key(event)]
            if isinstance(step, ignore):
                assert step.why
                before = run.state
                assert run.handle(event, 10.0) == ()
                assert run.state is before


def test_an_event_of_nobody_is_only_noted() -> None:
    for run in (samples.starters()[0], samples.shadows()[0], samples.standards()[0], samples.shadow_hosts()[0]):
        effects = run.handle(object(), 10.0)
        assert [type(effect) for effect in effects] == [Note]


def test_a_table_with_a_hole_is_refused() -> None:
    step = ignore("nothing happens")
    with pytest.raises(TableError, match="the row of int has 1 cells for 2 states"):
        total_table("t", ("a", "b"), {int: (step,)})
    with pytest.raises(TableError, match="the cell of timer x in b is None"):
        total_table("t", ("a", "b"), {"timer x": (step, None)})  # type: ignore[type-var]


def test_the_page_has_a_diagram_and_a_table_of_each_run() -> None:
    page = state_tables.on_page_markdown(state_tables.MARK)
    for name in ("a run at its starter", "a run at its shadow", "a standard-universe run",
                 "a run in another batch system", "a shadow host"):
        assert name in page.lower()
    assert page.count("<svg") >= 5


def started() -> Any:
    run = samples.starters()[0]
    for event in samples.STARTER_EVENTS:
        if type(event).__name__ in ("Prepared", "Began"):
            run.handle(event, 1.0)
    assert run.state is StarterState.RUNNING
    run.validate()
    return run


def _starter(**changes: Any) -> Callable[[], Any]:
    def make() -> Any:
        run = started()
        for name, value in changes.items():
            setattr(run, name, value)
        return run

    return make


def _shadow(**changes: Any) -> Callable[[], Any]:
    def make() -> Any:
        run = samples.shadows()[0]
        run.validate()
        for name, value in changes.items():
            setattr(run, name, value)
        return run

    return make


STOP = next(event for event in samples.SHADOW_EVENTS if type(event).__name__ == "StopRun")
WISH = next(event for event in samples.SHADOW_EVENTS if type(event).__name__ == "SuspendRun")
EXIT = next(event for event in samples.SHADOW_EVENTS if type(event).__name__ == "RunExited")


@pytest.mark.parametrize(("make", "reason"), [
    (_starter(state=StarterState.ENDED), "nobody was told how it ended"),
    (_starter(exited=EXIT), "was told, and it is running"),
    (_starter(state=StarterState.CLEARING, suspended=True, by_user=True), "nothing thaws it"),
    (_starter(suspended=True), "nobody wants that"),
    (_starter(state=StarterState.STOPPING), "nobody has asked it to"),
    (_starter(state=StarterState.SAVING), "no checkpoint on its way"),
    (_starter(claim_open=False), "never asked to go"),
    (_shadow(state=ShadowState.ENDED), "not told its end"),
    (_shadow(exited=EXIT), "has ended at its starter"),
    (_shadow(state=ShadowState.BRINGING), "has not ended"),
    (_shadow(stopping=STOP, wish=WISH), "still to hear"),
    (_shadow(state=ShadowState.RUNNING, wish=WISH), "was not told"),
])
def test_a_broken_run_is_named(make: Callable[[], Any], reason: str) -> None:
    with pytest.raises(InvariantBroken, match=reason):
        make().validate()


def test_samples_name_every_field_that_decides() -> None:
    """A sample is a value: nothing of one walk is left for the next."""
    for event in (*samples.STARTER_EVENTS, *samples.STANDARD_EVENTS, *samples.HOST_EVENTS):
        assert attrs.has(type(event))
