"""The picture of a run in its job's ad, for those who may see the job (:mod:`condor_actors.cores.workflow_picture`).

Theory: an ad is small, and is written again with each change.  So the graph, which does not change, is told once, a
node's state takes one letter and its jobs a number, and a DAG that is too large for that is told by levels.
"""

from __future__ import annotations

import json
from collections import Counter

from condor_actors.cores.workflow_picture import MOST_EDGES, MOST_LETTERS, MOST_LEVELS, MOST_NODES
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.run_state import Attempt, NodeState

__all__ = ["Picture"]

_OF_STATE = {
    NodeState.WAITING: "w", NodeState.READY: "r", NodeState.PRE: "p", NodeState.SUBMITTING: "q", NodeState.QUEUED: "q",
    NodeState.POST: "o", NodeState.DONE: "d", NodeState.FAILED: "f", NodeState.FUTILE: "u", NodeState.STOPPED: "r",
}
_LETTER = bytes(ord(_OF_STATE[NodeState(number)]) if number < len(NodeState) else 0 for number in range(256))


class Picture:
    """Of one run.

    Args:
        run: of a DAG whose graph has no cycle.
    """

    def __init__(self, run: DagRun) -> None:
        self._run = run
        dag = run.dag
        services = set(dag.services)
        levels = dag.graph.levels(len(dag.nodes))
        if dag.final >= 0:
            levels[dag.final] = max(levels) + 1
        self._shown = sorted((number for number in range(len(dag.nodes)) if number not in services),
                             key=lambda number: levels[number])
        height = max((levels[number] for number in self._shown), default=0)
        share = max(1.0, height / MOST_LEVELS)
        self._levels = [int((levels[number] - 1) / share) for number in self._shown]
        self._graph = self._described()

    def _described(self) -> str:
        """``DAGMan_Graph``; empty: the DAG is too large for it."""
        dag = self._run.dag
        if len(self._shown) > MOST_NODES:
            return ""
        place = {number: at for at, number in enumerate(self._shown)}
        nodes = [[dag.nodes[number].name, [place[parent] for parent in dag.graph.parents_of(number)]]
                 for number in self._shown]
        text = json.dumps(nodes, separators=(",", ":"))
        edges = sum(len(parents) for _, parents in nodes)
        return text if edges <= MOST_EDGES and len(text) <= MOST_LETTERS else ""

    def graph(self) -> dict[str, str]:
        """The attribute that does not change."""
        return {"DAGMan_Graph": self._graph}

    def states(self) -> dict[str, str]:
        """The attributes that do."""
        nodes = self._run.nodes
        letters = bytearray(nodes.states.translate(_LETTER))
        for number, attempt in nodes.active.items():
            if nodes.states[number] == NodeState.QUEUED:
                letters[number] = ord(_letter_of(attempt))
        text = letters.decode("ascii")
        if self._graph:
            return {"DAGMan_NodeStates": "".join(text[number] for number in self._shown),
                    "DAGMan_NodeJobs": json.dumps([nodes.clusters[number] for number in self._shown],
                                               separators=(",", ":"))}
        counts = Counter(zip(self._levels, (text[number] for number in self._shown), strict=True))
        levels: list[dict[str, int]] = [{} for _ in range(max(self._levels, default=-1) + 1)]
        for (level, letter), count in sorted(counts.items()):
            levels[level][letter] = count
        return {"DAGMan_Levels": json.dumps(levels, separators=(",", ":"))}


def _letter_of(attempt: Attempt) -> str:
    """How the jobs of a node in the queue are: one that is held counts most, then one that runs."""
    if attempt.held:
        return "h"
    return "x" if attempt.jobs - len(attempt.statuses) > len(attempt.waiting) else "q"
