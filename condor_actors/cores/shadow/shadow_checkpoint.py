"""What a shadow does with a checkpoint that the program itself has made: keep it at home for the next start, or the
list of its files where it was sent elsewhere."""

from __future__ import annotations

import attrs

from condor_actors.effects import Effect
from condor_actors.messages.manifest import FileEntry

__all__ = ["CheckpointAside", "CheckpointHome", "KeepCheckpoint", "SetCheckpointAside"]


@attrs.frozen
class KeepCheckpoint(Effect):
    """Keep what the run has saved for its next start; comes back as :class:`CheckpointHome`.  ``serial`` above 0: it is
    at its destination as the one of that number, and the list of its files is to be kept."""

    number: int
    entries: tuple[FileEntry, ...]
    manifest_digest: str
    when_s: float = 0.0
    serial: int = 0
    before: int = 0


@attrs.frozen
class SetCheckpointAside(Effect):
    """What came from its destination is not what was sent as checkpoint ``number``: use it no more; comes back as
    :class:`CheckpointAside`."""

    number: int


@attrs.frozen
class CheckpointAside:
    """It is not used any more; ``left``: how many older ones there are; ``problem``: why it could not be done."""

    left: int
    problem: str = ""


@attrs.frozen
class CheckpointHome:
    """Checkpoint ``number``, of ``when_s`` (0: now), is kept; ``problem``: why it is not; ``serial``: as above."""

    number: int
    problem: str = ""
    size_bytes: int = 0
    when_s: float = 0.0
    files: int = 0
    serial: int = 0
    before: int = 0
