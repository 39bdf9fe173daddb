"""A million jobs in one cluster: ``python benchmarks/factory.py [--jobs 1000000]``.

A personal pool of real daemons gets a cluster whose jobs are made as they are needed, by ``condor_submit``; the lines
say how long that took, when the first job began, what the schedd takes, what ``condor_q -totals`` takes, and how
long the schedd needs after a kill -9 until it answers.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.table import cpu_s, new_pool, resident_bytes
from tests.pool_fixture import until

TEXT = ("executable = /bin/sleep\ntransfer_executable = false\narguments = 1 $(Process)\noutput = /dev/null\n"
        "log = log\nmax_idle = 100\nqueue {jobs}\n")
MIB = 1024 * 1024
TRIES = 5


def children_s() -> float:
    """Processor time of the commands that were run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    jobs = parser.parse_args().jobs
    with new_pool(2) as pool:
        pid = pool.daemons()["schedd"]
        cpu_before_s, began_s = cpu_s(pid), time.monotonic()
        pool.submit(TEXT.format(jobs=jobs))
        print(f"condor_submit of {jobs} jobs: {time.monotonic() - began_s:.2f} s; "
              f"the schedd used {cpu_s(pid) - cpu_before_s:.2f} s of processor time")
        until(lambda: "\n001 (" in (pool.work / "log").read_text(), "the first job")
        print(f"the first job began {time.monotonic() - began_s:.2f} s after the beginning of condor_submit")
        print(f"the schedd takes {resident_bytes(pid) / MIB:.0f} MiB")
        for _ in range(TRIES):
            began_s, schedd_s, command_s = time.monotonic(), cpu_s(pid), children_s()
            pool.run("condor_q", "-totals")
            passed_s = time.monotonic() - began_s
            print(f"condor_q -totals: {passed_s:.3f} s; processor time {children_s() - command_s:.3f} s, of the schedd "
                  f"{cpu_s(pid) - schedd_s:.2f} s")
        print(pool.run("condor_q", "-factory"))
        began_s = time.monotonic()
        pool.kill("schedd")
        pool.until_restarted("schedd", pid)
        until(lambda: pool.tool("condor_q", "-totals").returncode == 0, "the schedd's return")
        print(f"after kill -9 the schedd answered in {time.monotonic() - began_s:.2f} s and takes "
              f"{resident_bytes(pool.daemons()['schedd']) / MIB:.0f} MiB")
        began_s = time.monotonic()
        pool.run("condor_rm", "1")
        print(f"condor_rm: {time.monotonic() - began_s:.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
