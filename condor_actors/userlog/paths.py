"""Where the event logs of a job are; for tools too, which load no reactor for it."""

from __future__ import annotations

import os

from condor_actors.classads import ClassAd

__all__ = ["LOG_ATTRIBUTES", "log_paths"]

LOG_ATTRIBUTES = ("UserLog", "DAGManNodesLog")
"""The job's own log, and the one of the workflow it belongs to."""


def log_paths(facts: ClassAd) -> tuple[str, ...]:
    """The logs of a job, each once; relative ones are below its initial working directory."""
    paths = [path for name in LOG_ATTRIBUTES if (path := facts.get_str(name)) and path != "/dev/null"]
    if not paths:
        return ()
    iwd = facts.get_str("Iwd", "/")
    return tuple(dict.fromkeys([os.path.join(iwd, path) for path in paths]))
