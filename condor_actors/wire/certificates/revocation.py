"""Whether an admitted peer may stay."""

from __future__ import annotations

from collections.abc import Collection

from condor_actors.messages.envelope import Identity
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens

__all__ = ["objection"]


def objection(identity: Identity, serials: Collection[int] | None, tokens: RevokedTokens, now_s: float) -> str:
    """Why a link to a peer must end now; empty: it may stay.

    Args:
        identity: as it was proved.
        serials: of the certificates that are revoked; None: the peer's pool is a partner no longer.
        tokens: that are revoked.
        now_s: seconds since 1970.
    """
    if serials is None:
        return f"the pool {identity.realm} is no partner any more"
    evidence = identity.evidence
    for serial in evidence.serials:
        if serial in serials:
            return f"certificate {serial:x} was revoked"
    if evidence.token:
        if evidence.ends_s and evidence.ends_s <= now_s:
            return "its token has run out"
        return tokens.reason(evidence.token)
    return ""
