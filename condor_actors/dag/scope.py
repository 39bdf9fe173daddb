"""One DAG file while it is read: its names, its splices, and what it adds to the DAG.

Theory: the order of lines in a file does not matter for what they speak of.  So a file is read in three rounds: first
the nodes, splices and descriptions, then what is said about nodes, in order, then the edges.  A splice is a file of its
own, read in the same way into the same DAG, with ``NAME+`` before its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from condor_actors.dag.definitions import Dag, Kind, Node
from condor_actors.dag.errors import DagError, Place
from condor_actors.dag.statements import Statement, keyword

__all__ = ["ALL_NODES", "Reading", "Scope", "joined", "number_of", "once"]

ALL_NODES = "ALL-NODES"
"""As :func:`keyword` gives it."""
RESERVED = frozenset({"PARENT", "CHILD", ALL_NODES})
SPECIAL = (Kind.FINAL, Kind.SERVICE)


@attrs.frozen
class Reading:
    """How DAG files are read.

    Attributes:
        read: the text of a file by its path.
        any_characters: whether ``+`` may be in the names of nodes (DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS).
        joins: whether many parents and many children share a join (DAGMAN_USE_JOIN_NODES).
        own_folders: whether each DAG file's paths begin at its own folder (``-usedagdir``).
        mistakes: what is wrong is added to it, and the reading goes on; None: the first mistake ends it.
    """

    read: Callable[[str], str]
    any_characters: bool = False
    joins: bool = True
    own_folders: bool = False
    mistakes: list[DagError] | None = None

    def carry_out(self, act: Callable[..., None], *arguments: object) -> None:
        """Do a step of the reading; its mistake is noted or raised."""
        try:
            act(*arguments)
        except DagError as error:
            if self.mistakes is None:
                raise
            self.mistakes.append(error)


@attrs.define(eq=False)
class Scope:
    """A DAG file, or a splice of one.

    Attributes:
        dag: what it is read into.
        reading: how.
        file: its name, for errors.
        prefix: before the names of its nodes.
        directory: where its paths begin; empty: where the DAG runs.
        is_splice: whether it is inside another one.
        nodes: indices of its nodes, those of its splices not included.
        descriptions: SUBMIT-DESCRIPTION, by name.
        pins: (PIN_IN, PIN_OUT), each by number: its nodes.
        ends: of a splice that was read: the nodes that wait for nothing in it, and those that nothing waits for.
        above: the files that led here.
    """

    dag: Dag
    reading: Reading
    file: str
    prefix: str = ""
    directory: str = ""
    is_splice: bool = False
    nodes: list[int] = attrs.Factory(list)
    splices: dict[str, Scope] = attrs.Factory(dict)
    descriptions: dict[str, str] = attrs.Factory(dict)
    pins: tuple[dict[int, list[int]], dict[int, list[int]]] = attrs.Factory(lambda: ({}, {}))
    ends: tuple[list[int], list[int]] = attrs.Factory(lambda: ([], []))
    above: tuple[str, ...] = ()

    # -- names

    def new_node(self, kind: Kind, name: str, description: str, statement: Statement) -> Node:
        """A node of this name.

        Raises:
            DagError: it is no name, or is taken.
        """
        self.check_name(name, statement)
        full = self.prefix + name
        if full in self.dag.by_name:
            before = self.dag.nodes[self.dag.by_name[full]].place
            raise statement.refuse(f"node {name} is defined already ({before[0]}, line {before[1]})",
                                   "give each node a name of its own")
        node = Node(full, kind, description, statement.place)
        number = len(self.dag.nodes)
        self.dag.by_name[full] = number
        self.dag.nodes.append(node)
        self.nodes.append(number)
        return node

    def check_name(self, name: str, statement: Statement) -> None:
        """Refuse what cannot be the name of a node or a splice."""
        if keyword(name) in RESERVED:
            raise statement.refuse(f"{name} is a word of the language and no name", "choose another name")
        if "+" in name and not self.reading.any_characters:
            raise statement.refuse(f"the name {name} has a +, which separates splices from their nodes",
                                   "leave it out, or set DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS")
        if name in self.splices:
            raise statement.refuse(f"{name} is the name of a splice already", "give each a name of its own")

    def node(self, name: str, statement: Statement) -> Node:
        """The node of this name.

        Raises:
            DagError: there is none.
        """
        number = self.dag.by_name.get(self.prefix + name)
        if number is None:
            if name in self.splices:
                raise statement.refuse(f"{statement.command} cannot be said of a splice ({name})",
                                       f"say it of its nodes, as {name}+NODE")
            raise statement.refuse(f"there is no node {name}", self._hint(name))
        return self.dag.nodes[number]

    def targets(self, name: str, statement: Statement) -> Iterable[Node]:
        """The node of this name; for ALL_NODES those of this file but the final one and services."""
        if keyword(name) == ALL_NODES:
            return [node for node in map(self.dag.nodes.__getitem__, self.nodes) if node.kind not in SPECIAL]
        return (self.node(name, statement),)

    def _hint(self, name: str) -> str:
        for known in map(self.dag.nodes.__getitem__, self.nodes):
            if known.name.removeprefix(self.prefix).lower() == name.lower():
                return f"names are case-sensitive: {known.name.removeprefix(self.prefix)}?"
        return "define it with JOB, or correct the name"

    # -- where splices begin and end

    def all_nodes(self) -> list[int]:
        """Its nodes and those of its splices, without the final one and services."""
        found = [each for each in self.nodes if self.dag.nodes[each].kind in (Kind.JOB, Kind.SUBDAG)]
        for splice in self.splices.values():
            found += splice.all_nodes()
        return found

    def initial(self) -> list[int]:
        """Those that wait for nothing."""
        return [each for each in self.all_nodes() if not self.dag.graph.has_parents(each)]

    def terminal(self) -> list[int]:
        """Those that nothing waits for."""
        return [each for each in self.all_nodes() if not self.dag.graph.has_children(each)]


def joined(directory: str, path: str) -> str:
    """A path seen from a directory."""
    return path if not directory or path.startswith("/") else f"{directory}/{path}"


def number_of(word: str, what: str, statement: Statement, least: int | None = None, most: int | None = None) -> int:
    """An integer of a statement.

    Raises:
        DagError: it is none, or is out of range.
    """
    digits = word[1:] if word[:1] in "+-" else word
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 10):
        raise statement.refuse(f"{what} is {word!r}", "write an integer")
    value = int(word)
    if least is not None and value < least:
        raise statement.refuse(f"{what} is {value}", f"the least is {least}")
    if most is not None and value > most:
        raise statement.refuse(f"{what} is {value}", f"the most is {most}")
    return value


def once(place: Place | None, statement: Statement, what: str) -> None:
    """Refuse a second one of what there can be only one of."""
    if place is not None:
        raise DagError(statement.place, f"there is a second {what} (the first: {place[0]}, line {place[1]})",
                       "a DAG has one at most")
