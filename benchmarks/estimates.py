"""How often jobs begin in the time that was told: estimates of eight in ten, held against what really became of them.

Where the queues come from:

*Months of the simulation.*  The pool of 1988 with its owners and users, under each policy (the production cores).
*Recorded days.*  Logs of real clusters in the Standard Workload Format (one job a line: number, submit time, wait, run
time, processors, ...), as the Parallel Workloads Archive has them; such a log is none of this repository.  And the
history of a pool: ``condor_history -long``.

At random moments a random job that waits then is asked about, with what was known then: as many ended, running and
waiting jobs as ``condor_q -better-analyze`` asks the schedd for.  A told time holds if the job began in it.

python -m benchmarks.estimates [--months 2] [--asked 400] [--seed 1] [--swf FILE ...] [--history FILE ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import attrs

from condor_actors.classads import ClassAd
from condor_actors.classads.forms.any_form import iter_ads
from condor_actors.cores.answers.estimate import estimate
from condor_actors.simulation.cores.month import POLICIES, run_month
from condor_actors.tools.analysis.plain_answers import CASES

WARM = 0.2
"""So much of a log is only looked back at."""
VANILLA = 5


@attrs.frozen
class Job:
    """One that came, began and ended at these times; None: not while it was looked at."""

    came_s: float
    began_s: float | None
    ended_s: float | None
    user: str
    cpus: int = 1
    memory_mb: int = 0

    def ad(self, now_s: float) -> ClassAd:
        """As the schedd has it at a moment."""
        made = ClassAd({"QDate": int(self.came_s) + 1, "User": self.user, "JobUniverse": VANILLA,
                        "RequestCpus": self.cpus, "RequestMemory": self.memory_mb})
        if self.began_s is not None and self.began_s <= now_s:
            made["JobStartDate"] = int(self.began_s) + 1
        return made


@attrs.frozen
class Found:
    """What became of estimates: how many were asked for and made, how many held, had no upper bound; widths."""

    asked: int
    made: int
    held: int
    soon: int
    late: int
    open_ended: int
    widths: tuple[float, ...]


def of_month(policy: str, seed: int) -> list[Job]:
    """The jobs of a simulated month."""
    return [Job(job.submitted_s, job.began_s, job.completed_s, job.user)
            for job in run_month(policy, seed).record.jobs]


def of_swf(path: Path) -> list[Job]:
    """The jobs of a log in the Standard Workload Format that waited and ran."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        fields = line.split()
        if len(fields) < 18 or line.startswith(";"):
            continue
        came_s, wait_s, ran_s = (float(field) for field in fields[1:4])
        cpus = int(fields[7]) if int(fields[7]) > 0 else int(fields[4])
        if wait_s >= 0 and ran_s >= 0:
            found.append(Job(came_s, came_s + wait_s, came_s + wait_s + ran_s, f"u{fields[11]}@swf", max(1, cpus)))
    return sorted(found, key=lambda job: job.came_s)


def of_history(path: Path) -> list[Job]:
    """The jobs of a history that ran."""
    found = []
    for ad in iter_ads(path.read_text(errors="replace")):
        came_s, began_s, ended_s = (ad.get_int(name) for name in ("QDate", "JobStartDate", "CompletionDate"))
        if began_s and not ad.get_int("NumHolds"):
            found.append(Job(came_s, began_s, ended_s or None, ad.get_str("User"), ad.get_int("RequestCpus", 1),
                             ad.get_int("RequestMemory")))
    return sorted(found, key=lambda job: job.came_s)


def known_at(jobs: Sequence[Job], now_s: float) -> tuple[list[Job], list[Job]]:
    """What the schedd told at a moment: those to compare with, and of these the ones that waited."""
    came = [job for job in jobs if job.came_s < now_s]
    ended = sorted((job for job in came if job.ended_s is not None and job.ended_s <= now_s),
                   key=lambda job: -(job.ended_s or 0.0))[:CASES]
    running = [job for job in came if job.began_s is not None and job.began_s <= now_s
               and (job.ended_s is None or job.ended_s > now_s)][:CASES]
    waiting = [job for job in came if job.began_s is None or job.began_s > now_s]
    return [*ended, *running, *waiting[:CASES]], waiting


def measure(jobs: Sequence[Job], asked: int, chance: Random) -> Found:
    """Ask so often at random moments, and look what became of it."""
    first_s, last_s = jobs[int(len(jobs) * WARM)].came_s, jobs[-1].came_s
    counts = dict.fromkeys(("asked", "made", "held", "soon", "late", "open_ended"), 0)
    widths = []
    for _ in range(asked * 20):
        if counts["asked"] == asked:
            break
        now_s = chance.uniform(first_s, last_s)
        cases, waiting = known_at(jobs, now_s)
        if not waiting:
            continue
        counts["asked"] += 1
        job = chance.choice(waiting)
        told = estimate(job.ad(now_s), [case.ad(now_s) for case in cases], now_s + 1)
        if told is None:
            continue
        rest_s = float("inf") if job.began_s is None else job.began_s - now_s
        counts["made"] += 1
        counts["soon"] += rest_s < told.soonest_s
        counts["late"] += told.latest_s is not None and rest_s > told.latest_s
        counts["open_ended"] += told.latest_s is None
        counts["held"] += told.soonest_s <= rest_s and (told.latest_s is None or rest_s <= told.latest_s)
        if told.latest_s is not None:
            widths.append(told.latest_s / max(told.soonest_s, 60.0))
    return Found(**counts, widths=tuple(sorted(widths)))


def sources(asked: argparse.Namespace) -> Iterator[tuple[str, list[Job]]]:
    """The queues, one after another."""
    for policy in POLICIES:
        for seed in range(asked.seed, asked.seed + asked.months):
            yield f"month {seed}, {policy}", of_month(policy, seed)
    for path in asked.swf:
        yield path.name, of_swf(path)
    for path in asked.history:
        yield path.name, of_history(path)


def main(words: Sequence[str] | None = None) -> int:
    """The table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimates", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--months", type=int, default=2, help="of each policy (default 2)")
    parser.add_argument("--asked", type=int, default=400, help="questions of each queue (default 400)")
    parser.add_argument("--seed", type=int, default=1, help="of the first month, and of the moments (default 1)")
    parser.add_argument("--swf", type=Path, nargs="*", default=[], help="logs of real clusters")
    parser.add_argument("--history", type=Path, nargs="*", default=[], help="what condor_history -long printed")
    asked = parser.parse_args(words)
    print("| queue | jobs | asked | told | held | began before | after | no end told | latest / soonest, median |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, jobs in sources(asked):
        found = measure(jobs, asked.asked, Random(f"{asked.seed} {name}"))
        share = f"{found.held / found.made:.0%}" if found.made else "-"
        width = f"{found.widths[len(found.widths) // 2]:.1f}" if found.widths else "-"
        print(f"| {name} | {len(jobs):,} | {found.asked} | {found.made} | {share} | {found.soon} | {found.late} "
              f"| {found.open_ended} | {width} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
