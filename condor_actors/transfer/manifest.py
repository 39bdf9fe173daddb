"""Manifests: what a directory tree is, as a list of entries with digests.

Theory: files travel by content.  A manifest (a tuple of :class:`~condor_actors.messages.manifest.FileEntry`) names
every file by its SHA-256; small contents ride inline, the rest is fetched from the peer's blob store by digest.  A
manifest from the other side is hostile until :func:`check_manifest` has passed it: no absolute path, no ``..``, nothing
twice, nothing below what is not a directory, no link that leads out.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import stat
import sys
from collections.abc import Callable, Sequence

from condor_actors.actors.workers import digest_of, touching
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import bad_url
from condor_actors.transfer.beneath import needs_regular, open_at_once

INLINE_LIMIT_BYTES = 16 * 1024
"""Files up to this size ride in the manifest."""

INLINE_TOTAL_BYTES = 256 * 1024
"""All that rides inline in one manifest, so that the message stays under its limit."""

LIGHT_BYTES = 4 << 20
LIGHT_ENTRIES = 300
"""What a :class:`ManifestBuilder` that must not hold anyone up reads at most: some ten milliseconds' work."""

MAX_ENTRIES = 200_000
MAX_PATH_BYTES = 4096
CHUNK_BYTES = 1 << 20
GONE = (errno.ENOENT, errno.ENXIO, errno.ENODEV)
"""A child that has gone meanwhile, or a socket or device that nobody serves."""


class BadManifest(ValueError):
    """A manifest that must not be carried out; names the entry and what is wrong with it."""


def digest_bytes(data: bytes) -> str:
    """The name of a blob: SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: str | os.PathLike[str]) -> tuple[str, int]:
    """(digest, size in bytes) of a file's content."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


def is_digest(text: str) -> bool:
    """Whether ``text`` is a SHA-256 in lower-case hexadecimal."""
    return len(text) == 64 and all(letter in "0123456789abcdef" for letter in text)


def check_path(path: str) -> str:
    """The path itself, when it is relative, normalised and stays inside.

    Raises:
        BadManifest: it is not.
    """
    if not path or path.startswith("/") or "\0" in path or len(path.encode(errors="surrogateescape")) > MAX_PATH_BYTES:
        raise BadManifest(f"{path[:200]!r} is not a relative path")
    if posixpath.normpath(path) != path or path == "." or path.split("/", 1)[0] == "..":
        raise BadManifest(f"{path[:200]!r} leads out of its directory or is not in its plain form")
    return path


def check_manifest(entries: Sequence[FileEntry], *, max_total_bytes: int | None = None) -> None:
    """Pass a manifest that came from the other side.

    Args:
        entries: directories before what is in them.
        max_total_bytes: of all files together; None: no limit.

    Raises:
        BadManifest: an entry is not to be carried out.
    """
    if len(entries) > MAX_ENTRIES:
        raise BadManifest(f"{len(entries)} entries, more than {MAX_ENTRIES}")
    kinds: dict[str, str] = {}
    parents: set[str] = set()
    total = 0
    for entry in entries:
        path = check_path(entry.path)
        if entry.kind != "directory" and path in parents:
            raise BadManifest(f"{path!r} is a {entry.kind} and has something below it")
        if path in kinds and not (kinds[path] == entry.kind == "directory"):
            raise BadManifest(f"{path!r} is there twice")
        if entry.kind not in ("file", "directory", "link"):
            raise BadManifest(f"{path!r} has the unknown kind {entry.kind!r}")
        parent = posixpath.dirname(path)
        while parent:
            if kinds.get(parent, "directory") != "directory":
                raise BadManifest(f"{path!r} lies below {parent!r}, which is a {kinds[parent]}")
            if parent in parents:
                break
            parents.add(parent)
            parent = posixpath.dirname(parent)
        kinds[path] = entry.kind
        if entry.url and entry.kind != "file":
            raise BadManifest(f"the {entry.kind} {path!r} has a URL, which only files have")
        if entry.kind == "file":
            _check_file(entry)
            total += entry.size_bytes
        elif entry.kind == "link":
            _check_link(entry)
    if max_total_bytes is not None and total > max_total_bytes:
        raise BadManifest(f"{total} bytes in all, more than {max_total_bytes}")


def _check_file(entry: FileEntry) -> None:
    if entry.mode & ~0o777:
        raise BadManifest(f"{entry.path!r} has mode {entry.mode:o}; only permission bits are carried")
    if entry.url:
        problem = bad_url(entry.url)
        if problem:
            raise BadManifest(f"{entry.path!r} is to be fetched from {problem}")
        return
    if entry.size_bytes < 0 or not is_digest(entry.digest):
        raise BadManifest(f"{entry.path!r} has no proper size and digest")
    if entry.inline is not None and (
        len(entry.inline) != entry.size_bytes or digest_bytes(entry.inline) != entry.digest
    ):
        raise BadManifest(f"the inline content of {entry.path!r} is not what its digest says")


def _check_link(entry: FileEntry) -> None:
    """Pass a link that stays inside whatever other links there are: ``..`` after a name goes up from wherever that name
    leads, which may be a link that went up already.

    Raises:
        BadManifest: it leads out, or could.
    """
    names = [name for name in entry.target.split("/") if name not in ("", ".")]
    upwards = next((count for count, name in enumerate(names) if name != ".."), len(names))
    if (not entry.target or entry.target.startswith("/") or "\0" in entry.target or ".." in names[upwards:]
            or upwards > entry.path.count("/")):
        raise BadManifest(f"the link {entry.path!r} leads to {entry.target!r}, out of its directory or by '..' behind "
                          "a name")


def is_light(entries: Sequence[FileEntry]) -> bool:
    """Whether laying these out is done between two turns of an actor."""
    return len(entries) <= LIGHT_ENTRIES and sum(entry.size_bytes for entry in entries) <= LIGHT_BYTES


class HeavyManifest(Exception):
    """There is more to read than fits between two turns of an actor: do it beside the reactor."""


class ManifestBuilder:
    """Collects entries of files and trees; reads small files inline while there is room.

    Args:
        inline_limit_bytes: files up to this size ride inline.
        inline_total_bytes: as long as all of them together stay under this.
        light: raise :class:`HeavyManifest` before much is read, for a caller that must not be held up.
        opener: opens a path for reading; files that others may change need one that looks where it gets to.
    """

    def __init__(self, *, inline_limit_bytes: int = INLINE_LIMIT_BYTES,
                 inline_total_bytes: int = INLINE_TOTAL_BYTES, light: bool = False,
                 opener: Callable[[str], int] = open_at_once) -> None:
        self.entries: list[FileEntry] = []
        self.sources: dict[str, str] = {}
        """Digest to a path of this machine that has the content, for what does not ride inline."""
        self.places: dict[str, str] = {}
        """Path in the manifest to the file's path on this machine."""
        self.missing: tuple[str, ...] = ()
        """What should be in it and is not there, by the names that were asked for."""
        self._inline_limit_bytes = inline_limit_bytes
        self._inline_left_bytes = inline_total_bytes
        self._opener = opener
        self._paths: set[str] = set()
        self._left_bytes = LIGHT_BYTES if light else sys.maxsize
        self._most_entries = LIGHT_ENTRIES if light else sys.maxsize

    def add(self, source: str, path: str) -> None:
        """Add a file, or a directory with everything below it, under ``path``.

        Sockets, devices and pipes are left out.  Links inside a tree stay links when they lead inside it; a link that
        leads out, and ``source`` itself, are followed as far as ``opener`` follows them.

        Raises:
            OSError: ``source`` cannot be read, or is no file and no directory.
        """
        descriptor = self._opener(source)
        try:
            facts = os.fstat(descriptor)
            if stat.S_ISDIR(facts.st_mode):
                self._add_directory(path, facts.st_mode)
                self._add_tree(descriptor, source, path)
            else:
                self._add_file(descriptor, needs_regular(descriptor, source), source, path)
        finally:
            os.close(descriptor)

    def add_tree(self, source: str, path: str = "") -> None:
        """Add what is in the directory ``source``, under ``path`` (empty: at the top)."""
        descriptor = self._opener(source)
        try:
            self._add_tree(descriptor, source, path)
        finally:
            os.close(descriptor)

    def _add_tree(self, folder: int, source: str, path: str) -> None:
        with os.scandir(folder) as found:
            children = sorted((entry.name, entry.is_symlink()) for entry in found)
        for name, is_link in children:
            below, place = f"{path}/{name}" if path else name, f"{source}/{name}"
            if is_link and self._add_link(folder, name, below):
                continue
            touching(place)
            try:
                descriptor = self._opener(place)
            except OSError as error:
                if error.errno in GONE:
                    continue
                raise
            try:
                facts = os.fstat(descriptor)
                if stat.S_ISDIR(facts.st_mode) and not is_link:
                    self._add_directory(below, facts.st_mode)
                    self._add_tree(descriptor, place, below)
                elif stat.S_ISREG(facts.st_mode):
                    self._add_file(descriptor, facts, place, below)
            finally:
                os.close(descriptor)

    def _add_link(self, folder: int, name: str, path: str) -> bool:
        try:
            entry = FileEntry(path=path, kind="link", target=os.readlink(name, dir_fd=folder))
            _check_link(entry)
        except (BadManifest, OSError):
            return False
        self._append(entry)
        return True

    def _add_directory(self, path: str, mode: int) -> None:
        if path not in self._paths:
            self._append(FileEntry(path=path, kind="directory", mode=stat.S_IMODE(mode) & 0o777))

    def _add_file(self, descriptor: int, facts: os.stat_result, source: str, path: str) -> None:
        self.places[path] = os.path.abspath(source)
        with open(descriptor, "rb", closefd=False) as stream:
            mode = stat.S_IMODE(facts.st_mode) & 0o777
            self._left_bytes -= facts.st_size
            if self._left_bytes < 0:
                raise HeavyManifest
            if facts.st_size <= min(self._inline_limit_bytes, self._inline_left_bytes):
                data = stream.read(self._inline_limit_bytes + 1)
                if len(data) <= self._inline_limit_bytes:
                    self._inline_left_bytes -= len(data)
                    self._append(FileEntry(path=path, mode=mode, size_bytes=len(data), digest=digest_bytes(data),
                                           inline=data))
                    return
                stream.seek(0)
            digest = digest_of(stream, source)
            self._append(FileEntry(path=path, mode=mode, size_bytes=stream.tell(), digest=digest))
            self.sources[digest] = os.path.abspath(source)

    def _append(self, entry: FileEntry) -> None:
        check_path(entry.path)
        if len(self.entries) >= MAX_ENTRIES:
            raise BadManifest(f"more than {MAX_ENTRIES} files")
        if len(self.entries) >= self._most_entries:
            raise HeavyManifest
        self._paths.add(entry.path)
        self.entries.append(entry)
