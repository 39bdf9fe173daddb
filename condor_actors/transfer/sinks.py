"""Where fetched bytes go.

Theory: what comes is written beside its place and gets there by one rename, when its digest is right; so a file is the
old one or the whole new one, whatever breaks.  A file that is committed is on the disk, its name too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import BinaryIO, Protocol

from condor_actors.actors.workers import touching
from condor_actors.durable import open_beside, sync_folder
from condor_actors.transfer.blob_store import BlobError


class Sink(Protocol):
    """Where fetched bytes go: a :class:`Partial` of a blob store or a :class:`FileSink`."""

    offset: int

    def write(self, data: bytes) -> None:
        """The next bytes."""

    def restart(self) -> None:
        """Forget what came."""

    def commit(self) -> None:
        """All is here: verify and put in place; raises ``WrongContent``."""

    def close(self) -> None:
        """Give up, or leave it for later."""


class FileSink:
    """Writes to a hidden file of its own beside ``target`` and renames it when the digest is right.

    Raises:
        OSError: the file beside ``target`` cannot be made.
    """

    def __init__(self, target: str, digest: str, size_bytes: int, mode: int) -> None:
        self.offset = 0
        self._target = target
        self._digest = digest
        self._size_bytes = size_bytes
        self._mode = mode
        self._hash = hashlib.sha256()
        touching(target)
        stream, self._path = open_beside(target, digest[:12])
        self._stream: BinaryIO | None = stream

    def write(self, data: bytes) -> None:
        """The next bytes.

        Raises:
            BlobError: more than was announced.
            OSError: they cannot be written; names the target.
        """
        assert self._stream is not None
        if self.offset + len(data) > self._size_bytes:
            raise BlobError(f"more than the {self._size_bytes} bytes announced")
        view = memoryview(data)
        try:
            while view:
                view = view[self._stream.write(view) :]
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._target) from None
        self._hash.update(data)
        self.offset += len(data)

    def restart(self) -> None:
        """Forget what came."""
        assert self._stream is not None
        self._stream.seek(0)
        self._stream.truncate()
        self._hash = hashlib.sha256()
        self.offset = 0

    def commit(self) -> None:
        """Verify and put in place.

        Raises:
            BlobError: it is not what its digest says.
        """
        assert self._stream is not None
        if self.offset != self._size_bytes or self._hash.hexdigest() != self._digest:
            self.close()
            raise BlobError(f"what came for {self._target} is not what was announced: the file changed while it"
                            " was sent")
        touching(self._target)
        os.fchmod(self._stream.fileno(), self._mode)
        os.fsync(self._stream.fileno())
        touching(self._target)
        os.replace(self._path, self._target)
        self._stream.close()
        self._stream = None
        sync_folder(os.path.dirname(self._target))

    def close(self) -> None:
        """Remove what came."""
        if self._stream is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)
            self._stream.close()
            self._stream = None


class MemorySink:
    """Keeps a blob of unknown size in memory, up to a limit (a manifest)."""

    def __init__(self, digest: str, limit_bytes: int) -> None:
        self.offset = 0
        self.data = bytearray()
        self._digest = digest
        self._limit_bytes = limit_bytes

    def write(self, data: bytes) -> None:
        """The next bytes."""
        if self.offset + len(data) > self._limit_bytes:
            raise BlobError(f"more than the {self._limit_bytes} bytes allowed")
        self.data += data
        self.offset += len(data)

    def restart(self) -> None:
        """Forget what came."""
        self.data.clear()
        self.offset = 0

    def commit(self) -> None:
        """Verify.

        Raises:
            BlobError: it is not what its digest says.
        """
        if hashlib.sha256(self.data).hexdigest() != self._digest:
            raise BlobError("what came is not what its digest says")

    def close(self) -> None:
        """Nothing is left behind."""
