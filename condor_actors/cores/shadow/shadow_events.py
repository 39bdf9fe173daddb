"""The vocabulary of a shadow's core: its states, effects and events.

:mod:`condor_actors.cores.shadow.shadow_run` decides with them.
"""

from __future__ import annotations

import enum
from typing import Any

import attrs

from condor_actors.effects import Effect
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Address
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.shadow_host import RunEnded, RunUpdated

__all__ = [
    "BlobsFailed", "BlobsSent", "BringOutputs", "InputsFailed", "InputsReady", "Log", "OutputsFailed", "OutputsHome",
    "OutputsNewer", "PrepareInputs", "Report", "ScheddBack", "SendBlobs", "SendLogged", "Settled", "ShadowState",
    "Watch", "WriteStreams",
]


class ShadowState(enum.Enum):
    """See :mod:`condor_actors.cores.shadow.shadow_run`."""

    PREPARING = "preparing"
    ACTIVATING = "activating"
    SENDING = "sending"
    WAITING = "waiting"
    RUNNING = "running"
    APART = "apart"
    BRINGING = "bringing"
    ENDED = "ended"


# ---- effects of a shadow


@attrs.frozen
class PrepareInputs(Effect):
    """Read the input files; comes back as :class:`InputsReady`, :class:`InputsFailed` or
    :class:`OutputsNewer`."""


@attrs.frozen
class SendBlobs(Effect):
    """Send these contents to the starter's store; comes back as :class:`BlobsSent` or :class:`BlobsFailed`."""

    digests: tuple[str, ...]


@attrs.frozen
class BringOutputs(Effect):
    """Write the outputs at home; comes back as :class:`OutputsHome` or :class:`OutputsFailed`."""

    entries: tuple[FileEntry, ...]
    manifest_digest: str
    keep: bool
    """True: the job was evicted and these are for its next run."""
    partly: bool = False
    """They are what there is of them: the job is held, and may go on from what was kept for it."""


@attrs.frozen
class WriteStreams(Effect):
    """Write pieces of streamed output at home."""

    pieces: tuple[tuple[str, int, bytes], ...]


@attrs.frozen
class Log(Effect):
    """Write an event to the job's user log."""

    event: int
    facts: dict[str, Any]
    when_s: float = 0.0
    again: bool = False
    """True: another shadow of the run may have written it; look first."""
    once_since_s: float = 0.0
    """Then it is there if it is with any date from this one on; 0: with its own."""


@attrs.frozen
class SendLogged(Effect):
    """Send a message when what was logged before is in the log: its receiver forgets what it could tell again."""

    to: Address
    message: Any


@attrs.frozen
class Report(Effect):
    """Tell the schedd.

    Attributes:
        message: what.
        again: it was said before, to a shadow host that may have crashed over it.
    """

    message: RunUpdated | RunEnded
    again: bool = False


@attrs.frozen
class Watch(Effect):
    """Keep the link to the starter and report its state."""


# ---- events of a shadow


@attrs.frozen
class InputsReady:
    """The inputs are read; a manifest too large for a message is a blob of this digest, ``entries`` its large files."""

    entries: tuple[FileEntry, ...]
    manifest_digest: str = ""
    transfers: bool = True


@attrs.frozen
class InputsFailed:
    """An input cannot be read, or ``$$()`` not be expanded."""

    reason: str
    code: int = HoldCode.TRANSFER_INPUT_ERROR
    subcode: int = 0


@attrs.frozen
class OutputsNewer:
    """All named outputs are at home and newer than the inputs: the job need not run (SkipIfDataflow)."""


@attrs.frozen
class BlobsSent:
    """The starter has all contents."""


@attrs.frozen
class BlobsFailed:
    """They could not be sent; ``local``: because of a file here."""

    reason: str
    local: bool


@attrs.frozen
class OutputsHome:
    """Everything is written and synced; ``received_bytes`` in all, in so many ``files``."""

    received_bytes: int = 0
    files: int = 0


@attrs.frozen
class OutputsFailed:
    """Something could not be written at home, or (``remote``) not be fetched."""

    reason: str
    subcode: int = 0
    remote: bool = False


@attrs.frozen
class ScheddBack:
    """Event: the schedd was gone, or is another one; what was told last may never have been committed."""


@attrs.frozen
class Settled:
    """The schedd has committed the run's end."""
