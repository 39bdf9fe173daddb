"""What one pool gives to another so that this trusts it: its name, its authority, and where its central manager
and its gateways are.

An invitation holds no secret, but an attacker who changes it on its way could put his own pool in place of the one
that is meant.  So people compare the fingerprint over another way, as with a key of SSH.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID

from condor_actors.messages.realm import is_realm
from condor_actors.wire.nodes import BadNode, tls_node
from condor_actors.wire.partners.partner_store import Partner, gateways_in

__all__ = ["BadInvitation", "fingerprint_text", "invitation_text", "parse_invitation"]

PREFIX = "condor-flock1."
MOST_CHARACTERS = 16384


class BadInvitation(ValueError):
    """A text that invites nobody; says what is wrong and what to do."""


def fingerprint_text(ca: bytes) -> str:
    """The fingerprint of an authority (PEM) as people compare it: SHA-256, in pairs of hex digits."""
    digest = x509.load_pem_x509_certificate(ca).fingerprint(SHA256()).hex()
    return ":".join(digest[at:at + 2] for at in range(0, len(digest), 2))


def invitation_text(partner: Partner) -> str:
    """An invitation to a pool, as one word."""
    data = json.dumps([partner.name, partner.central, partner.ca.decode("ascii"), *([list(partner.gateways)]
                       if partner.gateways else [])]).encode()
    return PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def parse_invitation(text: str) -> Partner:
    """The pool that an invitation is from.

    Raises:
        BadInvitation: it is none.
    """
    word = "".join(text.split())  # mail folds long lines
    if not word.startswith(PREFIX) or len(word) > MOST_CHARACTERS:
        raise BadInvitation(f"an invitation begins with {PREFIX}; condor_flock invite in the other pool prints one")
    body = word[len(PREFIX):]
    try:
        fields: Any = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        name, central, ca, *gateways = fields
        partner = Partner(name=str(name), central=str(tls_node(str(central))), ca=str(ca).encode("ascii"),
                          gateways=gateways_in(*gateways) if gateways else ())
    except (ValueError, TypeError, binascii.Error, BadNode, RecursionError):
        raise BadInvitation("the invitation is damaged or incomplete; have it printed and copied again") from None
    _check_authority(partner)
    return partner


def _check_authority(partner: Partner) -> None:
    """Raises BadInvitation unless the authority is one of a pool of that name."""
    try:
        certificate = x509.load_pem_x509_certificate(partner.ca)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        certificate.verify_directly_issued_by(certificate)
    except Exception as error:  # noqa: BLE001 - the door: cryptography's InvalidSignature is a bare Exception
        raise BadInvitation(f"its authority is none: {error or type(error).__name__}") from None
    names = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if not constraints.ca or constraints.path_length != 0 or not isinstance(certificate.public_key(),
                                                                           ec.EllipticCurvePublicKey):
        raise BadInvitation("its authority is not one that condor_pool create has made")
    if [each.value for each in names] != [partner.name] or not is_realm(partner.name):
        raise BadInvitation(f"its authority is not that of a pool called {partner.name!r}")
