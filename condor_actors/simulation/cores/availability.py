"""What the history of stations' availability is worth to long jobs.

Theory: "workstations with long available intervals tend to have their next available interval long", so "the
coordinator could choose sources of remote cycles on the basis of the history of workstation availability".  Startds
advertise theirs (``AvailableSince``, ``AvailabilityMean``); here the negotiator prefers, among free stations, those
that will be left alone for longest, and the moves of jobs are counted beside those of the same months without that
preference.

There must be something to choose: the users are one with a few long jobs (:data:`LONG_JOBS`), a tenth of the stations'
time.  That load was chosen after the one that was planned, the month of 1988 itself, had shown little: 4 %, 11 % and
0.5 % fewer moves (seeds 1 to 3), for its heavy user has every station there is.

Source: "Condor - A Hunter of Idle Workstations" (1988), section 5 (1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from condor_actors.simulation.cores.month import run_month
from condor_actors.simulation.cores.workload import DAY_S, HOUR_S, User
from condor_actors.simulation.report.measures import Estimate, estimate
from condor_actors.simulation.report.recorder import Record

__all__ = ["LONG_JOBS", "RANK", "compare", "owner_moves", "with_and_without"]

LONG_JOBS = (User(name="L", jobs=90, demand_s=12 * HOUR_S, batch=2.0, sigma=0.5),)

RANK = (
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner =?= UNDEFINED))"
    " + max({time() - (AvailableSince ?: time()), AvailabilityMean ?: 0}) / 100"
)
"""NEGOTIATOR_PRE_JOB_RANK that prefers stations by their history."""
CLASSES = (("all jobs", 0.0, 1e9), ("less than 8 h", 0.0, 8.0), ("8 h and more", 8.0, 1e9))


def owner_moves(record: Record, least_h: float, most_h: float) -> float:
    """How often owners moved jobs of such a demand, per hour of it."""
    jobs = [job for job in record.completed if least_h <= job.demand_s / HOUR_S < most_h]
    demand_h = sum(job.demand_s for job in jobs) / HOUR_S
    return sum(job.moves["owner"] for job in jobs) / demand_h if demand_h else float("nan")


def with_and_without(seed: int, days: float) -> tuple[Record, Record]:
    """The same month without the preference and with it."""
    plain = run_month("UP_DOWN", seed, LONG_JOBS, length_s=days * DAY_S).record
    ranked = run_month("UP_DOWN", seed, LONG_JOBS, length_s=days * DAY_S,
                       overrides={"NEGOTIATOR_PRE_JOB_RANK": RANK}).record
    return plain, ranked


def compare(seeds: Iterable[int], days: float, progress: Callable[[float, float], None] | None = None) -> str:
    """A table: moves because of owners per hour of demand, without and with the history, and the difference.

    Differences are taken seed by seed, on the same owners and jobs.
    """
    chosen = list(seeds)
    pairs: list[tuple[Record, Record]] = []
    for seed in chosen:
        pairs.append(with_and_without(seed, days))
        if progress is not None:
            progress(len(pairs), len(chosen))
    lines = [f"{'moves by owners per hour of demand':36}{'without':>18}{'by history':>18}{'change, %':>18}"]
    for what, least_h, most_h in CLASSES:
        values = [tuple(owner_moves(record, least_h, most_h) for record in pair) for pair in pairs]
        cells: list[Estimate] = [estimate(plain for plain, _ in values), estimate(ranked for _, ranked in values)]
        change = estimate(100.0 * (ranked / plain - 1.0) for plain, ranked in values if plain)
        lines.append(f"{what:36}" + "".join(f"{cell.text(3):>18}" for cell in cells) + f"{change.text(1):>18}")
    return "\n".join(lines)
