"""The vocabulary of a run at its starter: states, effects, events.

:mod:`condor_actors.cores.starter.job_run` decides with them.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

from condor_actors.effects import Effect
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import Usage

__all__ = [
    "ALIVE", "Abandon", "Activity", "Began", "CloseRun", "Forget", "Freeze", "Gather", "Gathered",
    "HasToGo", "KillTree", "LinkLost",
    "Measured", "Prepare", "PrepareFailed", "Prepared", "ProgramEnded", "ReturnTo", "Signal",
    "Start", "StartFailed", "StarterState", "StillFetched", "Tell", "Thaw", "TreeGone", "WishChanged", "too_much",
]




class StarterState(enum.Enum):
    """The states of a run at its starter."""

    PREPARING = "preparing"
    DEFERRED = "deferred"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    KILLING = "killing"
    CLEARING = "clearing"
    SAVING = "saving"
    ENDED = "ended"
    GONE = "gone"


ALIVE = (StarterState.RUNNING, StarterState.STOPPING, StarterState.KILLING)


# ---- effects


@attrs.frozen
class Prepare(Effect):
    """Make the sandbox, fetch URLs, lay the inputs out; comes back as :class:`Prepared` or :class:`PrepareFailed`."""


@attrs.frozen
class Start(Effect):
    """Launch the program; comes back as :class:`Began` or :class:`StartFailed`."""


@attrs.frozen
class Signal(Effect):
    """Send a signal to the program's first process."""

    number: int


@attrs.frozen
class OwnerSuspends:
    """Event: the machine's owner is there: the run stands still, whatever its user says, until he has gone."""


@attrs.frozen
class OwnerContinues:
    """Event: the owner is gone again."""


@attrs.frozen
class Freeze(Effect):
    """Suspend the whole tree."""


@attrs.frozen
class Thaw(Effect):
    """Let the whole tree go on."""


@attrs.frozen
class KillTree(Effect):
    """Kill everything of the run; comes back as :class:`TreeGone` when nothing is left."""


@attrs.frozen
class Gather(Effect):
    """List the outputs; comes back as :class:`Gathered`.  ``complete``: a missing named file is an error."""

    complete: bool
    everything: bool = False


@attrs.frozen
class Tell(Effect):
    """To the shadow, as soon as it can be reached; ``lasting``: again after each reattachment."""

    message: Any
    lasting: bool = False


@attrs.frozen
class Activity(Effect):
    """To the startd: ``busy``, ``idle`` or ``suspended``."""

    activity: str


@attrs.frozen
class Forget(Effect):
    """Remove the sandbox and the run."""


@attrs.frozen
class ReturnTo(Effect):
    """Answer the question being handled."""

    message: Any


# ---- events


@attrs.frozen
class Prepared:
    """The sandbox is ready; ``image_digest``: of an image of a registry."""

    image_digest: str = ""


@attrs.frozen
class PrepareFailed:
    """It is not; ``hold_code`` 0: it may be tried elsewhere.  ``damaged``: its checkpoint is not what it was."""

    reason: str
    hold_code: int = 0
    hold_subcode: int = 0
    damaged: bool = False


@attrs.frozen
class Began:
    """The program executes; ``ports``: the machine's that lead to its services, by their names."""

    pid: int
    scratch_dir: str
    ports: tuple[tuple[str, int], ...] = ()


@attrs.frozen
class StartFailed:
    """It could not be executed."""

    reason: str
    hold_code: int = HoldCode.FAILED_TO_CREATE_PROCESS
    hold_subcode: int = 0


@attrs.frozen
class ProgramEnded:
    """The first process has ended."""

    exit_code: int
    exit_signal: int
    core_dumped: bool


@attrs.frozen
class TreeGone:
    """No process of the run is left.

    Attributes:
        usage: its whole usage.
        oom: whether the kernel killed for memory; memory_mib: how much was allowed.
        slot_name: where it ran.
        no_room: a sentence, when others have filled the disk that it could not write to; over_disk: when it has;
            unstarted: when what ended was no more than the program that was to start it.
    """

    usage: Usage
    oom: bool = False
    memory_mib: int = 0
    slot_name: str = ""
    no_room: str = ""
    over_disk: str = ""
    unstarted: str = ""


def too_much(what: str, used_kib: int, asked_kib: int, command: str, slot_name: str) -> str:
    """Why a run is ended that uses more than it may: with the numbers, and where."""
    return (f"The job used {-(-used_kib // 1024):,} MB of {what} on {slot_name}, of {asked_kib >> 10:,} MB that were "
            f"its own ({command}), and was killed.")


@attrs.frozen
class Gathered:
    """The outputs; ``missing`` names those that are not there, ``error`` why nothing could be listed, ``unsent`` which
    could not be sent to its URL, and why; ``unsent_subcode``: HoldReasonSubCode of that; ``serial``: they are a
    checkpoint that was sent to its destination, of that number.  The others are listed where some are missing."""

    entries: tuple[FileEntry, ...] = ()
    digest: str = ""
    missing: tuple[str, ...] = ()
    error: str = ""
    unsent: str = ""
    unsent_subcode: int = 0
    serial: int = 0


@attrs.frozen
class Measured:
    """What the run uses now; ``limit``: a sentence, when that is too much; ``limit_subcode`` 0: it is no fault of the
    job, which is tried again."""

    usage: Usage
    limit: str = ""
    limit_subcode: int = 0
    streams: tuple[tuple[str, int, bytes], ...] = ()


@attrs.frozen(kw_only=True)
class CloseRun:
    """The startd ends the claim."""

    grace_s: float
    reason: str
    hold: bool = False
    hold_code: int = 0
    hold_subcode: int = 0


@attrs.frozen
class StillFetched:
    """The time to keep the outputs is over, but they are on their way home."""


@attrs.frozen
class LinkLost:
    """The link to the shadow is down."""


@attrs.frozen
class Abandon:
    """Nobody will ever ask for this run again."""


# ---- events that a step gives to the table itself


@attrs.frozen
class HasToGo:
    """The run is to end: its shadow, the startd, or its lease says so."""


@attrs.frozen
class WishChanged:
    """The run's user or the machine's owner wants it to stand still, or no longer."""
