"""When the owners of workstations use them.

Theory: an owner is at the station or away, in turn.

* *Being there* lasts a mixture of short and long times (:data:`STAYS`): most are short ("many of the workstations'
  unavailable intervals are short"), the mean is half an hour.
* *Being away* lasts a mixture of three exponentials (:data:`ABSENCES`), short, middle and very long, in units of its
  own mean.  The kind of the next absence is that of the last one with probability :data:`PERSISTENCE`, else drawn
  afresh: "workstations with long available intervals tend to have their next available interval long".
* The mean absence at any hour is what makes the part of time the owner is there follow the hour (:func:`use_at`), so
  that the stations are their owners' (the policy's minute after a visit included) 20 % of the time at night and on
  weekends, 50 % in a working day's afternoon, 25 % over the week.  The time scale of an absence follows the hour while
  it lasts, so peaks are met however long the absences are.
* Stations differ: the use of each is :func:`use_at` times its own factor, spread evenly from 0.3 to 1.7.

Everything comes from one seed; a station's days do not depend on how many others there are (its factor does).

Source: "Condor - A Hunter of Idle Workstations" (1988), sections 3 (25 %, 20 %, 50 %, Figures 5 and 6), 3.1, 4 and 5.1.
The paper gives no distribution of interval lengths; the mixtures are ours, with the shape it describes, and their
numbers were chosen on months of the first few seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from condor_actors.simulation.cores.workload import DAY_S, HOUR_S

__all__ = ["Visit", "mean_use", "use_at", "visits", "visits_of_all"]

Visit = tuple[float, float]
"""From when until when (seconds) an owner is there."""

STAYS = ((0.6, 6 * 60.0), (0.4, 66 * 60.0))
"""(probability, mean) of the stays' exponentials; together half an hour."""
MEAN_STAY_S = sum(weight * mean_s for weight, mean_s in STAYS)
LEAST_STAY_S = 20.0
ABSENCES = ((0.35, 0.04), (0.40, 0.32), (0.25, 3.43))
"""(probability, mean in units of the mean absence) of the absences' exponentials; together 1."""
PERSISTENCE = 0.5
BUSIEST = 0.9
STEP_S = 900.0

WORKING_DAY = ((0, 0.18), (9, 0.18), (10, 0.25), (12, 0.29), (13, 0.38), (14, 0.52), (16, 0.52), (17, 0.32),
               (18, 0.21), (19, 0.18), (24, 0.18))
"""(hour, use) of a working day, straight in between; the minute after a visit counts as use in the papers, not here."""
NIGHT = 0.18


def use_at(when_s: float) -> float:
    """The part of owners who are there; ``when_s`` counts from a Monday's midnight."""
    day, second = divmod(when_s, DAY_S)
    if day % 7 >= 5:
        return NIGHT
    hour = second / HOUR_S
    for (hour0, use0), (hour1, use1) in pairwise(WORKING_DAY):
        if hour < hour1:
            return use0 + (use1 - use0) * (hour - hour0) / (hour1 - hour0)
    return NIGHT


def mean_use() -> float:
    """The mean of :func:`use_at` over a week."""
    steps = int(7 * DAY_S / STEP_S)
    return sum(use_at((step + 0.5) * STEP_S) for step in range(steps)) / steps


def factors(stations: int, random: Random) -> list[float]:
    """How much more than the mean each station is used; the mean of all is 1."""
    spread = [0.3 + 1.4 * (number + 0.5) / stations for number in range(stations)]
    random.shuffle(spread)
    return spread


def _pick(mixture: Sequence[tuple[float, float]], random: Random) -> float:
    """The mean of one of the mixture's parts."""
    at = random.random()
    for weight, mean in mixture:
        at -= weight
        if at < 0.0:
            return mean
    return mixture[-1][1]


def visits(factor: float, length_s: float, random: Random) -> Iterator[Visit]:
    """An owner's visits that begin within ``length_s`` seconds, in order; they do not touch each other.

    Args:
        factor: this station's use in parts of the mean use.
        length_s: how long; begins on a Monday's midnight.
        random: where chance comes from.
    """
    now_s = 0.0
    if random.random() < min(BUSIEST, use_at(0.0) * factor):
        now_s = random.expovariate(1.0 / _pick(STAYS, random))
        yield 0.0, now_s
    kind = _pick(ABSENCES, random)
    while True:
        if random.random() >= PERSISTENCE:
            kind = _pick(ABSENCES, random)
        now_s = _absent_until(now_s, random.expovariate(1.0 / kind), factor, length_s)
        if now_s >= length_s:
            return
        stay_s = max(LEAST_STAY_S, random.expovariate(1.0 / _pick(STAYS, random)))
        yield now_s, now_s + stay_s
        now_s += stay_s


def _absent_until(now_s: float, units: float, factor: float, end_s: float) -> float:
    """When an absence of so many mean absences ends; the mean is taken anew every quarter of an hour."""
    while now_s < end_s:
        use = min(BUSIEST, use_at(now_s) * factor)
        mean_s = MEAN_STAY_S * (1.0 - use) / use
        step_s = STEP_S - now_s % STEP_S
        if units * mean_s <= step_s:
            return now_s + units * mean_s
        units -= step_s / mean_s
        now_s += step_s
    return end_s


def visits_of_all(stations: int, seed: int, length_s: float) -> list[list[Visit]]:
    """The visits of each station's owner; the same for equal arguments."""
    spread = factors(stations, Random(f"owners {seed}"))
    return [list(visits(factor, length_s, Random(f"owner {seed} {number}"))) for number, factor in enumerate(spread)]
