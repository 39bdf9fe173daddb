"""Every message of the system, one module per conversation.

A conversation's module is imported when it is named, or when one of its messages arrives
(``condor.queue.QueryJobs`` is in ``queue``): a tool that lives for some milliseconds pays for no class it does
not use.
"""

from __future__ import annotations

from condor_actors.messages.codec import (
    CONVERSATIONS,
    MalformedMessage,
    Message,
    OversizedMessage,
    decode,
    encode,
    kinds,
)
from condor_actors.messages.envelope import (
    SELF,
    Address,
    AskFailed,
    Delivery,
    Done,
    Envelope,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
    TimerFired,
)

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "CONVERSATIONS", "SELF", "Address", "AskFailed", "Delivery", "Done", "Envelope", "Identity", "Level",
    "MalformedMessage", "Message", "OversizedMessage", "PeerDown", "PeerUp", "Refused", "TimerFired", "decode",
    "encode", "kinds",
]


def __getattr__(name: str) -> ModuleType:
    """A conversation's module, imported when it is first named."""
    if name in CONVERSATIONS:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
