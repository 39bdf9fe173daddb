"""What must hold of workflows: what is submitted when, and what came of it.

Theory: condor_dagman is believed nothing.  What its nodes' jobs come to stands in the event log, which jobs it has
submitted in the queue; what each try of a node would come to is known beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd import queue_operations as q
from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_events import REMOVED
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.log_tail import status_of
from condor_actors.userlog.reader import EventReader

if TYPE_CHECKING:
    from condor_actors.simulation.world.dag_runs import DagRuns
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.pool import Pool

__all__ = ["WorkflowChecker"]


@attrs.define
class _Try:
    """One try of one node: a cluster; ``total``: how many jobs it is to make as they are needed, 0: it is no such."""

    runs: DagRuns
    node: int
    run: int
    attempt: int
    jobs: int = 0
    total: int = 0
    has_left: bool = False
    statuses: dict[int, int] = attrs.Factory(dict)

    @property
    def is_over(self) -> bool:
        """Whether the log tells the end of all its jobs."""
        return (self.has_left if self.total else self.jobs > 0) and self.jobs <= len(self.statuses)

    def succeeded(self) -> bool:
        """Whether the node has by this try, as far as the log tells."""
        if not self.is_over:
            return False
        node = self.runs.dag.nodes[self.node]
        if node.post is not None:
            return self.runs.outcomes.status(self.run, node.name, self.attempt, "post") == 0
        return not any(self.statuses.values()) and self.total in (0, self.jobs)


class WorkflowChecker:
    """Checks the workflows of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._tries: dict[tuple[str, int], _Try] = {}
        self._of_node: dict[tuple[str, int], list[_Try]] = {}
        self._readers: dict[str, EventReader] = {}

    def stored(self, machine: SimulatedMachine, operation: q.QueueOperation) -> None:
        """A row of a job queue is durable."""
        if type(operation) is q.SaveCluster and (machine.name, operation.cluster) not in self._tries:
            self._new_cluster(machine, operation)
        elif type(operation) is q.InsertJobs:
            tried = self._tries.get((machine.name, operation.cluster))
            if tried is not None:
                tried.jobs += len(operation.rows)

    def _new_cluster(self, machine: SimulatedMachine, row: q.SaveCluster) -> None:
        ad = ClassAd.from_bytes(row.ad)
        runs = next((each for each in self._pool.users.dags if each.name == ad.get_str("DagRuns")), None)
        if runs is None:
            return
        names = [node.name for node in runs.dag.nodes]
        node = names.index(ad.get_str("DAGNodeName"))
        new = _Try(runs, node, ad.get_int("DAGManJobId"), ad.get_int("DAGManNodeRetry"))
        if "JobMaterializeMaxIdle" in ad:
            new.total = ad.get_int("TotalSubmitProcs")
        what = f"{runs.name}: node {names[node]}, run {new.run}, try {new.attempt}"
        earlier = self._of_node.setdefault((runs.name, node), [])
        if any((each.run, each.attempt) == (new.run, new.attempt) for each in earlier):
            self._pool.violate(f"{what} is submitted twice")
        if any(each.succeeded() for each in earlier):
            self._pool.violate(f"{what} is submitted, and the node has succeeded before")
        if runs.dag.nodes[node].kind is not Kind.FINAL:
            for parent in range(len(names)):
                for child, weak in runs.dag.graph.children_of(parent):
                    if child == node and not self._lets_begin(runs, parent, weak=weak):
                        self._pool.violate(f"{what} is submitted before its parent {names[parent]} has ended")
        self._tries[machine.name, row.cluster] = new
        earlier.append(new)
        self._throttles(runs)

    def _lets_begin(self, runs: DagRuns, parent: int, *, weak: bool) -> bool:
        """Whether a child of a node may begin, as far as this node is concerned."""
        node = runs.dag.nodes[parent]
        tries = self._of_node.get((runs.name, parent), ())
        if node.noop or node.done or (weak and node.pre is not None):
            return True
        return any(each.succeeded() or (weak and each.is_over) for each in tries)

    def _throttles(self, runs: DagRuns) -> None:
        """No more nodes have jobs than may."""
        under_way = [each for each in self._tries.values()
                     if each.runs is runs and each.run == runs.run and not each.is_over]
        if runs.workflow.jobs and len(under_way) > runs.workflow.jobs:
            self._pool.violate(f"{runs.name} has {len(under_way)} nodes in the queue, and may have "
                               f"{runs.workflow.jobs}")
        for category, limit in runs.dag.limits.items():
            count = sum(runs.dag.nodes[each.node].category == category for each in under_way)
            if count > limit:
                self._pool.violate(f"{runs.name} has {count} nodes of {category} in the queue, and may have {limit}")

    def logged(self, machine: SimulatedMachine, path: str, data: bytes) -> None:
        """Lines of a user log are durable."""
        if not path.endswith(".nodes.log"):
            return
        for event in self._readers.setdefault(f"{machine.name}:{path}", EventReader()).feed(data):
            tried = self._tries.get((machine.name, event.cluster))
            if tried is not None and event.number == JobEventType.JOB_TERMINATED:
                tried.statuses[event.proc] = status_of(event)
            elif tried is not None and event.number == JobEventType.JOB_ABORTED:
                tried.statuses[event.proc] = REMOVED
            elif tried is not None and event.number == JobEventType.CLUSTER_REMOVE:
                tried.has_left = True

    def end(self) -> None:
        """Each node has succeeded, once.

        A DAG is done when its FINAL node succeeds, and a rescue file takes a failed node for done that has weak
        children only: then a node may have failed for good.
        """
        for runs in self._pool.users.dags:
            graph = runs.dag.graph
            for number, node in enumerate(runs.dag.nodes):
                may_fail = runs.dag.final >= 0 or (graph.has_children(number) and not graph.strong(number))
                count = sum(each.succeeded() for each in self._of_node.get((runs.name, number), ()))
                if node.kind is Kind.FINAL:
                    may_fail = False
                if not node.noop and not node.done and count != 1 and not (may_fail and count == 0):
                    self._pool.violate(f"{runs.name}: node {node.name} has succeeded {count} times")
