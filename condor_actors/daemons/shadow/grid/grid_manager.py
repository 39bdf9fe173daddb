"""What the grid manager of an owner has for all jobs together: Slurm's commands, other schedds, and the settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from condor_actors.actors.workers import InWorker, Workers
from condor_actors.config import Config
from condor_actors.cores.shadow.grid_events import GridSettings
from condor_actors.machine.grid.remote_schedd import RemoteSchedd
from condor_actors.machine.grid.shared_question import SharedQuestion
from condor_actors.machine.grid.slurm import Slurm, SlurmPlace
from condor_actors.userlog.writer import UserLogs

__all__ = ["GridEdges", "GridManager", "SharedSchedd", "no_grid"]

CONNECT_S = 120.0
"""For finding another schedd and connecting to it, beside the time for a question."""
ROOTS = "root's jobs are not handed to other batch systems; submit them as an ordinary user"


class SharedSchedd:
    """Another schedd, for all jobs of the owner.

    Args:
        reactor: its clock and threads.
        schedd: how it is spoken to.
        home: whose jobs it is asked for.
        at_once: so much is done there at a time.
        deadline_s: how long a question may take in all.

    Attributes:
        question: asks for all jobs that were handed on from here.
    """

    def __init__(self, reactor: Any, schedd: RemoteSchedd, home: str, at_once: int, deadline_s: float) -> None:
        self._schedd = schedd
        self._workers = Workers(reactor, deadline_s, most=at_once)
        self._asking = Workers(reactor, deadline_s, most=1)
        self.question = SharedQuestion(
            reactor, lambda: self._asking.run(schedd.call, lambda line: line.all_jobs(home)))

    def call(self, work: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Run ``work(line, ...)`` on a worker.  Fails with ``ScheddFailed``, and what ``work`` raises."""
        return self._workers.run(self._schedd.call, lambda line: work(line, *arguments))


@attrs.frozen(kw_only=True)
class GridEdges:
    """What a grid manager touches.

    Attributes:
        batch: Slurm's commands.
        schedds: another schedd by its name, its pool, and whose jobs it is asked for.
        settings: the administrator's.
        folder: where the folders of runs are.
        logs: user logs.
        in_thread: runs what touches the owner's files.
        problem: why this owner's jobs are not handed on; empty: they are.
    """

    batch: Slurm
    schedds: Callable[[str, str, str], SharedSchedd]
    settings: GridSettings
    folder: str
    logs: UserLogs
    in_thread: InWorker
    problem: str = ""


def no_grid() -> GridEdges:
    """Of hosts that hand no jobs on.

    Raises:
        LookupError: always.
    """
    raise LookupError("this shadow host hands no jobs to other batch systems")


class GridManager:
    """Makes its edges when the first job needs them: the host is its owner's by then.

    Args:
        config: the configuration.
        reactor: runs commands.
        logs, in_thread: as in `GridEdges`.
        environment: of the owner.
    """

    def __init__(self, config: Config, reactor: Any, logs: UserLogs, in_thread: InWorker,
                 environment: Callable[[], Mapping[str, str]]) -> None:
        self._config = config
        self._reactor = reactor
        self._logs = logs
        self._in_thread = in_thread
        self._environment = environment
        self._edges: GridEdges | None = None
        self._schedds: dict[tuple[str, str, str], SharedSchedd] = {}

    def edges(self) -> GridEdges:
        """The owner's."""
        if self._edges is None:
            self._edges = self._make()
        return self._edges

    def _make(self) -> GridEdges:
        config, environment = self._config, self._environment()
        place = SlurmPlace(
            commands=config.text("SLURM_BINPATH") or "", conf=config.text("SLURM_CONF") or "",
            deadline_s=config.seconds("GRIDMANAGER_GAHP_CALL_TIMEOUT"),
            at_once=config.integer("GRIDMANAGER_MAX_PENDING_REQUESTS"))
        folder = config.needed_text("GRIDMANAGER_FOLDER")
        home = environment.get("HOME", "/")
        folder = home + folder[1:] if folder == "~" or folder.startswith("~/") else folder
        settings = config.settings(GridSettings)
        problem = ROOTS if os.getuid() == 0 else "" if folder.startswith("/") else (
            f"GRIDMANAGER_FOLDER = {folder} is neither absolute nor below ~")
        return GridEdges(batch=Slurm(self._reactor, place, environment, os.getuid()), schedds=self._schedd,
                         settings=settings, folder=folder, logs=self._logs,
                         in_thread=self._in_thread, problem=problem)

    def _schedd(self, name: str, pool: str, home: str) -> SharedSchedd:
        found = self._schedds.get((name, pool, home))
        if found is None:
            timeout_s = self._config.seconds("GRIDMANAGER_GAHP_CALL_TIMEOUT")
            found = self._schedds[name, pool, home] = SharedSchedd(
                self._reactor, RemoteSchedd(self._config, name, pool, timeout_s), home,
                self._config.integer("GRIDMANAGER_MAX_PENDING_REQUESTS"), timeout_s + CONNECT_S)
        return found
