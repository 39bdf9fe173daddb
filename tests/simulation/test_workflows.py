"""Workflows in the world of whole daemons: condor_dagman dies at any moment, and each node succeeds once, in its turn.

The bugs here are put into the production's DAGMan, or into what it works with, one at a time; each has to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from twisted.internet.defer import succeed

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.run_events import Submitted
from condor_actors.dag.run_state import ReadyNodes, RunState
from condor_actors.simulation.faults.chance import QUICK
from condor_actors.simulation.faults.workflows import random_workflows
from condor_actors.simulation.world import dag_runs
from condor_actors.simulation.world.dag_edges import DagJournal, SimulatedSubmitter
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Workflow, run
from condor_actors.tools.dag.dag_actor import DagActor

Patch = Callable[[pytest.MonkeyPatch], None]

MACHINES = (MachineSpec("m0", central=True, submits=True, executes=False),
            *(MachineSpec(f"m{number}", cpus=2) for number in range(1, 4)))
DAG = "\n".join([
    *(f"JOB n{number} x.sub\nRETRY n{number} 1\nCATEGORY n{number} few" for number in range(12)),
    "MAXJOBS few 5", "SPLICE S inner.dag", "PARENT n0 n1 CHILD S", "PARENT S CHILD n9 n10 n11",
    "PARENT n2 n3 CHILD n4 n5",
    "SCRIPT PRE n4 program $RETRY", "SCRIPT POST n5 program $RETRY"])
INNER = "JOB a x.sub\nJOB b x.sub\nPARENT a CHILD b\nRETRY b 2"


def scenario(seed: int = 1, *, faults: str = "", **facts: Any) -> Scenario:
    flow = Workflow(when_s=20.0, owner="alice", machine="m0", files={"x.dag": DAG, "inner.dag": INNER}, seed=seed,
                    **facts)
    return Scenario(machines=MACHINES, workflows=(flow,), faults=faults, config=QUICK, span_s=20_000.0)


KILLS = "\n".join(f"at {20 + 0.7 * number:.1f}s crash m0/dagman" for number in range(1, 90))
DEATHS = "\n".join(f"at {20 + 4 * number}s die m0/dagman {'before' if number % 2 else 'after'} commit"
                   for number in range(60))
SCHEDD = "\n".join(f"at {21 + 9 * number}s crash m0/schedd" for number in range(20))
AMBUSHES = "\n".join(f"at {20 + number}s ambush m0/dagman on {answer} kill" for number, answer in enumerate(
    ["submission.Submitted", "queue.JobsPage", "queue.JobsPage"] * 40))
POWER = "\n".join(f"at {22.2 + 1.9 * number:.1f}s power m0 for 1s" for number in range(1, 30))


@pytest.mark.parametrize("faults", ["", KILLS, f"{DEATHS}\n{SCHEDD}", POWER, AMBUSHES],
                         ids=["none", "kills", "deaths", "power", "ambushes"])
def test_each_node_succeeds_once_in_its_turn(faults: str) -> None:
    result = run(scenario(jobs=4, faults=faults))
    assert not result.violations, result.violations[0]


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_workflows_of_chance(seed: int) -> None:
    result = run(random_workflows(seed, 4))
    assert not result.violations, f"seed {seed}: {result.violations[0]}"


def what_was_submitted_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedSubmitter, "_jobs_of", lambda self, cluster, node: succeed(0))


def nobody_waits_for_the_journal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DagJournal, "wait", lambda self: None)


def children_of_failed_nodes_begin(patch: pytest.MonkeyPatch) -> None:
    after = RunState.after
    patch.setattr(RunState, "after", lambda self, parent, *, succeeded: after(self, parent, succeeded=True))


def a_category_has_no_limit(patch: pytest.MonkeyPatch) -> None:
    make = ReadyNodes.__init__
    patch.setattr(ReadyNodes, "__init__", lambda self, limits: make(self, {}))


def the_queue_has_no_limit(patch: pytest.MonkeyPatch) -> None:
    submit = DagRun._submit

    def eager(self: DagRun) -> None:
        self.nodes.settings = attrs.evolve(self.nodes.settings, jobs=0)
        submit(self)

    patch.setattr(DagRun, "_submit", eager)


def the_rescue_file_is_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dag_runs, "apply_rescue", lambda dag, text, file: None)


def what_ends_early_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    tell = DagActor.tell

    def forgetful(self: DagActor, event: Any) -> None:
        if isinstance(event, Submitted):
            self._early.pop(event.cluster, None)
        tell(self, event)

    patch.setattr(DagActor, "tell", forgetful)


MUTANTS: dict[Patch, tuple[Scenario, str]] = {
    what_was_submitted_is_not_looked_for: (scenario(faults=AMBUSHES), "is submitted twice"),
    nobody_waits_for_the_journal: (scenario(faults=POWER), "is submitted twice"),
    children_of_failed_nodes_begin: (scenario(), "before its parent"),
    a_category_has_no_limit: (scenario(), "nodes of few are in the queue"),
    the_queue_has_no_limit: (scenario(jobs=2), "nodes in the queue"),
    the_rescue_file_is_not_read: (scenario(), "has succeeded before"),
    what_ends_early_is_forgotten: (scenario(faults=AMBUSHES), "not all jobs are done"),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_bug_is_found(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    tried, rule = MUTANTS[mutant]
    assert rule in run(tried).violations[0]
