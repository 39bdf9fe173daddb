"""Where the event logs of a job are; for tools too, which load no reactor for it."""

from __future__ import annotations

import os
from functools import lru_cache

from condor_actors.classads import ClassAd

__all__ = ["LOG_ATTRIBUTES", "log_paths"]

LOG_ATTRIBUTES = ("UserLog", "DAGManNodesLog")
"""The job's own log, and the one of the workflow it belongs to."""
REMEMBERED = 64


def log_paths(facts: ClassAd) -> tuple[str, ...]:
    """The logs of a job, each once; relative ones are below its initial working directory."""
    log, nodes, iwd = facts.find("userlog"), facts.find("dagmannodeslog"), facts.find("iwd")
    if log.__class__ is str and nodes is None and iwd.__class__ is str:
        return _absolute(iwd, log)
    logs = [path for name in LOG_ATTRIBUTES if (path := facts.get_str(name))]
    return _absolute(facts.get_str("Iwd", "/"), *logs)


@lru_cache(maxsize=REMEMBERED)
def _absolute(iwd: str, *logs: str) -> tuple[str, ...]:
    """Each once; runs of a cluster ask again and again."""
    return tuple(dict.fromkeys([os.path.join(iwd, path) for path in logs if path and path != "/dev/null"]))
