"""A DAG of many nodes: processor time and memory of each part of what condor_dagman does.

    python benchmarks/dagman.py [NODES]

The DAG has layers of a hundred nodes; each node waits for two of the layer before, has a variable and a retry.  The
parts are those of a run: reading the file, looking for cycles, deciding and journaling what happens (each node is
submitted, runs, and ends), making the ads of the jobs, going on after a crash, and writing a rescue file.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.reader import read_dag, refuse_cycle
from condor_actors.dag.rescue import rescue_text
from condor_actors.dag.run_effects import Submit
from condor_actors.dag.run_events import Began, Change, JobChanged, JobEnded, Reserved, RunEvent, Submitted, line_of
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.dag_files import read_text
from condor_actors.tools.dag.journal import Journal, digest_of
from condor_actors.tools.dag.node_description import describe
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.submission import environment

WIDTH = 100
total_s = 0.0


@contextmanager
def part(name: str) -> Iterator[None]:
    """Print what a part costs."""
    global total_s
    before_s = time.process_time()
    yield
    spent_s = time.process_time() - before_s
    total_s += spent_s
    print(f"{name:<42} {spent_s:7.2f} s   {peak_mib():6.0f} MiB at most so far", flush=True)


def peak_mib() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write(path: str, count: int) -> None:
    """The DAG file."""
    with open(path, "w", encoding="ascii") as file:
        for node in range(count):
            file.write(f'JOB node{node} say.sub\nVARS node{node} number="{node}"\nRETRY node{node} 2\n')
            if node >= WIDTH:
                first = node // WIDTH * WIDTH - WIDTH
                file.write(f"PARENT node{first + node % WIDTH} node{first + (node + 1) % WIDTH} CHILD node{node}\n")


def decide(run: DagRun, journal: Journal) -> None:
    """Tell a run all that happens when every job succeeds; journal it a turn at a time."""
    cluster = 0
    waiting: deque[int] = deque()
    lines: list[str] = []

    def tell(event: RunEvent) -> None:
        lines.append(line_of(event))
        waiting.extend(effect.node for effect in run.handle(event) if isinstance(effect, Submit))
        if len(lines) >= 100:
            journal.append(lines)
            lines.clear()

    tell(Began())
    while run.phase is not Phase.OVER:
        node = waiting.popleft()
        cluster += 1
        tell(Reserved(node, cluster))
        tell(Submitted(node, cluster, 1))
        tell(JobChanged(node, cluster, 0, Change.RUNNING))
        tell(JobEnded(node, cluster, 0, 0))
    journal.append(lines)


def main() -> None:
    """Run it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CONDOR_CONFIG"] = f"{folder}/condor_config"
        os.environ["_CONDOR_LOCAL_DIR"] = folder
        with open(f"{folder}/condor_config", "w", encoding="ascii"):
            pass
        path = f"{folder}/x.dag"
        write(path, count)
        with open(f"{folder}/say.sub", "w", encoding="ascii") as file:
            file.write("executable = /bin/true\narguments = $(number)\noutput = $(JOB).out\nlog = x.log\nqueue\n")
        with part(f"reading {count} nodes"):
            dag = read_dag([path], Reading(read_text))
        with part("looking for cycles"):
            refuse_cycle(dag)
        run = DagRun(dag, RunSettings())
        with part("the digest of the DAG"):
            digest = digest_of(dag)
        journal = Journal.create(f"{path}.journal", digest, run.nodes.settings, "", time.time())
        with part("deciding and journaling"):
            decide(run, journal)
        with part("a rescue file"):
            rescue_text(run.nodes, time.time(), resets_retries=False)
        besides_s = total_s
        with part("going on after a crash at the end"):
            again = DagRun(dag, RunSettings())
            Journal.open(f"{path}.journal", digest, again.handle)
        world = attrs.evolve(environment(load("SUBMIT")), cwd=folder)
        sample = min(count, 5000)
        before_s = time.process_time()
        for number in range(sample):
            node = dag.nodes[number]
            describe(node, world, lambda number=number: number + 1, {"JOB": node.name, "dag_node_name": node.name})  # type: ignore[misc]
        each_us = (time.process_time() - before_s) / sample * 1e6
        print(f"the ad of each node's job: {each_us:.0f} us ({each_us * count / 1e6:.1f} s for all)")
        print(f"besides the ads and a crash: {besides_s:.1f} s")


if __name__ == "__main__":
    main()
