"""Which nodes of one layer wait for which nodes of another one.

An edge gives pairs: numbers of nodes of the parent, and numbers of nodes of the child that wait for all of them.  A
*join* may stand for one side: a node without work, which makes of n times m lines n plus m.
"""

from __future__ import annotations

import abc
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from condor_actors.compat.htcondor2.dags.exceptions import IncompatibleGrouper, OneToOneEdgeNeedsSameNumberOfVars

if TYPE_CHECKING:
    from condor_actors.compat.htcondor2.dags.node import BaseNode


class JoinNode:
    """A node without work.

    Args:
        id: its number.
    """

    def __init__(self, id: int) -> None:  # noqa: A002 - the name of the original
        self.id = id


class JoinFactory:
    """Makes the joins of one DAG file.

    Attributes:
        joins: those that were made.
    """

    def __init__(self) -> None:
        self.joins: list[JoinNode] = []

    def get_join_node(self) -> JoinNode:
        """One more."""
        join = JoinNode(len(self.joins))
        self.joins.append(join)
        return join


Side = tuple[int, ...] | JoinNode
Pairs = Iterable[tuple[Side, Side]]


class BaseEdge(abc.ABC):
    """How two logical nodes are connected; a program may have kinds of its own."""

    @abc.abstractmethod
    def get_edges(self, parent: BaseNode, child: BaseNode, join_factory: JoinFactory) -> Pairs:
        """Pairs of those that are waited for and those that wait, one side of which may be a join.

        Args:
            parent, child: what is connected.
            join_factory: makes joins.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__


class ManyToMany(BaseEdge):
    """Each node of the child waits for all of the parent."""

    def get_edges(self, parent: BaseNode, child: BaseNode, join_factory: JoinFactory) -> Pairs:
        """All with all: directly where one side is a single node, else by a join."""
        before, after = tuple(range(len(parent))), tuple(range(len(child)))
        if 1 in (len(before), len(after)):
            return [(before, after)]
        join = join_factory.get_join_node()
        return [(before, join), (join, after)]


class OneToOne(BaseEdge):
    """Each node of the child waits for the one with its number in the parent."""

    def get_edges(self, parent: BaseNode, child: BaseNode, join_factory: JoinFactory) -> Pairs:
        """Number by number.

        Raises:
            OneToOneEdgeNeedsSameNumberOfVars: the layers have different sizes.
        """
        if len(parent) != len(child):
            raise OneToOneEdgeNeedsSameNumberOfVars(
                f"{parent} has {len(parent)} nodes, and its child {child} has {len(child)}")
        return [((number,), (number,)) for number in range(len(parent))]


class Grouper(BaseEdge):
    """Each chunk of the child waits for the chunk with its number in the parent.

    Args:
        parent_chunk_size, child_chunk_size: how many nodes are one chunk.
    """

    def __init__(self, parent_chunk_size: int = 1, child_chunk_size: int = 1) -> None:
        self.parent_chunk_size = parent_chunk_size
        self.child_chunk_size = child_chunk_size

    def get_edges(self, parent: BaseNode, child: BaseNode, join_factory: JoinFactory) -> Pairs:
        """Chunk by chunk, with a join for each.

        Raises:
            IncompatibleGrouper: a layer is no whole number of chunks, or the layers have different numbers of them.
        """
        before = self._chunks(parent, self.parent_chunk_size)
        after = self._chunks(child, self.child_chunk_size)
        if len(before) != len(after):
            raise IncompatibleGrouper(f"{self}: {parent} has {len(before)} chunks, and its child {child} has "
                                      f"{len(after)}")
        pairs: list[tuple[Side, Side]] = []
        for first, second in zip(before, after, strict=True):
            join = join_factory.get_join_node()
            pairs += [(first, join), (join, second)]
        return pairs

    def _chunks(self, node: BaseNode, size: int) -> Sequence[tuple[int, ...]]:
        if len(node) % size:
            raise IncompatibleGrouper(f"{self}: {node} has {len(node)} nodes, no whole number of chunks of {size}")
        return [tuple(range(first, first + size)) for first in range(0, len(node), size)]

    def __repr__(self) -> str:
        return (f"Grouper(parent_chunk_size = {self.parent_chunk_size}, "
                f"child_chunk_size = {self.child_chunk_size})")


class Slicer(BaseEdge):
    """The nodes of a slice of the child wait, one by one, for those of a slice of the parent.

    Args:
        parent_slice, child_slice: which nodes; of the longer one the rest is left alone.
    """

    def __init__(self, parent_slice: slice = slice(None), child_slice: slice = slice(None)) -> None:  # noqa: B008
        self.parent_slice = parent_slice
        self.child_slice = child_slice

    def get_edges(self, parent: BaseNode, child: BaseNode, join_factory: JoinFactory) -> Pairs:
        """One by one, while both have some."""
        before, after = ([*itertools.islice(range(len(node)), part.start, part.stop, part.step)]
                         for node, part in ((parent, self.parent_slice), (child, self.child_slice)))
        return [((first,), (second,)) for first, second in zip(before, after, strict=False)]

    def __repr__(self) -> str:
        return f"Slicer(parent_slice = {self.parent_slice}, child_slice = {self.child_slice})"
