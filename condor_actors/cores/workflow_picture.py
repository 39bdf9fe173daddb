"""How a DAG's job tells its ad what waits for what, and where each node is: what DAGMan writes and the page reads.

=====================  ==============================================================================================
attribute              says
=====================  ==============================================================================================
``DAGMan_Graph``       of a small DAG, as JSON: ``[name, [parents]]`` for each node, parents first, by their places
``DAGMan_NodeStates``  of the same nodes, a letter each (:data:`LETTERS`)
``DAGMan_NodeJobs``    of the same nodes, as JSON: the cluster of each one's last jobs, 0 for none
``DAGMan_Levels``      of any other, as JSON: for each level (nodes that are equally far from the beginning) how many
                       nodes are in which state, by letter
=====================  ==============================================================================================
"""

from __future__ import annotations

__all__ = ["LETTERS", "MOST_EDGES", "MOST_LETTERS", "MOST_LEVELS", "MOST_NODES"]

MOST_NODES = 300
"""Of a DAG that is told node by node; a larger one is told by levels."""
MOST_EDGES = 2_000
MOST_LETTERS = 16 * 1024
"""Of ``DAGMan_Graph``."""
MOST_LEVELS = 200
"""With more, neighbours are one."""

LETTERS = {
    "w": "waiting", "r": "ready", "p": "pre-script", "q": "queued", "x": "running", "h": "held", "o": "post-script",
    "d": "done", "f": "failed", "u": "futile",
}
"""What the letters mean."""
