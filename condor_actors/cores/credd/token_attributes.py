"""The attributes by which a job's ad asks for tokens; apart from what reads them, since every submission looks."""

from __future__ import annotations

__all__ = ["SEND_TICKET", "SERVICES", "may_want_tokens"]

SERVICES, SEND_TICKET = "OAuthServicesNeeded", "SendCredential"
_WORDS = (SERVICES.lower().encode(), SEND_TICKET.lower().encode())


def may_want_tokens(ad: bytes) -> bool:
    """Whether a job's ad, as text, may ask for tokens: cheap, and never wrong when it says no."""
    lowered = ad.lower()
    return any(word in lowered for word in _WORDS)
