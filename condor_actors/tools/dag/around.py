"""What the actor of a DAG works with: the schedd, files, scripts, and the habits of its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from condor_actors.tools.dag.run_files import Ending, RunFiles
from condor_actors.tools.dag.script_runner import ScriptRunner
from condor_actors.tools.dag.submitter import Submitter
from condor_actors.tools.dag.throttles import Throttles

__all__ = ["Around"]


@attrs.frozen(kw_only=True)
class Around:
    """What the actor works with.

    Attributes:
        submitter, files: what blocks.
        in_schedd, in_files: run a function of theirs on its thread.
        scripts: starts them; it is made with functions that lead to the actor.
        sync: waits until the journal is on disk.
        macros: of all nodes' descriptions.
        cwd: where submissions happen.
        throttles: the limits that the run has.
        interval_s: between two updates of the ad and the status file; ``table_s``: between two tables.
        removes: whether a DAG that is removed removes its jobs.
        ending: what is known of the end beforehand.
        over: called with the exit status when all is done.
    """

    submitter: Submitter
    files: RunFiles
    in_schedd: Callable[..., Deferred[Any]]
    in_files: Callable[..., Deferred[Any]]
    scripts: Callable[[Callable[[int, str, int], None], Callable[[str], None]], ScriptRunner]
    sync: Callable[[], None]
    macros: Mapping[str, str]
    records_retry: bool
    cwd: str
    throttles: Throttles
    interval_s: float
    table_s: float
    removes: bool
    priority: int
    ending: Ending
    over: Callable[[int], None]
