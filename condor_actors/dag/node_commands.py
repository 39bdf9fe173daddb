"""The commands that make nodes, and those that say something about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from condor_actors.dag.definitions import Kind, Node, Script, Variable
from condor_actors.dag.scope import ALL_NODES, Scope, joined, number_of, once
from condor_actors.dag.statements import Statement, keyword

__all__ = ["ABOUT_NODES", "MAKE_NODES", "USAGE"]

USAGE: Mapping[str, str] = {
    "JOB": "JOB NodeName SubmitDescription [DIR directory] [NOOP] [DONE]",
    "NODE": "NODE NodeName SubmitDescription [DIR directory] [NOOP] [DONE]",
    "FINAL": "FINAL NodeName SubmitDescription [DIR directory] [NOOP]",
    "PROVISIONER": "PROVISIONER NodeName SubmitDescription",
    "SERVICE": "SERVICE NodeName SubmitDescription",
    "SUBDAG": "SUBDAG EXTERNAL NodeName DagFileName [DIR directory] [NOOP] [DONE]",
    "SUBMIT-DESCRIPTION": "SUBMIT-DESCRIPTION DescriptionName {",
    "SCRIPT": "SCRIPT [DEFER status time] [DEBUG filename STDOUT|STDERR|ALL] PRE|POST|HOLD <NodeName | ALL_NODES>"
              " ExecutableName [arguments]",
    "PRE_SKIP": "PRE_SKIP <NodeName | ALL_NODES> non-zero-exit-code",
    "RETRY": "RETRY <NodeName | ALL_NODES> NumberOfRetries [UNLESS-EXIT value]",
    "ABORT-DAG-ON": "ABORT-DAG-ON <NodeName | ALL_NODES> AbortExitValue [RETURN DAGReturnValue]",
    "VARS": 'VARS <NodeName | ALL_NODES> [PREPEND | APPEND] macroname="string" [macroname2="string2" ...]',
    "PRIORITY": "PRIORITY <NodeName | ALL_NODES> PriorityValue",
    "CATEGORY": "CATEGORY <NodeName | ALL_NODES> CategoryName",
    "DONE": "DONE NodeName",
    "TOLERANCE": "TOLERANCE <NodeName | ALL_NODES> FailureValue[%] [FAIL-FAST | WAIT]",
    "SAVE_POINT_FILE": "SAVE_POINT_FILE NodeName [Filename]",
}
_VARIABLE = re.compile(r"""\s*((?:\+|[Mm][Yy]\.)?[A-Za-z_][A-Za-z0-9_]*)\s*=\s*"""
                       r"""(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+)(?!\S))""", re.DOTALL)
_ESCAPE = re.compile(r"""\\(["'\\])""")
_DEBUG_TYPES = ("STDOUT", "STDERR", "ALL")


def _need(statement: Statement, least: int, most: int = 1 << 30) -> list[str]:
    """The words of a statement, when their number is right."""
    words = statement.words
    if len(words) < least or len(words) > most:
        extra = f"{words[most]!r} is too much" if len(words) > most else "something is missing"
        raise statement.refuse(f"{statement.command}: {extra}", f"expected {USAGE[statement.command]}")
    return words


# ---- nodes


def _make(scope: Scope, statement: Statement, kind: Kind, words: list[str], allowed: tuple[str, ...]) -> Node:
    """A node, of its words from the name on."""
    inline = statement.inline
    rest = words[1:] if inline is not None else words[2:]
    node = scope.new_node(kind, words[0], "" if inline is not None else words[1], statement)
    node.inline = inline
    at = 0
    while at < len(rest):
        word = rest[at].upper()
        if word not in allowed:
            raise statement.refuse(f"{rest[at]!r} is none of {', '.join(allowed) or 'its words'}",
                                   f"expected {USAGE[statement.command]}")
        if word == "DIR":
            if at + 1 == len(rest):
                raise statement.refuse("DIR: the directory is missing", f"expected {USAGE[statement.command]}")
            if scope.reading.own_folders:
                raise statement.refuse("DIR cannot be used with -usedagdir", "leave one of the two out")
            node.directory = rest[at + 1]
            at += 1
        elif word == "NOOP":
            node.noop = True
        else:
            node.done = True
        at += 1
    node.directory = joined(scope.directory, node.directory) if node.directory else scope.directory
    return node


def _job(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1 if statement.inline is not None else 2)
    _make(scope, statement, Kind.JOB, words, ("DIR", "NOOP", "DONE"))


def _final(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1 if statement.inline is not None else 2)
    dag = scope.dag
    once(dag.nodes[dag.final].place if dag.final >= 0 else None, statement, "FINAL node")
    if scope.is_splice:
        raise statement.refuse("a splice cannot have a FINAL node", "put it into the DAG that has the splice")
    _make(scope, statement, Kind.FINAL, words, ("DIR", "NOOP"))
    dag.final = len(dag.nodes) - 1


def _provisioner(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1 if statement.inline is not None else 2)
    dag = scope.dag
    once(dag.nodes[dag.provisioner].place if dag.provisioner >= 0 else None, statement, "PROVISIONER node")
    if scope.is_splice:
        raise statement.refuse("a splice cannot have a PROVISIONER node", "put it into the DAG that has the splice")
    _make(scope, statement, Kind.PROVISIONER, words, ("DIR",))
    dag.provisioner = len(dag.nodes) - 1


def _service(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1 if statement.inline is not None else 2)
    if scope.is_splice:
        raise statement.refuse("a splice cannot have a SERVICE node", "put it into the DAG that has the splice")
    _make(scope, statement, Kind.SERVICE, words, ("DIR",))
    scope.dag.services.append(len(scope.dag.nodes) - 1)


def _subdag(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 3)
    if words[0].upper() != "EXTERNAL":
        raise statement.refuse(f"SUBDAG {words[0]}: there is only SUBDAG EXTERNAL", f"expected {USAGE['SUBDAG']}")
    _make(scope, statement, Kind.SUBDAG, words[1:], ("DIR", "NOOP", "DONE"))


def _description(scope: Scope, statement: Statement) -> None:
    if statement.inline is None or len(statement.words) != 1:
        raise statement.refuse("a name and then a description are expected",
                               f"expected {USAGE['SUBMIT-DESCRIPTION']}")
    name = statement.words[0]
    if name in scope.descriptions:
        raise statement.refuse(f"the description {name} is defined already", "give each a name of its own")
    scope.descriptions[name] = statement.inline


# ---- about nodes


def _script(scope: Scope, statement: Statement) -> None:
    words = list(_need(statement, 3))
    defer: tuple[int, int] | None = None
    debug = ("", "")
    if words[0].upper() == "DEFER" and len(words) > 3:
        defer = (number_of(words[1], "the status of DEFER", statement, 0, 255),
                 number_of(words[2], "the time of DEFER", statement, 0))
        del words[:3]
    if words[0].upper() == "DEBUG" and len(words) > 3:
        if words[2].upper() not in _DEBUG_TYPES:
            raise statement.refuse(f"DEBUG {words[1]} {words[2]}: {words[2]!r} is no type of output",
                                   f"write one of {', '.join(_DEBUG_TYPES)}")
        debug = (words[1], words[2].upper())
        del words[:3]
    when = words[0].lower()
    if when not in ("pre", "post", "hold"):
        raise statement.refuse(f"SCRIPT {words[0]}: a script is PRE, POST or HOLD", f"expected {USAGE['SCRIPT']}")
    if len(words) < 3:
        raise statement.refuse("SCRIPT: something is missing", f"expected {USAGE['SCRIPT']}")
    made = Script(tuple(words[2:]), defer, *debug)
    for node in scope.targets(words[1], statement):
        if getattr(node, when) is not None and keyword(words[1]) != ALL_NODES:
            scope.dag.warnings.append(
                f"{statement.place[0]}, line {statement.place[1]}: node {node.name} had a {when.upper()} script already"
                "; this one takes its place")
        setattr(node, when, made)


def _pre_skip(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    value = number_of(words[1], "the status of PRE_SKIP", statement, 1, 255)
    for node in scope.targets(words[0], statement):
        node.pre_skip = value


def _not_final(node: Node, statement: Statement) -> Node:
    if node.kind is Kind.FINAL:
        raise statement.refuse(f"{statement.command} cannot be said of the FINAL node ({node.name})",
                               "leave the line out")
    return node


def _retry(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 4)
    retries = number_of(words[1], "the number of retries", statement, 0)
    unless = None
    if len(words) > 2:
        if keyword(words[2]) != "UNLESS-EXIT" or len(words) < 4:
            raise statement.refuse(f"RETRY: {' '.join(words[2:])!r}", f"expected {USAGE['RETRY']}")
        unless = number_of(words[3], "the status of UNLESS-EXIT", statement)
    for node in scope.targets(words[0], statement):
        _not_final(node, statement)
        node.retries, node.unless_exit = retries, unless


def _abort_dag_on(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 4)
    value = number_of(words[1], "the status of ABORT-DAG-ON", statement)
    answer = None
    if len(words) > 2:
        if words[2].upper() != "RETURN" or len(words) < 4:
            raise statement.refuse(f"ABORT-DAG-ON: {' '.join(words[2:])!r}", f"expected {USAGE['ABORT-DAG-ON']}")
        answer = number_of(words[3], "the status of RETURN", statement, 0, 255)
    for node in scope.targets(words[0], statement):
        _not_final(node, statement).abort_on = (value, answer)


def _vars(scope: Scope, statement: Statement) -> None:
    name, _, rest = statement.text.partition(" ") if statement.words else ("", "", "")
    if "\t" in name:
        name, _, rest = statement.text.partition("\t")
    words = rest.split(None, 1)
    prepended = None
    if words and words[0].upper() in ("PREPEND", "APPEND"):
        prepended = words[0].upper() == "PREPEND"
        rest = words[1] if len(words) > 1 else ""
    made: list[Variable] = []
    at = 0
    while at < len(rest):
        found = _VARIABLE.match(rest, at)
        if found is None:
            raise statement.refuse(f'VARS: {rest[at:].strip()[:60]!r} is no macroname="string"',
                                   f"expected {USAGE['VARS']}")
        macro = found.group(1)
        if macro.lower().startswith("queue"):
            raise statement.refuse(f"VARS: the macro {macro} begins with queue", "give it another name")
        value = found[4] if found[4] is not None else _ESCAPE.sub(r"\1", found[2] if found[2] is not None else found[3])
        made.append(Variable("My." + macro[1:] if macro[0] == "+" else macro, value, prepended))
        at = found.end()
        if not rest[at:].strip():
            break
    if not made:
        raise statement.refuse("VARS: something is missing", f"expected {USAGE['VARS']}")
    names = {each.name.lower() for each in made}
    for node in scope.targets(name, statement):
        kept = node.variables
        if kept:
            again = [each.name for each in kept if each.name.lower() in names]
            scope.dag.warnings += [f"VAR {each} is already defined in node {node.name} (discovered at file "
                                   f'"{statement.place[0]}", line {statement.place[1]})' for each in again]
            kept = tuple(each for each in kept if each.name.lower() not in names)
        node.variables = (*kept, *made)


def _priority(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    value = number_of(words[1], "the priority", statement)
    for node in scope.targets(words[0], statement):
        _not_final(node, statement).priority = value


def _category(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 2)
    name = category_of(scope, words[1])
    for node in scope.targets(words[0], statement):
        _not_final(node, statement).category = name


def category_of(scope: Scope, name: str) -> str:
    """The full name of a category: a splice's own, unless it begins with ``+``, which belongs to the name."""
    return name if name.startswith("+") else scope.prefix + name


def _done(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1, 1)
    node = scope.node(words[0], statement)
    if node.kind is Kind.FINAL:
        raise statement.refuse(f"the FINAL node ({node.name}) always runs", "leave the line out")
    node.done = True


def _tolerance(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 2, 3)
    is_share = words[1].endswith("%")
    value = number_of(words[1].rstrip("%"), "the failures of TOLERANCE", statement, 0, 100 if is_share else None)
    fast = None
    if len(words) > 2:
        if keyword(words[2]) not in ("FAIL-FAST", "WAIT"):
            raise statement.refuse(f"TOLERANCE: {words[2]!r}", f"expected {USAGE['TOLERANCE']}")
        fast = keyword(words[2]) == "FAIL-FAST"
    for node in scope.targets(words[0], statement):
        node.tolerance, node.fails_fast = (value, is_share), fast


def _save_point(scope: Scope, statement: Statement) -> None:
    words = _need(statement, 1, 2)
    node = scope.node(words[0], statement)
    file = scope.file.rpartition("/")[2]
    node.save_file = words[1] if len(words) > 1 else f"{words[0]}-{file}.save"


Act = Callable[[Scope, Statement], None]
MAKE_NODES: Mapping[str, Act] = {
    "JOB": _job, "NODE": _job, "FINAL": _final, "PROVISIONER": _provisioner, "SERVICE": _service, "SUBDAG": _subdag,
    "SUBMIT-DESCRIPTION": _description,
}
ABOUT_NODES: Mapping[str, Act] = {
    "SCRIPT": _script, "PRE_SKIP": _pre_skip, "RETRY": _retry, "ABORT-DAG-ON": _abort_dag_on, "VARS": _vars,
    "PRIORITY": _priority, "CATEGORY": _category, "DONE": _done, "TOLERANCE": _tolerance,
    "SAVE_POINT_FILE": _save_point,
}
