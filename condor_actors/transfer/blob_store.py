"""Content by its digest: each distinct file of an owner once, whatever its name.

Theory: to know a digest is not to have the content.  So a blob belongs to the owner who brought it:
:meth:`BlobStore.of` gives the blobs of one owner, and who names the digest of another's has to bring the content
himself.

A blob is a file named by the SHA-256 of its content, written elsewhere in the store and renamed into place when it is
whole, so after ``kill -9`` there are only whole blobs and partial files.  What is on its way has its room reserved, so
that blobs that come together do not each count on the whole disk.  A partial file is named by the digest it is to have
and is continued later.  A blob found at start was written by an earlier process, maybe just before the power failed: it
is hashed again before its first use.  Over the quota the blobs used longest ago go first; those that a run has pinned
stay.

===========================  =======================================
``of-…/ab/abcdef…``          a blob of an owner (``ab/abcdef…``: of nobody's in particular)
``partial/of-…+abcdef….N``   on its way; locked while it is written
===========================  =======================================
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import attrs

from condor_actors.actors.workers import touching
from condor_actors.transfer.manifest import CHUNK_BYTES, is_digest
from condor_actors.transfer.owned_blobs import OwnedBlobs

_FICLONE = 0x40049409
BLOB_MODE = 0o444
OWNER = re.compile(r"of-[0-9a-f]{32}")
STALE_PARTIAL_S = 24 * 3600.0


class BlobError(Exception):
    """A blob that cannot be had: missing, damaged, or there is no room."""


class MissingBlob(BlobError):
    """The store has not got it."""


class WrongContent(BlobError):
    """The content is not what its digest says."""


@attrs.define
class _Entry:
    size_bytes: int
    used_s: float
    verified: bool


def copy_content(source: int, target: int) -> None:
    """Copy a whole open file into another: shared extents where the file system can, else by the kernel."""
    try:
        fcntl.ioctl(target, _FICLONE, source)
        return
    except OSError:
        pass
    size = os.fstat(source).st_size
    done = 0
    while done < size:
        try:
            count = os.copy_file_range(source, target, size - done, done, done)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            count = os.sendfile(target, source, done, size - done)
        if count == 0:
            break
        done += count


class BlobStore:
    """Stores content by digest, each distinct file once.

    Args:
        directory: made when it is not there; owned by one process.
        quota_bytes: kept under this by forgetting what is not pinned; 0: no limit.  What is pinned may take more.
        floor_bytes: so much stays free on the disk for others: blobs are forgotten, or refused, below it.
        clock: seconds, for the order of use.
    """

    def __init__(self, directory: str | os.PathLike[str], quota_bytes: int = 0,
                 clock: Callable[[], float] = time.time, floor_bytes: int = 0) -> None:
        self.directory = Path(directory)
        self.quota_bytes = quota_bytes
        self.floor_bytes = floor_bytes
        self._clock = clock
        self._partial = self.directory / "partial"
        self._partial.mkdir(parents=True, exist_ok=True)
        self._entries: dict[str, _Entry] = {}
        self._pins: dict[str, set[str]] = {}
        self._total = 0
        self._sequence = 0
        self._under_way: set[Partial] = set()
        self._load()

    def _load(self) -> None:
        self._load_folder(self.directory, "")
        for below in self.directory.iterdir():
            if OWNER.fullmatch(below.name):
                self._load_folder(below, f"{below.name}/")
        horizon = self._clock() - STALE_PARTIAL_S
        for path in self._partial.iterdir():
            if path.stat().st_mtime < horizon:
                path.unlink(missing_ok=True)

    def _load_folder(self, folder: Path, prefix: str) -> None:
        for below in folder.iterdir():
            if len(below.name) != 2:
                continue
            for path in below.iterdir():
                if is_digest(path.name):
                    facts = path.stat()
                    self._entries[prefix + path.name] = _Entry(facts.st_size, facts.st_mtime, verified=False)
                    self._total += facts.st_size

    def of(self, owner: str) -> OwnedBlobs:
        """The blobs of one owner, a whole identity (``alice@dom``)."""
        return OwnedBlobs(self, f"of-{hashlib.sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}/")

    # ---- asking

    @property
    def total_bytes(self) -> int:
        """The size of all blobs."""
        return self._total

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def missing(self, digests: Iterable[str]) -> tuple[str, ...]:
        """Those the store has not got, each once, in their order."""
        return tuple(digest for digest in dict.fromkeys(digests) if digest not in self._entries)

    def size_bytes(self, digest: str) -> int:
        """The length of a blob.

        Raises:
            MissingBlob: it is not here.
        """
        return self._entry(digest).size_bytes

    def path(self, digest: str) -> Path:
        """Where a blob is, or would be."""
        folder, _, bare = digest.rpartition("/")
        if not is_digest(bare) or (folder and not OWNER.fullmatch(folder)):
            raise MissingBlob(f"{digest[:80]!r} is no digest")
        return self.directory / folder / bare[:2] / bare

    def _entry(self, digest: str) -> _Entry:
        entry = self._entries.get(digest)
        if entry is None:
            raise MissingBlob(f"blob {digest[:16]}… is not here")
        return entry

    # ---- using

    def open(self, digest: str) -> BinaryIO:
        """A blob's content, verified once in the life of this process.

        Raises:
            MissingBlob: it is not here.
            WrongContent: it was damaged, and is gone now.
        """
        entry = self._entry(digest)
        path = self.path(digest)
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            self._drop(digest)
            raise MissingBlob(f"blob {digest[:16]}… vanished from the store") from None
        if not entry.verified or os.fstat(stream.fileno()).st_size != entry.size_bytes:
            if hashlib.file_digest(stream, "sha256").hexdigest() != bare_digest(digest):
                stream.close()
                self.remove(digest)
                raise WrongContent(f"blob {digest[:16]}… was damaged on disk")
            stream.seek(0)
            entry.verified = True
        entry.used_s = self._clock()
        with contextlib.suppress(OSError):
            os.utime(path, (entry.used_s, entry.used_s))
        return stream

    def read(self, digest: str) -> bytes:
        """The whole content of a (small) blob.

        Raises:
            BlobError: as :meth:`open`.
        """
        with self.open(digest) as stream:
            return stream.read()

    def place(self, digest: str, target: str | os.PathLike[str], mode: int, *, share: bool = False) -> None:
        """Put a blob's content into a new file.

        Args:
            digest: which.
            target: must not exist.
            mode: permission bits.
            share: a hard link will do: the receiver cannot write the file (another user, no write permission).

        Raises:
            BlobError: as :meth:`open`.
            OSError: the target cannot be written.
        """
        with self.open(digest) as source:
            if share and not mode & 0o222:
                try:
                    os.link(self.path(digest), target)
                    if mode & 0o111:
                        os.chmod(target, BLOB_MODE | 0o111)
                    return
                except OSError as error:
                    if error.errno not in (errno.EXDEV, errno.EMLINK, errno.EPERM):
                        raise
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            try:
                copy_content(source.fileno(), descriptor)
                os.fchmod(descriptor, mode)
            finally:
                os.close(descriptor)

    # ---- pins

    def pin(self, digest: str, owner: str) -> None:
        """Keep a blob, present or to come, until ``owner`` lets go."""
        self._pins.setdefault(owner, set()).add(digest)

    def unpin(self, owner: str) -> None:
        """Let go of everything ``owner`` has pinned."""
        self._pins.pop(owner, None)
        self.make_room()

    # ---- adding

    def put_bytes(self, data: bytes) -> str:
        """Keep some bytes; their digest."""
        return self._put(hashlib.sha256(data).hexdigest(), data)

    def _put(self, digest: str, data: bytes) -> str:
        if digest not in self._entries:
            with self.begin(digest, len(data), fresh=True) as partial:
                partial.write(data)
                partial.commit()
        return bare_digest(digest)

    def begin(self, digest: str, size_bytes: int, *, fresh: bool = False) -> Partial:
        """Start, or take up again, the writing of a blob.

        Args:
            digest: what it will be.
            size_bytes: how long.
            fresh: do not look for the beginning that an earlier attempt left.

        Raises:
            OSError: no room on the disk (``ENOSPC``); names the folder.
        """
        self.path(digest)
        if size_bytes < 0:
            raise MissingBlob(f"{size_bytes} is no size")
        name = digest.replace("/", "+")
        begun = [] if fresh else sorted(self._partial.glob(f"{name}.*"))
        self.make_room(size_bytes, max((path.stat().st_size for path in begun), default=0))
        if not fresh:
            for path in begun:
                partial = Partial.take_up(self, path, digest, size_bytes)
                if partial is not None:
                    return partial
        self._sequence += 1
        return Partial.create(self, self._partial / f"{name}.{os.getpid()}-{self._sequence}", digest, size_bytes)

    def _adopt(self, path: Path, digest: str, size_bytes: int) -> None:
        target = self.path(digest)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.chmod(path, BLOB_MODE)
        path.replace(target)
        self._add(digest, size_bytes)

    def _add(self, digest: str, size_bytes: int) -> None:
        if digest not in self._entries:
            self._entries[digest] = _Entry(size_bytes, self._clock(), verified=True)
            self._total += size_bytes

    # ---- forgetting

    def remove(self, digest: str) -> None:
        """Forget a blob; one that is not here is no error."""
        if digest in self._entries:
            self.path(digest).unlink(missing_ok=True)
            self._drop(digest)

    def _drop(self, digest: str) -> None:
        entry = self._entries.pop(digest, None)
        if entry is not None:
            self._total -= entry.size_bytes

    def make_room(self, size_bytes: int = 0, begun_bytes: int = 0) -> None:
        """Forget what was used longest ago until so much more fits, ``begun_bytes`` of which are on the disk.

        Raises:
            OSError: it does not fit; never for ``size_bytes`` 0, which asks only for what others need.
        """
        if not self._over_quota(size_bytes) and not self._lacks(size_bytes, begun_bytes):
            return
        pinned = set().union(*self._pins.values()) if self._pins else set()
        oldest = sorted((entry.used_s, digest) for digest, entry in self._entries.items() if digest not in pinned)
        for _, digest in oldest:
            self.remove(digest)
            if not self._over_quota(size_bytes) and not self._lacks(size_bytes, begun_bytes):
                return
        lack = self._lacks(size_bytes, begun_bytes) if size_bytes else None
        if lack is not None:
            raise lack

    def _over_quota(self, size_bytes: int) -> bool:
        """Whether so much more is more than the store should take."""
        to_be = self._total + sum(partial.size_bytes for partial in self._under_way) + size_bytes
        return bool(self.quota_bytes) and to_be > self.quota_bytes

    def _lacks(self, size_bytes: int, begun_bytes: int) -> OSError | None:
        """Why so much more does not fit; None when it does."""
        disk = os.statvfs(self._partial)
        to_come = sum(partial.size_bytes - partial.offset for partial in self._under_way)
        free_bytes = disk.f_bavail * disk.f_frsize - to_come - self.floor_bytes
        if size_bytes - begun_bytes > free_bytes:
            return OSError(errno.ENOSPC, f"{size_bytes} bytes do not fit on the disk: {max(0, free_bytes)} are free"
                           f" beside {to_come} for what is on its way and {self.floor_bytes} left to others",
                           str(self.directory))
        return None

    def clear(self) -> None:
        """Forget everything, pins included."""
        shutil.rmtree(self.directory)
        self._partial.mkdir(parents=True)
        self._entries.clear()
        self._pins.clear()
        self._total = 0


def bare_digest(name: str) -> str:
    """The digest in the name of a blob, without whose it is."""
    return name.rpartition("/")[2]


class Partial:
    """A blob being written; a context manager that leaves the beginning on disk when it is not committed.

    Attributes:
        offset: how many bytes are there.
        is_begun: an earlier attempt left a beginning, which has to be read (:meth:`read_back`) before all else.
    """

    def __init__(self, store: BlobStore, path: Path, digest: str, size_bytes: int, stream: BinaryIO) -> None:
        self.digest = bare_digest(digest)
        self._name = digest
        self.size_bytes = size_bytes
        self.offset = 0
        self.is_begun = False
        self._store = store
        self._path = path
        self._stream = stream
        self._hash = hashlib.sha256()
        self._done = False
        store._under_way.add(self)

    @classmethod
    def create(cls, store: BlobStore, path: Path, digest: str, size_bytes: int) -> Partial:
        """A new one."""
        stream = path.open("xb", buffering=0)
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(store, path, digest, size_bytes, stream)

    @classmethod
    def take_up(cls, store: BlobStore, path: Path, digest: str, size_bytes: int) -> Partial | None:
        """One that an earlier attempt left; None when someone is writing it."""
        try:
            stream = path.open("r+b", buffering=0)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            return None
        partial = cls(store, path, digest, size_bytes, stream)
        begun_bytes = os.fstat(stream.fileno()).st_size
        if begun_bytes > size_bytes:
            partial.restart()
        partial.is_begun = 0 < begun_bytes <= size_bytes
        return partial

    def read_back(self) -> None:
        """Read what an earlier attempt left, which may be gigabytes; before anything is written.

        Raises:
            OSError: it cannot be read.
        """
        while self.is_begun and (chunk := self._stream.read(CHUNK_BYTES)):
            self._hash.update(chunk)
            self.offset += len(chunk)
            touching(str(self._path))
        self.is_begun = False

    def restart(self) -> None:
        """Forget what is there."""
        self._stream.seek(0)
        self._stream.truncate()
        self._hash = hashlib.sha256()
        self.offset = 0
        self.is_begun = False

    def write(self, data: bytes) -> None:
        """The next bytes.

        Raises:
            WrongContent: more than the blob's size.
            OSError: the disk is full.
        """
        assert not self.is_begun
        if self.offset + len(data) > self.size_bytes:
            raise WrongContent(f"more than the {self.size_bytes} bytes announced")
        view = memoryview(data)
        while view:
            view = view[self._stream.write(view) :]
        self._hash.update(data)
        self.offset += len(data)

    def commit(self) -> None:
        """The blob is whole: verify it and put it into place.

        Raises:
            WrongContent: it is not what its digest says; what was written is gone.
        """
        if self.offset != self.size_bytes or self._hash.hexdigest() != self.digest:
            self.discard()
            raise WrongContent(f"{self.offset} bytes came that are not blob {self.digest[:16]}…: the file changed"
                               " while it was sent, or was damaged on the way")
        if self._name in self._store:
            self.discard()
            return
        self._done = True
        self._store._adopt(self._path, self._name, self.size_bytes)
        self._end()

    def discard(self) -> None:
        """Remove what was written."""
        self._done = True
        self._path.unlink(missing_ok=True)
        self._end()

    def close(self) -> None:
        """Leave it for a later attempt."""
        if not self._done:
            self._end()
            if self.offset == 0 and not self.is_begun:
                self._path.unlink(missing_ok=True)

    def _end(self) -> None:
        self._stream.close()
        self._store._under_way.discard(self)

    def __enter__(self) -> Partial:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
