"""What waits for what: edges between numbers, those of nodes and, beyond them, of joins.

Theory: ``PARENT a1 … am CHILD b1 … bn`` means m × n edges.  With m and n above one a join stands between them, a number
that no node has, so there are m + n.  A weak edge lets the child begin when the parent has ended, however it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from condor_actors.dag.errors import Place

__all__ = ["FIRST_JOIN", "Graph"]

FIRST_JOIN = 1 << 40
"""The number of the first join; nodes count from 0."""
_NONE: tuple[int, ...] = ()


class Graph:
    """Edges, by number of parent and of child."""

    def __init__(self) -> None:
        self._strong: dict[int, list[int]] = {}
        self._weak: dict[int, list[int]] = {}
        self._parents: dict[int, list[int]] = {}
        self._places: dict[tuple[int, int], Place] = {}
        self._joins = 0

    def connect(self, parents: Sequence[int], children: Sequence[int], place: Place, *, weak: bool = False,
                joins: bool = True) -> None:
        """Let every child wait for every parent; of two edges that are the same a strong one counts."""
        if joins and len(parents) > 1 and len(children) > 1:
            join = FIRST_JOIN + self._joins
            self._joins += 1
            self._add(parents, (join,), place, weak)
            self._add((join,), children, place, False)
        else:
            self._add(parents, children, place, weak)

    def _add(self, parents: Iterable[int], children: Sequence[int], place: Place, weak: bool) -> None:
        table = self._weak if weak else self._strong
        for parent in parents:
            for child in children:
                if (parent, child) not in self._places:
                    self._places[parent, child] = place
                    table.setdefault(parent, []).append(child)
                    self._parents.setdefault(child, []).append(parent)
                elif not weak and child in self._weak.get(parent, _NONE):  # the stronger word counts
                    self._weak[parent].remove(child)
                    table.setdefault(parent, []).append(child)

    def strong(self, parent: int) -> Sequence[int]:
        """The children that wait for its success."""
        return self._strong.get(parent, _NONE)

    def weak(self, parent: int) -> Sequence[int]:
        """The children that wait for its end."""
        return self._weak.get(parent, _NONE)

    def waits(self) -> dict[int, int]:
        """How many parents each child has."""
        return {child: len(parents) for child, parents in self._parents.items()}

    def has_parents(self, child: int) -> bool:
        """Whether it waits for anything."""
        return child in self._parents

    def has_children(self, parent: int) -> bool:
        """Whether anything waits for it."""
        return parent in self._strong or parent in self._weak

    def parents_of(self, child: int) -> list[int]:
        """The nodes that a node waits for, those behind joins too."""
        found: dict[int, None] = {}
        for parent in self._parents.get(child, _NONE):
            found.update(dict.fromkeys(self._parents[parent] if parent >= FIRST_JOIN else (parent,)))
        return list(found)

    def children_of(self, parent: int) -> Iterator[tuple[int, bool]]:
        """The nodes that wait for a node, each with whether the edge is weak."""
        for table, weak in ((self._strong, False), (self._weak, True)):
            for child in table.get(parent, _NONE):
                if child >= FIRST_JOIN:
                    yield from ((each, weak) for each in self._strong.get(child, _NONE))
                else:
                    yield child, weak

    @property
    def joins(self) -> int:
        """How many joins there are."""
        return self._joins

    @property
    def edges(self) -> int:
        """How many edges are kept."""
        return len(self._places)

    def cycle(self) -> list[tuple[int, Place]]:
        """A cycle: its numbers in order, each with where the edge to the next one stands; empty: there is none."""
        left = self.waits()
        ready = [parent for parent in (*self._strong, *self._weak) if parent not in left]
        while ready:
            parent = ready.pop()
            for child in (*self.strong(parent), *self.weak(parent)):
                if child in left:
                    left[child] -= 1
                    if not left[child]:
                        del left[child]
                        ready.append(child)
        if not left:
            return []
        # Whatever is left waits for something that is left: going up must come by the same one again.
        path = [min(left)]
        seen = {path[0]: 0}
        while True:
            above = next(parent for parent in self._parents[path[-1]] if parent in left)
            if above in seen:
                ring = path[seen[above]:][::-1]
                return [(each, self._places.get((each, ring[(at + 1) % len(ring)]), ("", 0)))
                        for at, each in enumerate(ring)]
            seen[above] = len(path)
            path.append(above)

    def levels(self, nodes: int) -> list[int]:
        """How far each node is from the beginning, counted in nodes: 1, or one more than the farthest of its parents.

        Args:
            nodes: how many there are; the graph has no cycle.
        """
        left = self.waits()
        found = [1] * nodes
        of_joins: dict[int, int] = {}
        ready = [each for each in range(nodes) if each not in left]
        while ready:
            parent = ready.pop()
            depth = of_joins.pop(parent, 1) if parent >= FIRST_JOIN else found[parent] + 1
            for child in (*self.strong(parent), *self.weak(parent)):
                if child >= FIRST_JOIN:
                    of_joins[child] = max(of_joins.get(child, 1), depth)
                else:
                    found[child] = max(found[child], depth)
                left[child] -= 1
                if not left[child]:
                    ready.append(child)
        return found

    def shape(self, nodes: int) -> tuple[int, int]:
        """The longest way through the graph in nodes, and the most nodes that are equally far from the beginning.

        Args:
            nodes: how many there are; the graph has no cycle.
        """
        widths = Counter(self.levels(nodes))
        return max(widths, default=0), max(widths.values(), default=0)
