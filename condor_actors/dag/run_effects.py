"""What a DAG that runs wants done: orders to the program around it."""

from __future__ import annotations

import attrs

__all__ = ["Ended", "KillScripts", "Note", "RemoveJobs", "RunEffect", "RunScript", "SaveFile", "SetTimer", "Submit",
           "WriteRescue"]


@attrs.frozen(slots=True)
class RunScript:
    """Run a script of a node: ``pre``, ``post`` or ``hold``."""

    node: int
    which: str


@attrs.frozen(slots=True)
class Submit:
    """Submit a node's jobs; ``cluster``: a number that was reserved for it before a crash, 0: none."""

    node: int
    cluster: int = 0


@attrs.frozen(slots=True)
class RemoveJobs:
    """Remove jobs of these clusters."""

    clusters: tuple[int, ...]
    reason: str


@attrs.frozen(slots=True)
class KillScripts:
    """Kill all scripts that run."""


@attrs.frozen(slots=True)
class SetTimer:
    """Tell `ScriptDue` (``pre``, ``post``) or `SubmitDue` (``submit``) of a node after a time."""

    node: int
    what: str
    delay_s: float


@attrs.frozen(slots=True)
class SaveFile:
    """Write the save file of a node."""

    node: int


@attrs.frozen(slots=True)
class Note:
    """Something for people and for the job state log: an event of a node by its name there."""

    node: int
    what: str
    cluster: int = 0
    proc: int = 0
    status: int = 0


@attrs.frozen(slots=True)
class WriteRescue:
    """Write a rescue file now: the final node begins, and the nodes before it have not all succeeded."""


@attrs.frozen(slots=True)
class Ended:
    """The DAG is over.

    Attributes:
        status: the exit status.
        rescue: whether a rescue file is to be written.
        services: clusters of services, to be removed.
    """

    status: int
    rescue: bool
    services: tuple[int, ...]


RunEffect = RunScript | Submit | RemoveJobs | KillScripts | SetTimer | SaveFile | Note | WriteRescue | Ended
