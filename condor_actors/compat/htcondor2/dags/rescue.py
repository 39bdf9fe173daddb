"""What a rescue file of DAGMan says is done, into a DAG."""

from __future__ import annotations

import re
from pathlib import Path

from condor_actors.compat.htcondor2.dags.dag import DAG
from condor_actors.compat.htcondor2.dags.exceptions import NoRescueFileFound
from condor_actors.compat.htcondor2.dags.formatter import NodeNameFormatter, SimpleFormatter
from condor_actors.compat.htcondor2.dags.writer import DEFAULT_DAG_FILE_NAME


def rescue(dag: DAG, rescue_file: Path, formatter: NodeNameFormatter | None = None) -> None:
    """Mark as done what a rescue file says is done, and nothing else.

    Args:
        dag: whose nodes are marked.
        rescue_file: of a DAG with the same nodes.
        formatter: with which its nodes were named.
    """
    _rescue(dag, Path(rescue_file).read_text(), formatter or SimpleFormatter())


def _rescue(dag: DAG, rescue_file_text: str, formatter: NodeNameFormatter) -> None:
    done: dict[str, dict[int, bool]] = {}
    for line in rescue_file_text.splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == "DONE":
            layer, number = formatter.parse(words[1])
            done.setdefault(layer, {})[number] = True
    for node in dag.nodes:
        node.done = done.get(node.name, {})


def find_rescue_file(dag_dir: Path, dag_file_name: str = DEFAULT_DAG_FILE_NAME) -> Path | None:
    """The newest rescue file in a folder, which DAGMan would take.

    Raises:
        NoRescueFileFound: there is none.
    """
    found = [path for path in Path(dag_dir).iterdir()
             if re.fullmatch(re.escape(dag_file_name) + r"\.rescue[0-9]+", path.name)]
    if not found:
        raise NoRescueFileFound(f"there is no rescue file of {dag_file_name} in {dag_dir}")
    return max(found, key=lambda path: int(path.name.rpartition(".rescue")[2]))
