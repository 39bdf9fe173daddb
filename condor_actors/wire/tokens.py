"""Join tokens: one line that lets one machine into the pool, once, for a while.

Theory: a token carries the address of the central manager, the fingerprint of the pool's CA (so that the newcomer
knows whom it talks to before it trusts anyone) and a secret.  The authority keeps a hash of the secret in a file of
its own; a token is used up by renaming that file, which can succeed only once, whatever crashes when.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from condor_actors.own_files import replace_own
from condor_actors.wire.certificates.trust import ROLES

PREFIX = "condor1."
DEFAULT_LIFE_S = 3600.0
_ID = re.compile(r"[0-9a-f]{16}")


class BadToken(ValueError):
    """A token that is not one, was used, or has run out."""


@attrs.frozen(kw_only=True)
class Token:
    """What a token says.

    Attributes:
        address: ``<host:port>`` of the central manager.
        ca_fingerprint: SHA-256 of the pool's CA certificate.
        token_id, secret: the right to join.
    """

    address: str
    ca_fingerprint: bytes
    token_id: str
    secret: str = attrs.field(repr=False)

    def text(self) -> str:
        """The line that a person copies."""
        fields = [self.address, self.ca_fingerprint.hex(), self.token_id, self.secret]
        packed = json.dumps(fields, separators=(",", ":")).encode()
        return PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token that a line says.

        Raises:
            BadToken: it says none.
        """
        text = "".join(text.split())
        if not text.startswith(PREFIX):
            raise BadToken(f"a join token begins with {PREFIX}; condor_pool token on the central manager prints one")
        body = text[len(PREFIX) :]
        try:
            fields = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
            address, fingerprint, token_id, secret = fields
            if not all(isinstance(field, str) for field in fields):
                raise TypeError("only texts")
            token = cls(address=address, ca_fingerprint=bytes.fromhex(fingerprint), token_id=token_id, secret=secret)
        except (ValueError, TypeError, RecursionError):
            raise BadToken("the token is damaged: copy the whole line") from None
        if len(token.ca_fingerprint) != 32 or not _ID.fullmatch(token.token_id):
            raise BadToken("the token is damaged: copy the whole line")
        return token


@attrs.frozen
class Grant:
    """What a token gives: roles, and for how many seconds (0: for good)."""

    roles: tuple[str, ...]
    stay_s: float


class TokenStore:
    """The tokens that were given out, one file each.

    Args:
        directory: readable by the authority only.
        clock: seconds since 1970.
    """

    def __init__(self, directory: str | os.PathLike[str], clock: Callable[[], float] = time.time) -> None:
        self._directory = Path(directory)
        self._clock = clock

    def issue(self, address: str, ca_fingerprint: bytes, *, life_s: float = DEFAULT_LIFE_S,
              roles: Sequence[str] = ROLES, stay_s: float = 0.0) -> Token:
        """A new token.

        Args:
            address: where it will be shown.
            ca_fingerprint: of the pool's CA.
            life_s: seconds until it runs out.
            roles: what the machine that joins may run.
            stay_s: how long it is a member at most; 0: for good.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        os.chmod(self._directory, 0o700)
        self._sweep()
        token = Token(address=address, ca_fingerprint=ca_fingerprint, token_id=secrets.token_hex(8),
                      secret=secrets.token_urlsafe(24))
        record = {"hash": _hash(token.secret), "ends_s": self._clock() + life_s, "roles": list(roles), "stay_s": stay_s}
        path = self._path(token.token_id)
        replace_own(path, json.dumps(record).encode(), 0o600)
        return token

    def redeem(self, token_id: str, secret: str) -> Grant:
        """Use a token up.

        Returns:
            What it gives.

        Raises:
            BadToken: unknown, used, run out, or not its secret.
        """
        if not _ID.fullmatch(token_id):
            raise BadToken("the token is damaged")
        path = self._path(token_id)
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError):
            raise BadToken("the token is unknown or was used already; make another one") from None
        if not hmac.compare_digest(_hash(secret), record["hash"]):
            raise BadToken("the token's secret is wrong")
        try:
            path.rename(path.with_suffix(".used"))
        except FileNotFoundError:
            raise BadToken("the token was used already; make another one") from None
        if record["ends_s"] < self._clock():
            raise BadToken("the token has run out; make another one")
        return Grant(tuple(record["roles"]), float(record.get("stay_s", 0.0)))

    def _path(self, token_id: str) -> Path:
        return self._directory / f"{token_id}.json"

    def _sweep(self) -> None:
        """Remove what ran out long ago."""
        horizon = self._clock() - 30 * 24 * 3600.0
        for path in self._directory.iterdir():
            if path.stat().st_mtime < horizon:
                path.unlink(missing_ok=True)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
