"""What a DAG file says: nodes, their scripts and settings, and what holds for the whole DAG.

A DAG can have some hundred thousand nodes, so a node has slots, and its lists are there only where something is in
them.
"""

from __future__ import annotations

import enum

import attrs

from condor_actors.dag.errors import Place
from condor_actors.dag.graph import Graph

__all__ = ["Dag", "Dot", "Kind", "Node", "Script", "StatusFile", "Variable"]


class Kind(enum.IntEnum):
    """What a node is for."""

    JOB = 0
    SUBDAG = 1
    FINAL = 2
    PROVISIONER = 3
    SERVICE = 4


@attrs.frozen(slots=True)
class Script:
    """A program that runs on the submit machine before or after a node's jobs, or when one of them is held.

    Attributes:
        words: the program and its arguments; ``$NODE`` and its like are still in them.
        defer: (exit status, seconds): with this status it is run again after at least so long; None: never.
        debug_file: where its output goes; empty: nowhere.
        debug_type: ``STDOUT``, ``STDERR`` or ``ALL``.
    """

    words: tuple[str, ...]
    defer: tuple[int, int] | None = None
    debug_file: str = ""
    debug_type: str = ""


@attrs.frozen(slots=True)
class Variable:
    """A macro for a node's submit description; ``prepended`` None: as DAGMAN_DEFAULT_APPEND_VARS says."""

    name: str
    value: str
    prepended: bool | None = None


@attrs.define(slots=True, eq=False)
class Node:
    """A node as written.

    Attributes:
        name: with the names of the splices that it is in (``S+A``).
        description: the submit file, or the DAG file of a SUBDAG; ``inline``: the description itself, else None.
        directory: where it is submitted and its scripts run; empty: the DAG's own.
        place: where it is defined.
        tolerance: (number, whether it is a percentage) of failed jobs that are no failure; None: as configured.
        fails_fast: whether the other jobs are removed then; None: as configured.
        abort_on: (exit status, status of the whole DAG or None).
        save_file: what is written when it first starts; None: nothing, empty: a name made of the node's.
    """

    name: str
    kind: Kind
    description: str
    place: Place
    inline: str | None = None
    directory: str = ""
    noop: bool = False
    done: bool = False
    variables: tuple[Variable, ...] = ()
    pre: Script | None = None
    post: Script | None = None
    hold: Script | None = None
    pre_skip: int | None = None
    retries: int = 0
    unless_exit: int | None = None
    priority: int = 0
    category: str = ""
    abort_on: tuple[int, int | None] | None = None
    save_file: str | None = None
    tolerance: tuple[int, bool] | None = None
    fails_fast: bool | None = None


@attrs.frozen
class Dot:
    """A drawing of the DAG for graphviz: its file, whether it is drawn again as things change, whether a new file is
    made each time, and a file whose text is put into it."""

    file: str
    updates: bool = False
    overwrites: bool = True
    header: str = ""


@attrs.frozen
class StatusFile:
    """A file of the nodes' states: its name, the seconds between two writings, whether it is written without change."""

    file: str
    least_s: int = 60
    always: bool = False


@attrs.define(eq=False)
class Dag:
    """One DAG, of one or several files.

    Attributes:
        files: as given; the first is the primary one.
        nodes: all of them in order; ``by_name``: their indices; ``graph``: what waits for what.
        limits: MAXJOBS, by category.
        environment_names, environment: ENV GET and ENV SET; ``attributes``: SET_JOB_ATTR, name and expression.
        rejected: where REJECT stands; None: nowhere.
        save_files: (node, file) where the file belongs to another DAG file than the primary.
        warnings: sentences about what is allowed but strange.
    """

    files: tuple[str, ...]
    nodes: list[Node] = attrs.Factory(list)
    by_name: dict[str, int] = attrs.Factory(dict)
    graph: Graph = attrs.Factory(Graph)
    limits: dict[str, int] = attrs.Factory(dict)
    final: int = -1
    provisioner: int = -1
    services: list[int] = attrs.Factory(list)
    config: str = ""
    environment_names: list[str] = attrs.Factory(list)
    environment: list[str] = attrs.Factory(list)
    attributes: dict[str, str] = attrs.Factory(dict)
    dot: Dot | None = None
    status_file: StatusFile | None = None
    jobstate_log: str = ""
    rejected: Place | None = None
    warnings: list[str] = attrs.Factory(list)

    @property
    def ordinary(self) -> int:
        """How many nodes the DAG is made of, the final one not counted, services neither."""
        return len(self.nodes) - len(self.services) - (self.final >= 0)

    def parents(self, node: int) -> list[str]:
        """The names of a node's parents."""
        return [self.nodes[each].name for each in self.graph.parents_of(node)]
