"""Figures: sums of samples, bounded, and the same after a restart."""

from __future__ import annotations

import json

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.web.figures import WIDTHS, Ended, Figures, Sample


def sample(at_s: float, running: int = 1, ended: Ended | None = None) -> Sample:
    return Sample(at_s=at_s, cpus=4, running=running, owner=2, idle_jobs=10, running_jobs=running, held_jobs=0,
                  ended=ended or Ended())


def test_a_point_is_the_mean_of_its_samples() -> None:
    figures = Figures()
    for at_s, running in ((600, 0), (630, 4), (659, 2)):
        figures.add(sample(at_s, running))
    (point,) = figures.span("hour", 700)["points"]
    assert (point["running"], point["owner"], point["idle_jobs"]) == (0.5, 0.5, 10.0)
    assert point["wait_ratio"] is None


def test_the_wait_ratio_is_waiting_against_running() -> None:
    ad = ClassAd({"QDate": 100, "CompletionDate": 400, "RemoteWallClockTime": 100.0, "Leverage": 50.0,
                  "RemoteUserCpu": 90.0})
    removed = ClassAd({"QDate": 100, "CompletionDate": 0})
    ended = Ended.of([ad.to_bytes(), removed.to_bytes(), b"= = ="])
    assert ended == Ended(1, 200.0, 100.0, 90.0, 90.0 / 50.0)
    figures = Figures()
    figures.add(sample(600, ended=ended))
    (point,) = figures.span("day", 700)["points"]
    assert (point["wait_ratio"], point["leverage"], point["ended"]) == (2.0, 50.0, 1)


def test_years_take_no_more_room_than_months() -> None:
    figures = Figures()
    for at_s in range(0, 400 * 86_400, 3600):
        figures.add(sample(float(at_s)))
    kept = [len(points) for points in figures.saved()["points"]]
    assert all(count <= most for count, (_, most) in zip(kept, WIDTHS, strict=True))
    month = figures.span("month", 400 * 86_400)["points"]
    assert len(month) == 31 * 12


def test_a_clock_that_is_set_back_makes_no_second_point() -> None:
    figures = Figures()
    figures.add(sample(10_000))
    figures.add(sample(500))
    assert len(figures.saved()["points"][0]) == 1


def test_what_was_saved_is_there_again() -> None:
    figures, again = Figures(), Figures()
    for at_s in (60, 120, 9000):
        figures.add(sample(at_s))
    again.restore(json.loads(json.dumps(figures.saved())))
    assert again.saved() == figures.saved()


@pytest.mark.parametrize("data", [
    None, [], {}, {"version": 2}, {"version": 1, "names": []},
    {**Figures().saved(), "points": [[], []]}, {**Figures().saved(), "points": [[[1.0]], [], []]},
    {**Figures().saved(), "points": [[[float("nan")] * 13], [], []]},
    {**Figures().saved(), "points": [[["x"] * 13], [], []]},
])
def test_what_is_no_file_of_figures_is_refused(data: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Figures().restore(data)
