"""Parameters of workflows: condor_submit_dag and condor_dagman."""

from __future__ import annotations

from condor_actors.config.parameter import boolean

ROWS = (
    boolean("DAGMAN_USE_JOIN_NODES", True, "Whether many parents and many children of one line share a join, so that"
            " there are m + n edges instead of m times n."),
    boolean("DAGMAN_ALLOW_ANY_NODE_NAME_CHARACTERS", False, "Whether the name of a node may have a +, which separates"
            " splices from their nodes."),
)  # fmt: skip
