"""Many months: every policy with every seed, kept in a folder as they are done.

Theory: a month under one policy with one seed is a pure function, so its record can be kept and need not be computed
again.  Months are computed seed by seed, so that whatever is done when someone loses patience is a fair sample of
every policy.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import attrs

from condor_actors.durable import fresh_name
from condor_actors.simulation.cores.month import run_month
from condor_actors.simulation.cores.workload import DAY_S, MONTH_S, PAPER_USERS, User
from condor_actors.simulation.report.recorder import Interval, JobRecord, Record

__all__ = ["LOADS", "Month", "load_months", "months", "record_from_plain", "record_to_plain", "users_of"]

LOADS = {"paper": (1.0, MONTH_S), "saturated": (3.0, 10 * DAY_S)}
"""Name: (times the heavy user's jobs, length in seconds)."""
JOB_FIELDS = ("name", "user", "demand_s", "submitted_s", "calls", "completed_s", "served_s", "suspended_s",
              "placements", "checkpoints", "lost_s")
MODEL = 1
"""Goes up when users, owners or the configuration change, so that kept months of an older model do not count."""


@attrs.frozen
class Month:
    """One month."""

    policy: str
    load: str
    seed: int
    record: Record


def users_of(load: str) -> tuple[User, ...]:
    """The users under a load."""
    factor = LOADS[load][0]
    return tuple(user.times(factor) if user.heavy else user for user in PAPER_USERS)


def record_to_plain(record: Record) -> dict[str, Any]:
    """As numbers, strings and lists."""
    return {
        "length_s": record.length_s, "stations": record.stations, "visits": record.visits,
        "reaction_s": [round(each, 3) for each in record.reaction_s],
        "jobs": [[*(getattr(job, name) for name in JOB_FIELDS), dict(job.moves)] for job in record.jobs],
        "intervals": [[each.begin_s, each.queue, each.local_h, each.running_h, each.served_h]
                      for each in record.intervals],
    }


def record_from_plain(plain: dict[str, Any]) -> Record:
    """The opposite of :func:`record_to_plain`.

    Raises:
        ValueError, KeyError, TypeError: it is not what that makes.
    """
    jobs = []
    for *values, moves in plain["jobs"]:
        job = JobRecord(**dict(zip(JOB_FIELDS, values, strict=True)))
        job.name = tuple(values[0]) if isinstance(values[0], list) else values[0]
        job.moves = Counter(moves)
        jobs.append(job)
    intervals = tuple(Interval(*each) for each in plain["intervals"])
    return Record(length_s=plain["length_s"], stations=plain["stations"], visits=plain["visits"], jobs=tuple(jobs),
                  reaction_s=tuple(plain["reaction_s"]), intervals=intervals)


def _file(folder: Path, policy: str, load: str, seed: int) -> Path:
    return folder / f"{load}-{policy}-{seed}.json.gz"


def _compute(policy: str, load: str, seed: int, folder: Path | None) -> Month:
    """One month, from the folder or anew."""
    if folder is not None:
        found = _read(_file(folder, policy, load, seed))
        if found is not None:
            return Month(policy, load, seed, found)
    record = run_month(policy, seed, users_of(load), length_s=LOADS[load][1]).record
    if folder is not None:
        target = _file(folder, policy, load, seed)
        text = json.dumps({"model": MODEL, "record": record_to_plain(record)})
        part = target.with_name(fresh_name(target.name))
        part.write_bytes(gzip.compress(text.encode(), 6))
        part.replace(target)
    return Month(policy, load, seed, record)


def _read(path: Path) -> Record | None:
    try:
        plain = json.loads(gzip.decompress(path.read_bytes()))
        return record_from_plain(plain["record"]) if plain["model"] == MODEL else None
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        return None


def load_months(folder: Path, policies: Sequence[str], load: str, seeds: Sequence[int]) -> list[Month]:
    """The months of the present model that the folder has, of those seeds that it has under every policy."""
    found = []
    for seed in seeds:
        records = [_read(_file(folder, policy, load, seed)) for policy in policies]
        whole = [record for record in records if record is not None]
        if len(whole) == len(policies):
            found += [Month(policy, load, seed, record) for policy, record in zip(policies, whole, strict=True)]
    return found


def months(policies: Sequence[str], load: str, seeds: Sequence[int], *, folder: Path | None = None, workers: int = 1,
           progress: Callable[[int, int], None] | None = None) -> Iterator[Month]:
    """Compute them, in an order that does not depend on ``workers``.

    Args:
        policies, load, seeds: which.
        folder: where those that are done are kept, and found again; None: nowhere.
        workers: processes.
        progress: told how many of how many are done.
    """
    wanted = [(policy, load, seed, folder) for seed in seeds for policy in policies]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    if workers <= 1:
        for number, each in enumerate(wanted):
            yield _compute(*each)
            if progress is not None:
                progress(number + 1, len(wanted))
        return
    with ProcessPoolExecutor(workers) as pool:
        for number, month in enumerate(pool.map(_compute, *zip(*wanted, strict=True))):
            yield month
            if progress is not None:
                progress(number + 1, len(wanted))
