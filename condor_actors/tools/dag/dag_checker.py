"""condor_dag_checker: find what is wrong with DAG files before they are submitted.

All mistakes are shown, each with file and line, and a cycle with the lines of its edges.  The status is 0 when there
are none, 1 when there are some, 2 when the command could not do its work.

**Source**: the manual, condor_dag_checker.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence

import attrs

from condor_actors.config import Config
from condor_actors.dag.definitions import Dag, Kind, Node
from condor_actors.dag.errors import DagError
from condor_actors.dag.reader import read_dag, refuse_cycle
from condor_actors.dag.scope import Reading, joined
from condor_actors.tools.dag.dag_files import read_text
from condor_actors.tools.dag.node_description import describe, folder_of
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run
from condor_actors.tools.lib.contact import load
from condor_actors.tools.lib.flags import Flag, Given

FLAGS = (
    Flag("help"),
    Flag("version", 4),
    Flag("usedagdir", 3),
    Flag("allowillegalchars", 5),
    Flag("nojoinnodes", 6),
    Flag("joinnodes", 4),
    Flag("json", 4),
    Flag("statistics", 4),
    Flag("checkexternalfiles", 8),
    Flag("checksubdags", 8),
    Flag("checkjdl", 8),
    Flag("checkscripts", 8),
    Flag("strict", 6),
)
FAILED = 2


@attrs.frozen
class _Wanted:
    """What is looked at beside the DAG files themselves."""

    config: Config
    reading: Reading
    descriptions: bool
    scripts: bool
    subdags: bool
    strict: bool


def main() -> int:
    """Entry of ``condor_dag_checker``."""
    return run(FLAGS, "condor_dag_checker", _answer, words=Words(
        unknown="ERROR: Unknown command line option '{word}'\n{usage}", unknown_status=FAILED))


def _answer(given: Sequence[Given]) -> int:
    names = {item.name for item in given}
    files = operands_of(given)
    if not files:
        raise ToolError(f"ERROR: No DAG file(s) provided for linting.\n{reminder_of('condor_dag_checker')}", FAILED)
    if {"json", "statistics"} <= names:
        raise ToolError("ERROR: Multiple print styles specified: -json and -statistics", FAILED)
    config = load("SUBMIT")
    joins = "joinnodes" in names or ("nojoinnodes" not in names and config.boolean("DAGMAN_USE_JOIN_NODES"))
    reading = Reading(read_text, joins=joins, own_folders="usedagdir" in names,
                      any_characters="allowillegalchars" in names
                      or config.boolean("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS"))
    everything = "checkexternalfiles" in names
    wanted = _Wanted(config, reading, everything or "checkjdl" in names, everything or "checkscripts" in names,
                     everything or "checksubdags" in names, "strict" in names)
    worst = 0
    results = []
    for file in files:
        mistakes, facts = check(file, wanted)
        worst = max(worst, int(bool(mistakes)))
        if "json" in names:
            results.append(_as_json(file, mistakes, facts))
        else:
            _print(file, mistakes, facts if "statistics" in names else {})
    if results:
        print(json.dumps(results, indent=2))
    return worst


def check(file: str, wanted: _Wanted, above: tuple[str, ...] = ()) -> tuple[list[DagError], dict[str, object]]:
    """The mistakes of a DAG file, and figures of the DAG; ``above``: the DAG files whose SUBDAG this one is."""
    mistakes: list[DagError] = []
    dag = read_dag([file], attrs.evolve(wanted.reading, mistakes=mistakes))
    cyclic = ""
    try:
        refuse_cycle(dag)
    except DagError as error:
        mistakes.append(error)
        cyclic = error.problem
    if dag.rejected is not None:
        mistakes.append(DagError(dag.rejected, "the DAG is marked with REJECT", "take the line out to run it"))
    if dag.config and not os.path.isfile(dag.config):
        mistakes.append(DagError((file, 0), f"the configuration file {dag.config} does not exist"))
    for node in dag.nodes:
        mistakes += _outside(node, wanted, (*above, file))
    return mistakes, _facts(dag, cyclic)


def _outside(node: Node, wanted: _Wanted, above: tuple[str, ...]) -> list[DagError]:
    """What is wrong with the files of a node."""
    folder = folder_of(node, os.getcwd())
    mistakes: list[DagError] = []
    if wanted.scripts:
        for script in (node.pre, node.post, node.hold):
            if script is not None and not shutil.which(joined(folder, script.words[0])) and not (
                    "/" not in script.words[0] and shutil.which(script.words[0])):
                mistakes.append(DagError(node.place, f"the script {script.words[0]} of node {node.name} is no program",
                                         "make it executable, or correct its name"))
    if node.noop:
        return mistakes
    path = joined(folder, node.description)
    if node.inline is None and (wanted.subdags if node.kind is Kind.SUBDAG else wanted.descriptions):
        if not os.path.exists(path):
            if wanted.strict:
                mistakes.append(DagError(node.place, f"{node.description} of node {node.name} does not exist"))
            return mistakes
        if node.kind is Kind.SUBDAG:
            if path in above:
                mistakes.append(DagError(node.place, f"the DAG {node.description} comes to itself"))
            else:
                mistakes += check(path, wanted, above)[0]
    if wanted.descriptions and node.kind is not Kind.SUBDAG:
        mistakes += _description(node, folder, wanted)
    return mistakes


def _description(node: Node, folder: str, wanted: _Wanted) -> list[DagError]:
    """What is wrong with the submit description of a node."""
    from condor_actors.submit import SubmitError
    from condor_actors.tools.lib.submission import environment

    macros = {"JOB": node.name, "RETRY": "0", "DAG_STATUS": "0", "FAILED_COUNT": "0", "DAGManJobId": "1",
              "DAG_PARENT_NAMES": ""}
    try:
        describe(node, attrs.evolve(environment(wanted.config), cwd=folder), lambda: 1, macros)
    except SubmitError as error:
        return [DagError(node.place, f"the description of node {node.name}: {error}")]
    except OSError as error:
        return [DagError(node.place, f"the description of node {node.name}: {error.filename}: {error.strerror}")]
    return []


def _facts(dag: Dag, cyclic: str) -> dict[str, object]:
    height, width = (0, 0) if cyclic else dag.graph.shape(len(dag.nodes))
    facts: dict[str, object] = {
        "TotalNodes": len(dag.nodes), "NumNodes": dag.ordinary, "NumServiceNodes": len(dag.services),
        "NumSubDAGs": sum(node.kind is Kind.SUBDAG for node in dag.nodes), "NumJoinNodes": dag.graph.joins,
        "NumArcs": dag.graph.edges, "FinalNode": dag.nodes[dag.final].name if dag.final >= 0 else "",
        "ProvisionerNode": dag.nodes[dag.provisioner].name if dag.provisioner >= 0 else "",
        "IsCyclic": bool(cyclic), "DetectedCycle": cyclic, "GraphHeight": height, "GraphWidth": width,
    }
    return {name: value for name, value in facts.items() if value != ""}


def _as_json(file: str, mistakes: Sequence[DagError], facts: dict[str, object]) -> dict[str, object]:
    found: dict[str, object] = {"DagFile": file}
    if mistakes:
        found["NumErrors"] = len(mistakes)
        found["Errors"] = [{"Reason": error.problem, "Remedy": error.remedy, "SourceFile": error.file,
                            "SourceLine": error.line} for error in mistakes]
    return {**found, **facts}


def _print(file: str, mistakes: Sequence[DagError], facts: dict[str, object]) -> None:
    if mistakes:
        print(f"Detected {len(mistakes)} issue{'s' * (len(mistakes) > 1)} in {file}:")
        for error in mistakes:
            print(f"\t* {error}")
    elif not facts:
        print(f"No issues detected in {file}")
    if facts:
        print(f"=== {file} statistics ===")
        for name, value in facts.items():
            print(f"{name} = {str(value).lower() if isinstance(value, bool) else value}")
        print()



if __name__ == "__main__":
    sys.exit(main())
