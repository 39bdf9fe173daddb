"""The files of a job at home: the inputs that go out and the outputs that come back.

Theory: what travels is a manifest of entries with digests; small files ride in it.  A digest is computed once per
(path, inode, date, size).  An output is written beside its place and renamed over it when it is whole and on the disk,
so a reader sees the old file or the new one; only devices, pipes and links are written through.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Sequence

import attrs

from condor_actors.actors.workers import NoAnswer, digest_of, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.durable import open_beside, sync_file_systems, sync_folder
from condor_actors.messages.codec import encode_parts
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.urls import local_path, travels_as_url
from condor_actors.transfer.manifest import (
    INLINE_LIMIT_BYTES,
    INLINE_TOTAL_BYTES,
    BadManifest,
    ManifestBuilder,
    check_path,
    digest_bytes,
)
from condor_actors.userlog.writer import UserLogs

__all__ = ["FileCache", "FileTrouble", "Inputs", "OutputPlaces", "Outgoing", "gather_inputs", "input_manifest",
           "manifest_file", "write_pieces", "write_whole"]

EXECUTABLE = "condor_exec.exe"
STDIN, STDOUT, STDERR = "_condor_stdin", "_condor_stdout", "_condor_stderr"
NULL = "/dev/null"


class FileTrouble(Exception):
    """A file of the job that cannot be used: the reason for the hold, with its errno.

    Attributes:
        subcode: the errno, 0 when there is none.
    """

    def __init__(self, text: str, subcode: int = 0) -> None:
        super().__init__(text)
        self.subcode = subcode


def _trouble(what: str, path: str, error: OSError) -> FileTrouble:
    text = error.strerror if isinstance(error, NoAnswer) else os.strerror(error.errno or 0)
    return FileTrouble(f"{what} {path}: (errno {error.errno}) {text}", error.errno or 0)


@attrs.frozen
class Outgoing:
    """The inputs of a run: entries, and where the content of each digest lies."""

    entries: tuple[FileEntry, ...]
    sources: dict[str, tuple[str, int]]


@attrs.frozen
class _Known:
    facts: tuple[int, int, int, int]
    digest: str
    inline: bytes | None


class FileCache:
    """Digests of files that were read before."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._known: dict[str, _Known] = {}
        self._capacity = capacity

    def entry(self, source: str, path: str, mode: int | None = None) -> FileEntry:
        """The entry of a file.

        Raises:
            OSError: it cannot be read.
        """
        touching(source)
        facts = os.stat(source)
        known = self._known.get(source)
        if known is None or known.facts != _facts(facts):
            known = self._read(source)
        permissions = stat.S_IMODE(facts.st_mode) & 0o777 if mode is None else mode
        return FileEntry(path=path, mode=permissions, size_bytes=known.facts[3], digest=known.digest,
                         inline=known.inline)

    def _read(self, source: str) -> _Known:
        with os.fdopen(open_plain(source), "rb") as stream:
            facts = os.fstat(stream.fileno())
            inline = None
            if facts.st_size <= INLINE_LIMIT_BYTES:
                inline = stream.read()
                digest, size = hashlib.sha256(inline).hexdigest(), len(inline)
            else:
                digest = digest_of(stream, source)
                size = stream.tell()
        known = _Known((facts.st_dev, facts.st_ino, facts.st_mtime_ns, size), digest, inline)
        if len(self._known) >= self._capacity:
            self._known.pop(next(iter(self._known)), None)
        self._known[source] = known
        return known


def _facts(facts: os.stat_result) -> tuple[int, int, int, int]:
    return (facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_size)


# ---- inputs


def input_paths(job: ClassAd) -> list[tuple[str, str]]:
    """(source, path in the sandbox) of what the job takes along.

    A source may be a URL; an empty path stands for the content of a folder.

    Raises:
        FileTrouble: a path that is to be kept leads out of the sandbox.
    """
    iwd = job.get_str("Iwd", "/")
    keeps_paths = job.get_bool("PreserveRelativePaths")
    found: list[tuple[str, str]] = []
    if job.get_bool("TransferExecutable", True):
        found.append((_source(iwd, job.get_str("Cmd")), EXECUTABLE))
    stdin = job.get_str("In") or NULL
    if stdin != NULL and job.get_bool("TransferIn", True) and not job.get_bool("StreamIn"):
        found.append((_source(iwd, stdin), STDIN))
    for name in job.get_str("TransferInput").split(","):
        name = name.strip()
        if not name:
            continue
        if travels_as_url(name):
            found.append((name, os.path.basename(name.partition("?")[0].rstrip("/")) or "download"))
        else:
            source = _source(iwd, name)
            if keeps_paths and not name.startswith("/") and "://" not in name:
                found.append((source, _kept_path(name)))
                continue
            found.append((source, "" if name.endswith("/") else os.path.basename(source.rstrip("/"))))
    return found


def _kept_path(name: str) -> str:
    """A relative name as the path in the sandbox (PreserveRelativePaths)."""
    try:
        return check_path(os.path.normpath(name))
    except BadManifest:
        raise FileTrouble(f"cannot take input {name} along under its path, which leads out of the job's folder "
                          "(preserve_relative_paths)") from None


def _folders_above(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _source(iwd: str, name: str) -> str:
    return name if travels_as_url(name) else os.path.join(iwd, local_path(name))


def input_manifest(job: ClassAd, cache: FileCache, extra: Iterable[tuple[str, str]] = (),
                   inline_total_bytes: int = INLINE_TOTAL_BYTES) -> Outgoing:
    """The inputs of a job.

    Args:
        job: its ad, ``$$()`` expanded.
        cache: digests known already.
        extra: further (source, path) pairs that replace others of the same path (what an evicted run left).
        inline_total_bytes: how much may ride in the manifest.

    Raises:
        FileTrouble: a file is missing or cannot be read; names it.
    """
    entries: dict[str, FileEntry] = {}
    sources: dict[str, tuple[str, int]] = {}
    inline_left = inline_total_bytes
    for source, path in [*input_paths(job), *extra]:
        if travels_as_url(source):
            entries[path] = FileEntry(path=path, url=source)
            continue
        for above in _folders_above(path):
            entries.setdefault(above, FileEntry(path=above, kind="directory", mode=0o755))
        try:
            touching(source)
            if os.path.isdir(source):
                builder = ManifestBuilder(inline_total_bytes=inline_left)
                if path:
                    builder.add(source, path)
                else:
                    builder.add_tree(source)
                entries.update((entry.path, entry) for entry in builder.entries)
                sources.update((digest, (where, os.stat(where).st_size)) for digest, where in builder.sources.items())
                inline_left -= sum(len(entry.inline or b"") for entry in builder.entries)
                continue
            entry = cache.entry(source, path, 0o755 if path == EXECUTABLE else None)
        except OSError as error:
            what = "cannot read executable" if path == EXECUTABLE else "cannot read input file"
            raise _trouble(what, source, error) from None
        except BadManifest as error:
            raise FileTrouble(f"cannot take input {source}: {error}") from None
        if entry.inline is not None and len(entry.inline) > inline_left:
            entry = attrs.evolve(entry, inline=None)
        if entry.inline is None:
            sources[entry.digest] = (source, entry.size_bytes)
        else:
            inline_left -= len(entry.inline)
        entries[path] = entry
    return Outgoing(tuple(entries.values()), sources)


@attrs.frozen
class Inputs:
    """What was found of a job's files before a run.

    Attributes:
        log_problem: why its user log cannot be written; empty: it can.
        skipped: its outputs are newer than its inputs, and it need not run (SkipIfDataflow).
        kept: the names of what an evicted run has left.
        outgoing: the inputs.
    """

    log_problem: str
    kept: tuple[str, ...]
    outgoing: Outgoing
    skipped: bool = False


def gather_inputs(logs: UserLogs, job: ClassAd, cache: FileCache, kept: str | None, inline_bytes: int) -> Inputs:
    """In a worker: can the job's log be written, and what does it take along?

    Args:
        kept: where an evicted run has left files; None: nothing travels.
        inline_bytes: as for :func:`input_manifest`.

    Raises:
        FileTrouble: as :func:`input_manifest`.
        NoAnswer: another worker is stuck in the same folder.
    """
    problem = logs.problem(job)
    if not problem and job.get_bool("SkipIfDataflow") and _is_made(job):
        return Inputs("", (), Outgoing((), {}), skipped=True)
    if problem or kept is None:
        return Inputs(problem, (), Outgoing((), {}))
    if not os.path.isdir(kept) and os.path.isdir(f"{kept}.old"):
        kept = f"{kept}.old"  # a crash between the two steps of taking its place
    names = tuple(sorted(os.listdir(kept))) if os.path.isdir(kept) else ()
    extra = [(os.path.join(kept, name), name) for name in names]
    return Inputs("", names, input_manifest(job, cache, extra, inline_bytes))


def _is_made(job: ClassAd) -> bool:
    """Whether all named outputs are at home, and each is newer than the program and every input that is a file."""
    iwd, places = job.get_str("Iwd", "/"), OutputPlaces(job)
    names = [name.strip() for name in job.get_str("TransferOutput").split(",") if name.strip()]
    keeps_paths = job.get_bool("PreserveRelativePaths")
    inputs = [_source(iwd, job.get_str("Cmd"))]
    inputs += [source for source, path in input_paths(job) if path != EXECUTABLE and not travels_as_url(source)]
    try:
        outputs = [places.of(os.path.normpath(name) if keeps_paths else os.path.basename(name.rstrip("/")))
                   for name in names]
        for place in (*inputs, *outputs):
            touching(place or "/")
        made = [os.stat(place).st_mtime_ns for place in outputs if place is not None]
        return bool(made) and min(made) > max(os.stat(source).st_mtime_ns for source in inputs)
    except (OSError, BadManifest):
        return False


# ---- outputs


def manifest_file(entries: Sequence[FileEntry]) -> tuple[str, str, int]:
    """Put a manifest into a new file that nobody else can have made: its path, digest and size in bytes.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    data = encode_parts(entries)
    descriptor, path = tempfile.mkstemp(prefix=".condor-manifest-")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
    except OSError:
        os.unlink(path)
        raise
    return path, digest_bytes(data), len(data)


class OutputPlaces:
    """Where at home each output belongs.

    Args:
        job: its ad.
        kept: a folder for what an evicted run leaves for the next; None: everything goes home.
        keeps_streams: output and error are kept there too: the next run goes on writing them.

    Attributes:
        directory: made for the outputs (OutputDirectory); empty: they go to the job's folder.
    """

    def __init__(self, job: ClassAd, kept: str | None = None, keeps_streams: bool = False) -> None:
        self._keeps_streams = keeps_streams
        self._iwd = job.get_str("Iwd", "/")
        directory = job.get_str("OutputDirectory") if kept is None else ""
        self.directory = os.path.join(self._iwd, directory) if directory else ""
        self._base = self.directory or self._iwd
        self._kept = kept
        self._out = job.get_str("Out") or NULL
        self._err = job.get_str("Err") or NULL
        self._remaps = dict(_remaps(job.get_str("TransferOutputRemaps"))) if not job.get_str("SUBMIT_Iwd") else {}

    def of(self, path: str) -> str | None:
        """The place of an entry; None: nowhere.

        Raises:
            BadManifest: the path leads out of the sandbox.
        """
        check_path(path)
        if self._kept is not None and self._keeps_streams:
            return os.path.join(self._kept, path)
        if path == STDOUT:
            return self._stream(self._out, self._base)
        if path == STDERR:
            return self._stream(self._err, self._base)
        if self._kept is not None:
            return os.path.join(self._kept, path)
        if path in self._remaps:
            return os.path.join(self._base, local_path(self._remaps[path]))
        top, slash, rest = path.partition("/")
        if slash and top in self._remaps:
            return os.path.join(self._base, local_path(self._remaps[top]), rest)
        return os.path.join(self._base, path)

    def of_stream(self, name: str) -> str | None:
        """The place of a streamed file, by the name that the job's ad gives it: any path, since its owner wrote it.

        Raises:
            BadManifest: the ad does not name it, and it leads out of the job's folder.
        """
        return self._stream(name, self._iwd) if name in (self._out, self._err) else self.of(name)

    @staticmethod
    def _stream(name: str, folder: str) -> str | None:
        return None if name == NULL else os.path.join(folder, local_path(name))

    @property
    def joined(self) -> bool:
        """Whether output and error are one file."""
        return self._out == self._err and self._out != NULL


def _remaps(text: str) -> Iterable[tuple[str, str]]:
    """``a = b; c = d`` with backslashes before what is meant literally."""
    parts, current, escaped = [], [""], False
    for letter in text:
        if escaped:
            current[-1] += letter
            escaped = False
        elif letter == "\\":
            escaped = True
        elif letter == ";":
            parts.append(current)
            current = [""]
        elif letter == "=" and len(current) == 1:
            current.append("")
        else:
            current[-1] += letter
    parts.append(current)
    for part in parts:
        if len(part) == 2 and part[0].strip():
            yield part[0].strip(), part[1].strip()


def make_folders(entries: Sequence[FileEntry], places: OutputPlaces) -> None:
    """Make the folders of a manifest, and those that its files need.

    Raises:
        FileTrouble: one cannot be made.
    """
    if places.directory:
        try:
            touching(places.directory)
            os.makedirs(places.directory, 0o700, exist_ok=True)
        except OSError as error:
            raise _trouble("cannot create output directory", places.directory, error) from None
    for entry in entries:
        place = places.of(entry.path)
        if place is None:
            continue
        folder = place if entry.kind == "directory" else os.path.dirname(place)
        try:
            touching(place)
            if entry.kind == "directory" or "/" in entry.path:
                os.makedirs(folder, exist_ok=True)
            elif not os.path.isdir(folder):
                raise OSError(errno.ENOENT, "no such directory")
        except OSError as error:
            what = "cannot create output directory"
            if error.errno == errno.ENOENT:
                what = "the directory of an output file does not exist (make it, then condor_release the job):"
            raise _trouble(what, folder, error) from None


FEW = 32
"""Outputs up to this many are synced one by one; more of them together, at the end."""


def place_inline(entries: Sequence[FileEntry], places: OutputPlaces) -> None:
    """Make the folders of a manifest and write what came along in it; all is on the disk at the end.

    Raises:
        FileTrouble: something cannot be written.
    """
    make_folders(entries, places)
    few = len(entries) <= FEW
    written: dict[str, bytes] = {}
    for entry in entries:
        place = places.of(entry.path)
        if place is None or entry.kind == "directory":
            continue
        if entry.kind == "link":
            place_link(entry, place)
        elif entry.inline is not None:
            data = entry.inline
            if entry.path == STDERR and places.joined and place in written:
                data = written[place] + data
            is_stream = entry.path in (STDOUT, STDERR)
            write_whole(place, data, 0o644 if is_stream else entry.mode, sync=few)
            if is_stream:
                written[place] = data
    if not few:
        targets = [places.of(entry.path) for entry in entries]
        folders = {os.path.dirname(os.path.realpath(target)) for target in targets if target is not None}
        try:
            sync_file_systems(folders)
        except OSError as error:
            raise _trouble("cannot write output files to", error.filename or "the disk", error) from None


def write_whole(place: str, data: bytes, mode: int = 0o644, *, sync: bool = True) -> None:
    """Put a file in its place at once.

    Args:
        sync: wait until its content is on the disk before it takes its place, and then for its name.

    Raises:
        FileTrouble: it cannot be written.
    """
    try:
        touching(place)
        target = os.path.realpath(place)
        facts = os.stat(target) if os.path.exists(target) else None
        if facts is not None and not stat.S_ISREG(facts.st_mode):
            _write_through(target, data)
            return
        if facts is not None and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "permission denied")
        stream, fresh = open_beside(target, "out")
        with stream:
            try:
                _write_all(stream.fileno(), data)
                os.fchmod(stream.fileno(), stat.S_IMODE(facts.st_mode) if facts is not None else mode & 0o777)
                if sync:
                    os.fdatasync(stream.fileno())
                os.rename(fresh, target)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(fresh)
                raise
        if sync:
            sync_folder(os.path.dirname(target))
    except OSError as error:
        raise _trouble("cannot write output file", place, error) from None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def _write_through(target: str, data: bytes) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def place_link(entry: FileEntry, place: str) -> None:
    """Make a link of the manifest at home.

    Raises:
        FileTrouble: it cannot be made.
    """
    try:
        touching(place)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place)
        os.symlink(entry.target, place)
    except OSError as error:
        raise _trouble("cannot make link", place, error) from None


def write_pieces(places: OutputPlaces, pieces: Sequence[tuple[str, int, bytes]]) -> list[tuple[str, Exception]]:
    """In a worker: write pieces of streamed files; which could not be written, and why."""
    failed: list[tuple[str, Exception]] = []
    for path, offset, data in pieces:
        try:
            place = places.of_stream(path)
            if place is not None:
                _write_piece(place, offset, data)
        except (OSError, BadManifest) as error:
            failed.append((path, error))
    return failed


def _write_piece(place: str, offset: int, data: bytes) -> None:
    """Write a piece of a streamed file.

    Raises:
        OSError: it cannot be written.
    """
    touching(place)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.lseek(descriptor, offset, os.SEEK_SET)
            if offset == 0:
                os.ftruncate(descriptor, 0)
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)
