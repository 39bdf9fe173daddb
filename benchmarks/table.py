"""The table of docs/performance.md: this pool beside the figures on record for HTCondor 25.14 on such a machine.

Usage: python benchmarks/table.py [--quick] [ROW...]

Everything runs on loopback in personal pools of its own under a temporary folder: real daemons, TLS on.  CPU is that
of all processes of the pool, from /proc, jobs included.  Absolute times drift with the machine; compare CPU first.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
SUBMIT_SIDE = ("schedd", "shadow-host")
EXECUTE_SIDE = ("startd", "starter-host")


class Row:
    """One line of the table as it is measured."""

    def __init__(self, what: str, ours: str, peer: str, note: str = "") -> None:
        self.what, self.ours, self.peer, self.note = what, ours, peer, note

    def show(self) -> None:
        """Print it as a row of a Markdown table."""
        print(f"| {self.what} | {self.ours} | {self.peer} | {self.note} |", flush=True)


def cpu_s(pid: int) -> float:
    """User and system CPU of a process and its reaped children; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def usage(pool: PersonalPool) -> dict[str, float]:
    """CPU seconds by daemon name."""
    found: dict[str, float] = {}
    for pid, command in pool.processes().items():
        words = command.split(" ")
        if "condor_actors.services" in words:
            name = words[words.index("condor_actors.services") + 1]
            found[name] = found.get(name, 0.0) + cpu_s(pid)
    return found


@contextmanager
def new_pool(slots: int, config: str = "") -> Iterator[PersonalPool]:
    """A personal pool in a temporary folder."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=slots, config=config)
        open_to_jobs(pool.work)
        try:
            yield pool
        finally:
            pool.stop()


def elapsed_s(action: Callable[[], object], runs: int = 5) -> float:
    """Median seconds of an action."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


SLEEPER = "executable = /bin/sleep\ntransfer_executable = false\narguments = 100000\nrequirements = False\n"


def idle_jobs(quick: bool) -> Iterator[Row]:
    """Submitting, looking at and holding 10,000 idle jobs."""
    count = 2000 if quick else 10_000
    with new_pool(2) as pool:
        schedd = pool.daemons()["schedd"]
        before = resident_bytes(schedd)
        start = time.perf_counter()
        pool.submit(SLEEPER + f"queue {count}\n")
        took = time.perf_counter() - start
        yield Row(f"submit {count:,} jobs, one cluster", f"{took:.2f} s", "1.09 s", "whole `condor_submit` process")
        yield Row("schedd memory per idle job", f"{(resident_bytes(schedd) - before) / count:.0f} B", "2,135 B")
        for name, command, peer in (
            ("condor_q (batches)", ["condor_q"], "0.117 s"),
            ("condor_q -totals", ["condor_q", "-totals"], "0.013 s"),
            ("condor_q -nobatch", ["condor_q", "-nobatch"], "0.122 s"),
            ("condor_q -af of 3", ["condor_q", "-af", "ClusterId", "ProcId", "JobStatus"], "0.066 s"),
            ("condor_q -long", ["condor_q", "-long"], "0.44 s"),
            ("condor_q of one job", ["condor_q", "1.7", "-af", "JobStatus"], "0.014 s"),
        ):
            took = elapsed_s(lambda command=command: pool.run(*command))  # type: ignore[misc]
            yield Row(f"`{name}`, {count:,} idle jobs", f"{took:.3f} s", peer, "whole process")
        for verb, peer in (("hold", "0.27 s"), ("release", "0.20 s"), ("rm", "0.11 s")):
            took = elapsed_s(lambda verb=verb: pool.run(f"condor_{verb}", "1"), 1)  # type: ignore[misc]
            yield Row(f"{verb} {count:,} jobs", f"{took:.2f} s", peer, "whole process")
    with new_pool(20) as pool:
        took = elapsed_s(lambda: pool.run("condor_status"))
        yield Row("`condor_status`, 20 slots", f"{took:.3f} s", "0.009 s", "whole process")


def drained(pool: PersonalPool, cluster: int, count: int) -> None:
    until(lambda: pool.tool("condor_history", str(cluster), "-af", "ProcId").stdout.count("\n") >= count,
          "all jobs in the history", 300)


def burst(pool: PersonalPool, description: str, count: int) -> tuple[float, dict[str, float], int]:
    """Run ``count`` jobs; seconds from submit to the last completion, CPU by daemon, and the cluster.

    The end is the event log's last 005, so that no polling of a daemon is in the figures.
    """
    log = pool.work / "burst.log"
    log.unlink(missing_ok=True)
    before = usage(pool)
    start = time.perf_counter()
    cluster = pool.submit(description + f"log = {log}\nqueue {count}\n")
    until(lambda: log.exists() and log.read_bytes().count(b"\n005 (") + log.read_bytes().startswith(b"005 (") >= count,
          "all jobs terminated", 300)
    took = time.perf_counter() - start
    drained(pool, cluster, count)
    after = usage(pool)
    return took, {name: after[name] - before.get(name, 0.0) for name in after}, cluster


def throughput(quick: bool) -> Iterator[Row]:
    """500 short jobs on 20 slots, without and with file transfer."""
    count = 100 if quick else 500
    with new_pool(20) as pool:
        plain = ("executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = NO\n"
                 "request_memory = 16MB\n")
        burst(pool, plain, 40)
        took, cpu, _ = burst(pool, plain, count)
        yield Row(f"{count} × /bin/true, 20 slots", f"{count / took:.0f} jobs/s", "55 jobs/s (untuned 9)",
                  "submit to last completion")
        total = sum(cpu.values()) / count * 1000
        submit = sum(cpu.get(name, 0.0) for name in SUBMIT_SIDE) / count * 1000
        execute = sum(cpu.get(name, 0.0) for name in EXECUTE_SIDE) / count * 1000
        yield Row("CPU per job, whole machine", f"{total:.1f} ms", "29.5 ms", "all daemons and the jobs")
        yield Row("… submit side", f"{submit:.1f} ms", "6.5 ms", "schedd and shadow host")
        yield Row("… execute side", f"{execute:.1f} ms", "16.4 ms", "startd, starter host, jobs")
        (pool.work / "input.txt").write_text("line\n" * 1000)
        program = pool.work / "copy.sh"
        program.write_text("#!/bin/sh\ncp input.txt output.txt\n")
        program.chmod(0o755)
        files = (f"initialdir = {pool.work}\nexecutable = copy.sh\ntransfer_input_files = input.txt\n"
                 "should_transfer_files = YES\ntransfer_output_files = output.txt\nrequest_memory = 16MB\n"
                 "transfer_output_remaps = \"output.txt = out.$(Process)\"\n")
        took, _, _ = burst(pool, files, count)
        yield Row(f"{count} jobs with file transfer, 20 slots", f"{count / took:.0f} jobs/s", "18 jobs/s",
                  "script and 5 KB in, 5 KB out")


def latency(quick: bool) -> Iterator[Row]:
    """One job at a time through an idle pool: from the schedd's receipt to the line in the user log."""
    with new_pool(4) as pool:
        log = pool.work / "one.log"
        description = f"executable = /bin/true\ntransfer_executable = false\nlog = {log}\nqueue\n"
        times, whole = [], []
        for _ in range(5 if quick else 15):
            log.unlink(missing_ok=True)
            start = time.perf_counter()
            pool.submit(description)
            submitted = time.perf_counter()
            while not (log.exists() and b"\n005 (" in log.read_bytes()):
                time.sleep(0.0005)
            end = time.perf_counter()
            whole.append(end - start)
            times.append(end - submitted)
        yield Row("one /bin/true, start of `condor_submit` to its end in the log",
                  f"{statistics.median(whole):.3f} s", "0.055 s at best; 1.06 s tuned; 39.8 s by default")
        yield Row("… after `condor_submit` has returned", f"{max(statistics.median(times), 0):.3f} s", "")


def running_jobs(quick: bool) -> Iterator[Row]:
    """Memory of the submit side per running job."""
    few, many = (5, 50) if quick else (20, 220)
    with new_pool(many + 5) as pool:
        job = "executable = /bin/sleep\narguments = 100000\ntransfer_executable = false\nrequest_memory = 1MB\n"

        def running(count: int) -> int:
            pool.submit(job + f"queue {count}\n")
            return count

        def resident() -> int:
            return sum(resident_bytes(pid) for name, pid in pool.daemons().items() if name in SUBMIT_SIDE)

        def wait_for(count: int) -> None:
            until(lambda: len(pool.jobs("-constraint", "JobStatus == 2", "-attributes", "ProcId")) >= count,
                  f"{count} running jobs", 180)

        wait_for(running(few))
        before = resident()
        running(many - few)
        wait_for(many)
        each = (resident() - before) / (many - few)
        yield Row("submit-side memory per running job", f"{each / 1024:.0f} KiB", "500–1,500 KiB", "one process there")
        pool.run("condor_rm", "-all")


def cycle(quick: bool) -> Iterator[Row]:
    """The negotiation cycle alone, in one process: the production core on made-up ads (benchmarks/negotiation.py)."""
    from benchmarks.negotiation import CASES, negotiator, run_cycle

    slots = 200 if quick else 1000
    for case, what, peer in (
        ("identical", f"cycle, {slots:,} slots × 10,000 equal jobs", "0.69 s"),
        ("distinct", "… × 1,000 distinct Requirements, all match", "3.78 s"),
        ("none", "… × 1,000 distinct, none match", "2.17 s"),
        ("one-job", "… × 1 job", ""),
    ):
        times = []
        for _ in range(3):
            changes, pages, idle = CASES[case](slots)
            times.append(run_cycle(negotiator(changes, idle), pages)[0])
        yield Row(what, f"{statistics.median(times):.4f} s", peer, "processor time of the core, ads decoded")


ROWS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "idle": idle_jobs,
    "throughput": throughput,
    "latency": latency,
    "running": running_jobs,
    "cycle": cycle,
}


def main() -> None:
    """Measure and print the rows asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], metavar="ROW", help=" ".join(ROWS))
    parser.add_argument("--quick", action="store_true", help="smaller counts")
    options = parser.parse_args()
    print("| what | here | HTCondor 25.14 | how |\n|---|---|---|---|")
    for name in options.rows or ROWS:
        for row in ROWS[name](options.quick):
            row.show()


if __name__ == "__main__":
    main()
