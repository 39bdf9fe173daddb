"""Secrets at rest: sealed with AES-256-GCM under a key that lies elsewhere.

Theory: a sealed secret is a nonce of 96 random bits and the ciphertext with its tag; what it belongs to (its owner and
name) is authenticated with it, so that a row which is copied to another place does not open there.  The key is a file
that only the daemons' account may read: a copy of the database without it says which credentials there were, and no
more.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from condor_actors.wire.idtokens.private_files import read_private, write_private

__all__ = ["BadSeal", "Sealer", "sealing_key"]

KEY_BYTES = 32
NONCE_BYTES = 12


class BadSeal(Exception):
    """Sealed bytes that were changed, moved, or sealed with another key."""


class Sealer:
    """Seals and opens with one key of 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, secret: bytes, about: bytes) -> bytes:
        """The secret, sealed together with what it belongs to."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, about)

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """The secret.

        Raises:
            BadSeal: it was not sealed so, with this key and for this place.
        """
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
        except (InvalidTag, ValueError):
            raise BadSeal("it was changed, moved, or sealed with another key") from None


def sealing_key(path: Path) -> bytes:
    """The key in a file, which is made when it is not there.

    Raises:
        OSError: the file is not private, has no key in it, or cannot be made.
    """
    try:
        key = read_private(path, {0, os.getuid()})
    except FileNotFoundError:
        key = secrets.token_bytes(KEY_BYTES)
        write_private(path, key, replace=False)
    if len(key) != KEY_BYTES:
        raise OSError(0, f"it holds {len(key)} bytes, and a key has {KEY_BYTES}; put the right file back", str(path))
    return key
