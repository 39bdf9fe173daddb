"""The claims of a startd: on which slot each is, and which of them the starter host has still to open."""

from __future__ import annotations

from condor_actors.cores.secrets import matches
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.envelope import Delivery

__all__ = ["ClaimIndex"]


class ClaimIndex:
    """Finds the slot of a claim.

    Attributes:
        opening: claims that the starter host is asked to open, and the request that waits for each.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Slot] = {}
        self.opening: dict[str, Delivery] = {}

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def __contains__(self, claim_id: str) -> bool:
        return claim_id in self._by_id

    def add(self, claim_id: str, slot: Slot) -> None:
        """A slot is claimed."""
        self._by_id[claim_id] = slot

    def remove(self, claim_id: str) -> None:
        """A claim is over."""
        self._by_id.pop(claim_id, None)

    def slot(self, claim_id: str) -> Slot | None:
        """The slot of a claim."""
        return self._by_id.get(claim_id)

    def owned(self, claim_id: str, secret: str) -> Slot | None:
        """The slot of a claim, for who knows its secret."""
        slot = self._by_id.get(claim_id)
        if slot is None or slot.claim is None or not matches(slot.claim.record.secret, secret):
            return None
        return slot

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots that are claimed."""
        return tuple(self._by_id.values())

    @property
    def ids(self) -> frozenset[str]:
        """The public ids of all claims."""
        return frozenset(self._by_id)

    def validate(self, slots: Slots) -> None:
        """Check that slots and claims know each other.

        Args:
            slots: of the machine.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        held = {slot.claim.claim_id: slot for slot in slots if slot.claim is not None}
        if held.keys() != self._by_id.keys() or any(self._by_id[each] is not slot for each, slot in held.items()):
            raise InvariantBroken(f"the slots have the claims {sorted(held)}, the startd knows {sorted(self._by_id)}")
        secrets = [slot.claim.record.secret for slot in held.values() if slot.claim is not None]
        if len(set(secrets)) != len(secrets):
            raise InvariantBroken("two claims have one secret")
        for claim_id, slot in held.items():
            claim = slot.claim
            if claim is None or claim.record.slot_name != slot.name or claim.record.share != slot.total:
                raise InvariantBroken(f"the claim {claim_id} is not for {slot.name} and its share")
            if claim_id in self.opening and claim.open:
                raise InvariantBroken(f"the claim {claim_id} is open, and still waited for")
