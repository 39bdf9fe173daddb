"""The inputs of a job at home, as they go out to its runs.

Theory: what travels is a manifest of entries with digests; small files ride in it.  A digest is computed once per
(path, inode, date, size).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Sequence

import attrs

from condor_actors.actors.workers import digest_of, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.checkpoints.destination import destination_of, url_below
from condor_actors.cores.checkpoints.manifest import CheckpointList
from condor_actors.cores.transfer_plugins import BadPlugin, job_plugins
from condor_actors.daemons.shadow.checkpoints.kept_lists import ALL, KeptLists
from condor_actors.daemons.shadow.file_trouble import FileTrouble, file_trouble
from condor_actors.daemons.shadow.output_files import NULL, OutputPlaces
from condor_actors.daemons.shadow.url_signer import UrlSigner
from condor_actors.messages.codec import encode_parts
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import local_path, shown_url, travels_as_url
from condor_actors.transfer.manifest import (
    INLINE_LIMIT_BYTES,
    INLINE_TOTAL_BYTES,
    BadManifest,
    ManifestBuilder,
    check_path,
    digest_bytes,
)
from condor_actors.userlog.writer import UserLogs

__all__ = ["FileCache", "Inputs", "Outgoing", "gather_inputs", "input_manifest", "manifest_file"]

EXECUTABLE = "condor_exec.exe"
STDIN = "_condor_stdin"


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


def input_paths(job: ClassAd) -> list[tuple[str, str]]:
    """(source, path in the sandbox) of what the job takes along.

    A source may be a URL; an empty path stands for the content of a folder.

    Raises:
        FileTrouble: a path that is to be kept leads out of the sandbox, or TransferPlugins cannot be read.
    """
    iwd = job.get_str("Iwd", "/")
    keeps_paths = job.get_bool("PreserveRelativePaths")
    found: list[tuple[str, str]] = []
    if job.get_bool("TransferExecutable", True):
        found.append((_source(iwd, job.get_str("Cmd")), EXECUTABLE))
    stdin = job.get_str("In") or NULL
    if stdin != NULL and job.get_bool("TransferIn", True) and not job.get_bool("StreamIn"):
        found.append((_source(iwd, stdin), STDIN))
    try:
        plugins = job_plugins(job.get_str("TransferPlugins"))
    except BadPlugin as error:
        raise FileTrouble(f"cannot take the job's transfer plugins along: {error}") from None
    found += [(_source(iwd, path), os.path.basename(path)) for path in dict.fromkeys(plugins.values())]
    names = f'{job.get_str("TransferInput")},{job.get_str("PublicInputFiles")}'.split(",")
    for name in dict.fromkeys(name.strip() for name in names):
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
                   inline_total_bytes: int = INLINE_TOTAL_BYTES, now_s: float = 0.0,
                   checkpoint: CheckpointList | None = None) -> Outgoing:
    """The inputs of a job.

    Args:
        job: its ad, ``$$()`` expanded.
        cache: digests known already.
        extra: further (source, path) pairs that replace others of the same path (what an evicted run left).
        inline_total_bytes: how much may ride in the manifest.
        now_s: since when signed URLs are good.
        checkpoint: at its destination, in the place of inputs of the same names.

    Raises:
        FileTrouble: a file is missing or cannot be read; names it.
    """
    signer = UrlSigner(job, now_s)
    entries: dict[str, FileEntry] = {}
    sources: dict[str, tuple[str, int]] = {}
    inline_left = inline_total_bytes
    for source, path in [*input_paths(job), *extra]:
        if travels_as_url(source):
            try:
                entries[path] = FileEntry(path=path, url=signer.signed(source, "GET"))
            except FileTrouble as trouble:
                raise FileTrouble(f"cannot fetch {shown_url(source)}: {trouble}", trouble.subcode) from None
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
            raise file_trouble(what, source, error) from None
        except BadManifest as error:
            raise FileTrouble(f"cannot take input {source}: {error}") from None
        if entry.inline is not None and len(entry.inline) > inline_left:
            entry = attrs.evolve(entry, inline=None)
        if entry.inline is None:
            sources[entry.digest] = (source, entry.size_bytes)
        else:
            inline_left -= len(entry.inline)
        entries[path] = entry
    if checkpoint is not None:
        _add_checkpoint(entries, checkpoint, signer)
    return Outgoing(tuple(entries.values()), sources)


def _add_checkpoint(entries: dict[str, FileEntry], checkpoint: CheckpointList, signer: UrlSigner) -> None:
    """The files of a checkpoint come from its destination."""
    for entry in checkpoint.entries:
        for above in _folders_above(entry.path):
            entries.setdefault(above, FileEntry(path=above, kind="directory", mode=0o755))
        if entry.kind == "file":
            url = url_below(checkpoint.base, entry.path)
            try:
                entry = attrs.evolve(entry, url=signer.signed(url, "GET"))
            except FileTrouble as trouble:
                raise FileTrouble(f"cannot fetch {shown_url(url)}: {trouble}", trouble.subcode) from None
        entries[entry.path] = entry


@attrs.frozen
class Inputs:
    """What was found of a job's files before a run.

    Attributes:
        log_problem: why its user log cannot be written; empty: it can.
        skipped: its outputs are newer than its inputs, and it need not run (SkipIfDataflow).
        kept: the names of what an evicted run has left, or of what its checkpoint has.
        outgoing: the inputs.
        number: of the last checkpoint at its destination; used: of the one that it goes on from.
    """

    log_problem: str
    kept: tuple[str, ...]
    outgoing: Outgoing
    skipped: bool = False
    number: int = 0
    used: int = 0


def gather_inputs(logs: UserLogs, job: ClassAd, cache: FileCache, kept: str | None, inline_bytes: int,
                  now_s: float, lists: KeptLists) -> Inputs:
    """In a worker: can the job's log be written, and what does it take along?

    Args:
        kept: where an evicted run has left files; None: nothing travels.
        inline_bytes, now_s: as for :func:`input_manifest`.
        lists: of its checkpoints at a URL; what an evicted run has left is newer.

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
    if destination_of(job) is None:
        return Inputs("", names, input_manifest(job, cache, extra, inline_bytes, now_s))
    number = max(lists.numbers(ALL), default=0)
    checkpoint = lists.newest() if not names else None
    if checkpoint is not None:
        names = tuple(sorted({entry.path.partition("/")[0] for entry in checkpoint.entries}))
    return Inputs("", names, input_manifest(job, cache, extra, inline_bytes, now_s, checkpoint), number=number,
                  used=checkpoint.number if checkpoint is not None else 0)


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


