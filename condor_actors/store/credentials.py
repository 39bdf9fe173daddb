"""The credential daemon's records on disk: one row for each credential, its secret sealed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from condor_actors.cores.credd.credentials import Credential, DropCredentials, Name, SaveCredential
from condor_actors.store.database import Store, StoreError
from condor_actors.store.sealing import BadSeal, Sealer

__all__ = ["CredentialStore"]

KNOWN = b"condor credentials"
_COLUMNS = "user, service, handle, form, scopes, audience, stored_s, sealed"


class CredentialStore(Store):
    """The file CREDD_DATABASE; see :class:`Store`.

    Args:
        path: the file.
        sealer: seals with the key of CREDD_KEY_FILE.
        key_file: for people.

    Raises:
        StoreError: the file cannot be used, or was sealed with another key.
    """

    schema = "credentials"

    def __init__(self, path: Path, sealer: Sealer, key_file: Path) -> None:
        super().__init__(path)
        connection = self.database.connection
        connection.execute("PRAGMA secure_delete = ON")
        row = connection.execute("SELECT sealed FROM seal").fetchone()
        if row is None:
            with self.database.transaction() as writing:
                writing.execute("INSERT INTO seal (sealed) VALUES (?)", (sealer.seal(KNOWN, b"seal"),))
            return
        try:
            sealer.open(row[0], b"seal")
        except BadSeal:
            self.close()
            raise StoreError(f"{path}: it was not sealed with the key in {key_file}; put back the key file that "
                             "belongs to it, or move the database away, and let the users store their credentials "
                             "again") from None

    def load(self) -> list[Credential]:
        """All credentials."""
        rows = self.database.connection.execute(f"SELECT {_COLUMNS} FROM credentials")
        return [Credential(name=Name(user, service, handle), form=form, scopes=scopes, audience=audience,
                           stored_s=stored_s, sealed=sealed)
                for user, service, handle, form, scopes, audience, stored_s, sealed in rows]

    def commit(self, operations: Sequence[Any]) -> None:
        """Make operations durable, all or none.

        Raises:
            StoreUnavailable: nothing of it was written (a full disk, say).
        """
        with self.database.transaction() as connection:
            for operation in operations:
                if isinstance(operation, SaveCredential):
                    one = operation.credential
                    connection.execute(
                        f"INSERT OR REPLACE INTO credentials ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        (one.name.user, one.name.service, one.name.handle, one.form, one.scopes, one.audience,
                         one.stored_s, one.sealed))
                elif isinstance(operation, DropCredentials):
                    connection.executemany("DELETE FROM credentials WHERE user = ? AND service = ? AND handle = ?",
                                           [(name.user, name.service, name.handle) for name in operation.names])
                else:
                    raise TypeError(f"no {type(operation).__name__} is kept among credentials")
