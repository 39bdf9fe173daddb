"""What one owner may see of a blob store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from condor_actors.transfer.blob_store import BlobStore, Partial

__all__ = ["OwnedBlobs"]


class OwnedBlobs:
    """The blobs of one owner: what she brought, and nothing that others did.

    Args:
        store: has them.
        prefix: of their names there.
    """

    def __init__(self, store: BlobStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def __contains__(self, digest: str) -> bool:
        return self._prefix + digest in self._store

    def missing(self, digests: Iterable[str]) -> tuple[str, ...]:
        """See :meth:`BlobStore.missing`."""
        return tuple(digest for digest in dict.fromkeys(digests) if digest not in self)

    def open(self, digest: str) -> BinaryIO:
        """See :meth:`BlobStore.open`."""
        return self._store.open(self._prefix + digest)

    def read(self, digest: str) -> bytes:
        """See :meth:`BlobStore.read`."""
        return self._store.read(self._prefix + digest)

    def place(self, digest: str, target: str | os.PathLike[str], mode: int, *, share: bool = False) -> None:
        """See :meth:`BlobStore.place`."""
        self._store.place(self._prefix + digest, target, mode, share=share)

    def pin(self, digest: str, owner: str) -> None:
        """See :meth:`BlobStore.pin`."""
        self._store.pin(self._prefix + digest, owner)

    def put_bytes(self, data: bytes) -> str:
        """See :meth:`BlobStore.put_bytes`."""
        return self._store._put(self._prefix + hashlib.sha256(data).hexdigest(), data)

    def begin(self, digest: str, size_bytes: int, *, fresh: bool = False) -> Partial:
        """See :meth:`BlobStore.begin`."""
        return self._store.begin(self._prefix + digest, size_bytes, fresh=fresh)
