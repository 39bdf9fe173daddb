"""What a system call costs whose home is in another pool: ``python -m benchmarks.calls_apart`` (as root: it makes
network namespaces).

Two pools whose machines cannot reach one another, and their two gateways, as processes in network namespaces of this
machine.  A program of the standard universe does one small system call after the other on a machine of ``physics``, in
turn as a job of another machine of that pool, whose calls go straight home over TCP, and as one of ``math``, whose
calls go home through both gateways.  Beside the time that a call takes there is the processor time of all processes
of each machine, per call.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.federation import a_federation
from tests.harness.namespaces import Machine
from tests.harness.standard_jobs import Job
from tests.pool_fixture import until

PROGRAM = """
import os, sys, time
rounds, calls = map(int, sys.argv[1:])
out = os.open("out", os.O_WRONLY)
for _ in range(200):
    os.fstatvfs(out)
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.05)
times = []
for _ in range(rounds):
    began = time.perf_counter()
    for _ in range(calls):
        os.fstatvfs(out)
    times.append(time.perf_counter() - began)
print("done", *times, flush=True)
while not os.path.exists("enough"):
    time.sleep(0.05)
"""


@attrs.frozen
class Cost:
    """Of one call: the medians of rounds, in µs, and the processor time of machines."""

    rounds_us: list[float]
    processor_us: dict[str, float]

    def line(self, what: str) -> str:
        """A row for people."""
        spent = ", ".join(f"{name} {used:.0f}" for name, used in self.processor_us.items())
        return (f"{what:<22} {statistics.median(self.rounds_us):7.0f} µs a call (rounds: {min(self.rounds_us):.0f} to "
                f"{max(self.rounds_us):.0f}); processor, µs a call: {spent}")


def processor_s(machine: Machine) -> float:
    """What the processes of a machine have used."""
    ticks = 0
    for pid in machine.pids():
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += int(words[11]) + int(words[12])
    return ticks / 100


def measure(of: Machine, between: tuple[Machine, ...], rounds: int, calls: int) -> Cost:
    """One job's, with the machines that its calls pass."""
    machines = {each.name: each for each in (of, *between)}
    name = f"{of.name}-{sum(1 for _ in of.work.iterdir())}"
    job = Job(of, name, f"{rounds} {calls}", PROGRAM)
    until(lambda: "ready" in job.text("out"), "the program to run")
    before = {each: processor_s(machine) for each, machine in machines.items()}
    (job.folder / "go").touch()
    until(lambda: "done" in job.text("out"), "the calls to be done", 600)
    after = {each: processor_s(machine) for each, machine in machines.items()}
    (job.folder / "enough").touch()
    times = [float(word) for word in job.text("out").split("done", 1)[1].split()]
    job.wait()
    total = rounds * calls
    return Cost([1e6 * each / calls for each in times],
                {each: 1e6 * (after[each] - before[each]) / total for each in machines})


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000, help="in a round")
    parser.add_argument("--rounds", type=int, default=5, help="of each job")
    parser.add_argument("--jobs", type=int, default=3, help="of each pool")
    options = parser.parse_args()
    ratios = []
    with a_federation() as pools:
        until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
        desk = pools.physics.wire.member(pools.physics, "desk", "master,schedd")
        until((desk.dir / "run" / "schedd.address").exists, "the schedd to listen")
        for _ in range(options.jobs):
            straight = measure(desk, (pools.physics,), options.rounds, options.calls)
            print(straight.line("straight"), flush=True)
            apart = measure(pools.math, (pools.math_gateway, pools.physics_gateway, pools.physics), options.rounds,
                            options.calls)
            print(apart.line("through two gateways"), flush=True)
            ratios.append(statistics.median(apart.rounds_us) / statistics.median(straight.rounds_us))
    print(f"{'ratio':<22} {statistics.median(ratios):7.2f} (median of {len(ratios)} pairs: "
          f"{', '.join(f'{each:.2f}' for each in ratios)})")


if __name__ == "__main__":
    main()
