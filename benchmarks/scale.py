"""A very large queue: ``python benchmarks/scale.py [--jobs 1000000] [--clusters 10000]``.

A personal pool of real daemons whose schedd gets so many idle jobs of one user, over the messages that
``condor_submit`` sends.  Small jobs come and go while they are submitted.  While another user asks one small question
after the other, the queue is listed, listed in full, edited, held, released and removed, a job that can run is started,
and the schedd is started again.  For each act the lines say how long it took, the processor time of the schedd and of
the command, and the longest that the other user waited meanwhile.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.table import cpu_s, new_pool, resident_bytes
from condor_actors.classads import ClassAd
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.wire.blocking import Client, RequestRefused, WireError, connect
from tests.pool_fixture import PersonalPool, until

CONFIG = ("MAX_JOBS_SUBMITTED = 10000000\nMAX_JOBS_PER_OWNER = 10000000\nMAX_JOBS_PER_SUBMISSION = 1000000\n"
          "MAX_RESERVED_CLUSTERS_PER_OWNER = 1000000\n")
QUICK = "executable = /bin/true\ntransfer_executable = false\nlog = quick.log\nqueue\n"
MIB = 1024 * 1024
OTHER_UID = 12_001


class Neighbour:
    """Another user of the schedd, who asks for one job again and again, in a process of its own.

    Attributes:
        waited_s: the longest that an answer took since it was last set to 0.
    """

    def __init__(self, node: str) -> None:
        self.waited_s = 0.0
        command = [sys.executable, "-m", "benchmarks.scale", "--ask", node]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups", *command]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.waited_s = max(self.waited_s, float(line))

    def end(self) -> None:
        """Ask no more."""
        self._process.kill()
        self._process.wait()
        self._thread.join()


def ask_for_ever(node: str) -> None:
    """Say how many seconds each answer took; where nobody answers, try again."""
    client: Client | None = None
    while True:
        time.sleep(0.01)
        began_s = time.perf_counter()
        try:
            client = client or connect(node)
            client.ask("schedd", QueryJobs(limit=1, ids=((1, 0),)))
        except (WireError, OSError):
            client = None
            continue
        print(f"{time.perf_counter() - began_s:.6f}", flush=True)


def own_cpu_s() -> float:
    """Processor time of this process and of the commands that it has run."""
    return sum(os.times()[:4])


class Scale:
    """The measured pool."""

    def __init__(self, pool: PersonalPool, jobs: int, clusters: int) -> None:
        self.pool, self.jobs, self.clusters = pool, jobs, clusters
        self.node = f"unix:{pool.dir / 'run' / 'schedd.sock'}"
        self.neighbour = Neighbour(self.node)

    def schedd(self) -> int:
        """Its pid."""
        return self.pool.daemons()["schedd"]

    def act(self, what: str, action: Callable[[], object], per: int = 0) -> float:
        """Do something and print how long it took, how many a second, and what the neighbour waited."""
        self.neighbour.waited_s = 0.0
        schedd = self.schedd()
        schedd_s, own_s, began_s = cpu_s(schedd), own_cpu_s(), time.perf_counter()
        action()
        took_s = time.perf_counter() - began_s
        before_s = schedd_s if self.schedd() == schedd else 0.0
        schedd_s, own_s = cpu_s(self.schedd()) - before_s, own_cpu_s() - own_s
        rate = f"{per / took_s:,.0f}/s" if per else ""
        memory = resident_bytes(self.schedd()) // MIB
        print(f"| {what} | {took_s:.2f} s | {rate} | {schedd_s:.2f} s | {own_s:.2f} s | "
              f"{self.neighbour.waited_s * 1e3:.0f} ms | {memory:,} MiB |", flush=True)
        return took_s

    def submit(self) -> None:
        """All the jobs, as ``condor_submit`` sends them."""
        each = self.jobs // self.clusters
        ad = ClassAd({
            "Cmd": "/bin/sleep", "Arguments": "1000", "JobUniverse": 5, "Iwd": "/tmp", "RequestMemory": 1,
            "RequestCpus": 1, "RequestDisk": 1, "ShouldTransferFiles": "NO", "Out": "/dev/null", "Err": "/dev/null",
            "In": "/dev/null", "JobPrio": 0, "TransferExecutable": False, "LeaveJobInQueue": False,
        })
        ad.insert_text("Requirements", "false")
        text = ad.to_bytes()
        with connect(self.node) as client:
            def pages() -> Iterator[SubmitPage]:
                for reserved in client.ask_all("schedd", (ReserveCluster() for _ in range(self.clusters))):
                    yield SubmitPage(cluster_id=reserved.cluster_id, page=0, cluster_ad=text, procs=(b"",) * each,
                                     first_proc=0, last=True)

            whole = list(pages())
            for answer in client.ask_all("schedd", whole, 600.0):
                if isinstance(answer, RequestRefused):
                    raise SystemExit(f"refused: {answer}")

    @contextmanager
    def small_jobs(self) -> Iterator[None]:
        """Small jobs that can run come and go meanwhile; prints how long each took."""
        done, took = threading.Event(), []

        def others() -> None:
            while not done.wait(1.0):
                began_s = time.perf_counter()
                self.other_job()
                took.append(f"{time.perf_counter() - began_s:.2f} s")

        beside = threading.Thread(target=others)
        beside.start()
        try:
            yield
        finally:
            done.set()
            beside.join()
        print(f"| jobs beside it, submit to end | {', '.join(took)} | | | | | |", flush=True)

    def listed(self, *words: str, tool: str = "condor_q") -> int:
        """How many lines a command prints."""
        command = self.pool.command(tool, *words)
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=self.pool.environment) as asking:
            assert asking.stdout is not None
            return sum(piece.count(b"\n") for piece in iter(lambda: asking.stdout.read(1 << 20), b""))  # type: ignore

    def restart(self) -> None:
        """The schedd is killed; until it answers about its queue again."""
        old = self.schedd()
        os.kill(old, signal.SIGKILL)

        def answers() -> bool:
            try:
                with connect(self.node) as client:
                    return bool(client.ask("schedd", QueryJobs(limit=1)).ads)
            except (WireError, OSError):
                return False

        until(answers, "the schedd answers again", 300)

    def other_job(self) -> None:
        """A job that can run, from ``condor_submit`` to its end in the log."""
        (self.pool.work / "quick.log").unlink(missing_ok=True)
        self.pool.submit(QUICK)
        until(lambda: "005 (" in (self.pool.work / "quick.log").read_text(), "the job's end", 120)

    def files(self) -> str:
        """What the database takes."""
        folder = self.pool.dir
        sizes = {path.name: path.stat().st_size // MIB for path in folder.rglob("job_queue.sqlite*")}
        return ", ".join(f"{name} {size} MiB" for name, size in sorted(sizes.items()))


def run(pool: PersonalPool, jobs: int, clusters: int) -> None:
    """All of it."""
    scale = Scale(pool, jobs, clusters)
    try:
        measure(scale)
    finally:
        scale.neighbour.end()


def measure(scale: Scale) -> None:
    """All acts, one after the other."""
    jobs, clusters = scale.jobs, scale.clusters
    before = resident_bytes(scale.schedd())
    print(f"| {jobs:,} jobs in {clusters:,} clusters | took | rate | schedd's CPU | command's CPU | another waited "
          "| schedd |\n|---|---|---|---|---|---|---|")
    scale.act("another job, submit to end", scale.other_job)
    with scale.small_jobs():
        scale.act("submit", scale.submit, jobs)
    grown = resident_bytes(scale.schedd()) - before
    print(f"| bytes a job | {grown / jobs:,.0f} | | | | | |", flush=True)
    scale.act("`condor_q`", scale.listed)
    scale.act("`condor_q -totals`", lambda: scale.listed("-totals"))
    scale.act("`condor_q -long`", lambda: scale.listed("-long"), jobs)
    scale.act("another job, submit to end", scale.other_job)
    scale.act("edit by constraint", lambda: scale.listed("-constraint", "true", "Marked=1", tool="condor_qedit"), jobs)
    scale.act("hold", lambda: scale.listed("-all", tool="condor_hold"), jobs)
    scale.act("release", lambda: scale.listed("-all", tool="condor_release"), jobs)
    scale.act("killed and started again", scale.restart)
    scale.act("remove", lambda: scale.listed("-all", tool="condor_rm"), jobs)
    print(f"| afterwards | {scale.files()} | | | | | {resident_bytes(scale.schedd()) // MIB:,} MiB |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="A very large queue.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=10_000)
    parser.add_argument("--ask", metavar="NODE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        ask_for_ever(options.ask)
    with new_pool(2, CONFIG) as pool:
        run(pool, options.jobs, options.clusters)


if __name__ == "__main__":
    main()
