"""The commands about the whole DAG, and those that connect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from condor_actors.dag.definitions import Dot, Kind, StatusFile
from condor_actors.dag.errors import Place
from condor_actors.dag.node_commands import category_of
from condor_actors.dag.scope import Scope, joined, number_of
from condor_actors.dag.statements import Statement, keyword

__all__ = ["ABOUT_THE_DAG", "EDGES", "USAGE"]

USAGE: Mapping[str, str] = {
    "PARENT": "[WEAK] PARENT ParentNodeName [ParentNodeName2 ...] CHILD ChildNodeName [ChildNodeName2 ...]",
    "WEAK": "WEAK PARENT ParentNodeName [ParentNodeName2 ...] CHILD ChildNodeName [ChildNodeName2 ...]",
    "SPLICE": "SPLICE SpliceName DagFileName [DIR directory]",
    "INCLUDE": "INCLUDE filename",
    "CONNECT": "CONNECT OutputSpliceName InputSpliceName",
    "PIN_IN": "PIN_IN NodeName PinNumber",
    "PIN_OUT": "PIN_OUT NodeName PinNumber",
    "MAXJOBS": "MAXJOBS CategoryName MaxJobsValue",
    "CONFIG": "CONFIG filename",
    "ENV": "ENV GET VAR-1 [VAR-2 ...], or ENV SET Key=Value;Key=Value; ...",
    "SET_JOB_ATTR": "SET_JOB_ATTR AttributeName = AttributeValue",
    "DOT": "DOT filename [UPDATE | DONT-UPDATE] [OVERWRITE | DONT-OVERWRITE] [INCLUDE dot-file-header]",
    "JOBSTATE_LOG": "JOBSTATE_LOG filename",
    "NODE_STATUS_FILE": "NODE_STATUS_FILE filename [minimumUpdateTime] [ALWAYS-UPDATE]",
    "REJECT": "REJECT",
}


def _need(statement: Statement, least: int, most: int = 1 << 30) -> list[str]:
    words = statement.words
    if not least <= len(words) <= most:
        extra = f"{words[most]!r} is too much" if len(words) > most else "something is missing"
        raise statement.refuse(f"{statement.command}: {extra}", f"expected {USAGE[statement.command]}")
    return words


# ---- edges


def _weak(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 4)
    if words[0].upper() != "PARENT":
        raise statement.refuse(f"WEAK {words[0]}: WEAK stands before PARENT", f"expected {USAGE['WEAK']}")
    _connect(scope, statement, words[1:], weak=True)


def _parent(scope: Scope, statement: Statement) -> None:
    _connect(scope, statement, _need(statement, 3), weak=False)


def _connect(scope: Scope, statement: Statement, words: list[str], *, weak: bool) -> None:
    upper = [word.upper() for word in words]
    if "CHILD" not in upper:
        raise statement.refuse("PARENT without CHILD", f"expected {USAGE['PARENT']}")
    at = upper.index("CHILD")
    if not words[:at] or not words[at + 1 :]:
        raise statement.refuse(f"no {'parents' if not words[:at] else 'children'} are named",
                               f"expected {USAGE['PARENT']}")
    parents = _ends(scope, statement, words[:at], is_parent=True)
    children = _ends(scope, statement, words[at + 1 :], is_parent=False)
    scope.dag.graph.connect(parents, children, statement.place, weak=weak, joins=scope.reading.joins)


def _ends(scope: Scope, statement: Statement, names: list[str], *, is_parent: bool) -> Sequence[int]:
    """The nodes that names stand for on one side of an edge: of a splice its last or its first ones."""
    dag, prefix = scope.dag, scope.prefix
    found: dict[int, None] = {}
    for name in names:
        number = dag.by_name.get(prefix + name)
        if number is not None and dag.nodes[number].kind in (Kind.JOB, Kind.SUBDAG):
            found[number] = None
            continue
        splice = scope.splices.get(name)
        if splice is None:
            node = scope.node(name, statement)
            raise statement.refuse(f"{node.name} is a {node.kind.name} node: nothing waits for it, nor it for anything",
                                   "leave it out")
        found.update(dict.fromkeys(splice.ends[1] if is_parent else splice.ends[0]))
    return list(found)


def _pin(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    number = number_of(words[1], "the number of the pin", statement, 1)
    node = scope.node(words[0], statement)
    pins = scope.pins[statement.command == "PIN_OUT"].setdefault(number, [])
    index = scope.dag.by_name[node.name]
    if index not in pins:
        pins.append(index)


def _splice_named(scope: Scope, name: str, statement: Statement) -> Scope:
    splice = scope.splices.get(name)
    if splice is None:
        is_node = scope.prefix + name in scope.dag.by_name
        raise statement.refuse(f"{name} is {'a node and ' if is_node else ''}no splice",
                               "CONNECT two splices of this file" + ("; for nodes use PARENT" if is_node else ""))
    return splice


def _connect_splices(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    source, target = (_splice_named(scope, word, statement) for word in words)
    outs, ins = source.pins[1], target.pins[0]
    for splice, pins, what in ((source, outs, "PIN_OUT"), (target, ins, "PIN_IN")):
        if not pins:
            raise statement.refuse(f"the splice {splice.prefix[:-1]} has no {what}", f"add {USAGE[what]} to its file")
        missing = [number for number in range(1, max(pins) + 1) if number not in pins]
        if missing:
            raise statement.refuse(f"the splice {splice.prefix[:-1]} has no {what} {missing[0]} but {max(pins)}",
                                   "number them from 1 without a gap")
    if len(outs) != len(ins):
        raise statement.refuse(f"{words[0]} has {len(outs)} PIN_OUT and {words[1]} has {len(ins)} PIN_IN",
                               "connected splices have as many of both")
    pinned = {node for pins in ins.values() for node in pins}
    loose = [scope.dag.nodes[each].name for each in target.ends[0] if each not in pinned]
    if loose:
        raise statement.refuse(f"{loose[0]} begins the splice {words[1]} and has no PIN_IN",
                               "every node without parents of a connected splice has one")
    for number, parents in outs.items():
        scope.dag.graph.connect(parents, ins[number], statement.place, joins=scope.reading.joins)


# ---- the whole


def _max_jobs(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    scope.dag.limits[category_of(scope, words[0])] = number_of(words[1], "MAXJOBS", statement, 1)


def _config(scope: Scope, statement: Statement) -> None:
    (file,) = _need(statement, 1, 1)
    if scope.is_splice:
        return
    file = joined(scope.directory, file)
    if scope.dag.config and scope.dag.config != file:
        raise statement.refuse(f"there is a second CONFIG: {file} beside {scope.dag.config}", "a DAG has one at most")
    scope.dag.config = file


def _env(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2)
    if words[0].upper() == "GET":
        names = [name for word in words[1:] for name in word.split(",") if name]
        if not scope.is_splice:
            scope.dag.environment_names += names
    elif words[0].upper() == "SET":
        if not scope.is_splice:
            scope.dag.environment.append(statement.text[len(words[0]) :].strip())
    else:
        raise statement.refuse(f"ENV {words[0]}: ENV is GET or SET", f"expected {USAGE['ENV']}")


def _attribute(scope: Scope, statement: Statement) -> None:
    name, equals, value = (part.strip() for part in statement.text.partition("="))
    if not equals or not value or not name.isidentifier():
        raise statement.refuse(f"{statement.text!r} is no assignment", f"expected {USAGE['SET_JOB_ATTR']}")
    if not scope.is_splice:
        scope.dag.attributes[name] = value


def _dot(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1)
    updates, overwrites, header = False, True, ""
    at = 1
    while at < len(words):
        word = keyword(words[at])
        if word in ("UPDATE", "DONT-UPDATE"):
            updates = word == "UPDATE"
        elif word in ("OVERWRITE", "DONT-OVERWRITE"):
            overwrites = word == "OVERWRITE"
        elif word == "INCLUDE" and at + 1 < len(words):
            at += 1
            header = words[at]
        else:
            raise statement.refuse(f"DOT: {words[at]!r}", f"expected {USAGE['DOT']}")
        at += 1
    if not scope.is_splice and scope.dag.dot is None:
        scope.dag.dot = Dot(words[0], updates, overwrites, header)


def _jobstate_log(scope: Scope, statement: Statement) -> None:
    (file,) = _need(statement, 1, 1)
    if scope.is_splice:
        return
    if scope.dag.jobstate_log:
        scope.dag.warnings.append(f"{statement.place[0]}, line {statement.place[1]}: there is a second JOBSTATE_LOG; "
                                  f"{scope.dag.jobstate_log} is written")
    else:
        scope.dag.jobstate_log = joined(scope.directory, file)


def _status_file(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1, 3)
    least_s, always = 60, False
    for word in words[1:]:
        if keyword(word) == "ALWAYS-UPDATE":
            always = True
        else:
            least_s = number_of(word, "the time of NODE_STATUS_FILE", statement, 0)
    if not scope.is_splice and scope.dag.status_file is None:
        scope.dag.status_file = StatusFile(joined(scope.directory, words[0]), least_s, always)


def _reject(scope: Scope, statement: Statement) -> None:
    _need(statement, 0, 0)
    place: Place = statement.place
    scope.dag.rejected = scope.dag.rejected or place


Act = Callable[[Scope, Statement], None]
EDGES: Mapping[str, Act] = {"PARENT": _parent, "WEAK": _weak, "CONNECT": _connect_splices}
ABOUT_THE_DAG: Mapping[str, Act] = {
    "PIN_IN": _pin, "PIN_OUT": _pin, "MAXJOBS": _max_jobs, "CONFIG": _config, "ENV": _env, "SET_JOB_ATTR": _attribute,
    "DOT": _dot, "JOBSTATE_LOG": _jobstate_log, "NODE_STATUS_FILE": _status_file, "REJECT": _reject,
}
