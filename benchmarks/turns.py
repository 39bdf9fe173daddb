"""What one turn of a daemon's core costs as its pool grows: it should be the same, or grow with a logarithm.

Usage: python benchmarks/turns.py [--sizes 100,10000,100000] [ROW...]

One process, no network, no disk: the core alone, with jobs, autoclusters, claims, owners, slots or ads made beforehand
(the schedd's rows are here, the others' in ``turns_pool.py``).  Each
figure is the median of many equal turns, in microseconds of processor time, and the last column the largest size's by
the smallest's.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.turns_pool import POOL_ROWS
from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.queue_operations import QueueSnapshot, SaveClaim
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_core import ScheddCore
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.effects import Effect, GoOn, SetTimer
from condor_actors.messages.codes import JobStatus, Universe
from condor_actors.messages.envelope import Address, Delivery, Identity, TimerFired
from condor_actors.messages.shadow_host import RunEnded
from condor_actors.messages.submission import ReserveCluster, SubmitPage

NOW_S = 1.8e9
SELF = Identity(name="condor@pool", method="self")
ANN = Identity(name="ann@here", method="local", uid=1000)
PAGE = 2_000
LIMITS = {f"_CONDOR_{name}": "10000000" for name in ("MAX_JOBS_PER_OWNER", "MAX_JOBS_PER_SUBMISSION",
                                                     "MAX_JOBS_SUBMITTED")}
TURNS = 200
SLOT_AD = ClassAd({"Name": "slot1@m", "Cpus": 1, "Memory": 4000, "Disk": 1_000_000, "Requirements": True}).to_bytes()


class Bench:
    """A schedd's core and its jobs."""

    def __init__(self) -> None:
        settings = schedd_settings(load_config(files=[], environ={"_CONDOR_START_LOCAL_UNIVERSE": "false", **LIMITS}),
                                   machine="here")
        self.core = ScheddCore(settings, QueueSnapshot(), Random(1), NOW_S, "1")
        self.core.start(NOW_S, "<127.0.0.1:1>")
        self.context = self.core.context

    def cluster(self, jobs: int, owner: str = "alice", **attributes: object) -> list[Job]:
        """A cluster of idle jobs, each offered."""
        number = self.context.queue.next_cluster
        self.context.queue.next_cluster += 1
        ad = ClassAd({"ClusterId": number, "Owner": owner, "User": f"{owner}@here", "JobUniverse": Universe.VANILLA,
                      "JobStatus": JobStatus.IDLE, "QDate": int(NOW_S), "Requirements": True, "RequestMemory": 1,
                      "EnteredCurrentStatus": int(NOW_S), **attributes})
        cluster = Cluster(number, owner, ad, jobs)
        self.context.queue.clusters[number] = cluster
        made = []
        for proc in range(jobs):
            own = ClassAd({"ProcId": proc})
            own.parent = ad
            job = self.context.queue.enter(cluster, proc, own)
            self.core.transitions.offer(job)
            made.append(job)
        return made

    def claim(self, number: int, owner: str = "alice") -> None:
        """A claim that nothing runs on."""
        user = f"{owner}@here"
        self.core.claims.restore([SaveClaim(f"c{number}", "s", f"<10.0.0.1:{number}>", "<10.0.0.1:2>", "slot1@m",
                                            SLOT_AD, user, 1200.0, user)])

    def turn(self, message: object) -> None:
        """One."""
        self.core.handle(Delivery(sender=Address("", "x"), identity=SELF, message=message), NOW_S + 1.0)

    def deliver(self, message: object) -> tuple[Effect, ...]:
        """One of a user; what follows from it."""
        return self.core.handle(Delivery(sender=Address("in:9", "x"), identity=ANN, message=message, message_id="q"),
                                NOW_S + 1.0)


def microseconds(turn: Callable[[], object]) -> float:
    """The median of many equal turns, processor time."""
    turn()
    gc.collect()
    gc.disable()
    times = []
    for _ in range(TURNS):
        begun = time.process_time_ns()
        turn()
        times.append(time.process_time_ns() - begun)
    gc.enable()
    return statistics.median(times) / 1000.0


def waiting_jobs(size: int) -> Callable[[], None]:
    """A turn in which nothing happens, with so many idle jobs."""
    bench = Bench()
    bench.cluster(size)
    return lambda: bench.turn(TimerFired(key=("spares",)))


def waiting_local_jobs(size: int) -> Callable[[], None]:
    """The same, with so many jobs of the local universe that may not begin."""
    bench = Bench()
    bench.cluster(size, JobUniverse=int(Universe.LOCAL))
    bench.turn(TimerFired(key=("spares",)))
    return lambda: bench.turn(TimerFired(key=("spares",)))


def freed_claim(size: int) -> Callable[[], None]:
    """A run ends and its claim takes the next job, with so many autoclusters of its owner."""
    bench = Bench()
    for number in range(size):
        bench.cluster(1, RequestMemory=number + 10)
    bench.cluster(TURNS + 10, RequestMemory=1)
    bench.claim(1)
    claim = bench.core.claims.held["c1"]
    bench.core.claims.use(claim)

    def turn() -> None:
        bench.core.runs.ended(RunEnded(run_id=claim.run_id, outcome="exited", attributes=b"ExitCode = 0\n",
                                       reason="", hold_code=0, hold_subcode=0, claim_usable=True), "alice")
        bench.turn(TimerFired(key=("spares",)))

    return turn


def idle_claims(size: int) -> Callable[[], None]:
    """A run ends, with so many claims that run."""
    bench = Bench()
    bench.cluster(size + TURNS + 10)
    for number in range(size):
        bench.claim(number)
    for claim in list(bench.core.claims.held.values()):
        bench.core.claims.use(claim)
    claim = bench.core.claims.held["c0"]

    def turn() -> None:
        bench.core.runs.ended(RunEnded(run_id=claim.run_id, outcome="exited", attributes=b"ExitCode = 0\n",
                                       reason="", hold_code=0, hold_subcode=0, claim_usable=True), "alice")
        bench.turn(TimerFired(key=("spares",)))

    return turn


def owners(size: int) -> Callable[[], None]:
    """One more job, with so many owners who have had jobs, of which each has one left."""
    bench = Bench()
    for number in range(size):
        bench.cluster(1, f"user{number}")
    bench.turn(TimerFired(key=("spares",)))

    def turn() -> None:
        bench.cluster(1)
        bench.turn(TimerFired(key=("spares",)))

    return turn


def priorities(size: int) -> Callable[[], None]:
    """condor_prio of one job again and again, with so many beside it."""
    bench = Bench()
    jobs = bench.cluster(size)
    job = jobs[len(jobs) // 2]
    priority = iter(range(10_000_000))

    def turn() -> None:
        bench.context.queue.set(job, JobPrio=next(priority) % 7)
        bench.core.transitions.offer(job)
        bench.turn(TimerFired(key=("spares",)))

    return turn


def entering(size: int) -> float:
    """A submission of so many jobs, each with an event of its own, enters the queue and is told: its longest turn."""
    bench = Bench()
    bench.deliver(ReserveCluster())
    longest_ns = 0
    gc.collect()
    gc.disable()
    for first in range(0, size, PAGE):
        page = SubmitPage(
            cluster_id=1, page=first // PAGE, cluster_ad=b'Cmd = "x"\nUserLog = "/l"\nRequirements = true\n',
            procs=tuple(f'Args = "{proc}"\n'.encode() for proc in range(first, min(first + PAGE, size))),
            first_proc=first, last=first + PAGE >= size)
        left: list[object] = [page]
        while left:
            message = left.pop(0)
            begun = time.process_time_ns()
            effects = bench.deliver(message)
            longest_ns = max(longest_ns, time.process_time_ns() - begun)
            left += [each.event for each in effects if isinstance(each, GoOn)]
            left += [TimerFired(key=each.key) for each in effects
                     if isinstance(each, SetTimer) and each.key in (("notices",), ("offer-anew",))]
    gc.enable()
    return longest_ns / 1000.0


ROWS: dict[str, tuple[str, Callable[[int], Callable[[], object]]]] = {
    "jobs": ("a turn, by idle jobs", waiting_jobs),
    "locals": ("a turn, by jobs of the local universe that wait", waiting_local_jobs),
    "autoclusters": ("a claim is used again, by autoclusters of its owner", freed_claim),
    "claims": ("a claim is used again, by claims in use", idle_claims),
    "owners": ("a job comes, by owners with jobs", owners),
    "prio": ("a job's priority changes, by jobs beside it", priorities),
    **POOL_ROWS,
}
ENTERING = "entering"


def measure(names: list[str], sizes: list[int]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| one turn, µs | {' | '.join(f'{size:,}' for size in sizes)} | ratio |"
    yield f"|---|{'---|' * (len(sizes) + 1)}"
    for name in names:
        if name == ENTERING:
            what, figures = "the longest turn of a submission, by its jobs", [entering(size) for size in sizes]
        else:
            what, make = ROWS[name]
            figures = [microseconds(make(size)) for size in sizes]
        shown = " | ".join(f"{figure:.0f}" for figure in figures)
        yield f"| {what} | {shown} | {figures[-1] / max(figures[0], 0.1):.1f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What one turn of a daemon's core costs as its pool grows.")
    parser.add_argument("--sizes", default="100,10000,100000", help="how many jobs, autoclusters, claims, owners")
    names = [*ROWS, ENTERING]
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {' '.join(names)} (default: all)")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in names]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; there are {' '.join(names)}")
    for line in measure(options.rows or names, [int(size) for size in options.sizes.split(",")]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
