"""Contents of files of submit machines, kept on an execute machine between runs.

Theory: a program of the standard universe reads the same libraries at each start.  Home tells of a file by the SHA-256
of its content, and the runtime reads the content here if it is here (``native/runtime/remote/library.c``).  Each owner,
on each submit machine, has one file of contents, a *shelf*, of which runs get a descriptor to read.  A run can read all
that is on it, so there is nothing on it but what runs of the same owner have been sent, and home tells digests only of
files that every user may read.  A run hands over new contents in a file of its own; they are copied from there, and
stay if they have the digest that stands in front of them: so no run can put a wrong content under a digest.

A shelf is only added to; one that is made smaller is written anew, and runs that read the old one go on with it.  Its
contents are compared with their digests when they come, when this process first uses it, and when the file was touched
by anyone else.  A header is written after its content, so what a crash has left behind is not taken for one.

All but :meth:`LibraryCache.lend` and :meth:`LibraryCache.note_used` read and write files: not for the reactor's thread.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import attrs
from twisted.internet.defer import DeferredLock

__all__ = ["Content", "LibraryCache", "Shelf", "shelf_name"]

HEAD = struct.Struct("<8sQ32s16x")
TABLE = struct.Struct("<32sQQ")
MAGIC = b"CDorLib1"
MOST_CONTENTS = 2048
MOST_CONTENT_BYTES, MOST_NEW_BYTES = 256 << 20, 64 << 20
ALIGNED = 64
PIECE = 1 << 20
ENDING = ".contents"
_NAME = re.compile(r"[0-9a-f]{32}\.contents\Z")


def shelf_name(owner: str) -> str:
    """The shelf of an owner, a whole identity with the machines that speak for it (``alice@dom submit.dom``)."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@attrs.define(eq=False)
class Content:
    """One content of a shelf: where it is in the file; used_s: on this process's clock, 0: never since it began."""

    digest: bytes
    offset: int
    size: int
    used_s: float = 0.0


@attrs.frozen
class Shelf:
    """A shelf as it was when its contents were compared with their digests.

    Attributes:
        facts: of the file: it has not been touched as long as they are the same.
        contents: what is there.
    """

    facts: tuple[int, ...]
    contents: tuple[Content, ...] = ()

    def table(self) -> bytes:
        """As the runtime reads it."""
        return b"".join(TABLE.pack(each.digest, each.offset, each.size) for each in self.contents)


def _facts(descriptor: int) -> tuple[int, ...]:
    facts = os.fstat(descriptor)
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _aligned(size: int) -> int:
    return (size + ALIGNED - 1) // ALIGNED * ALIGNED


class LibraryCache:
    """All shelves of a machine.

    Args:
        folder: where they are; made when something is to be kept.
        limit_bytes: of all together; 0: nothing is kept, and what is there goes with the next :meth:`trim`.
        floor_bytes: so much stays free on the disk.

    Attributes:
        turns: for those who call it in threads: one thread is enough, and all others stay free.
        damaged: contents that did not have their digest when they were compared; refused: that did not when they came.
        hits, hit_bytes: contents that runs have used.
    """

    def __init__(self, folder: Path, limit_bytes: int, floor_bytes: int = 0) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.floor_bytes = floor_bytes
        self.damaged = self.refused = self.hits = self.hit_bytes = 0
        self._shelves: dict[str, Shelf] = {}
        self._working = threading.Lock()
        self.turns = DeferredLock()

    # ---- for a run

    def lend(self, name: str) -> tuple[int, Shelf] | None:
        """A descriptor to read a shelf by, the caller's to close, and what is on it; None: it has to be loaded first.

        Raises:
            OSError: it cannot be opened.
        """
        shelf = self._shelves.get(name)
        try:
            descriptor = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), Shelf(())
        if shelf is not None and shelf.facts == _facts(descriptor):
            return descriptor, shelf
        os.close(descriptor)
        return None

    def note_used(self, content: Content) -> None:
        """A run has used it."""
        content.used_s = monotonic()
        self.hits += 1
        self.hit_bytes += content.size

    def load(self, name: str) -> None:
        """Compare the contents of a shelf with their digests, so that it can be lent.

        Raises:
            OSError: it cannot be read.
        """
        with self._working:
            self._load(name)

    def add(self, name: str, source: int) -> int:
        """Keep what a run has put into a file and is not there yet; how many contents that were.

        Raises:
            OSError: there is no room, or the disk does not take it.
        """
        with self._working:
            shelf = self._load(name)
            here = {each.digest for each in shelf.contents}
            coming: dict[bytes, tuple[int, int]] = {}
            at = total = 0
            for _ in range(MOST_CONTENTS):  # as the run says, which may say the same without end
                head = os.pread(source, HEAD.size, at)
                if len(head) < HEAD.size:
                    break
                magic, size, digest = HEAD.unpack(head)
                if magic != MAGIC or not 0 < size <= MOST_NEW_BYTES:
                    break
                at += HEAD.size
                if total > MOST_NEW_BYTES:
                    break
                if digest not in here and digest not in coming:
                    coming[digest] = at, size
                    total += HEAD.size + _aligned(size)
                at += size
            if not coming or total > MOST_NEW_BYTES + (MOST_CONTENTS * ALIGNED):
                return 0
            self._make_room(total)
            return self._append(name, source, coming)

    def trim(self) -> None:
        """Hold the limit, which may have changed.

        Raises:
            OSError: a file resists.
        """
        with self._working:
            self._hold(self.limit_bytes)

    # ---- files; the lock is held

    def _path(self, name: str) -> str:
        return str(self.folder / (name + ENDING))

    def _load(self, name: str) -> Shelf:
        shelf = self._shelves.get(name)
        try:
            descriptor = os.open(self._path(name), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            self._shelves.pop(name, None)
            return Shelf(())
        try:
            if shelf is None or shelf.facts != _facts(descriptor):
                contents, end = self._compare(descriptor)
                if end != os.fstat(descriptor).st_size:
                    os.ftruncate(descriptor, end)
                shelf = self._shelves[name] = Shelf(_facts(descriptor), tuple(contents))
        finally:
            os.close(descriptor)
        return shelf

    def _compare(self, descriptor: int) -> tuple[list[Content], int]:
        """The contents that have their digests, and where the last of them ends."""
        found: list[Content] = []
        at = end = 0
        length = os.fstat(descriptor).st_size
        while len(found) < MOST_CONTENTS and at + HEAD.size <= length:
            magic, size, digest = HEAD.unpack(os.pread(descriptor, HEAD.size, at))
            at += HEAD.size
            if magic != MAGIC or not 0 < size <= MOST_CONTENT_BYTES or at + size > length:
                break
            if self._copied(descriptor, at, size, -1, 0) == digest:
                found.append(Content(digest, at, size))
                end = at + _aligned(size)
            else:
                self.damaged += 1
            at += _aligned(size)
        return found, end

    @staticmethod
    def _copied(source: int, at: int, size: int, target: int, to: int) -> bytes:
        """The digest of a piece of a file, which is copied on the way (target -1: is not)."""
        digest = hashlib.sha256()
        while size:
            piece = os.pread(source, min(size, PIECE), at)
            if not piece:
                return b""
            digest.update(piece)
            written = 0
            while target >= 0 and written < len(piece):
                written += os.pwrite(target, piece[written:], to + written)
            at, to, size = at + len(piece), to + len(piece), size - len(piece)
        return digest.digest()

    def _append(self, name: str, source: int, coming: dict[bytes, tuple[int, int]]) -> int:
        before = self._shelves.get(name, Shelf(()))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path(name), flags, 0o600)
        contents = list(before.contents)
        try:
            end = _aligned(os.fstat(descriptor).st_size)
            try:
                for digest, (at, size) in coming.items():
                    if len(contents) >= MOST_CONTENTS:
                        break
                    if self._copied(source, at, size, descriptor, end + HEAD.size) != digest:
                        self.refused += 1
                        continue
                    os.pwrite(descriptor, HEAD.pack(MAGIC, size, digest), end)
                    contents.append(Content(digest, end + HEAD.size, size))
                    end += HEAD.size + _aligned(size)
            finally:
                os.ftruncate(descriptor, end)
                self._shelves[name] = Shelf(_facts(descriptor), tuple(contents))
        finally:
            os.close(descriptor)
        return len(contents) - len(before.contents)

    # ---- room; the lock is held

    def _sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with contextlib.suppress(FileNotFoundError), os.scandir(self.folder) as entries:
            for entry in entries:
                facts = entry.stat(follow_symlinks=False)
                if _NAME.match(entry.name) and stat.S_ISREG(facts.st_mode):
                    found[entry.name.removesuffix(ENDING)] = facts.st_size
                else:  # left behind by a crash
                    os.unlink(entry.path)
        return found

    def _make_room(self, needed: int) -> None:
        if needed > self.limit_bytes // 2:
            raise OSError(errno.ENOSPC, "more than half of the limit")
        self._hold(self.limit_bytes - needed)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk = os.statvfs(self.folder)
        if disk.f_bavail * disk.f_frsize < needed + min(self.floor_bytes, disk.f_blocks * disk.f_frsize // 20):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _hold(self, limit_bytes: int) -> None:
        """The largest shelf gives way: so nobody keeps others out by filling their own."""
        sizes = self._sizes()
        while sum(sizes.values()) > limit_bytes:
            name = max(sizes, key=lambda each: sizes[each])
            sizes[name] = self._halve(name, sizes[name]) if limit_bytes > 0 else self._drop(name)
            if not sizes[name]:
                del sizes[name]

    def _drop(self, name: str) -> int:
        self._shelves.pop(name, None)
        os.unlink(self._path(name))
        return 0

    def _halve(self, name: str, size: int) -> int:
        """Keep what was used last; how large it is then."""
        kept = _last_used(self._shelves.get(name, Shelf(())).contents, size // 2)
        if not kept:
            return self._drop(name)
        fresh = self._path(name) + ".new"
        try:
            source = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                target = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    contents = self._rewrite(source, target, kept)
                    os.rename(fresh, self._path(name))
                    self._shelves[name] = Shelf(_facts(target), contents)
                    return os.fstat(target).st_size
                finally:
                    os.close(target)
            finally:
                os.close(source)
        except OSError:  # a full disk: it is a cache
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            return self._drop(name)

    def _rewrite(self, source: int, target: int, kept: Sequence[Content]) -> tuple[Content, ...]:
        found, end = [], 0
        for each in kept:
            if self._copied(source, each.offset, each.size, target, end + HEAD.size) == each.digest:
                os.pwrite(target, HEAD.pack(MAGIC, each.size, each.digest), end)
                found.append(Content(each.digest, end + HEAD.size, each.size, each.used_s))
                end += HEAD.size + _aligned(each.size)
        os.ftruncate(target, end)
        return tuple(found)


def _last_used(contents: Sequence[Content], most_bytes: int) -> list[Content]:
    """Those that were used last, and came last, as far as there is room."""
    kept, total = [], 0
    for each in sorted(contents, key=lambda one: (-one.used_s, -one.offset)):
        total += HEAD.size + _aligned(each.size)
        if total > most_bytes:
            break
        kept.append(each)
    return kept
