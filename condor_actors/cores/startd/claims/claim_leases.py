"""How long claims last: their leases, and whether their schedds know of them.

Theory: a schedd renews its claims; one that it does not renew ends with its lease.  When nothing runs on a claim its
schedd may never have heard that it was granted, or may have forgotten it: after a while that schedd is asked
(:class:`~condor_actors.messages.claim.ClaimsKept`), instead of waiting for the lease.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import Claim, SaveClaim
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.turn import Turn
from condor_actors.effects import Ask, Note, Persist, Reply, SetTimer
from condor_actors.messages import claim
from condor_actors.messages.envelope import Address, Delivery, Done
from condor_actors.messages.realm import node_abroad

__all__ = ["SCHEDD_ACTOR", "ClaimLeases"]

SCHEDD_ACTOR = "schedd"
ALL_RENEWED = claim.ClaimsRenewed(gone=())
KEPT_PATIENCE_S = 30.0
KEPT_AFTER_S = 20.0
"""A claim on which nothing has run for this long is asked about: its schedd may never have heard of it."""


class ClaimLeases:
    """Renews and ends claims; asks schedds about those on which nothing runs.

    Args:
        turn: of the core.
        claims: of the startd.
        controller: gives a slot its events.
        address: the startd's own public address.
    """

    def __init__(self, turn: Turn, claims: ClaimIndex, controller: SlotController, address: str) -> None:
        self._turn = turn
        self._claims = claims
        self._controller = controller
        self._address = address
        self._idle_since_s: dict[str, float] = {}
        """Claims that nothing runs on and whose schedd has not spoken of them, and since when."""
        self._timer_set = False

    # ---- leases

    def begin(self, held: Claim) -> None:
        """The lease of a claim begins, or begins anew."""
        held.renewed_s = self._turn.now_s
        self._turn.do(SetTimer(("lease", held.claim_id), held.record.lease_s))

    def renew(self, event: Delivery, message: claim.RenewClaims) -> None:
        """A schedd renews its claims; it is told which of them are gone."""
        schedd_node = node_abroad(message.schedd_node, event.identity.realm)
        gone = []
        for claim_id, secret in message.claims:
            slot = self._claims.owned(claim_id, secret)
            if slot is None or slot.claim is None:
                gone.append(claim_id)
                continue
            held = slot.claim
            held.schedd = event.sender
            self._idle_since_s.pop(claim_id, None)
            if held.record.schedd_node != schedd_node:
                held.record = attrs.evolve(held.record, schedd_node=schedd_node)
                self._turn.do(Persist(SaveClaim(held.record)))
            self.begin(held)
        self._turn.do(Reply(claim.ClaimsRenewed(gone=tuple(gone)) if gone else ALL_RENEWED, event))

    def release(self, event: Delivery, message: claim.ReleaseClaim) -> None:
        """A schedd gives a claim back."""
        slot = self._claims.owned(message.claim_id, message.secret)
        if slot is not None:
            self._controller.apply(slot, op.Released(message.reason or "released by its schedd"))
        self._turn.do(Reply(Done(), event))

    def expire(self, claim_id: str) -> None:
        """The lease of a claim has run out."""
        slot = self._claims.slot(claim_id)
        if slot is not None and slot.claim is not None:
            self._turn.do(Note(f"{slot.name}: the lease of {claim_id} is over", "warn"))
            self._controller.apply(slot, op.Released("its lease ran out"))

    # ---- claims on which nothing runs

    def found(self, claim_id: str) -> None:
        """A restarted startd has found this claim in its store: its schedd is asked at the next chance."""
        self._idle_since_s[claim_id] = 0.0

    def idle(self, held: Claim) -> None:
        """Nothing runs on the claim: unless that changes soon, ask whether its schedd knows of it."""
        self._idle_since_s[held.claim_id] = self._turn.now_s
        self._ask_later()

    def in_use(self, held: Claim) -> None:
        """Something runs on the claim, so its schedd knows of it."""
        self._idle_since_s.pop(held.claim_id, None)

    def _ask_later(self) -> None:
        if not self._timer_set:
            self._timer_set = True
            self._turn.do(SetTimer("kept", KEPT_AFTER_S))

    def ask_schedds(self) -> None:
        """Tell the schedds of idle claims what they have here, and where this is."""
        self._timer_set = False
        pairs: dict[str, list[tuple[str, str]]] = {}
        for claim_id, since_s in tuple(self._idle_since_s.items()):
            slot = self._claims.slot(claim_id)
            if slot is None or slot.claim is None or not slot.claim.record.schedd_node:
                del self._idle_since_s[claim_id]
            elif claim_id in self._claims.opening or self._turn.now_s - since_s < KEPT_AFTER_S / 2:
                self._ask_later()  # the schedd may be about to hear of it
            else:
                record = slot.claim.record
                pairs.setdefault(record.schedd_node, []).append((claim_id, record.secret))
        for node, claims in pairs.items():
            message = claim.ClaimsKept(claims=tuple(claims), startd=self._address)
            self._turn.do(Ask(Address(node, SCHEDD_ACTOR), message, KEPT_PATIENCE_S, ("kept", tuple(dict(claims)))))

    def schedd_answered(self, claim_ids: tuple[str, ...], answer: Any) -> None:
        """A schedd has said which of them it knows, or nothing."""
        if not isinstance(answer, claim.ClaimsRenewed):
            self._ask_later()
            return
        for claim_id in claim_ids:
            self._idle_since_s.pop(claim_id, None)
            slot = self._claims.slot(claim_id)
            if slot is None or slot.claim is None:
                continue
            if claim_id in answer.gone:
                self._controller.apply(slot, op.Released("its schedd does not know it any more"))
            else:
                self.begin(slot.claim)
