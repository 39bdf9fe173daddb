"""The keys that sign tokens: files that only the daemons' account (or root) may read.

The pool's own, ``POOL``, is SEC_TOKEN_POOL_SIGNING_KEY_FILE; each other is the file of its name in
SEC_PASSWORD_DIRECTORY.  The collector beside the pool's authority makes the first when there is none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import Any

import attrs

from condor_actors.wire.idtokens.private_files import NotPrivate, read_private, write_private
from condor_actors.wire.idtokens.signed_token import BadToken

POOL_KEY = "POOL"
KEY_BYTES = 64
_KEY_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@attrs.frozen
class SigningKeys:
    """Where the keys are.

    Attributes:
        pool_key: the file of the key ``POOL``.
        folder: of the others.
        default: the key that signs where none is named (SEC_TOKEN_ISSUER_KEY).
    """

    pool_key: Path
    folder: Path
    default: str

    @classmethod
    def of(cls, config: Any) -> SigningKeys:
        """As configured."""
        return cls(config.path("SEC_TOKEN_POOL_SIGNING_KEY_FILE"), config.path("SEC_PASSWORD_DIRECTORY"),
                   config.needed_text("SEC_TOKEN_ISSUER_KEY"))

    def path(self, key_id: str) -> Path:
        """The file of a key.

        Raises:
            BadToken: it is no name of a key.
        """
        if not _KEY_ID.fullmatch(key_id):
            raise BadToken(f"{key_id!r} is no name of a signing key")
        return self.pool_key if key_id == POOL_KEY else self.folder / key_id

    def secret(self, key_id: str) -> bytes:
        """The bytes of a key.

        Raises:
            BadToken: there is none of this name here, or it is not private.
        """
        path = self.path(key_id)
        try:
            secret = read_private(path, {0, os.getuid(), path.parent.stat().st_uid} if os.getuid() == 0 else
                                  {0, os.getuid()})  # root goes by whose folder it is: the daemons' account's
        except NotPrivate as error:
            raise BadToken(f"the signing key {error.filename} is not used: {error.strerror}") from None
        except FileNotFoundError:
            raise BadToken(f"there is no signing key {key_id!r} here ({path})") from None
        except OSError as error:
            raise BadToken(f"the signing key {path} cannot be read: {error.strerror}") from None
        if len(secret) < 16:
            raise BadToken(f"the signing key {path} is too short")
        return secret

    def names(self) -> tuple[str, ...]:
        """The keys that this process can use."""
        found = [POOL_KEY]
        with contextlib.suppress(OSError):
            found += [entry.name for entry in os.scandir(self.folder) if _KEY_ID.fullmatch(entry.name)]
        return tuple(name for name in dict.fromkeys(found) if os.access(self.path(name), os.R_OK))

    def make_pool_key(self) -> None:
        """Make the key ``POOL`` if there is none.

        Raises:
            OSError: it cannot be written.
        """
        if not self.pool_key.exists():
            with contextlib.suppress(FileExistsError):
                write_private(self.pool_key, secrets.token_bytes(KEY_BYTES), replace=False)
