"""The recorder adds up what it is told."""

from __future__ import annotations

import json

import pytest

from condor_actors.simulation.cores.months import record_from_plain, record_to_plain
from condor_actors.simulation.report.events import (
    Began,
    Completed,
    Left,
    OwnerCame,
    OwnerLeft,
    Placed,
    Resumed,
    Served,
    Submitted,
    Suspended,
    Unserved,
)
from condor_actors.simulation.report.measures import estimate, month_numbers
from condor_actors.simulation.report.plots import Chart, Series, draw
from condor_actors.simulation.report.recorder import Record, Recorder

HOUR_S = 3600.0


def a_day() -> Record:
    """One job on one of two stations, stopped, resumed, moved and done."""
    recorder = Recorder(2, ["u"])
    for event in (
        Served(0.0, 1), Served(0.0, 2), Submitted(600.0, "j", "u", 3 * HOUR_S, 100), Placed(1200.0, "j", 1),
        Began(1200.0, "j", 1), OwnerCame(4800.0, 1), Suspended(4810.0, "j"), Unserved(4810.0, 1), OwnerLeft(4900.0, 1),
        Resumed(4930.0, "j"), Served(4930.0, 1), OwnerCame(8530.0, 1), Suspended(8560.0, "j"), Unserved(8560.0, 1),
        Left(8860.0, "j", "owner"), Placed(9000.0, "j", 2), Began(9000.0, "j", 2), Completed(12560.0, "j"),
    ):
        recorder(event)
    return recorder.finish(24 * HOUR_S)


def test_times_add_up() -> None:
    record = a_day()
    job = record.jobs[0]
    assert (job.placements, job.checkpoints, job.moves["owner"]) == (2, 1, 1)
    assert job.served_s == pytest.approx(3610 + 3630 + 3560)
    assert job.suspended_s == pytest.approx(120 + 300)
    assert job.wait_s == pytest.approx(12560 - 600 - 3 * HOUR_S)
    assert job.home_s(0.5) == pytest.approx(3 * 2.5 + 1.0)
    assert record.reaction_s == (10.0, 30.0)
    assert record.visits == 2
    assert record.running_h == pytest.approx(job.served_s / HOUR_S)
    assert record.served_h + record.local_h == pytest.approx(48.0)
    assert [each.queue["u"] for each in record.intervals[:5]] == [1, 1, 1, 0, 0]
    assert len(record.intervals) == 24


def test_a_job_that_is_not_done_is_not_hidden() -> None:
    recorder = Recorder(1)
    recorder(Submitted(0.0, "j", "u", HOUR_S))
    record = recorder.finish(HOUR_S)
    assert record.mean_wait_ratio(["u"]) == 0.0
    assert record.open_wait_ratio(["u"]) == float("inf")


def test_events_come_in_order_of_time() -> None:
    recorder = Recorder(1)
    recorder(Served(10.0, 1))
    with pytest.raises(ValueError, match="earlier than"):
        recorder(Unserved(9.0, 1))


def test_a_record_is_kept_as_json() -> None:
    record = a_day()
    back = record_from_plain(json.loads(json.dumps(record_to_plain(record))))
    assert month_numbers(back, frozenset()) == month_numbers(record, frozenset())
    assert back.intervals == record.intervals


def test_confidence_intervals() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half == pytest.approx(3.182 * 1.29099 / 2, rel=1e-3)
    assert estimate([5.0]).text(1) == "5.0"
    assert estimate([]).text() == "–"


def test_a_chart_is_svg_whatever_the_data() -> None:
    series = [Series(name="a <b>", points=[(1.0, 2.0), (2.0, float("nan")), (3.0, 4.0)], band=[0.1, 0.1, 0.1]),
              Series(name="nothing", points=[])]
    for log in (False, True):
        text = draw(Chart(title="t & t", x="x", y="y", series=series, marks=[(3.0, "three")], log_y=log, log_x=log))
        assert text.startswith("<svg")
        assert "a &lt;b&gt;" in text
        assert "nan" not in text
