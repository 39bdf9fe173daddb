"""Short processes through this pool and through HyperQueue, by turns in one run: rates, processor time, their ratio.

Usage: python benchmarks/hyperqueue.py [--count N] [--rounds N] [--python PYTHON]

PYTHON is one that has the packages ``hyperqueue``, ``cloudpickle`` and ``tqdm`` (a virtual environment of its own
will do); by default the one that runs this.  Both are given 20 cores, and 40 processes before the clock starts.  What
differs: here the queue is on the disk, the daemons speak TLS, the jobs are shut in when root runs this, and each has
a scratch directory and lines in a log; HyperQueue keeps its queue in memory, and its tasks are plain processes of its
worker.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import attrs

from benchmarks.table import EXECUTE_SIDE, SUBMIT_SIDE, burst, new_pool
from tests.pool_fixture import PersonalPool

CORES, WARM_UP = 20, 40
PLAIN = ("executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = NO\n"
         "request_memory = 16MB\n")

THEIRS = """
import json, resource, sys, tempfile, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

def run(client, count):
    job = Job()
    for _ in range(count):
        job.program(["/bin/true"], stdout=None, stderr=None)
    began_s = time.perf_counter()
    done = client.submit(job)
    assert not client.connection.wait_for_jobs((done.id,), lambda states: None)
    return time.perf_counter() - began_s

def used_s():
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)

count, warm_up, cores = map(int, sys.argv[1:])
with tempfile.TemporaryDirectory() as folder, LocalCluster(folder, WorkerConfig(cores=cores)) as cluster:
    client = cluster.client()
    run(client, warm_up)
    before_s = used_s()
    took_s = run(client, count)
    print(json.dumps([took_s, used_s() - before_s]), flush=True)
"""


@attrs.frozen
class Round:
    """What ``count`` jobs took.

    Attributes:
        rate: jobs a second; cpu_ms: of all processes, the jobs included, for one of them.
    """

    rate: float
    cpu_ms: float


def ours(pool: PersonalPool, count: int) -> Round:
    """One round here."""
    took_s, cpu, _ = burst(pool, PLAIN, count)
    return Round(count / took_s, sum(cpu.get(name, 0.0) for name in (*SUBMIT_SIDE, *EXECUTE_SIDE)) / count * 1e3)


def theirs(python: str, count: int) -> Round:
    """One round there.

    Raises:
        CalledProcessError: its packages are not there, or a task failed.
    """
    done = subprocess.run([python, "-c", THEIRS, str(count), str(WARM_UP), str(CORES)], stdout=subprocess.PIPE,
                          text=True, check=True)
    took_s, cpu_s = json.loads(done.stdout.splitlines()[-1])
    return Round(count / took_s, cpu_s / count * 1e3)


def main() -> None:
    """Measure by turns, print each round and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    here, there = [], []
    with new_pool(CORES) as pool:
        burst(pool, PLAIN, WARM_UP)
        for _ in range(options.rounds):
            there.append(theirs(options.python, options.count))
            here.append(ours(pool, options.count))
            print(f"HyperQueue {there[-1].rate:.0f} tasks/s, {there[-1].cpu_ms:.2f} ms each; "
                  f"here {here[-1].rate:.0f} jobs/s, {here[-1].cpu_ms:.2f} ms each", flush=True)
    ratios = [mine.rate / other.rate for mine, other in zip(here, there, strict=True)]
    costs = [mine.cpu_ms / other.cpu_ms for mine, other in zip(here, there, strict=True)]
    print(f"here / HyperQueue, medians: rate {statistics.median(ratios):.2f}, "
          f"processor time {statistics.median(costs):.1f}")


if __name__ == "__main__":
    main()
