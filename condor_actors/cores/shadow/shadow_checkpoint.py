"""What a shadow does with a checkpoint that the program itself has made: keep it at home for the next start."""

from __future__ import annotations

import attrs

from condor_actors.effects import Effect
from condor_actors.messages.manifest import FileEntry

__all__ = ["CheckpointHome", "KeepCheckpoint"]


@attrs.frozen
class KeepCheckpoint(Effect):
    """Keep what the run has saved for its next start; comes back as :class:`CheckpointHome`."""

    number: int
    entries: tuple[FileEntry, ...]
    manifest_digest: str
    when_s: float = 0.0


@attrs.frozen
class CheckpointHome:
    """Checkpoint ``number``, of ``when_s`` (0: now), is kept; ``problem``: why it is not."""

    number: int
    problem: str = ""
    size_bytes: int = 0
    when_s: float = 0.0
    files: int = 0
