"""Whether somebody who was let in may stay."""

from __future__ import annotations

from collections.abc import Collection

from condor_actors.messages.envelope import Identity
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens

__all__ = ["objection"]


def objection(identity: Identity, serials: Collection[int], tokens: RevokedTokens, now_s: float) -> str:
    """Why a link to somebody must end now; empty: it may go on.

    Args:
        identity: as it was proved.
        serials: of the certificates that are revoked.
        tokens: that are revoked.
        now_s: seconds since 1970.
    """
    evidence = identity.evidence
    for serial in evidence.serials:
        if serial in serials:
            return f"certificate {serial:x} was revoked"
    if evidence.token:
        if evidence.ends_s and evidence.ends_s <= now_s:
            return "its token has run out"
        return tokens.reason(evidence.token)
    return ""
