"""What happens to a DAG that runs, and each of it as a line of the journal.

Theory: a run is its DAG and the events that it was told, in order; the same events make the same run.  So what is kept
on disk are the events, a line each, and a run that was killed begins again by reading them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import attrs

__all__ = [
    "Began", "Change", "ClusterLeft", "Found", "Halted", "HoldEnded", "JobChanged", "JobEnded", "JobMade", "PostEnded",
    "PreEnded", "ProvisionerReady", "REMOVED", "Recovered", "Recovering", "RemovedByUser", "Reserved", "Resumed",
    "RunEvent", "SUBMIT_FAILED", "ScriptDue", "SubmitDue", "SubmitFailed", "Submitted", "ThrottlesSet", "event_of",
    "line_of",
]

SUBMIT_FAILED = -1001
REMOVED = -1002


class Change(str, enum.Enum):
    """What became of a job that has not ended."""

    IDLE = "i"
    RUNNING = "r"
    HELD = "h"


@attrs.frozen(slots=True)
class Began:
    """The DAG begins."""


@attrs.frozen(slots=True)
class PreEnded:
    """A node's PRE script ended with a status (a signal as its negative number)."""

    node: int
    status: int


@attrs.frozen(slots=True)
class PostEnded:
    """A node's POST script ended."""

    node: int
    status: int


@attrs.frozen(slots=True)
class HoldEnded:
    """A HOLD script of a node ended; nothing follows from how."""

    node: int


@attrs.frozen(slots=True)
class ScriptDue:
    """The time of DEFER is over for a script: ``pre``, ``post``."""

    node: int
    which: str


@attrs.frozen(slots=True)
class Reserved:
    """A node's jobs are about to be submitted with this cluster number.

    Attributes:
        is_late: whether the schedd makes the jobs as they are needed: `JobMade` tells of each.
    """

    node: int
    cluster: int
    is_late: bool = False


@attrs.frozen(slots=True)
class Submitted:
    """A node's jobs are in the queue."""

    node: int
    cluster: int
    jobs: int


@attrs.frozen(slots=True)
class JobMade:
    """A job of a cluster that makes them as they are needed is in the queue."""

    node: int
    cluster: int
    proc: int


@attrs.frozen(slots=True)
class ClusterLeft:
    """A cluster that makes its jobs as they are needed has left the queue.

    Attributes:
        jobs: how many it has made; -1: it is not said.
        is_whole: whether these were all.
    """

    node: int
    cluster: int
    jobs: int
    is_whole: bool


@attrs.frozen(slots=True)
class SubmitFailed:
    """A node's jobs could not be submitted; ``again``: it may help to try once more."""

    node: int
    again: bool


@attrs.frozen(slots=True)
class SubmitDue:
    """It is time to try a submission once more."""

    node: int


@attrs.frozen(slots=True)
class JobChanged:
    """A job of a node runs, waits, or is held."""

    node: int
    cluster: int
    proc: int
    change: Change


@attrs.frozen(slots=True)
class JobEnded:
    """A job of a node has ended: its status, a signal as its negative number, `REMOVED` when it was removed."""

    node: int
    cluster: int
    proc: int
    status: int


@attrs.frozen(slots=True)
class ProvisionerReady:
    """The provisioner says that its resources are there."""


@attrs.frozen(slots=True)
class Recovering:
    """What follows is taken from the jobs' event log: until `Recovered`, nothing is begun but what the log tells of."""


@attrs.frozen(slots=True)
class Recovered:
    """The log has told all; the run goes on."""


@attrs.frozen(slots=True)
class Found:
    """The log tells that a node's jobs were submitted.

    Attributes:
        cluster, jobs: 0: none could be submitted; for a cluster that makes its jobs as they are needed, ``jobs`` is 0.
    """

    node: int
    cluster: int
    jobs: int
    is_late: bool


@attrs.frozen(slots=True)
class Halted:
    """The halt file is there."""


@attrs.frozen(slots=True)
class Resumed:
    """The halt file is gone."""


@attrs.frozen(slots=True)
class RemovedByUser:
    """The DAG's own job is being removed."""


@attrs.frozen(slots=True)
class ThrottlesSet:
    """Other limits from now on; 0: none."""

    jobs: int
    idle: int
    pre: int
    post: int
    hold: int


RunEvent = (Began | PreEnded | PostEnded | HoldEnded | ScriptDue | Reserved | Submitted | SubmitFailed | SubmitDue
            | JobChanged | JobEnded | JobMade | ClusterLeft | Found | Recovering | Recovered | ProvisionerReady | Halted
            | Resumed | RemovedByUser | ThrottlesSet)
_LETTERS: dict[str, type[Any]] = {
    "B": Began, "P": PreEnded, "O": PostEnded, "L": HoldEnded, "D": ScriptDue, "V": Reserved, "S": Submitted,
    "F": SubmitFailed, "A": SubmitDue, "C": JobChanged, "E": JobEnded, "R": ProvisionerReady, "H": Halted,
    "U": Resumed, "X": RemovedByUser, "T": ThrottlesSet, "M": JobMade, "K": ClusterLeft, "N": Found,
    "Y": Recovering, "Z": Recovered,
}
_LETTER_OF = {kind: letter for letter, kind in _LETTERS.items()}
_FIELDS = {kind: tuple(each.name for each in attrs.fields(kind)) for kind in _LETTER_OF}
_NEEDED = {kind: sum(each.default is attrs.NOTHING for each in attrs.fields(kind)) for kind in _LETTER_OF}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "which": str, "change": Change, **dict.fromkeys(("again", "is_late", "is_whole"), lambda word: word == "1")}


def line_of(event: RunEvent) -> str:
    """An event as a line, without its end."""
    kind = type(event)
    words = [_LETTER_OF[kind]]
    for name in _FIELDS[kind]:
        value = getattr(event, name)
        words.append(value.value if isinstance(value, Change) else str(int(value)) if not isinstance(value, str)
                     else value)
    return " ".join(words)


def event_of(line: str) -> RunEvent:
    """The event of a line.

    Raises:
        ValueError: it is none.
    """
    letter, *words = line.split(" ")
    kind = _LETTERS.get(letter)
    if kind is None or not _NEEDED[kind] <= len(words) <= len(_FIELDS[kind]):
        raise ValueError(f"{line[:60]!r} is no event of a DAG")
    values = [_TEXTS.get(name, int)(word) for name, word in zip(_FIELDS[kind], words, strict=False)]
    event: RunEvent = kind(*values)
    return event
