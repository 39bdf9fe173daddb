"""What a system call costs whose home is in another pool: ``python -m benchmarks.calls_apart`` (as root: it makes
network namespaces).

Two pools whose machines cannot reach one another, and their two gateways, as processes in network namespaces of this
machine.  Two programs of the standard universe run at the same time on a machine of ``physics`` and do one small system
call after the other: one is a job of another machine of that pool, whose calls go straight home over TCP, and one of
``math``, whose calls go home through both gateways.  They take turns of half a second, by the clock, so what else
there is to do weighs on both alike: the ratio is that of neighbouring turns.  Beside the time that a call takes there
is the processor time of each machine's daemons, per call.

In the same turns as many bytes go to and fro between the same machines with nothing done with them (``ping.c``): over
one TCP connection, and over three that two of the gateways' relays join.  That is the floor: what the kernel takes to
wake two threads, and six.  No way through two processes that pass bytes on is shorter.

What a call costs straight depends on whether its two ends share a processor.  With ``--one-processor`` all of both
pools do, so that is no matter of luck.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
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
number, kinds, turns, turn_s = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
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
    begin_s = start_s + (kinds * turn + number) * turn_s
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
KINDS = ("straight", "through two gateways", "floor: straight", "floor: two relays")
PORT = 7117
HERE = Path(__file__).resolve().parent
RELAY = HERE.parent / "native" / "relay"


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
            turn_s: float) -> list[Counter[str]]:
    """The processor time of each machine in the turns of each kind."""
    spent: list[Counter[str]] = [Counter() for _ in KINDS]
    time.sleep(max(start_s - time.time(), 0))
    before = {machine.name: processor_s(machine) for machine in machines}
    for turn in range(len(KINDS) * turns):
        time.sleep(max(start_s + (turn + 1) * turn_s - time.time(), 0))
        after = {machine.name: processor_s(machine) for machine in machines}
        spent[turn % len(KINDS)].update({name: after[name] - before[name] for name in after})
        before = after
    return spent


class Pings:
    """The floor's processes: as many as serve, pass on and ask."""

    def __init__(self, program: Path, pools: Federation, desk: Machine) -> None:
        self._program = program
        self._begun: list[subprocess.Popen[str]] = []
        gates = pools.physics_gateway, pools.math_gateway
        self._serve(desk, "serve", str(PORT))
        self._serve(pools.math, "serve", str(PORT))
        self._serve(gates[1], "relay", str(PORT), pools.math.address, str(PORT))
        self._serve(gates[0], "relay", str(PORT), gates[1].outside, str(PORT))
        self._asked = pools.physics
        self._homes = desk.address, gates[0].address
        self._asking: list[subprocess.Popen[str]] = []

    def _run(self, machine: Machine, *words: str) -> subprocess.Popen[str]:
        begun = subprocess.Popen(["ip", "netns", "exec", machine.namespace, str(self._program), *words],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self._begun.append(begun)
        return begun

    def _serve(self, machine: Machine, *words: str) -> None:
        begun = self._run(machine, *words)
        assert begun.stdout is not None
        if begun.stdout.readline() != "listens\n":
            raise SystemExit(f"ping {' '.join(words)} does not listen on {machine.name}")

    def ask(self, turns: int, turn_s: float, start_s: float) -> None:
        """Begin to ask in the turns behind those of the jobs."""
        self._asking = [self._run(self._asked, "ask", home, str(PORT), str(number), str(len(KINDS)), str(turns),
                                  str(turn_s), str(start_s)) for number, home in enumerate(self._homes, 2)]

    def said(self) -> list[str]:
        """What those that ask have said, when they are done."""
        return [each.communicate()[0] for each in self._asking]

    def close(self) -> None:
        """End them all."""
        for each in self._begun:
            each.kill()
            each.wait()


def built(folder: Path) -> Path:
    """Compile ``ping.c`` with the gateways' relays."""
    program = folder / "ping"
    subprocess.run(["gcc", "-O2", "-std=gnu11", "-w", f"-I{RELAY}", f"-I{RELAY.parent}", "-o", str(program),
                    str(HERE / "ping.c"), *map(str, sorted(RELAY.glob("*.c"))), "-lpthread"], check=True)
    return program


def cost_of(said: str, spent_s: Counter[str], names: set[str]) -> Cost:
    """What was said of all turns, and what was used in them."""
    words = [word.split(":") for word in said.split("done", 1)[1].split()]
    done = [(int(calls), float(seconds)) for calls, seconds in words]
    total = sum(calls for calls, _ in done)
    return Cost([1e6 * seconds / calls if calls >= LEAST_CALLS else 0.0 for calls, seconds in done], total,
                {name: 1e6 * spent_s[name] / max(total, 1) for name in spent_s if name in names})


def measure(pools: Federation, desk: Machine, program: Path, turns: int, turn_s: float, one: bool) -> list[Cost]:
    """Two jobs that take turns, whose calls go straight and through both gateways; and the floors of both."""
    machines = (desk, pools.math, pools.math_gateway, pools.standby, pools.physics_gateway, pools.physics)
    near, far = {desk.name, pools.physics.name}, {each.name for each in machines[1:]}
    words = f"{len(KINDS)} {turns} {turn_s}"
    jobs = [Job(of, f"{of.name}-{sum(1 for _ in of.work.iterdir())}", f"{number} {words}", PROGRAM)
            for number, of in enumerate((desk, pools.math))]
    until(lambda: all("ready" in job.text("out") for job in jobs), "both programs to run")
    pings = Pings(program, pools, desk)
    try:
        start_s = begin(jobs)
        pings.ask(turns, turn_s, start_s)
        if one:
            on_one_processor(machines)
        spent = watched(machines, start_s, turns, turn_s)
        until(lambda: all("done" in job.text("out") for job in jobs), "the calls to be done", 600)
        said = [*(job.text("out") for job in jobs), *pings.said()]
    finally:
        pings.close()
    for job in jobs:
        (job.folder / "enough").touch()
    for job in jobs:
        job.wait()
    return [cost_of(*each) for each in zip(said, spent, (near, far, near, far), strict=True)]


def ratios_of(less: Cost, more: Cost) -> list[float]:
    """What the one takes for what the other does, in each pair of neighbouring turns."""
    return [far / near for near, far in zip(less.turns_us, more.turns_us, strict=True) if near and far]


def told(what: str, ratios: Sequence[float]) -> float:
    """Print a row for people; the ratio in the middle."""
    middle = statistics.median(ratios)
    print(f"{what:<22} {middle:7.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)
    return middle


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=12, help="of each job")
    parser.add_argument("--seconds", type=float, default=0.5, help="that a turn takes")
    parser.add_argument("--jobs", type=int, default=3, help="of each pool")
    parser.add_argument("--one-processor", action="store_true", help="all of both pools on one")
    options = parser.parse_args()
    found: dict[str, list[float]] = {"ratio": [], "ratio of the floors": [], "gateways to floor": []}
    with tempfile.TemporaryDirectory() as folder, a_federation() as pools:
        program = built(Path(folder))
        until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
        desk = pools.physics.wire.member(pools.physics, "desk", "master,schedd")
        until((desk.dir / "run" / "schedd.address").exists, "the schedd to listen")
        for _ in range(options.jobs):
            costs = measure(pools, desk, program, options.turns, options.seconds, options.one_processor)
            for what, cost in zip(KINDS, costs, strict=True):
                print(cost.line(what), flush=True)
            straight, apart, floor, relayed = costs
            for what, pair in zip(found, ((straight, apart), (floor, relayed), (relayed, apart)), strict=True):
                found[what].append(told(what, ratios_of(*pair)))
    for what, each in found.items():
        print(f"{what:<22} {statistics.median(each):7.2f} (of all; {', '.join(f'{one:.2f}' for one in each)})")


if __name__ == "__main__":
    main()
