"""A workflow: its logical nodes, the edges between them, and what is said of the whole."""

from __future__ import annotations

import fnmatch
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from condor_actors.compat.htcondor2.dags.edges import BaseEdge, ManyToMany
from condor_actors.compat.htcondor2.dags.exceptions import DuplicateNodeName, UnrecognizedWalkOrder
from condor_actors.compat.htcondor2.dags.node import BaseNode, FinalNode, NodeLayer, Nodes, SubDAG, shown
from condor_actors.compat.htcondor2.dags.walk_order import WalkOrder


class DotConfig:
    """A picture of the DAG in the DOT language, which DAGMan writes.

    Args:
        path: where.
        update: whether it is written again as the DAG goes on; overwrite: whether into the same file.
        include_file: whose text is included.
    """

    def __init__(self, path: Path, update: bool = False, overwrite: bool = True,
                 include_file: Path | None = None) -> None:
        self.path = Path(path)
        self.update = update
        self.overwrite = overwrite
        self.include_file = None if include_file is None else Path(include_file)

    def __repr__(self) -> str:
        return shown(self, "path", "update", "overwrite", "include_file")


class NodeStatusFile:
    """A file with the state of each node, which DAGMan writes.

    Args:
        path: where.
        update_time: so many seconds are at least between two of them; always_update: also when nothing has changed.
    """

    def __init__(self, path: Path, update_time: int | None = None, always_update: bool | None = False) -> None:
        self.path = Path(path)
        self.update_time = update_time
        self.always_update = always_update

    def __repr__(self) -> str:
        return shown(self, "path", "update_time", "always_update")


class DAG:
    """A workflow.

    Args:
        dagman_config: parameters of DAGMan.
        dagman_job_attributes: attributes of DAGMan's own job.
        max_jobs_by_category: how many jobs of each category may run at once.
        dot_config: of a picture; jobstate_log: where the log for Pegasus and its like is written; node_status_file: of
            the file with the nodes' states; None: there is none.
    """

    def __init__(self, dagman_config: Mapping[str, Any] | None = None,
                 dagman_job_attributes: Mapping[str, Any] | None = None,
                 max_jobs_by_category: Mapping[str, int] | None = None, dot_config: DotConfig | None = None,
                 jobstate_log: Path | None = None, node_status_file: NodeStatusFile | None = None) -> None:
        self._nodes: dict[str, BaseNode] = {}
        self._children: dict[BaseNode, dict[BaseNode, BaseEdge]] = {}
        self._parents: dict[BaseNode, dict[BaseNode, BaseEdge]] = {}
        self._final_node: FinalNode | None = None
        self.dagman_config = dagman_config or {}
        self.dagman_job_attrs = dagman_job_attributes or {}
        self.max_jobs_per_category = max_jobs_by_category or {}
        self.dot_config = dot_config
        self.jobstate_log = None if jobstate_log is None else Path(jobstate_log)
        self.node_status_file = node_status_file

    # ---- nodes

    def layer(self, **kwargs: Any) -> NodeLayer:
        """A new layer of jobs; arguments are those of `NodeLayer`."""
        node = NodeLayer(dag=self, **kwargs)
        self._add(node)
        return node

    def subdag(self, **kwargs: Any) -> SubDAG:
        """A new DAG within the DAG; arguments are those of `SubDAG`."""
        node = SubDAG(dag=self, **kwargs)
        self._add(node)
        return node

    def final(self, **kwargs: Any) -> FinalNode:
        """The job that runs at the end, in place of one that there was; arguments are those of `FinalNode`."""
        node = FinalNode(dag=self, **kwargs)
        self._check_name(node)
        self._final_node = node
        return node

    def _add(self, node: BaseNode) -> None:
        self._check_name(node)
        self._nodes[node.name] = node
        self._children[node] = {}
        self._parents[node] = {}

    def _check_name(self, node: BaseNode) -> None:
        for other in (self._nodes.get(node.name), self._final_node):
            if other is not None and other.name == node.name:
                raise DuplicateNodeName(f"the DAG has a node named {node.name} already: {other}")

    def __contains__(self, node: object) -> bool:
        return node in self._nodes if isinstance(node, str) else node in self._nodes.values()

    @property
    def nodes(self) -> Nodes:
        """All nodes but the final one."""
        return Nodes(self._nodes.values())

    @property
    def roots(self) -> Nodes:
        """Those that wait for nothing."""
        return self.select(lambda node: not self._parents[node])

    @property
    def leaves(self) -> Nodes:
        """Those that nothing waits for."""
        return self.select(lambda node: not self._children[node])

    def select(self, selector: Callable[[BaseNode], bool]) -> Nodes:
        """Those that a function says yes to."""
        return Nodes(node for node in self._nodes.values() if selector(node))

    def glob(self, pattern: str) -> Nodes:
        """Those whose names match a pattern like those of files."""
        return self.select(lambda node: fnmatch.fnmatchcase(node.name, pattern))

    # ---- edges

    def connect(self, parent: BaseNode, child: BaseNode, edge: BaseEdge | None = None) -> None:
        """One waits for the other from now on, all for all unless the edge says otherwise."""
        for node in (parent, child):
            if node not in self:
                raise ValueError(f"{node} is no node of this DAG")
        edge = ManyToMany() if edge is None else edge
        self._children[parent][child] = self._parents[child][parent] = edge

    def disconnect(self, parent: BaseNode, child: BaseNode) -> None:
        """One does not wait for the other."""
        self._children.get(parent, {}).pop(child, None)
        self._parents.get(child, {}).pop(parent, None)

    def edge_between(self, parent: BaseNode, child: BaseNode) -> BaseEdge | None:
        """How one waits for the other; None: it does not."""
        return self._children.get(parent, {}).get(child)

    def children_of(self, node: BaseNode) -> Nodes:
        """Those that wait for a node."""
        return Nodes(self._children[node])

    def parents_of(self, node: BaseNode) -> Nodes:
        """Those that a node waits for."""
        return Nodes(self._parents[node])

    @property
    def edges(self) -> Iterator[tuple[BaseNode, BaseNode]]:
        """Parent and child, for each edge."""
        for parent, children in self._children.items():
            for child in children:
                yield parent, child

    @property
    def node_to_children(self) -> dict[BaseNode, Nodes]:
        """For each node those that wait for it."""
        return {node: Nodes(children) for node, children in self._children.items()}

    @property
    def node_to_parents(self) -> dict[BaseNode, Nodes]:
        """For each node those that it waits for."""
        return {node: Nodes(parents) for node, parents in self._parents.items()}

    # ---- walks

    def walk(self, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """Each node once, from those that wait for nothing on."""
        return self._walk(self.roots, lambda node: self._children[node], order)

    def walk_ancestors(self, node: BaseNode, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """Each once of those that come before a node."""
        return self._walk(self._parents[node], lambda each: self._parents[each], order)

    def walk_descendants(self, node: BaseNode, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """Each once of those that come after a node."""
        return self._walk(self._children[node], lambda each: self._children[each], order)

    @staticmethod
    def _walk(first: Iterable[BaseNode], following: Callable[[BaseNode], Iterable[BaseNode]],
              order: WalkOrder) -> Iterator[BaseNode]:
        if not isinstance(order, WalkOrder):
            raise UnrecognizedWalkOrder(f"{order!r} is no order; take WalkOrder.DEPTH_FIRST or WalkOrder.BREADTH_FIRST")
        ahead, seen = deque(first), set[BaseNode]()
        while ahead:
            node = ahead.pop() if order is WalkOrder.DEPTH_FIRST else ahead.popleft()
            if node not in seen:
                seen.add(node)
                ahead.extend(following(node))
                yield node

    def describe(self) -> str:
        """A table of the nodes."""
        rows = [("Type", "Name", "# Nodes", "# Children", "Parents")]
        for node in self.walk(WalkOrder.BREADTH_FIRST):
            is_layer = isinstance(node, NodeLayer)
            parents = ", ".join(f"{parent.name}[{edge}]" for parent, edge in self._parents[node].items())
            rows.append(("Layer" if is_layer else "SubDAG", node.name, str(len(node)) if is_layer else "",
                         str(len(self._children[node])), parents))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(
            cell.ljust(width) if number in (0, len(widths) - 1) else cell.center(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows)
