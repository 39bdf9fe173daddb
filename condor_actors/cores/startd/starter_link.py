"""The starter host as the startd knows it: where it is, and what it is told about claims."""

from __future__ import annotations

from typing import Any

from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import Claim
from condor_actors.cores.startd.slots import Slot
from condor_actors.cores.turn import Turn
from condor_actors.effects import Ask, Send
from condor_actors.messages import claim
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Address

__all__ = ["StarterLink"]


class StarterLink:
    """Where the starter host is, and the orders it gets; without one, orders are dropped.

    Args:
        turn: of the core.
        open_timeout_s: how long it may take to open a claim.

    Attributes:
        address: where its actor is; None: there is no starter host.
        pid: of its process; node: where shadows reach it.
    """

    def __init__(self, turn: Turn, open_timeout_s: float) -> None:
        self._turn = turn
        self._open_timeout_s = open_timeout_s
        self.address: Address | None = None
        self.pid = 0
        self.node = ""

    @property
    def is_up(self) -> bool:
        """Whether there is a starter host."""
        return self.address is not None

    def connect(self, address: Address, hello: claim.StarterHostHello) -> bool:
        """A starter host has said hello; returns whether it listens elsewhere than the one before."""
        moved = hello.node != self.node
        self.address, self.pid, self.node = address, hello.pid, hello.node
        return moved

    def disconnect(self) -> None:
        """The starter host is gone."""
        self.address, self.pid, self.node = None, 0, ""

    def open(self, slot: Slot, assigned: tuple[tuple[str, str], ...]) -> None:
        """Ask it to open the claim of a slot; an answer with the tag ``("open", claim id)`` follows.

        Args:
            assigned: the slot's devices, by resource.
        """
        held = slot.claim
        assert held is not None
        assert self.address is not None
        message = claim.OpenClaim(
            claim_id=held.claim_id, secret=held.record.secret, slot_name=slot.name, slot_ad=slot.ad.to_bytes(),
            owner=held.record.owner, hosts=held.record.hosts, submitter=held.record.submitter, assigned=assigned,
            checkpoint_key=held.record.checkpoint_key)
        self._turn.do(Ask(self.address, message, self._open_timeout_s, ("open", held.claim_id)))

    def close(self, claim_id: str, reason: str) -> None:
        """Have it close a claim that is none here."""
        self._send(claim.CloseClaim(claim_id=claim_id, vacate_s=0.0, reason=reason))

    def order(self, held: Claim, action: Any) -> None:
        """Tell it what the policy wants of the run on a claim."""
        self._send(_message(held.claim_id, action))

    def checkpoint(self, held: Claim) -> None:
        """Ask it for a checkpoint of what runs on a claim."""
        self._send(claim.CheckpointClaim(claim_id=held.claim_id))

    def _send(self, message: Any) -> None:
        if self.address is not None:
            self._turn.do(Send(self.address, message))


def _message(claim_id: str, action: Any) -> Any:
    if isinstance(action, op.SuspendJob):
        return claim.SuspendClaim(claim_id=claim_id)
    if isinstance(action, op.ResumeJob):
        return claim.ContinueClaim(claim_id=claim_id)
    if isinstance(action, op.LowerPriority):
        return claim.LowerClaim(claim_id=claim_id, on=action.on)
    if isinstance(action, op.VacateJob):
        return claim.CloseClaim(claim_id=claim_id, vacate_s=action.grace_s, reason=action.reason, hold=action.hold,
                                hold_code=HoldCode.STARTD_HELD_JOB if action.hold else 0,
                                hold_subcode=action.hold_subcode)
    return claim.CloseClaim(claim_id=claim_id, vacate_s=0.0, reason=action.reason)
