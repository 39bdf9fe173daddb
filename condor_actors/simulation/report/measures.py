"""Numbers out of records: per month, then over seeds with confidence intervals.

Intervals are 95 % of Student's t over the seeds, each seed one independent observation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import attrs

from condor_actors.simulation.cores.month import IMAGE_MIB
from condor_actors.simulation.report.recorder import JobRecord, Record

__all__ = ["BINS_H", "Estimate", "by_demand", "cumulative", "estimate", "month_numbers", "quantile"]

BINS_H = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 1e9)
"""Edges of the classes of demand in hours."""
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
       2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
"""Student's t for 1 to 30 degrees of freedom."""


@attrs.frozen
class Estimate:
    """A mean over seeds and half the width of its confidence interval (nan with one seed)."""

    mean: float
    half: float
    count: int

    def text(self, digits: int = 2) -> str:
        """``12.3 ± 0.4``."""
        if self.count == 0:
            return "–"
        if math.isnan(self.half):
            return f"{self.mean:,.{digits}f}"
        return f"{self.mean:,.{digits}f} ± {self.half:,.{digits}f}"


def estimate(values: Iterable[float]) -> Estimate:
    """Mean and interval."""
    known = [value for value in values if math.isfinite(value)]
    count = len(known)
    if count == 0:
        return Estimate(math.nan, math.nan, 0)
    mean = sum(known) / count
    if count == 1:
        return Estimate(mean, math.nan, 1)
    variance = sum((value - mean) ** 2 for value in known) / (count - 1)
    t = T95[count - 2] if count - 2 < len(T95) else 1.96
    return Estimate(mean, t * math.sqrt(variance / count), count)


def quantile(values: Sequence[float], part: float) -> float:
    """The value that ``part`` of them do not exceed; nan when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def month_numbers(record: Record, heavy: frozenset[str]) -> dict[str, float]:
    """One month's measures by name.

    Args:
        record: the month; heavy: names of the heavy users.
    """
    done = record.completed
    light = [job for job in done if job.user not in heavy]
    short = [job for job in done if job.demand_s < 7200.0]
    long = [job for job in done if job.demand_s >= 8 * 3600.0]
    light_users = {job.user for job in record.jobs} - heavy
    hours = record.length_s / 3600.0 * record.stations
    full = [each for each in record.intervals if each.local_h + each.running_h >= 0.95 * record.stations]
    return {
        "jobs": float(len(record.jobs)), "completed": float(len(done)),
        "available_h": record.served_h, "consumed_h": record.running_h, "local": record.local_h / hours,
        "utilisation": (record.local_h + record.running_h) / hours,
        "full": len(full) / max(1, len(record.intervals)),
        "light_wait": _mean([job.wait_ratio for job in light]),
        "light_waited": float(_mean([job.wait_ratio for job in light]) > 0.2),
        "light_open_wait": record.open_wait_ratio(light_users),
        "light_none": _mean([float(job.wait_s < 600.0) for job in light]),
        "heavy_wait": record.mean_wait_ratio(heavy), "heavy_open_wait": record.open_wait_ratio(heavy),
        "moves_owner": float(sum(job.moves["owner"] for job in record.jobs)),
        "moves_priority": float(sum(job.moves["priority"] for job in record.jobs)),
        "checkpoint_rate": _rate(done), "checkpoint_rate_short": _rate(short), "checkpoint_rate_long": _rate(long),
        "leverage": _leverage(done), "leverage_jobs": _mean([job.leverage(IMAGE_MIB) for job in done]),
        "leverage_short": _leverage(short),
        "lost_h": sum(job.lost_s for job in record.jobs) / 3600.0,
        "reaction_s": _mean(record.reaction_s), "reaction_worst_s": max(record.reaction_s, default=math.nan),
        "over_30": float(sum(sum(each.queue.values()) > 30 for each in record.intervals)),
    }


def _rate(jobs: Sequence[JobRecord]) -> float:
    """Moves per hour of demand."""
    demand_h = sum(job.demand_s for job in jobs) / 3600.0
    return sum(sum(job.moves.values()) for job in jobs) / demand_h if demand_h else math.nan


def _leverage(jobs: Sequence[JobRecord]) -> float:
    """Remote seconds per local second of all of them."""
    home_s = sum(job.home_s(IMAGE_MIB) for job in jobs)
    return sum(job.demand_s for job in jobs) / home_s if home_s else math.nan


def by_demand(record: Record, measure: Callable[[Sequence[JobRecord]], float],
              users: frozenset[str] | None = None) -> list[float]:
    """A measure for each class of :data:`BINS_H`; nan where no job is.

    Args:
        record: the month; measure: of the jobs of a class; users: whose jobs; None: everybody's.
    """
    classes: list[list[JobRecord]] = [[] for _ in BINS_H[1:]]
    for job in record.completed:
        if users is None or job.user in users:
            hours = job.demand_s / 3600.0
            index = next(number for number in range(len(classes)) if hours < BINS_H[number + 1])
            classes[index].append(job)
    return [measure(each) if each else math.nan for each in classes]


def mean_wait_ratio(jobs: Sequence[JobRecord]) -> float:
    """Mean of the wait ratios."""
    return _mean([job.wait_ratio for job in jobs])


def checkpoint_rate(jobs: Sequence[JobRecord]) -> float:
    """Moves per hour of demand."""
    return _rate(jobs)


def leverage(jobs: Sequence[JobRecord]) -> float:
    """Remote seconds per local second."""
    return _leverage(jobs)


def cumulative(record: Record, hours: Sequence[float]) -> list[float]:
    """Percentage of jobs whose demand is less than each of these."""
    demands = [job.demand_s / 3600.0 for job in record.jobs]
    return [100.0 * sum(demand < limit for demand in demands) / len(demands) if demands else 0.0 for limit in hours]
