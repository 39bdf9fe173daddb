"""A token as a text: JWT, signed with HS256 by a key of the pool.

=========  =======================================================================================================
claim      says
=========  =======================================================================================================
``iss``    the pool that gave it (TRUST_DOMAIN)
``sub``    whose it is: ``user@domain``
``scope``  the levels that it is good for, ``condor:/READ condor:/WRITE``; without it, whatever the user has
``exp``    until when, seconds since 1970; without it, until it is revoked
``iat``    since when
``jti``    its own id
``kid``    (in the header) the key that signed it
=========  =======================================================================================================

The signature never crosses the network.  It is a secret that only the bearer and those who have the key can know: the
bearer shows the two other parts and proves with :func:`proof_of` that the third is in his hands, over a link that the
proof is bound to.  So a daemon that is shown a token cannot use it elsewhere.

**Source**: RFC 7519, RFC 7515; HTCondor's manual, security, "Token Authentication".
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import Any

import attrs
import jwt
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from jwt.utils import base64url_decode, base64url_encode

from condor_actors.messages.envelope import Level

ALGORITHM = "HS256"
LONGEST_LIFE_S = 1e10
"""The longest life of a token that has an end, three hundred years."""
SCOPE_PREFIX = "condor:/"
LATEST_S = 1 << 50
"""Seconds since 1970 that a token may speak of; numbers without bounds are no times."""
MAX_TOKEN_CHARACTERS = 8192
CLOCK_SLACK_S = 60
"""By so much the clocks of two machines may differ."""

_SUBJECT = re.compile(r"[^\x00-\x20\x7f@:/*?,\ud800-\udfff]+@[^\x00-\x20\x7f@:/*?,\ud800-\udfff]+")
_LEVELS = {level.value for level in Level}


class BadToken(ValueError):
    """A token that does not count; says why."""


@attrs.frozen(kw_only=True)
class Claims:
    """What a token says.

    Attributes:
        issuer: the pool that gave it.
        subject: whose it is.
        key_id: the key that signed it.
        token_id: its id.
        issued_s, ends_s: since and until when, seconds since 1970; ``ends_s`` 0: no end.
        levels: what it is good for; None: whatever its subject may do.
    """

    issuer: str
    subject: str
    key_id: str
    token_id: str
    issued_s: int
    ends_s: int = 0
    levels: frozenset[str] | None = None

    def attributes(self) -> dict[str, Any]:
        """The claims under their names in the token, as a revocation expression sees them."""
        found: dict[str, Any] = {"iss": self.issuer, "sub": self.subject, "kid": self.key_id, "jti": self.token_id,
                                 "iat": self.issued_s}
        if self.ends_s:
            found["exp"] = self.ends_s
        if self.levels is not None:
            found["scope"] = " ".join(SCOPE_PREFIX + level for level in sorted(self.levels))
        return found


def levels_of(words: Sequence[str]) -> tuple[str, ...]:
    """The levels that a person names, ``READ`` or ``condor:/READ``, with commas or without.

    Raises:
        BadToken: one is none.
    """
    asked = [word.removeprefix(SCOPE_PREFIX).upper() for text in words for word in text.replace(",", " ").split()]
    unknown = [word for word in asked if word not in _LEVELS]
    if unknown:
        raise BadToken(f"{unknown[0]} is no authorization level; expected one of {' '.join(sorted(_LEVELS))}")
    return tuple(dict.fromkeys(asked))


def derived_key(secret: bytes) -> bytes:
    """The key of signatures from the bytes of a key file."""
    return HKDF(algorithm=SHA256(), length=32, salt=b"htcondor", info=b"master jwt").derive(secret)


def sign(secret: bytes, key_id: str, issuer: str, subject: str, *, now_s: float, levels: Sequence[str] = (),
         life_s: float = 0.0) -> str:
    """A new token.

    Args:
        secret: the bytes of the key file.
        key_id: its name.
        issuer: the pool.
        subject: ``user@domain``.
        now_s: seconds since 1970.
        levels: what it is good for; empty: everything that its subject may do.
        life_s: how long; 0: without end.

    Raises:
        BadToken: the subject is no identity of a person.
    """
    if not _SUBJECT.fullmatch(subject):
        raise BadToken(f"{subject!r} is no identity; expected user@domain")
    claims: dict[str, Any] = {"iss": issuer, "sub": subject, "iat": int(now_s), "jti": secrets.token_hex(16)}
    if levels:
        claims["scope"] = " ".join(SCOPE_PREFIX + level for level in levels)
    if life_s:
        claims["exp"] = int(now_s + life_s)
    return jwt.encode(claims, derived_key(secret), algorithm=ALGORITHM, headers={"kid": key_id})


def parted(token: str) -> tuple[str, bytes]:
    """The part of a token that may be shown, and its signature.

    Raises:
        BadToken: it is no token.
    """
    shown, _, last = token.strip().rpartition(".")
    try:
        if len(token) > MAX_TOKEN_CHARACTERS or not shown:
            raise ValueError
        signature = base64url_decode(last)
    except ValueError:
        raise BadToken("it is not a token (three parts with dots between them)") from None
    return shown, signature


def read_claims(shown: str) -> Claims:
    """What the shown part of a token says, true or not.

    Raises:
        BadToken: it is none of ours.
    """
    try:
        if len(shown) > MAX_TOKEN_CHARACTERS:
            raise ValueError("it is too long")
        whole = shown + ".x"
        header = jwt.get_unverified_header(whole + "xxx")
        body = jwt.decode(whole + "xxx", options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise BadToken(f"it cannot be read: {error}") from None
    if header.get("alg") != ALGORITHM:
        raise BadToken(f"it is signed by {header.get('alg')!r}; expected {ALGORITHM}")
    for name, value, kind in (("kid", header.get("kid"), str), ("iss", body.get("iss"), str),
                              ("sub", body.get("sub"), str), ("jti", body.get("jti"), str),
                              ("iat", body.get("iat"), int)):
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadToken(f"it says no {name}")
    ends_s, scope = body.get("exp", 0), body.get("scope")
    if type(ends_s) is not int or not isinstance(scope, str | None):
        raise BadToken("its exp or scope is not what it should be")
    if max(abs(ends_s), abs(body["iat"])) > LATEST_S:
        raise BadToken("its exp or iat is no time")
    if not _SUBJECT.fullmatch(body["sub"]):
        raise BadToken(f"its subject {body['sub']!r} is no identity")
    return Claims(issuer=body["iss"], subject=body["sub"], key_id=header["kid"], token_id=body["jti"],
                  issued_s=body["iat"], ends_s=ends_s, levels=None if scope is None else _scope_levels(scope))


def _scope_levels(scope: str) -> frozenset[str]:
    words = (word for word in scope.split() if word.startswith(SCOPE_PREFIX))
    return frozenset(word.removeprefix(SCOPE_PREFIX).upper() for word in words)


def proof_of(signature: bytes, binding: bytes) -> bytes:
    """That who shows a token has its signature, for one link only.

    Args:
        signature: of the token.
        binding: what tells the link from every other (:func:`binding_of`).
    """
    return hmac.new(signature, b"condor token proof 1\0" + binding, hashlib.sha256).digest()


def binding_of(server_certificate: bytes, server_nonce: bytes, client_nonce: bytes) -> bytes:
    """What tells a link from every other: the certificate (DER) at its far end, and a number from each side."""
    return hashlib.sha256(server_certificate).digest() + server_nonce + client_nonce


def check(shown: str, proof: bytes, binding: bytes, secret: bytes, issuer: str, now_s: float) -> Claims:
    """The claims of a token that counts now.

    Args:
        shown: its first two parts.
        proof, binding: that the bearer has the third.
        secret: the bytes of the key that it names.
        issuer: of the tokens that count here.
        now_s: seconds since 1970.

    Raises:
        BadToken: why it does not count; whether its bearer had the signature is looked at first.
    """
    algorithm = jwt.get_algorithm_by_name(ALGORITHM)
    signature = algorithm.sign(shown.encode(), algorithm.prepare_key(derived_key(secret)))
    if not hmac.compare_digest(proof_of(signature, binding), proof):
        raise BadToken("its signature is wrong")
    claims = read_claims(shown)
    try:
        jwt.decode(f"{shown}.{base64url_encode(signature).decode()}", derived_key(secret), algorithms=[ALGORITHM],
                   issuer=issuer, options={"verify_exp": False, "verify_iat": False})
    except jwt.InvalidIssuerError:
        raise BadToken(f"it is of {claims.issuer!r}, and tokens of {issuer!r} count here") from None
    except jwt.PyJWTError as error:
        raise BadToken(f"it does not count: {error}") from None
    if claims.ends_s and claims.ends_s <= now_s:
        raise BadToken("it has run out; fetch or ask for another one")
    if claims.issued_s > now_s + CLOCK_SLACK_S:
        raise BadToken("it is from the future; are both clocks right?")
    return claims
