"""Reads DAG files: the files of one DAG, what they include, and their splices.

A mistake names file and line, the value that was found, and what to write instead; a cycle is shown with the lines of
its edges.  **Source**: the manual, "DAGMan Quick Reference" and "DAGMan Using Other DAGs".
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from condor_actors.dag.dag_commands import ABOUT_THE_DAG, EDGES
from condor_actors.dag.dag_commands import USAGE as DAG_USAGE
from condor_actors.dag.definitions import Dag, Kind
from condor_actors.dag.errors import DagError
from condor_actors.dag.graph import FIRST_JOIN
from condor_actors.dag.node_commands import ABOUT_NODES, MAKE_NODES
from condor_actors.dag.scope import Reading, Scope, joined
from condor_actors.dag.statements import Statement, statements

__all__ = ["MOST_NESTED", "apply_rescue", "read_dag", "refuse_cycle"]

MOST_NESTED = 100
"""So many files may lead to one another by INCLUDE and SPLICE."""
_RESCUE = frozenset({"DONE", "RETRY"})
_LATER = {**ABOUT_NODES, **ABOUT_THE_DAG}
_KNOWN = [*MAKE_NODES, *_LATER, *EDGES, "SPLICE", "INCLUDE"]


def read_dag(files: Sequence[str], reading: Reading, *, munges: bool = True) -> Dag:
    """The DAG of one or several files.

    Args:
        files: their paths; the first is the primary one.
        reading: how they are read.
        munges: whether the nodes of several files get the file's number and a dot before their names.

    Raises:
        DagError: the first mistake; cycles are looked for by `refuse_cycle`.
    """
    dag = Dag(tuple(files))
    for number, file in enumerate(files):
        prefix = f"{number}." if munges and len(files) > 1 else ""
        directory = file.rpartition("/")[0] if reading.own_folders else ""
        reading.carry_out(_read_scope, Scope(dag, reading, file, prefix, directory, above=(file,)))
    if not dag.nodes and not reading.mistakes:
        reading.carry_out(_no_nodes, files[0])
    return dag


def refuse_cycle(dag: Dag) -> None:
    """Raises:
        DagError: nodes wait for one another in a circle; it says which, and where that is written.
    """
    found = dag.graph.cycle()
    if not found:
        return
    names = [dag.nodes[number].name for number, _ in found if number < FIRST_JOIN]
    places = list(dict.fromkeys(place for _, place in found if place[1]))
    said = ", ".join(f"{file}, line {line}" for file, line in places)
    raise DagError(places[0] if places else (dag.files[0], 0), f"there is a cycle: {' -> '.join([*names, names[0]])}",
                   f"take out one of its edges: {said}")


def apply_rescue(dag: Dag, text: str, file: str) -> None:
    """Mark as done what a rescue file says is done, and set the retries that are left.

    Raises:
        DagError: it is no rescue file, or one of another DAG.
    """
    scope = Scope(dag, Reading(lambda _path: "", any_characters=True), file)
    scope.nodes = list(range(len(dag.nodes)))
    for statement in statements(text, file):
        if statement.command not in _RESCUE:
            raise statement.refuse(f"{statement.command} does not belong into a rescue file",
                                   "only DONE and RETRY do; submit a whole DAG as a DAG file of its own")
        ABOUT_NODES[statement.command](scope, statement)


def _no_nodes(file: str) -> None:
    raise DagError((file, 0), "there are no nodes", "define at least one with JOB")


def _unknown(command: str, statement: Statement) -> None:
    close = difflib.get_close_matches(command, _KNOWN, 1)
    raise statement.refuse(f"{command} is no command of a DAG file",
                           f"did you mean {close[0]}?" if close else "a comment begins with #")


def _read_scope(scope: Scope) -> None:
    """Read a file in three rounds."""
    carry_out = scope.reading.carry_out
    about: list[Statement] = []
    edges: list[Statement] = []
    for statement in _with_included(scope, scope.file, scope.above):
        command = statement.command
        make = MAKE_NODES.get(command)
        if make is not None:
            carry_out(make, scope, statement)
        elif command in _LATER:
            about.append(statement)
        elif command in EDGES:
            edges.append(statement)
        elif command == "SPLICE":
            carry_out(_splice, scope, statement)
        else:
            carry_out(_unknown, command, statement)
    carry_out(_describe, scope)
    for statement in about:
        carry_out(_LATER[statement.command], scope, statement)
    for statement in edges:
        carry_out(EDGES[statement.command], scope, statement)
    scope.ends = (scope.initial(), scope.terminal()) if scope.is_splice else ([], [])


def _with_included(scope: Scope, file: str, above: tuple[str, ...]) -> Iterator[Statement]:
    """The statements of a file, with those of the files that it includes in their places."""
    path = file if file == scope.file else joined(scope.directory, file)
    try:
        text = scope.reading.read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise DagError((path, 0), f"it cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for statement in statements(text, file):
        if statement.command != "INCLUDE":
            yield statement
            continue
        if len(statement.words) != 1:
            raise statement.refuse("INCLUDE: one file is expected", f"expected {DAG_USAGE['INCLUDE']}")
        included = statement.words[0]
        _nest(statement, included, above)
        yield from _with_included(scope, included, (*above, included))


def _nest(statement: Statement, file: str, above: tuple[str, ...]) -> None:
    if file in above:
        raise statement.refuse(f"{file} comes to itself: {' -> '.join([*above[above.index(file):], file])}",
                               f"take this {statement.command} out")
    if len(above) >= MOST_NESTED:
        raise statement.refuse(f"more than {MOST_NESTED} files lead to one another", "is there a circle?")


def _splice(scope: Scope, statement: Statement) -> None:
    words = statement.words
    if len(words) not in (2, 4) or (len(words) == 4 and words[2].upper() != "DIR"):
        raise statement.refuse("SPLICE: a name, a file, and perhaps DIR and a directory are expected",
                               f"expected {DAG_USAGE['SPLICE']}")
    name, file = words[:2]
    scope.check_name(name, statement)
    if scope.prefix + name in scope.dag.by_name:
        raise statement.refuse(f"{name} is the name of a node already", "give each a name of its own")
    directory = joined(scope.directory, words[3]) if len(words) == 4 else scope.directory
    path = joined(directory, file)
    _nest(statement, path, scope.above)
    inner = Scope(scope.dag, scope.reading, path, f"{scope.prefix}{name}+", directory, is_splice=True,
                  above=(*scope.above, path))
    scope.splices[name] = inner
    _read_scope(inner)


def _describe(scope: Scope) -> None:
    """Nodes that name a description of this file get it."""
    for name in scope.descriptions:
        if scope.prefix + name in scope.dag.by_name:
            node = scope.dag.nodes[scope.dag.by_name[scope.prefix + name]]
            raise DagError(node.place, f"{name} is the name of a node and of a SUBMIT-DESCRIPTION",
                           "give each a name of its own")
    if scope.descriptions:
        for node in map(scope.dag.nodes.__getitem__, scope.nodes):
            if node.kind is not Kind.SUBDAG and node.inline is None and node.description in scope.descriptions:
                node.inline = scope.descriptions[node.description]
