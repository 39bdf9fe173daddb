"""The leases of a schedd's claims, renewed with one message for each startd."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from condor_actors.cores.rights import speaks_for_node
from condor_actors.cores.schedd.claims.held_claim import REQUEST_PATIENCE_S, HeldClaim
from condor_actors.cores.schedd.claims.unreachable_startds import UnreachableStartds
from condor_actors.cores.schedd.queue_operations import SaveClaim
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.secrets import matches
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.effects import Ask
from condor_actors.messages.claim import ClaimsKept, ClaimsRenewed, RenewClaims
from condor_actors.messages.envelope import Address, Identity, Refused
from condor_actors.messages.realm import node_abroad

__all__ = ["LeaseRenewals"]


class LeaseRenewals:
    """Renews all claims at a startd at once; its message is made anew only when the claims there have changed."""

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self._by_startd: dict[str, Ask] = {}

    def changed(self, startd: str) -> None:
        """Other claims than before are held at a startd, or other addresses count."""
        self._by_startd.pop(startd, None)

    def send(self, held: Collection[HeldClaim]) -> None:
        """The leases of all claims start anew, now and in a while again."""
        rows: dict[str, list[SaveClaim]] = {}
        for claim in held:
            rows.setdefault(claim.row.startd, []).append(claim.row)
        for startd, mine in rows.items():
            renewal = self._by_startd.get(startd)
            if renewal is None:
                pairs = tuple((row.claim_id, row.secret) for row in mine)
                message = RenewClaims(claims=pairs, schedd_node=self._context.my_address)
                renewal = Ask(Address(startd, "startd"), message, REQUEST_PATIENCE_S, ("renewed", startd))
                self._by_startd[startd] = renewal
            self._context.out.append(renewal)
        self._context.timer(("renew",), self._renew_s(held))

    def _renew_s(self, held: Collection[HeldClaim]) -> float:
        lease_s = min([claim.row.lease_s for claim in held], default=self._context.settings.claim_lease_s)
        return min(self._context.settings.alive_interval_s, max(10.0, lease_s / 3.0))

    def reconcile(self, question: ClaimsKept, identity: Identity, held: Mapping[str, HeldClaim],
                  unreachable: UnreachableStartds) -> None:
        """A startd was started again: it is where it says now, and may forget what we do not hold.

        Args:
            question: what it says; identity: who says it.
            held: all claims of the schedd; unreachable: is told that the startd is there.
        """
        if not speaks_for_node(identity, node_abroad(question.startd, identity.realm)):
            self._context.note(f"{identity.name} of {identity.host} speaks for the startd {question.startd}", "warn")
            self._context.reply(Refused(code="denied", text=f"{identity.host} is not the machine {question.startd}"))
            return
        startd = node_abroad(question.startd, identity.realm)
        unreachable.trust(startd)
        gone = []
        for claim_id, secret in question.claims:
            claim = held.get(claim_id)
            if (claim is None or not matches(claim.row.secret, secret)
                    or not speaks_for_node(identity, claim.row.startd)):
                gone.append(claim_id)
            elif claim.row.startd != startd:
                self.changed(claim.row.startd)
                claim.row = attrs.evolve(claim.row, startd=startd)
                self.changed(startd)
                self._context.persist(claim.row)
        self._context.reply(ClaimsRenewed(gone=tuple(gone)))

    def validate(self, held: Collection[HeldClaim]) -> None:
        """Check that each message names exactly the claims at its startd.

        Raises:
            InvariantBroken: one does not.
        """
        for startd, renewal in self._by_startd.items():
            mine = {(claim.row.claim_id, claim.row.secret) for claim in held if claim.row.startd == startd}
            if set(renewal.message.claims) != mine:
                raise InvariantBroken(f"the renewal for {startd} names other claims than are held there")
