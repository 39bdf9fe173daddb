"""Tasks that do nothing, through an executor whose four workers are jobs of a personal pool: rate and cost of a task.

    python benchmarks/master_worker.py [--tasks N] [--rounds N] [--python PYTHON]

PYTHON is the workers' interpreter, of this one's version; root needs one that the user nobody may execute.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import condor_actors as condor
from benchmarks.table import cpu_s, new_pool
from condor_actors.master_worker import MasterWorker
from tests.pool_fixture import PersonalPool, until

WORKERS = 4


def nothing(number: int) -> int:
    """The task."""
    return number


def by_map(executor: MasterWorker, tasks: int) -> None:
    """One task for each row."""
    assert sum(executor.map(nothing, range(tasks))) == tasks * (tasks - 1) // 2


def by_chunks(executor: MasterWorker, tasks: int) -> None:
    """One task for a hundred rows."""
    assert sum(executor.map(nothing, range(tasks), chunksize=100)) == tasks * (tasks - 1) // 2


def by_submit(executor: MasterWorker, tasks: int) -> None:
    """One call and one future for each."""
    futures = [executor.submit(nothing, number) for number in range(tasks)]
    assert sum(future.result() for future in futures) == tasks * (tasks - 1) // 2


def one_by_one(executor: MasterWorker, tasks: int) -> None:
    """The next one is submitted when the last one has ended: what a way there and back takes."""
    for number in range(tasks // 100):
        executor.submit(nothing, number).result()


WAYS: dict[str, tuple[Callable[[MasterWorker, int], None], int]] = {
    "map": (by_map, 1), "map, chunksize=100": (by_chunks, 1), "submit": (by_submit, 1), "one by one": (one_by_one, 100)}


def measure(pool: PersonalPool, executor: MasterWorker, tasks: int, rounds: int) -> None:
    """Print a row of a table for each way: medians."""
    workers = [pid for pid, command in pool.processes().items() if "worker.zip" in command]
    print("| way | tasks/s | master's processor time a task | workers' |\n|---|---|---|---|")
    for name, (way, divisor) in WAYS.items():
        rates, master, theirs = [], [], []
        count = tasks // divisor
        for _ in range(rounds):
            before_s, own_s, began_s = sum(map(cpu_s, workers)), time.process_time(), time.perf_counter()
            way(executor, tasks)
            rates.append(count / (time.perf_counter() - began_s))
            master.append((time.process_time() - own_s) / count * 1e6)
            theirs.append((sum(map(cpu_s, workers)) - before_s) / count * 1e6)
        print(f"| {name} | {statistics.median(rates):,.0f} | {statistics.median(master):.0f} µs | "
              f"{statistics.median(theirs):.0f} µs |", flush=True)


def main() -> None:
    """Start a pool, wait for four workers, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    with new_pool(WORKERS) as pool:
        os.environ.update({name: value for name, value in pool.environment.items() if "CONDOR" in name.upper()})
        condor.reload_config()
        with MasterWorker(WORKERS, min_workers=WORKERS, python=options.python) as executor:
            executor.submit(nothing, 0).result()
            until(lambda: executor.workers >= WORKERS, "all workers")
            by_map(executor, 1000)
            measure(pool, executor, options.tasks, options.rounds)


if __name__ == "__main__":
    main()
