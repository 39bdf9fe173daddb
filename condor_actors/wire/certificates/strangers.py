"""Peers whose certificates are refused: what is said about them, and who was at the door of late.

Theory: OpenSSL says no more than "certificate verify failed", and says it to neither side's log.  What the certificate
names is not proven, so it is told as what it is, and believed by nobody; but an administrator whose partner has made
its pool anew, or whose clock is wrong, learns what to do.  A stranger can show another certificate each time: of all of
them only so many are kept, and each is told once in a while.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from condor_actors.messages.realm import is_realm
from condor_actors.wire.partners.invitation import fingerprint_text

__all__ = ["Strangers", "refused_because", "stranger_at"]

SELF_SIGNED_IN_CHAIN, NO_ISSUER, NOT_YET_VALID, EXPIRED = 19, 20, 9, 10
"""OpenSSL's numbers of errors (X509_V_ERR_…)."""

MOST = 16
TOLD_AGAIN_S = 60.0
RECENT_S = 600.0


def refused_because(certificate: x509.Certificate, error: int, known: Collection[str], own: str) -> str:
    """Why a certificate of a peer's chain is refused, and what to do, for people.

    Args:
        certificate: where OpenSSL has stopped: of an authority that is not known, the authority's own.
        error: its number.
        known: the names of the pools that are partners.
        own: the name of this pool.
    """
    if error in (NOT_YET_VALID, EXPIRED):
        when = certificate.not_valid_before_utc if error == NOT_YET_VALID else certificate.not_valid_after_utc
        says = "counts only from" if error == NOT_YET_VALID else "counted until"
        return (f"its certificate {says} {when:%Y-%m-%d %H:%M} UTC: compare its clock with the one here"
                + ("" if error == NOT_YET_VALID else ", or have it renewed"))
    if error not in (SELF_SIGNED_IN_CHAIN, NO_ISSUER):
        return f"its certificate is refused (error {error} of OpenSSL)"
    named = certificate if error == SELF_SIGNED_IN_CHAIN else None
    names = named.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME) if named is not None else []
    name = str(names[0].value) if names else ""
    if named is None or not is_realm(name):
        return "its certificate is signed by an authority that is not known here"
    authority = f"the authority {fingerprint_text(named.public_bytes(Encoding.PEM))}"
    if name == own:
        return (f"it calls itself a machine of this pool, {name}, but {authority} is not this pool's: one of the two "
                "has to join anew")
    if name in known:
        return (f"it calls itself a machine of {name}, but {authority} is not the one that was accepted: if {name} has "
                f"made it anew, condor_flock revoke {name}, and accept its new invitation")
    return (f"it calls itself a machine of the pool {name}, with {authority}, which is no partner: if a partner is "
            f"called so now, condor_flock accept its new invitation, put {name} where FLOCK_TO and FLOCK_FROM name the "
            "old one, and condor_flock revoke that")


def stranger_at(transport: Any) -> str:
    """Why the peer of a connection was refused, if that is what ended the handshake; empty: it is not."""
    try:
        return str(transport.getHandle().refused)
    except AttributeError:  # not TLS: a socket, which may be gone already
        return ""


class Strangers:
    """Who was refused of late, by what was said about it."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float, str]] = {}

    def note(self, said: str, address: str, now_s: float) -> bool:
        """A peer at an address was refused; whether that should be told now.

        Args:
            said: of :func:`stranger_at`; address: for people; now_s: of any clock that goes on.
        """
        self._forget(now_s)
        if said not in self._seen and len(self._seen) >= MOST:
            return False
        told_s = self._seen[said][1] if said in self._seen else float("-inf")
        is_told = now_s - told_s >= TOLD_AGAIN_S
        self._seen[said] = (now_s, now_s if is_told else told_s, address)
        return is_told

    def recent(self, now_s: float) -> tuple[str, ...]:
        """What was said about each of the last minutes, the last one first."""
        self._forget(now_s)
        newest = sorted(self._seen.items(), key=lambda item: -item[1][0])
        return tuple(f"{address} was refused: {said}" for said, (_, _, address) in newest)

    def _forget(self, now_s: float) -> None:
        self._seen = {said: seen for said, seen in self._seen.items() if now_s - seen[0] < RECENT_S}
