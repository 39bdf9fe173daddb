"""What a node's submit description is given when it is its turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from condor_actors.classads import quote
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_effects import Submit
from condor_actors.dag.run_state import NodeState
from condor_actors.tools.dag.submitter import Wanted

__all__ = ["wanted_of"]

MOST_NAMES = 16384


class Given(Protocol):
    """What all nodes have in common; see `Around`."""

    @property
    def macros(self) -> Mapping[str, str]:
        """Of all nodes' descriptions."""

    @property
    def priority(self) -> int:
        """Of all nodes."""

    @property
    def records_retry(self) -> bool:
        """Whether the jobs' ads say which try it is."""


def wanted_of(run: DagRun, effect: Submit, given: Given) -> Wanted:
    """A node that is to be submitted, with its macros."""
    number = effect.node
    node = run.dag.nodes[number]
    names = ",".join(run.dag.parents(number))
    macros = {
        **given.macros, "JOB": node.name, "RETRY": str(run.nodes.attempt_of(number)),
        "FAILED_COUNT": str(run.nodes.counts[NodeState.FAILED]), "DAG_STATUS": str(int(run.status)),
        "DAG_PARENT_NAMES": names, "dag_node_name": node.name,
    }
    macros["My.DAGParentNodeNames"] = quote(names if len(names) < MOST_NAMES else "")
    if node.priority + given.priority:
        macros["priority"] = str(node.priority + given.priority)
    if given.records_retry:
        macros["My.DAGManNodeRetry"] = macros["RETRY"]
    if node.kind is Kind.FINAL:
        macros["My.DAG_Status"] = macros["DAG_STATUS"]
    return Wanted(number, node, macros, effect.cluster)
