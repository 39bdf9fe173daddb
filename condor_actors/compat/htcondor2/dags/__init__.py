"""``htcondor2.dags``: workflows written in Python, as layers of nodes, and their DAG files.

A DAG is made of *logical* nodes: a layer of jobs that share a submit description, or another DAG.  Edges between them
say which job waits for which.  `write_dag` writes the files that ``condor_submit_dag`` and ``Submit.from_dag`` take.
"""

from __future__ import annotations

from condor_actors.compat.htcondor2.dags import exceptions
from condor_actors.compat.htcondor2.dags.dag import DAG, DotConfig, NodeStatusFile
from condor_actors.compat.htcondor2.dags.edges import (
    BaseEdge,
    Grouper,
    JoinFactory,
    JoinNode,
    ManyToMany,
    OneToOne,
    Slicer,
)
from condor_actors.compat.htcondor2.dags.formatter import DEFAULT_SEPARATOR, NodeNameFormatter, SimpleFormatter
from condor_actors.compat.htcondor2.dags.node import (
    BaseNode,
    DAGAbortCondition,
    FinalNode,
    NodeLayer,
    Nodes,
    Script,
    SubDAG,
)
from condor_actors.compat.htcondor2.dags.rescue import find_rescue_file, rescue
from condor_actors.compat.htcondor2.dags.walk_order import WalkOrder
from condor_actors.compat.htcondor2.dags.writer import CONFIG_FILE_NAME, DEFAULT_DAG_FILE_NAME, write_dag

__all__ = [
    "CONFIG_FILE_NAME", "DAG", "DEFAULT_DAG_FILE_NAME", "DEFAULT_SEPARATOR", "BaseEdge", "BaseNode",
    "DAGAbortCondition", "DotConfig", "FinalNode", "Grouper", "JoinFactory", "JoinNode", "ManyToMany", "NodeLayer",
    "NodeNameFormatter", "NodeStatusFile", "Nodes", "OneToOne", "Script", "SimpleFormatter", "Slicer", "SubDAG",
    "WalkOrder", "exceptions", "find_rescue_file", "rescue", "write_dag",
]  # fmt: skip
