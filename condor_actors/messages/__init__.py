"""Every message of the system, one module per conversation; importing the package registers them all."""

from __future__ import annotations

from condor_actors.messages import admin, advertise, claim, negotiate, queue, run
from condor_actors.messages.codec import MalformedMessage, Message, OversizedMessage, decode, encode, kinds
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

__all__ = [
    "SELF", "Address", "AskFailed", "Delivery", "Done", "Envelope", "Identity", "Level", "MalformedMessage",
    "Message", "OversizedMessage", "PeerDown", "PeerUp", "Refused", "TimerFired", "admin", "advertise", "claim",
    "decode", "encode", "kinds", "negotiate", "queue", "run",
]
