"""The owners of 1988: there a quarter of the time, more in the afternoon, in short and long visits."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from random import Random
from statistics import correlation, mean, median

import pytest

from condor_actors.simulation.cores.owners import factors, mean_use, use_at, visits, visits_of_all
from condor_actors.simulation.cores.workload import DAY_S, HOUR_S

DAYS = 28


@cache
def all_visits() -> list[list[tuple[float, float]]]:
    """Of each station, in eight pools."""
    return [each for seed in range(8) for each in visits_of_all(23, seed, DAYS * DAY_S)]


def use(begin_h: float, end_h: float, days: range) -> float:
    """The part of the time between two hours of some days that owners were there."""
    spans = [(day * DAY_S + begin_h * HOUR_S, day * DAY_S + end_h * HOUR_S) for day in days]
    there = sum(max(0.0, min(left, end) - max(came, begin)) for station in all_visits() for came, left in station
                for begin, end in spans)
    return there / (len(all_visits()) * sum(end - begin for begin, end in spans))


def test_use_follows_the_hour() -> None:
    working = [day for day in range(DAYS) if day % 7 < 5]
    nights = mean(use(0, 8, range(day, day + 1)) for day in working[::3])
    peak = mean(use(15, 17, range(day, day + 1)) for day in working[::3])
    assert nights == pytest.approx(0.19, abs=0.03)
    assert peak == pytest.approx(0.46, abs=0.05)
    assert use(0, 24, range(DAYS)) == pytest.approx(mean_use(), abs=0.02)
    assert use_at(3 * HOUR_S) < mean_use() < use_at(15 * HOUR_S)
    assert use_at(5 * DAY_S + 15 * HOUR_S) == use_at(0.0)


def test_visits_are_in_order_and_apart() -> None:
    for station in all_visits():
        assert all(came < left for came, left in station)
        assert all(left < came for (_, left), (came, _) in pairwise(station))


def test_most_are_short_and_some_are_long() -> None:
    stays = [left - came for station in all_visits() for came, left in station]
    assert median(stays) < 12 * 60 < mean(stays)
    absences = [came - left for station in all_visits() for (_, left), (came, _) in pairwise(station)]
    assert median(absences) < 20 * 60
    assert sum(each for each in absences if each > 3 * HOUR_S) > 0.5 * sum(absences)


def test_a_long_absence_is_rather_followed_by_a_long_one() -> None:
    ranks = []
    for station in all_visits():
        absences = [came - left for (_, left), (came, _) in pairwise(station)]
        ranks += [(float(one > 3600.0), float(other > 3600.0)) for one, other in pairwise(absences)]
    assert correlation(*zip(*ranks, strict=True)) > 0.2


def test_stations_differ_and_their_mean_does_not() -> None:
    spread = factors(23, Random(1))
    assert mean(spread) == pytest.approx(1.0)
    assert min(spread) < 0.4
    assert max(spread) > 1.6


def test_equal_seeds_are_equal() -> None:
    assert list(visits(1.0, DAY_S, Random(5))) == list(visits(1.0, DAY_S, Random(5)))
    assert visits_of_all(3, 1, DAY_S) != visits_of_all(3, 2, DAY_S)
