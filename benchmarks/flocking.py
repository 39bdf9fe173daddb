"""How soon a job starts in another pool: ``python -m benchmarks.flocking`` (as root: it makes network namespaces).

Two pools whose machines cannot reach one another, and their two gateways, as processes in network namespaces of this
machine.  ``physics`` runs jobs of its own and those of ``math``, which has no machine that runs any.  Measured is the
time from the submission to the moment at which the job's program runs, by its own clock: of one job at a time, in turn
one at home in physics and one of math.  Before that, each pool has run one, so that links and shadow hosts are there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.federation import Federation, a_federation
from tests.harness.namespaces import Machine
from tests.pool_fixture import until

JOB = """executable = /bin/date
arguments = +%s.%N
transfer_executable = false
should_transfer_files = yes
output = out
error = err
log = {log}
queue
"""


def start_s(machine: Machine, number: int) -> float:
    """How long it is from the submission of a job to its program's first act."""
    log = f"{number}.log"
    began_s = time.time()
    machine.submit(JOB.format(log=log))
    machine.wait(log)
    return float((machine.work / "out").read_text()) - began_s


def measure(pools: Federation, count: int) -> tuple[list[float], list[float]]:
    """The times at home, and abroad."""
    until(lambda: "has dialled" in pools.math.run("condor_flock", "status"), "the gateways to meet")
    at_home, abroad = [], []
    for number in range(count + 1):
        at_home.append(start_s(pools.physics, number))
        abroad.append(start_s(pools.math, number))
    return at_home[1:], abroad[1:]


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10, help="of each pool")
    count = parser.parse_args().jobs
    with a_federation() as pools:
        at_home, abroad = measure(pools, count)
    for what, times in (("at home", at_home), ("in the other pool", abroad)):
        print(f"{what:<18} {statistics.median(times):6.3f} s median, {min(times):.3f} to {max(times):.3f} s")
    print(f"{'ratio':<18} {statistics.median(abroad) / statistics.median(at_home):6.2f}")


if __name__ == "__main__":
    main()
