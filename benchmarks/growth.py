"""What grows with the jobs that a pool has run: ``python benchmarks/growth.py [--seconds 300] [--slots 8]``.

A personal pool of real daemons runs short jobs, a thousand at a time.  Behind each thousand, when nothing runs, the
anonymous memory of each daemon (from ``smaps_rollup``) is noted.  The table says how much it was at the first and the
last look, and the slope of the second half in KiB for a thousand jobs: caches that fill and the
allocator's arenas show in the first half, what has no bound goes on in the second.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.table import new_pool
from tests.pool_fixture import PersonalPool, until

JOB = "executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = no\nlog = {log}\nqueue {count}\n"
CONFIG = "MAX_HISTORY_LOG = 1000000\nUPDATE_INTERVAL = 10\n"
KIB = 1024


def private_kib(pid: int) -> int:
    """Anonymous memory of a process; 0 when it has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1])
    return 0


def memory_of(pool: PersonalPool) -> dict[str, int]:
    """KiB by daemon; of several of a name the largest."""
    found: dict[str, int] = {}
    for pid, command in pool.processes().items():
        words = command.split(" ")
        if "condor_actors.services" in words:
            name = words[words.index("condor_actors.services") + 1]
            found[name] = max(found.get(name, 0), private_kib(pid))
    return found


def slope(points: list[tuple[int, int]]) -> float:
    """KiB for a thousand jobs, by least squares."""
    count = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread * 1000 if spread else 0.0


def run_some(pool: PersonalPool, count: int) -> None:
    """So many jobs, in ten clusters, until all have left the queue."""
    for number in range(10):
        pool.submit(JOB.format(log=f"job{number}.log", count=count // 10))
    until(lambda: "0 jobs;" in pool.run("condor_q", "-allusers", "-totals"), "the jobs' end", 600)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What grows with the jobs that a pool has run.")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--step", type=int, default=1000)
    options = parser.parse_args()
    looks: list[tuple[int, dict[str, int]]] = []
    with new_pool(options.slots, CONFIG) as pool:
        began_s, jobs = time.monotonic(), 0
        while time.monotonic() - began_s < options.seconds:
            run_some(pool, options.step)
            jobs += options.step
            looks.append((jobs, memory_of(pool)))
            print(jobs, looks[-1][1], file=sys.stderr, flush=True)
        print(f"{jobs:,} jobs in {time.monotonic() - began_s:.0f} s\n")
    print("| daemon | first | last | KiB per 1,000 jobs, second half |\n|---|---|---|---|")
    for name in sorted(looks[0][1]):
        points = [(count, memory[name]) for count, memory in looks if name in memory]
        half = points[len(points) // 2 :]
        print(f"| {name} | {points[0][1] / KIB:.1f} MiB | {points[-1][1] / KIB:.1f} MiB | {slope(half):.0f} |")


if __name__ == "__main__":
    main()
