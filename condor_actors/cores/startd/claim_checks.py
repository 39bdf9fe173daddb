"""What always holds of the claims of a startd, between two turns."""

from __future__ import annotations

from collections.abc import Container, Mapping

from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.state_table import InvariantBroken

__all__ = ["validate_claims"]


def validate_claims(slots: Slots, by_claim: Mapping[str, Slot], opening: Container[str]) -> None:
    """Check that slots and claims know each other.

    Args:
        slots: of the machine.
        by_claim: the slot of each claim.
        opening: claims whose gate the starter host is asked to open.

    Raises:
        InvariantBroken: something does not hold; says what.
    """
    held = {slot.claim.claim_id: slot for slot in slots if slot.claim is not None}
    if held.keys() != by_claim.keys() or any(by_claim[claim_id] is not slot for claim_id, slot in held.items()):
        raise InvariantBroken(f"the slots have the claims {sorted(held)}, the startd knows {sorted(by_claim)}")
    secrets = [slot.claim.record.secret for slot in held.values() if slot.claim is not None]
    if len(set(secrets)) != len(secrets):
        raise InvariantBroken("two claims have one secret")
    for claim_id, slot in held.items():
        claim = slot.claim
        if claim is None or claim.record.slot_name != slot.name or claim.record.share != slot.total:
            raise InvariantBroken(f"the claim {claim_id} is not for {slot.name} and its share")
        if claim_id in opening and claim.open:
            raise InvariantBroken(f"the gate of the claim {claim_id} is open, and still waited for")
