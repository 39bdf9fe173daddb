"""What happens to a run that is handed to another batch system, and what its grid manager can do about it."""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs

from condor_actors.config.settings import setting
from condor_actors.effects import Effect

__all__ = [
    "BatchJob", "Bring", "Brought", "Cancel", "Cancelled", "CleanUp", "FilesFailed", "Fits", "FolderRecord",
    "GridKind", "GridSettings", "GridState", "Look", "Looked", "Prepare", "Prepared", "Submit", "SubmitFailed",
    "Submitted", "Unavailable", "Withdraw", "Withdrawn",
]


class GridState(enum.Enum):
    """See :mod:`condor_actors.cores.shadow.grid_run`."""

    LOOKING = "looking"
    PREPARING = "preparing"
    SUBMITTING = "submitting"
    QUEUED = "queued"
    RUNNING = "running"
    BRINGING = "bringing"
    CANCELLING = "cancelling"
    ENDED = "ended"


class Fits(enum.Enum):
    """What a state of the batch system's means here."""

    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@attrs.frozen(kw_only=True)
class GridSettings:
    """The administrator's part.

    Attributes:
        probe_s: between two looks at the batch system.
        unavailable_s: between two looks at one that does not answer.
        retries: how often in a row a submission may fail before the job is held.
    """

    probe_s: float = setting("GRIDMANAGER_JOB_PROBE_INTERVAL")
    unavailable_s: float = setting("GRIDMANAGER_RESOURCE_PROBE_INTERVAL")
    retries: int = setting("GRIDMANAGER_CONNECT_FAILURE_RETRY_COUNT")


@attrs.frozen
class BatchJob:
    """What the batch system says of a job.

    Attributes:
        batch_id: its number there; state, reason: its own words; host: where it runs.
    """

    batch_id: str
    state: str
    reason: str = ""
    host: str = ""


@attrs.frozen(kw_only=True)
class FolderRecord:
    """What the folder of a run says, which the grid manager and the job's script write.

    Attributes:
        prepared: everything is there that the script needs.
        batch_id, submitted_s: what the batch system answered to the submission, and when; empty: it has not, as far as
            is known.
        claim: which of the batch system's jobs may run, or has; empty: none has begun.
        host, began_s: where and when the program began; 0: it has not.
        status: of the program as a shell says it; None: it has not ended.
        signal: that ended it; 0: none.
        user_cpu_s, system_cpu_s: what it used.
        said: the end of what the batch system and the script wrote.
    """

    prepared: bool = False
    batch_id: str = ""
    submitted_s: float = 0.0
    claim: str = ""
    host: str = ""
    began_s: float = 0.0
    status: int | None = None
    signal: int = 0
    user_cpu_s: float = 0.0
    system_cpu_s: float = 0.0
    said: str = ""

    def since_s(self, batch_id: str) -> float:
        """Since when the batch system has this job: always the same answer, so it is written once; 0: not known."""
        return self.submitted_s if batch_id == self.batch_id else self.began_s if batch_id == self.claim else 0.0


@attrs.frozen(kw_only=True)
class GridKind:
    """What differs between batch systems for one who follows a job there.

    Attributes:
        fits: what a state of such a job means here.
        shown: its ``GridJobStatus``.
        verdict: what a job came to that is over, or gone, and whose program left no word: from its number, the job and
            the record the outcome of the run, reason, hold code and its subcode.
        patience: so many looks at a job that is over are for that word, which may be late.
    """

    fits: Callable[[BatchJob], Fits]
    shown: Callable[[BatchJob], str]
    verdict: Callable[[str, BatchJob | None, FolderRecord], tuple[str, str, int, int]]
    patience: int = 1


# ---- events


@attrs.frozen
class Looked:
    """Event: the batch system and the folder were looked at; ``found`` are the jobs of this run's name."""

    found: tuple[BatchJob, ...]
    record: FolderRecord


@attrs.frozen
class Prepared:
    """Event: the folder has all that the job needs."""


@attrs.frozen
class FilesFailed:
    """Event: inputs cannot be put into the folder, or outputs brought home."""

    reason: str
    hold_code: int
    hold_subcode: int = 0


@attrs.frozen
class Submitted:
    """Event: the batch system has taken the job."""

    batch_id: str
    when_s: float = 0.0


@attrs.frozen
class SubmitFailed:
    """Event: it has not, or has not said so; ``transient``: it may be asked again."""

    reason: str
    transient: bool


@attrs.frozen
class Unavailable:
    """Event: the batch system does not answer questions, or does not do what it is told."""

    reason: str
    record: FolderRecord = attrs.field(factory=FolderRecord)


@attrs.frozen
class Cancelled:
    """Event: nothing of the run is left there; ``gone`` False: it is ending."""

    gone: bool


@attrs.frozen
class Withdrawn:
    """Event: no job of this run can begin any more; ``claim``: unless this one, which has begun before."""

    claim: str = ""


@attrs.frozen
class Brought:
    """Event: the outputs are home."""


# ---- effects


@attrs.frozen
class Look(Effect):
    """Ask the batch system for all jobs, and read the folder; ``batch_id`` to be asked for if it is not among them."""

    batch_id: str = ""


@attrs.frozen
class Prepare(Effect):
    """Make the folder: inputs and script."""


@attrs.frozen
class Submit(Effect):
    """Hand the script to the batch system."""


@attrs.frozen
class Cancel(Effect):
    """Let no job of this run begin any more, and have the batch system end those there are."""


@attrs.frozen
class Withdraw(Effect):
    """Let no job of this run begin any more."""


@attrs.frozen
class Bring(Effect):
    """Bring the outputs home."""


@attrs.frozen
class CleanUp(Effect):
    """Remove the folder."""
