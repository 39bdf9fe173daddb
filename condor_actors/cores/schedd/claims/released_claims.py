"""Claims that a schedd has given back, and whose startds may not know that yet."""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.cores.schedd.claims.held_claim import REQUEST_PATIENCE_S, HeldClaim
from condor_actors.cores.schedd.claims.unreachable_startds import UnreachableStartds
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.claim import (
    ReleaseClaim,
)
from condor_actors.messages.envelope import Address, AskFailed

__all__ = ["ReleasedClaims"]

RELEASE_AGAIN_S = 30.0


@attrs.frozen
class _Release:
    """What a startd is told, and until when: then its lease is over."""

    startd: Address
    message: ReleaseClaim
    until_s: float


class ReleasedClaims:
    """Tells startds that claims are given back, again and again where they cannot be reached."""

    def __init__(self, context: ScheddContext, unreachable: UnreachableStartds) -> None:
        self._context = context
        self._unreachable = unreachable
        self._releases: dict[str, _Release] = {}

    def __contains__(self, claim_id: object) -> bool:
        return claim_id in self._releases

    def add(self, claim: HeldClaim, reason: str) -> None:
        """Give a claim back; its startd is told as long as it might keep the claim."""
        row = claim.row
        message = ReleaseClaim(claim_id=row.claim_id, secret=row.secret, reason=reason)
        self._releases[row.claim_id] = _Release(claim.address, message, self._context.now_s + row.lease_s)
        self.tell(row.claim_id)

    def tell(self, claim_id: str) -> None:
        """Tell the startd, for the first time or again."""
        release = self._releases.get(claim_id)
        if release is None:
            return
        self._context.ask(release.startd, release.message, REQUEST_PATIENCE_S, ("released", claim_id))

    def answered(self, claim_id: str, message: Any) -> None:
        """The startd has heard, or not; of a claim that was given back twice, once is enough."""
        release = self._releases.get(claim_id)
        if release is None:
            return
        self._unreachable.on_reply(release.startd.node, message)
        if isinstance(message, AskFailed) and self._context.now_s < release.until_s:
            self._context.timer(("release-again", claim_id), RELEASE_AGAIN_S)
        else:
            del self._releases[claim_id]
