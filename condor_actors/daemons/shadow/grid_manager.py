"""What the grid manager of an owner has for all jobs together: the batch system's commands and the settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from condor_actors.actors.workers import InWorker
from condor_actors.config import Config
from condor_actors.cores.shadow.grid_events import GridSettings
from condor_actors.machine.grid.slurm import Slurm, SlurmPlace
from condor_actors.userlog.writer import UserLogs

__all__ = ["GridEdges", "GridManager", "no_grid"]

ROOTS = "root's jobs are not handed to other batch systems; submit them as an ordinary user"


@attrs.frozen(kw_only=True)
class GridEdges:
    """What a grid manager touches.

    Attributes:
        batch: the batch system's commands.
        settings: the administrator's.
        folder: where the folders of runs are.
        logs: user logs.
        in_thread: runs what touches the owner's files.
        problem: why this owner's jobs are not handed on; empty: they are.
    """

    batch: Slurm
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
        return GridEdges(batch=Slurm(self._reactor, place, environment, os.getuid()), settings=settings, folder=folder,
                         logs=self._logs, in_thread=self._in_thread, problem=problem)
