"""How several claims of one schedd on parts of a partitionable slot become one claim (condor_now of several jobs).

Theory: the claims stay claims until nothing runs on any of them; so nobody can come between.  Then, in one turn, all of
them end, their parts are joined to the slot, and a part for the new job is carved out of it and claimed.  When one of
them ends meanwhile, or it takes too long, the schedd is refused and gives back what is left.
"""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim_granting import ClaimGranting
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.slot_controller import SlotController
from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.starter_link import StarterLink
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Note, Reply, SetTimer
from condor_actors.messages import claim
from condor_actors.messages.envelope import Delivery

__all__ = ["JOIN_WAIT_S", "ClaimJoining"]

JOIN_WAIT_S = 20.0
"""How long the starter host may take to say that the runs are over, whose ends the schedd has already heard of."""


@attrs.frozen(eq=False)
class _Wish:
    """A request that waits for its claims: their ids, the slot that they are parts of, and the job."""

    event: Delivery
    claim_ids: tuple[str, ...]
    parent: Slot
    job: ClassAd


class ClaimJoining:
    """Answers schedds that want their claims joined.

    Args:
        turn: of the core.
        slots: of the machine.
        claims: of the startd.
        starter: closes claims.
        controller: gives a slot its events.
        granting: grants the claim that they become.
    """

    def __init__(self, turn: Turn, slots: Slots, claims: ClaimIndex, starter: StarterLink, controller: SlotController,
                 granting: ClaimGranting) -> None:
        self._turn = turn
        self._slots = slots
        self._claims = claims
        self._starter = starter
        self._controller = controller
        self._granting = granting
        self._wishes: dict[str, _Wish] = {}
        """By the id of each claim that is to be joined."""
        granting.claim_ended = self._ended

    def request(self, event: Delivery, message: claim.JoinClaims) -> None:
        """A schedd wants claims of its own joined."""
        parts = [self._claims.owned(claim_id, secret) for claim_id, secret in message.claims]
        known = [part for part in parts if part is not None]
        problem = "one of the claims is over" if len(known) < len(parts) else self._problem(known)
        if problem:
            return self._refuse(event, known[0].name if known else "", problem)
        try:
            job = ClassAd.from_bytes(message.job_ad)
        except ClassAdSyntaxError as error:
            return self._refuse(event, known[0].name, f"the job's ad cannot be read: {error}")
        parent = known[0].parent
        assert parent is not None
        wish = _Wish(event, tuple(claim_id for claim_id, _ in message.claims), parent, job)
        self._wishes.update(dict.fromkeys(wish.claim_ids, wish))
        self._turn.do(SetTimer(("join", wish.claim_ids[0]), JOIN_WAIT_S))
        return self._try(wish)

    def _problem(self, parts: list[Slot]) -> str:
        """Why these slots do not become one; empty: they may."""
        records = [part.claim.record for part in parts if part.claim is not None]
        if len({record.claim_id for record in records}) < len(records):
            return "a claim is named twice"
        if len({id(part.parent) for part in parts}) > 1 or parts[0].parent is None:
            return "they are not parts of one partitionable slot"
        if len({(record.owner, record.submitter, record.schedd_name, record.hosts) for record in records}) > 1:
            return "they are not claimed for one user"
        if any(record.claim_id in self._wishes for record in records):
            return "one of the claims is being joined already"
        if any(part.machine.state is not op.State.CLAIMED for part in parts):
            return "one of the claims is ending"
        return "" if self._starter.is_up else "there is no starter host"

    def came_free(self, claim_id: str) -> None:
        """Nothing runs on a claim any more."""
        if (wish := self._wishes.get(claim_id)) is not None:
            self._try(wish)

    def _ended(self, claim_id: str) -> None:
        """A claim is over before it was joined."""
        if (wish := self._wishes.get(claim_id)) is not None:
            self._give_up(wish, "one of the claims has ended meanwhile")

    def waited(self, claim_id: str) -> None:
        """The runs on the claims take long to be over."""
        if (wish := self._wishes.get(claim_id)) is not None:
            self._give_up(wish, "what runs on the claims takes long to leave")

    def _give_up(self, wish: _Wish, reason: str) -> None:
        self._forget(wish)
        self._refuse(wish.event, wish.parent.name, reason)

    def _forget(self, wish: _Wish) -> None:
        for claim_id in wish.claim_ids:
            del self._wishes[claim_id]
        self._turn.do(CancelTimer(("join", wish.claim_ids[0])))

    def _refuse(self, event: Delivery, slot_name: str, reason: str) -> None:
        self._turn.do(Reply(claim.ClaimRefused(slot_name=slot_name, reason=reason), event),
                      Note(f"{slot_name or 'a slot'} is not joined with others: {reason}"))

    def _try(self, wish: _Wish) -> None:
        """Join the claims, if nothing runs on any of them."""
        parts = [part for each in wish.claim_ids if (part := self._claims.slot(each)) is not None]
        if any(part.machine.slot_state != op.CLAIMED for part in parts):
            return
        self._forget(wish)
        first = parts[0].claim
        assert first is not None
        record = first.record
        for part in parts:
            assert part.claim is not None
            self._starter.close(part.claim.claim_id, "it is joined with others")
            self._controller.apply(part, op.ClaimCleared())
        parent = wish.parent
        share = self._granting.admissible(parent, wish.job)
        if isinstance(share, str):
            self._refuse(wish.event, parent.name, share)
            return
        request = claim.RequestClaim(
            slot_name=parent.name, capability="", job_ad=wish.event.message.job_ad, owner=record.owner,
            submitter=record.submitter, schedd_name=record.schedd_name, lease_s=record.lease_s,
            schedd_node=record.schedd_node, checkpoint_key=record.checkpoint_key)
        slot = self._slots.carve(parent, share, self._turn.now_s)
        self._granting.grant(attrs.evolve(wish.event, message=request), request, slot, wish.job)
