"""Spans wait for nobody, are bounded, and are counted when they are lost."""

from __future__ import annotations

import threading
from typing import Any

import attrs
import pytest

from condor_actors.cores.trace_spans import JOB, RunSpans, Span, run_name, span_of, trace_of
from condor_actors.services.telemetry.traces import SpanSender, _Encoder
from tests.pool_fixture import until

ID = "schedd@host#12.0#1800000000"


class Result:
    def __init__(self, name: str) -> None:
        self.name = name


class Exporter:
    """Stands until it is let go on; then takes everything, or nothing.

    Attributes:
        begun: set when it has a batch; goes: what it waits for.
        taken: the batches.
    """

    def __init__(self, result: str = "SUCCESS") -> None:
        self.begun = threading.Event()
        self.goes = threading.Event()
        self.taken: list[list[Any]] = []
        self._result = result

    def export(self, spans: list[Any]) -> Result:
        """As the library's."""
        self.begun.set()
        assert self.goes.wait(60)
        if self._result == "raises":
            raise RuntimeError("broken")
        self.taken.append(spans)
        return Result(self._result)


class Reactor:
    """Runs at once what another thread has for it."""

    def callFromThread(self, function: Any, *arguments: Any, **named: Any) -> None:  # noqa: N802 - Twisted's name
        function(*arguments, **named)

    def seconds(self) -> float:
        return 1.0


def span(number: int = 1, trace: int = 1) -> Span:
    return Span(trace=trace, number=number, parent=0, name="x", begin_s=1.0, end_s=2.0)


def sender(exporter: Exporter, most: int = 10, share: float = 1.0) -> SpanSender:
    return SpanSender(exporter, lambda each: each, most, share, Reactor())


def test_a_collector_that_does_not_answer_stops_nothing_and_what_is_lost_is_counted() -> None:
    exporter = Exporter()
    made = sender(exporter, most=10)
    made(span())
    assert exporter.begun.wait(60)
    for number in range(15):
        made(span(number))
    assert made.lost == 5
    exporter.goes.set()
    until(lambda: made.sent == 11, lambda: f"all that waited: {made.sent}")
    assert [each.number for batch in exporter.taken for each in batch] == [1, *range(10)]


def test_what_a_user_writes_costs_no_other_span_of_its_batch() -> None:
    """A reason with bytes that are no text, a date before all dates and one after them: encoded as the library will."""
    encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
    encode = _Encoder("condor-schedd", "host")
    hostile = attrs.evolve(span(), begin_s=-1e30, end_s=float("inf"), failure="removed: \udcff\ud800",
                           facts={"condor.reason": "\udcfe", "condor.slot": "x" * 300})
    sent = encoder.encode_spans([encode(span(2)), encode(hostile), encode(span(3))]).SerializeToString()
    assert b"removed: ??" in sent


def test_what_is_refused_or_breaks_the_library_is_lost() -> None:
    for result in ("FAILURE", "raises"):
        exporter = Exporter(result)
        exporter.goes.set()
        made = sender(exporter)
        made(span())
        until(lambda: made.lost == 1, "it to be counted")  # noqa: B023 - called at once
        assert made.sent == 0


def test_all_daemons_trace_the_same_share_of_the_jobs() -> None:
    exporter = Exporter()
    exporter.goes.set()
    made = sender(exporter, most=100_000, share=0.25)
    traces = [trace_of(f"{ID}{number}") for number in range(2_000)]
    for trace in traces:
        made(span(trace=trace))
    wanted = [trace for trace in traces if trace % (1 << 64) < 1 << 62]
    assert 400 < len(wanted) < 600
    until(lambda: made.sent == len(wanted), lambda: f"{made.sent} of {len(wanted)}")
    assert {each.trace for batch in exporter.taken for each in batch} == set(wanted)
    assert made.lost == 0


def test_numbers_follow_from_the_job() -> None:
    trace = trace_of(ID)
    assert 0 < trace < 1 << 128
    assert trace == trace_of(ID) != trace_of(ID.replace("12.0", "12.1"))
    assert len({span_of(trace, name) for name in (JOB, "run 1", "run 2")}) == 3
    assert run_name("12.0#3@schedd@host") == "run 3"


def test_states_of_a_run_are_spans_within_it() -> None:
    told: list[Span] = []
    run = RunSpans(told.append, ID, "12.0#2@s", "starter", {"a": "first", "b": "second"}, {"slot": "s1"})
    for at_s, state in enumerate(["a", "a", "b", "unnamed", "a", "over"]):
        run.enter(state, float(at_s))
    assert [(each.name, each.begin_s, each.end_s) for each in told] == [
        ("first", 0.0, 2.0), ("second", 2.0, 3.0), ("first", 4.0, 5.0)]
    assert {each.parent for each in told} == {span_of(trace_of(ID), "run 2")}
    assert len({each.number for each in told}) == 3
    other: list[Span] = []
    RunSpans(other.append, ID, "12.0#2@s", "shadow", {"a": "first"}, {}).enter("a", 0.0)
    assert told[0].facts == {"slot": "s1", "condor.job.id": "12.0", "condor.run": "12.0#2@s"}


def test_a_run_that_changes_its_state_all_day_has_a_bounded_number_of_spans() -> None:
    told: list[Span] = []
    run = RunSpans(told.append, ID, "12.0#2@s", "starter", {"a": "first", "b": "second"}, {})
    for at_s in range(5_000):
        run.enter("ab"[at_s % 2], float(at_s))
    assert len(told) == 1_000
