"""A pool in trouble: ``python benchmarks/chaos.py [--jobs 300] [--minutes 5] [--seed 1]``.

Jobs of several kinds flow through a personal pool of real daemons while a random daemon is killed, or stopped for a
while, every one to four seconds.  At the end each job has ended exactly once, in the history and in its log, with the
right bytes; no process, scratch folder or claim is left, and no log has a traceback.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.table import new_pool
from tests.pool_fixture import PersonalPool, open_to_jobs, until

VICTIMS = ("schedd", "startd", "shadow-host", "starter-host", "negotiator", "collector", "master")
GAP_S = (1.0, 4.0)
STOPPED_S = (0.5, 6.0)
KINDS = ("stream", "files", "large", "queue", "long")


class Kind:
    """One cluster of jobs: its description, and what each job's output has to be."""

    def __init__(self, name: str, folder: Path, jobs: int) -> None:
        self.name, self.folder, self.jobs = name, folder, jobs
        folder.mkdir(parents=True)
        open_to_jobs(folder)
        (folder / "in").write_text("input\n" * 1_000)

    def description(self) -> str:
        """For ``condor_submit``."""
        script = {
            "stream": "echo result $(Process)", "queue": "echo result $(Process)",
            "long": "sleep $(( $(Process) % 7 )); echo result $(Process)",
            "files": "cat in >copy; echo result $(Process) >>copy",
            "large": "head -c 300000 /dev/zero | tr '\\0' x >copy; echo result $(Process) >>copy",
        }[self.name].replace("$$((", "$((")
        path = self.folder / "program.sh"
        path.write_text(f"#!/bin/sh\n{script.replace('$(Process)', '$1')}\n")
        path.chmod(0o755)
        moves = "should_transfer_files = yes\ntransfer_input_files = in\ntransfer_output_files = copy\n" \
                'transfer_output_remaps = "copy=copy.$(Process)"\n' if self.name in ("files", "large") else ""
        count = f"queue {self.jobs}\n"
        return (f"initialdir = {self.folder}\nexecutable = program.sh\narguments = $(Process)\n"
                f"output = out.$(Process)\nlog = job.log\nrequest_memory = 16MB\n{moves}{count}")

    def wrong(self) -> list[str]:
        """Which outputs are not what they should be."""
        found = []
        for number in range(self.jobs):
            wanted = f"result {number}\n"
            path = self.folder / f"out.{number}"
            if self.name in ("files", "large"):
                path = self.folder / f"copy.{number}"
                wanted = ("input\n" * 1_000 if self.name == "files" else "x" * 300_000) + wanted
            text = path.read_text() if path.exists() else "(no file)"
            if text != wanted:
                found.append(f"{path}: {len(text)} bytes, {text[-40:]!r}")
        ends = Counter(line.split("(")[1].split(")")[0] for line in (self.folder / "job.log").read_text().splitlines()
                       if line.startswith("005 ("))
        if len(ends) != self.jobs or set(ends.values()) != {1}:
            found.append(f"{self.name}: {len(ends)} of {self.jobs} ends in the log, more than once: "
                         f"{[name for name, count in ends.items() if count > 1]}")
        return found


class Trouble:
    """Kills and stops daemons."""

    def __init__(self, pool: PersonalPool, seed: int) -> None:
        self.deeds: Counter[str] = Counter()
        self._pool = pool
        self._random = random.Random(seed)

    def make(self) -> None:
        """One deed, and a pause."""
        victim = self._random.choice(VICTIMS)
        pid = self._pool.daemons().get(victim)
        if pid is not None:
            how = self._random.choice(("kill", "kill", "stop"))
            self.deeds[f"{how} {victim}"] += 1
            with suppress(ProcessLookupError):
                if how == "kill":
                    os.kill(pid, signal.SIGKILL)
                else:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(self._random.uniform(*STOPPED_S))
                    os.kill(pid, signal.SIGCONT)
            if victim == "master" and how == "kill":
                self._pool.tool("condor_personal", "start", "--dir", str(self._pool.dir))
        time.sleep(self._random.uniform(*GAP_S))


def submitted(pool: PersonalPool, kind: Kind) -> int:
    """Submit a cluster; where the schedd is dead just now, again."""
    def attempt() -> int:
        done = pool.tool("condor_submit", stdin=kind.description())
        return int(done.stdout.rsplit("cluster ", 1)[1].strip().rstrip(".")) if done.returncode == 0 else 0

    return int(until(attempt, f"jobs of kind {kind.name} are taken", 120))


def left_over(pool: PersonalPool, clusters: dict[int, Kind]) -> list[str]:
    """What is wrong at the end."""
    wrong = [line for kind in clusters.values() for line in kind.wrong()]
    for cluster, kind in clusters.items():
        ads = pool.history(str(cluster), "-attributes", "ProcId,JobStatus")
        if sorted(ad["ProcId"] for ad in ads) != list(range(kind.jobs)):
            wrong.append(f"cluster {cluster} ({kind.name}): {len(ads)} of {kind.jobs} jobs in the history")
        if {ad["JobStatus"] for ad in ads} - {4}:
            wrong.append(f"cluster {cluster} ({kind.name}): not all completed")

    def settled(what: Callable[[], object], text: str) -> None:
        try:
            until(lambda: not what(), text, 120)
        except AssertionError:
            wrong.append(f"{text}: {what()}")

    settled(pool.scratch, "scratch folders")
    settled(lambda: set(pool.run("condor_status", "-af", "State").split()) - {"Unclaimed", "Owner"}, "claims")
    for path in (pool.dir / "log").glob("*Log*"):
        if "Traceback (most recent call last)" in path.read_text(errors="replace"):
            wrong.append(f"{path.name} has a traceback")
    return wrong


def run(pool: PersonalPool, jobs: int, minutes: float, seed: int) -> list[str]:
    """Trouble until all jobs have ended, or the time is over; then what is wrong."""
    trouble = Trouble(pool, seed)
    kinds = [Kind(name, pool.work / name, jobs // len(KINDS)) for name in KINDS]
    clusters = {submitted(pool, kind): kind for kind in kinds}
    end_s = time.monotonic() + minutes * 60.0
    while time.monotonic() < end_s:
        trouble.make()
        done = pool.tool("condor_q", "-all", "-af", "ClusterId")
        if done.returncode == 0 and not done.stdout.strip():
            break
    print(f"trouble: {dict(trouble.deeds)}", flush=True)
    pool.tool("condor_personal", "start", "--dir", str(pool.dir))

    def empty() -> bool:
        done = pool.tool("condor_q", "-all", "-af", "ClusterId", "JobStatus", "HoldReason")
        return done.returncode == 0 and not done.stdout.strip()

    try:
        until(empty, "the queue is empty", 900)
    except AssertionError as error:
        return [str(error), pool.tool("condor_q", "-all", "-nobatch").stdout[-2000:], *left_over(pool, clusters)]
    return left_over(pool, clusters)


def main() -> int:
    """Run it; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description="A pool in trouble.")
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with new_pool(8) as pool:
        wrong = run(pool, options.jobs, options.minutes, options.seed)
    print("\n".join(wrong) if wrong else "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
