"""The vocabulary of a standard-universe run at its shadow: effects and events beside those of every run.

:mod:`condor_actors.cores.shadow.standard_run` decides with them.
"""

from __future__ import annotations

import attrs

from condor_actors.effects import Effect

__all__ = [
    "CheckpointFacts", "Checkpointed", "CloseHome", "HomeEnded", "HomeFailed", "HomeOpen", "HomeStatistics", "NotTaken",
    "HomeProblem", "OpenHome", "ProgramExited",
]


# ---- effects


@attrs.frozen
class OpenHome(Effect):
    """Open the session and the stream and send the checkpoint; comes back as HomeOpen or HomeFailed."""


@attrs.frozen
class CloseHome(Effect):
    """End the session and the stream, now."""


# ---- events


@attrs.frozen
class HomeOpen:
    """Home is there; ``restarted``: the program goes on from a checkpoint; ``lasts``: the stream that leads to it
    outlives its connections, for as long as the job's lease."""

    restarted: bool
    lasts: bool = False


@attrs.frozen
class HomeFailed:
    """It could not be opened; ``hold_code`` 0: it may be tried elsewhere."""

    reason: str
    hold_code: int = 0
    hold_subcode: int = 0


@attrs.frozen(kw_only=True)
class CheckpointFacts:
    """What is known of a checkpoint.

    Attributes:
        digest: names it; generation: number of the run and of the checkpoint in it, as its seal has them.
        size_bytes: with holes; stored_bytes: without; sent_bytes: over the wire.
        cpu_level: of the processor it needs; threads, processes: of the program; took_s: how long the program waited.
    """

    digest: str
    generation: str
    size_bytes: int
    stored_bytes: int
    sent_bytes: int
    cpu_level: int
    threads: int
    processes: int = 1
    took_s: float


@attrs.frozen
class Checkpointed:
    """A checkpoint is whole and at home; ``last``: it was the program's last act on its machine."""

    facts: CheckpointFacts
    last: bool = False


@attrs.frozen
class NotTaken:
    """A checkpoint could not be taken; the program goes on."""

    number: int
    reason: str


@attrs.frozen
class ProgramExited:
    """The program has ended by itself; ``problem``: it could not even be started (errno, and why in words)."""

    status: int
    problem: int = 0
    why: str = ""


@attrs.frozen
class HomeEnded:
    """The session and its stream are over."""

    reason: str


@attrs.frozen
class HomeProblem:
    """What a user has to know and the program cannot tell, in words.

    It is a write that failed, of which the program dies, or a file that others have mapped.
    """

    text: str


@attrs.frozen(kw_only=True)
class HomeStatistics:
    """What the run did at home so far: see the attributes of the job's ad that bear the names."""

    calls: int = 0
    read_calls: int = 0
    write_calls: int = 0
    seek_calls: int = 0
    opened_files: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    checkpoint_bytes: int = 0
    local_cpu_s: float = 0.0
    kept_files: int = 0
    kept_bytes: int = 0
    by_name: tuple[tuple[str, int], ...] = ()
