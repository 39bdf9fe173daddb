"""The logical nodes of a DAG, and collections of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from condor_actors.compat.htcondor2.dags.edges import BaseEdge
from condor_actors.compat.htcondor2.dags.walk_order import WalkOrder
from condor_actors.compat.htcondor2.submit import Submit

if TYPE_CHECKING:
    from condor_actors.compat.htcondor2.dags.dag import DAG

Made = TypeVar("Made", bound="BaseNode")


def shown(thing: object, *names: str) -> str:
    """How an object is printed: its class, and these attributes."""
    return f"{type(thing).__name__}({', '.join(f'{name} = {getattr(thing, name)}' for name in names)})"


class Script:
    """A program that runs on the submit machine before or after a node.

    Args:
        executable: its path; arguments: its arguments.
        retry: whether it is run again when it ends with ``retry_status``, ``retry_delay`` seconds later.
    """

    def __init__(self, executable: str | Path, arguments: list[str] | None = None, retry: bool = False,
                 retry_status: int = 1, retry_delay: int = 0) -> None:
        self.executable = executable
        self.arguments = [str(each) for each in arguments or ()]
        self.retry = retry
        self.retry_status = retry_status
        self.retry_delay = retry_delay

    def __repr__(self) -> str:
        return shown(self, "executable", "arguments", "retry", "retry_status", "retry_delay")


class DAGAbortCondition:
    """When the end of a node ends the whole DAG.

    Args:
        node_exit_value: the node's exit status that does it.
        dag_return_value: the DAG's own exit status then; None: the node's.
    """

    def __init__(self, node_exit_value: int, dag_return_value: int | None = None) -> None:
        self.node_exit_value = node_exit_value
        self.dag_return_value = dag_return_value

    def __repr__(self) -> str:
        return shown(self, "node_exit_value", "dag_return_value")


@functools.total_ordering
class BaseNode:
    """What a DAG is made of; made by the methods of `DAG` and of other nodes.

    Args:
        dag: whose it is.
        name: unique in the DAG.
        dir: where it is submitted from; None: where the DAG is.
        noop: whether it does nothing and succeeds; done: whether it has succeeded already; of a layer, a mapping says
            it of single nodes.
        retries: how often it is tried again; retry_unless_exit: the exit status after which it is not.
        pre, post: run before and after it; pre_skip_exit_code: when ``pre`` ends with that, the node is skipped.
        priority: of its jobs; category: which it belongs to, of those whose jobs are limited.
        abort: when its end is the end of the DAG.
    """

    def __init__(self, dag: DAG, *, name: str, dir: Path | None = None,  # noqa: A002 - the names of the original
                 noop: bool | Mapping[int, bool] = False, done: bool | Mapping[int, bool] = False,
                 retries: int | None = None, retry_unless_exit: int | None = None, pre: Script | None = None,
                 post: Script | None = None, pre_skip_exit_code: int | None = None, priority: int = 0,
                 category: str | None = None, abort: DAGAbortCondition | None = None) -> None:
        self._dag = dag
        self.name = name
        self.dir = None if dir is None else Path(dir)
        self.noop = {0: noop} if isinstance(noop, bool) else noop
        self.done = {0: done} if isinstance(done, bool) else done
        self.retries = retries
        self.retry_unless_exit = retry_unless_exit
        self.pre = pre
        self.post = post
        self.pre_skip_exit_code = pre_skip_exit_code
        self.priority = priority
        self.category = category
        self.abort = abort

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return shown(self, "name")

    def __iter__(self) -> Iterator[BaseNode]:
        yield self

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._dag is other._dag and self.name == other.name

    def __lt__(self, other: object) -> bool:
        return self.name < other.name if isinstance(other, BaseNode) else NotImplemented

    # ---- edges

    def child_layer(self, edge: BaseEdge | None = None, **kwargs: Any) -> NodeLayer:
        """A new layer that waits for this node; further arguments are those of `NodeLayer`."""
        return self._before(self._dag.layer(**kwargs), edge)

    def parent_layer(self, edge: BaseEdge | None = None, **kwargs: Any) -> NodeLayer:
        """A new layer that this node waits for; further arguments are those of `NodeLayer`."""
        return self._after(self._dag.layer(**kwargs), edge)

    def child_subdag(self, edge: BaseEdge | None = None, **kwargs: Any) -> SubDAG:
        """A new DAG within the DAG that waits for this node; further arguments are those of `SubDAG`."""
        return self._before(self._dag.subdag(**kwargs), edge)

    def parent_subdag(self, edge: BaseEdge | None = None, **kwargs: Any) -> SubDAG:
        """A new DAG within the DAG that this node waits for; further arguments are those of `SubDAG`."""
        return self._after(self._dag.subdag(**kwargs), edge)

    def _before(self, other: Made, edge: BaseEdge | None) -> Made:
        self._dag.connect(self, other, edge)
        return other

    def _after(self, other: Made, edge: BaseEdge | None) -> Made:
        self._dag.connect(other, self, edge)
        return other

    def add_children(self, *nodes: Any, edge: BaseEdge | None = None) -> BaseNode:
        """These nodes, or those in these collections, wait for this one; returns this one."""
        for node in flat(nodes):
            self._dag.connect(self, node, edge)
        return self

    def remove_children(self, *nodes: Any) -> BaseNode:
        """These nodes do not wait for this one; returns this one."""
        for node in flat(nodes):
            self._dag.disconnect(self, node)
        return self

    def add_parents(self, *nodes: Any, edge: BaseEdge | None = None) -> BaseNode:
        """This node waits for these ones, or those in these collections; returns this one."""
        for node in flat(nodes):
            self._dag.connect(node, self, edge)
        return self

    def remove_parents(self, *nodes: Any) -> BaseNode:
        """This node does not wait for these ones; returns this one."""
        for node in flat(nodes):
            self._dag.disconnect(node, self)
        return self

    @property
    def children(self) -> Nodes:
        """Those that wait for this node."""
        return self._dag.children_of(self)

    @property
    def parents(self) -> Nodes:
        """Those that this node waits for."""
        return self._dag.parents_of(self)

    def walk_ancestors(self, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """All that come before this node."""
        return self._dag.walk_ancestors(node=self, order=order)

    def walk_descendants(self, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """All that come after this node."""
        return self._dag.walk_descendants(node=self, order=order)


class NodeLayer(BaseNode):
    """Jobs that share a submit description.

    Args:
        dag: whose it is.
        submit_description: the description, or the path of a file with one.
        vars: for each job the variables that its description may use.
        kwargs: as for `BaseNode`.
    """

    def __init__(self, dag: DAG, *, submit_description: Submit | Path | None = None,
                 vars: Iterable[dict[str, str]] | None = None, **kwargs: Any) -> None:  # noqa: A002
        super().__init__(dag, **kwargs)
        self.submit_description = submit_description or Submit({})
        self.vars = [{}] if vars is None else list(vars)

    def __len__(self) -> int:
        return len(self.vars)


class SubDAG(BaseNode):
    """A DAG of its own that runs as a node.

    Args:
        dag: whose it is.
        dag_file: where its DAG file is, or will be.
        kwargs: as for `BaseNode`.
    """

    def __init__(self, dag: DAG, *, dag_file: Path, **kwargs: Any) -> None:
        super().__init__(dag, **kwargs)
        self.dag_file = dag_file


class FinalNode(BaseNode):
    """The job that runs at the end, however the DAG ends.

    Args:
        dag: whose it is.
        submit_description: the description, or the path of a file with one.
        kwargs: as for `BaseNode`.
    """

    def __init__(self, dag: DAG, submit_description: Submit | Path | None = None, **kwargs: Any) -> None:
        super().__init__(dag, **kwargs)
        self.submit_description = submit_description or Submit({})


def flat(nodes: Iterable[Any]) -> Iterator[BaseNode]:
    """The nodes in collections of nodes and of collections."""
    for each in nodes:
        if isinstance(each, BaseNode):
            yield each
        else:
            yield from flat(each)


class Nodes:
    """A collection of nodes, which can be connected as one.

    Args:
        nodes: nodes, or collections of them.
    """

    def __init__(self, *nodes: BaseNode | Iterable[BaseNode]) -> None:
        self._nodes = {node.name: node for node in flat(nodes)}

    def __eq__(self, other: object) -> bool:
        return self._nodes == other._nodes if isinstance(other, Nodes) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[BaseNode]:
        yield from self._nodes.values()

    def __contains__(self, node: object) -> bool:
        return node in self._nodes if isinstance(node, str) else node in self._nodes.values()

    def __repr__(self) -> str:
        return f"Nodes({', '.join(repr(node) for node in sorted(self))})"

    def _first(self) -> BaseNode:
        if not self._nodes:
            raise ValueError("there is no node to connect with: the collection is empty")
        return next(iter(self))

    def child_layer(self, type: BaseEdge | None = None, **kwargs: Any) -> NodeLayer:  # noqa: A002
        """A new layer that waits for all of these; further arguments are those of `NodeLayer`."""
        layer = self._first()._dag.layer(**kwargs)
        layer.add_parents(self, edge=type)
        return layer

    def parent_layer(self, type: BaseEdge | None = None, **kwargs: Any) -> NodeLayer:  # noqa: A002
        """A new layer that all of these wait for; further arguments are those of `NodeLayer`."""
        layer = self._first()._dag.layer(**kwargs)
        layer.add_children(self, edge=type)
        return layer

    def child_subdag(self, type: BaseEdge | None = None, **kwargs: Any) -> SubDAG:  # noqa: A002
        """A new DAG within the DAG that waits for all of these; further arguments are those of `SubDAG`."""
        subdag = self._first()._dag.subdag(**kwargs)
        subdag.add_parents(self, edge=type)
        return subdag

    def parent_subdag(self, type: BaseEdge | None = None, **kwargs: Any) -> SubDAG:  # noqa: A002
        """A new DAG within the DAG that all of these wait for; further arguments are those of `SubDAG`."""
        subdag = self._first()._dag.subdag(**kwargs)
        subdag.add_children(self, edge=type)
        return subdag

    def add_children(self, *nodes: Any, type: BaseEdge | None = None) -> Nodes:  # noqa: A002
        """These nodes wait for all of the collection; returns the collection."""
        for each in self:
            each.add_children(*nodes, edge=type)
        return self

    def remove_children(self, *nodes: Any) -> Nodes:
        """These nodes wait for none of the collection; returns the collection."""
        for each in self:
            each.remove_children(*nodes)
        return self

    def add_parents(self, *nodes: Any, type: BaseEdge | None = None) -> Nodes:  # noqa: A002
        """All of the collection wait for these nodes; returns the collection."""
        for each in self:
            each.add_parents(*nodes, edge=type)
        return self

    def remove_parents(self, *nodes: Any) -> Nodes:
        """None of the collection waits for these nodes; returns the collection."""
        for each in self:
            each.remove_parents(*nodes)
        return self

    def walk_ancestors(self, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """All that come before any of them, for one after the other."""
        return chain.from_iterable(each.walk_ancestors(order=order) for each in self)

    def walk_descendants(self, order: WalkOrder = WalkOrder.DEPTH_FIRST) -> Iterator[BaseNode]:
        """All that come after any of them, for one after the other."""
        return chain.from_iterable(each.walk_descendants(order=order) for each in self)
