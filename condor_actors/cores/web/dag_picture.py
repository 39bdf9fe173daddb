"""The picture of a workflow: its nodes in levels with their states; of a large one, how many of each level are where.

Theory: DAGMan tells its job's ad what waits for what (:mod:`condor_actors.cores.workflow_picture`); a job's ad is its
owner's to write, so all of it is checked here and bounded again.  A node's level is one more than the highest of its
parents; within a level nodes stand in the order of the mean place of their parents, so that few lines cross.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.web.rows import LONGEST
from condor_actors.cores.workflow_picture import LETTERS, MOST_EDGES, MOST_LEVELS, MOST_NODES

__all__ = ["NODE_STATES", "dag_picture"]

NODE_STATES = (*LETTERS.values(), "other")
"""What a node may be."""
MOST_LETTERS = 64 * 1024
"""Of an attribute."""
MOST_COUNT = 10**9


def dag_picture(ad: ClassAd) -> dict[str, Any] | None:
    """What the page shows of the workflow that a job runs; None: it runs none, or does not tell."""
    graph, states = ad.get_str("DAGMan_Graph"), ad.get_str("DAGMan_NodeStates")
    if graph:
        return _nodes(_json(graph), states, _json(ad.get_str("DAGMan_NodeJobs")))
    return _levels(_json(ad.get_str("DAGMan_Levels")))


def _json(text: str) -> Any:
    if not text or len(text) > MOST_LETTERS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _nodes(given: Any, states: str, clusters: Any) -> dict[str, Any] | None:
    if not isinstance(given, list) or not 0 < len(given) <= MOST_NODES:
        return None
    names: list[str] = []
    parents: list[list[int]] = []
    levels: list[int] = []
    for at, item in enumerate(given):
        if not (isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], list)):
            return None
        above = [each for each in dict.fromkeys(each for each in item[1] if type(each) is int) if 0 <= each < at]
        names.append(item[0][:LONGEST])
        parents.append(above)
        levels.append(1 + max((levels[each] for each in above), default=-1))
    rows = _rows(levels, parents)
    shown = [{"name": names[at], "state": LETTERS.get(states[at:at + 1], "other"), "level": levels[at], "row": rows[at],
              "job": _job(clusters, at)} for at in range(len(names))]
    edges = [[parent, at] for at, above in enumerate(parents) for parent in above]
    return {"total": len(shown), "counts": dict(Counter(node["state"] for node in shown)), "nodes": shown,
            "edges": edges[:MOST_EDGES], "levels": []}


def _job(clusters: Any, at: int) -> str:
    """The first of a node's last jobs; empty: it has had none, or the ad does not tell."""
    cluster = clusters[at] if isinstance(clusters, list) and at < len(clusters) else 0
    return f"{cluster}.0" if type(cluster) is int and 0 < cluster <= MOST_COUNT else ""


def _rows(levels: list[int], parents: list[list[int]]) -> list[int]:
    """The place of each node within its level."""
    rows = [0] * len(levels)
    by_level: dict[int, list[int]] = {}
    for at, level in enumerate(levels):
        by_level.setdefault(level, []).append(at)
    for _, members in sorted(by_level.items()):
        means = {at: sum(rows[each] for each in parents[at]) / len(parents[at]) if parents[at] else at
                 for at in members}
        for row, at in enumerate(sorted(members, key=lambda each: (means[each], each))):
            rows[at] = row
    return rows


def _levels(given: Any) -> dict[str, Any] | None:
    if not isinstance(given, list) or not 0 < len(given) <= MOST_LEVELS:
        return None
    levels: list[dict[str, int]] = []
    for item in given:
        if not isinstance(item, dict):
            return None
        levels.append({LETTERS[letter]: count for letter, count in item.items()
                       if letter in LETTERS and type(count) is int and 0 < count <= MOST_COUNT})
    whole: Counter[str] = Counter()
    for level in levels:
        whole.update(level)
    return {"total": whole.total(), "counts": dict(whole), "nodes": [], "edges": [], "levels": levels}
