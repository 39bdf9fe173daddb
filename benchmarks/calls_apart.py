"""What a system call costs whose home is in another pool: ``python -m benchmarks.calls_apart`` (as root: it makes
network namespaces).

Two pools whose machines cannot reach one another, and their two gateways, as processes in network namespaces of this
machine.  Two programs of the standard universe run at the same time on a machine of ``physics`` and do one small system
call after the other: one is a job of another machine of that pool, whose calls go straight home over TCP, and one of
``math``, whose calls go home through both gateways.  They take turns of half a second, by the clock, so what else
there is to do weighs on both alike: the ratio is that of neighbouring turns.  Beside the time that a call takes there
is the processor time of each machine's daemons, per call.

What a call costs straight depends on whether its two ends share a processor.  With ``--one-processor`` all of both
pools do, so that is no matter of luck.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.federation import Federation, a_federation
from tests.harness.namespaces import Machine
from tests.harness.standard_jobs import Job
from tests.pool_fixture import until

PROGRAM = """
import os, sys, time
number, turns, turn_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
out = os.open("out", os.O_WRONLY)
for _ in range(200):
    os.fstatvfs(out)
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
with open("go") as told:
    start_s = float(told.read())
said = []
for turn in range(turns):
    begin_s = start_s + (2 * turn + number) * turn_s
    end_s = begin_s + 0.9 * turn_s
    time.sleep(max(begin_s - time.time(), 0))
    calls, began = 0, time.perf_counter()
    while time.time() < end_s:
        for _ in range(10):
            os.fstatvfs(out)
        calls += 10
    said.append(f"{calls}:{time.perf_counter() - began}")
print("done", *said, flush=True)
while not os.path.exists("enough"):
    time.sleep(0.05)
"""
"""Calls in its own turns, those of its number, and says how many it did in each, and in what time."""

LEAST_CALLS = 20
"""A turn with fewer has begun late: it counts for nothing, nor does its neighbour."""
KINDS = ("straight", "through two gateways")


@attrs.frozen
class Cost:
    """Of the calls of one job.

    Attributes:
        turns_us: of a call, in each turn; 0: it did too few.
        calls: in all turns.
        processor_us: of a call, by machine.
    """

    turns_us: list[float]
    calls: int
    processor_us: dict[str, float]

    def line(self, what: str) -> str:
        """A row for people."""
        counted = [each for each in self.turns_us if each]
        spent = ", ".join(f"{name} {used:.0f}" for name, used in self.processor_us.items())
        return (f"{what:<22} {statistics.median(counted):7.0f} µs a call (turns: {min(counted):.0f} to "
                f"{max(counted):.0f}); processor, µs a call: {spent}")


def tasks(machine: Machine) -> Iterator[tuple[int, Path]]:
    """The threads of all processes of a machine: their numbers, and where the kernel says more of them."""
    for pid in machine.pids():
        with suppress(FileNotFoundError, ProcessLookupError):
            yield from ((int(path.name), path) for path in Path(f"/proc/{pid}/task").iterdir())


def processor_s(machine: Machine) -> float:
    """What the threads of a machine have used."""
    used_ns = 0
    for _, path in tasks(machine):
        with suppress(FileNotFoundError, ProcessLookupError):
            used_ns += int((path / "schedstat").read_text().split()[0])
    return used_ns / 1e9


def on_one_processor(machines: Sequence[Machine]) -> None:
    """Keep all that runs there on one processor from now on."""
    one = min(os.sched_getaffinity(0))
    for machine in machines:
        for number, _ in tasks(machine):
            with suppress(ProcessLookupError):
                os.sched_setaffinity(number, {one})


def begin(jobs: Sequence[Job]) -> float:
    """Tell both when the first turn begins: soon."""
    start_s = time.time() + 1.0
    for job in jobs:
        (job.folder / "go.new").write_text(str(start_s))
        (job.folder / "go.new").rename(job.folder / "go")
    return start_s


def watched(machines: Sequence[Machine], start_s: float, turns: int,
            turn_s: float) -> tuple[Counter[str], Counter[str]]:
    """The processor time of each machine in the turns of the one job, and in those of the other."""
    spent: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    time.sleep(max(start_s - time.time(), 0))
    before = {machine.name: processor_s(machine) for machine in machines}
    for turn in range(2 * turns):
        time.sleep(max(start_s + (turn + 1) * turn_s - time.time(), 0))
        after = {machine.name: processor_s(machine) for machine in machines}
        spent[turn % 2].update({name: after[name] - before[name] for name in after})
        before = after
    return spent


def measure(pools: Federation, desk: Machine, turns: int, turn_s: float, one: bool) -> tuple[Cost, Cost]:
    """Two jobs that take turns: one's calls go straight, and the other's through both gateways."""
    machines = (desk, pools.math, pools.math_gateway, pools.standby, pools.physics_gateway, pools.physics)
    on_the_way = ({desk.name, pools.physics.name}, {each.name for each in machines[1:]})
    jobs = [Job(of, f"{of.name}-{sum(1 for _ in of.work.iterdir())}", f"{number} {turns} {turn_s}", PROGRAM)
            for number, of in enumerate((desk, pools.math))]
    until(lambda: all("ready" in job.text("out") for job in jobs), "both programs to run")
    if one:
        on_one_processor(machines)
    spent = watched(machines, begin(jobs), turns, turn_s)
    until(lambda: all("done" in job.text("out") for job in jobs), "the calls to be done", 600)
    costs = []
    for job, used_s, names in zip(jobs, spent, on_the_way, strict=True):
        said = [word.split(":") for word in job.text("out").split("done", 1)[1].split()]
        done = [(int(calls), float(seconds)) for calls, seconds in said]
        total = sum(calls for calls, _ in done)
        costs.append(Cost([1e6 * seconds / calls if calls >= LEAST_CALLS else 0.0 for calls, seconds in done], total,
                          {name: 1e6 * used_s[name] / max(total, 1) for name in used_s if name in names}))
        (job.folder / "enough").touch()
    for job in jobs:
        job.wait()
    return costs[0], costs[1]


def ratios_of(straight: Cost, apart: Cost) -> list[float]:
    """What a call takes through gateways for what it takes straight, in each pair of neighbouring turns."""
    return [far / near for near, far in zip(straight.turns_us, apart.turns_us, strict=True) if near and far]


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=12, help="of each job")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a turn takes")
    parser.add_argument("--jobs", type=int, default=3, help="of each pool")
    parser.add_argument("--one-processor", action="store_true", help="all of both pools on one")
    options = parser.parse_args()
    found = []
    with a_federation() as pools:
        until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
        desk = pools.physics.wire.member(pools.physics, "desk", "master,schedd")
        until((desk.dir / "run" / "schedd.address").exists, "the schedd to listen")
        for _ in range(options.jobs):
            costs = measure(pools, desk, options.turns, options.seconds, options.one_processor)
            for what, cost in zip(KINDS, costs, strict=True):
                print(cost.line(what), flush=True)
            ratios = ratios_of(*costs)
            found.append(statistics.median(ratios))
            print(f"{'ratio':<22} {found[-1]:7.2f} (pairs of turns: {min(ratios):.2f} to {max(ratios):.2f})",
                  flush=True)
    print(f"{'ratio of all':<22} {statistics.median(found):7.2f} (of {len(found)} pairs of jobs: "
          f"{', '.join(f'{each:.2f}' for each in found)})")


if __name__ == "__main__":
    main()
