"""Outputs at home: where each belongs, and how it gets there whole.

Theory: an output is written beside its place and renamed over it when it is whole and on the disk, so a reader sees the
old file or the new one; only devices and pipes are written through.  A link in the place of an output is its owner's
and is followed.  What lies in an output that is a folder is written below that folder and nowhere else, whatever links
are there, for an earlier run may have made them; and a link comes home only where it leads to what comes home too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import stat
from collections.abc import Sequence

from condor_actors.actors.workers import touching
from condor_actors.classads import ClassAd
from condor_actors.cores.output_destinations import STARTER_LOG, STDERR, STDOUT, remaps_of
from condor_actors.cores.output_names import OutputNames
from condor_actors.daemons.shadow.file_trouble import FileTrouble, file_trouble
from condor_actors.durable import open_beside, sync_file_systems, sync_folder
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import local_path, travels_as_url
from condor_actors.transfer.beneath import LeadsOut, place_beneath
from condor_actors.transfer.manifest import BadManifest, check_path

__all__ = [
    "FEW", "NULL", "OutputPlaces", "STDERR", "STDOUT", "make_folders", "place_inline", "place_link", "write_pieces",
    "write_whole",
]

NULL = "/dev/null"


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
        self._names = OutputNames(job)
        self._out = job.get_str("Out") or NULL
        self._err = job.get_str("Err") or NULL
        self._starter_log = job.get_str("JobStarterLog")
        remaps = remaps_of(job.get_str("TransferOutputRemaps")) if not job.get_str("SUBMIT_Iwd") else {}
        self._remaps = {name: place for name, place in remaps.items() if not travels_as_url(place)}

    def of(self, path: str) -> str | None:
        """The place of an entry; None: nowhere.

        Raises:
            BadManifest: the path leads out of the sandbox.
        """
        check_path(path)
        if path == STARTER_LOG and self._starter_log:
            return os.path.join(self._iwd, self._starter_log)
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
            BadManifest: the ad does not name it.
        """
        if name not in (self._out, self._err):
            raise BadManifest(f"{name[:200]!r} is neither the job's output nor its error")
        return self._stream(name, self._iwd)

    def target(self, path: str) -> str | None:
        """The file that an entry takes the place of; None: it belongs nowhere.  Looks at the disk.

        Raises:
            BadManifest: as :meth:`of`.
            FileTrouble: a link on the way leads out of the output.
        """
        place = self.of(path)
        if place is None:
            return None
        touching(place)
        root = self._root(path)
        if root is None:
            return os.path.realpath(place)
        try:
            return place_beneath(root, place, follow=self._kept is not None or self._names.root_of(path) != "")
        except LeadsOut:
            raise FileTrouble(f"cannot write output file {place}: a link on its way leads out of {root}; to write "
                              "there, say so in transfer_output_remaps", errno.ELOOP) from None

    def _root(self, path: str) -> str | None:
        """The folder that an entry does not leave; None: it is in a place that the job's ad names."""
        if path in (STDOUT, STDERR, STARTER_LOG) and not (self._kept is not None and self._keeps_streams):
            return None
        if self._kept is not None:
            return self._kept
        top, slash, _ = path.partition("/")
        if path in self._remaps or not slash:
            return None
        if top in self._remaps:
            return self.of(top)
        root = self._names.root_of(path)
        return None if root == path else os.path.join(self._base, root or top)

    def split(self, entries: Sequence[FileEntry]) -> tuple[list[FileEntry], list[str]]:
        """Which entries come home, and the paths of those that do not.  Looks at the disk.

        Raises:
            BadManifest: one is no output of the job.
        """
        for entry in entries:
            kinds = (("directory",) if self._names.is_above(entry.path) else
                     ("file",) if entry.path in (STDOUT, STDERR, STARTER_LOG) else (entry.kind,))
            if not self._names.have(entry.path) or entry.kind not in kinds:
                raise BadManifest(f"the machine sent {entry.path[:200]!r}, a {entry.kind[:20]}, which is no output of "
                                  "the job")
        left = {entry.path for entry in entries if self.stays_away(entry.path)}
        left |= self._leading_elsewhere([entry for entry in entries if entry.path not in left])
        return [entry for entry in entries if entry.path not in left], sorted(left)

    def _leading_elsewhere(self, entries: Sequence[FileEntry]) -> set[str]:
        """The paths of links that do not lead, some over others, to something in their own output or to what comes home
        with them: the next run may write where they lead, or have that as an input."""
        coming = {entry.path for entry in entries if entry.kind != "link"}
        coming |= {path[:end] for path in tuple(coming) for end in range(len(path)) if path[end] == "/"}
        waiting: dict[str, list[str]] = {}
        for entry in entries:
            if entry.kind == "link":
                target = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), entry.target))
                root = self._names.root_of(entry.path)
                if root in ("", entry.path) or not f"{target}/".startswith(f"{root}/"):
                    waiting.setdefault(target, []).append(entry.path)
                else:
                    coming.add(entry.path)
        found = [target for target in waiting if target in coming]
        while found:
            found += [path for path in waiting.pop(found.pop(), ()) if path in waiting]
        return {path for paths in waiting.values() for path in paths}

    def stays_away(self, path: str) -> bool:
        """Whether an output is one that does not come into its owner's home directory.  Looks at the disk."""
        home = os.environ.get("HOME", "")
        if not home or not self._names.hide(path):
            return False
        touching(self._base)
        with contextlib.suppress(OSError):
            return os.path.samefile(self._base, home)
        return False

    @staticmethod
    def _stream(name: str, folder: str) -> str | None:
        return None if name == NULL or travels_as_url(name) else os.path.join(folder, local_path(name))

    @property
    def joined(self) -> bool:
        """Whether output and error are one file."""
        return self._out == self._err and self._out != NULL


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
            raise file_trouble("cannot create output directory", places.directory, error) from None
    for entry in entries:
        place = places.of(entry.path)
        if place is None:
            continue
        folder = place if entry.kind == "directory" else os.path.dirname(place)
        try:
            places.target(entry.path)  # it leads nowhere else
            if entry.kind == "directory" or "/" in entry.path:
                os.makedirs(folder, exist_ok=True)
            elif not os.path.isdir(folder):
                raise OSError(errno.ENOENT, "no such directory")
        except OSError as error:
            what = "cannot create output directory"
            if error.errno == errno.ENOENT:
                what = "the directory of an output file does not exist (make it, then condor_release the job):"
            raise file_trouble(what, folder, error) from None


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
        target = places.target(entry.path)
        if place is None or target is None or entry.kind == "directory":
            continue
        if entry.kind == "link":
            place_link(entry, place)
        elif entry.inline is not None:
            data = entry.inline
            if entry.path == STDERR and places.joined and place in written:
                data = written[place] + data
            is_stream = entry.path in (STDOUT, STDERR)
            write_whole(place, data, 0o644 if is_stream else entry.mode, sync=few, target=target)
            if is_stream:
                written[place] = data
    if not few:
        targets = [places.target(entry.path) for entry in entries]
        folders = {os.path.dirname(target) for target in targets if target is not None}
        try:
            sync_file_systems(folders)
        except OSError as error:
            raise file_trouble("cannot write output files to", error.filename or "the disk", error) from None


def write_whole(place: str, data: bytes, mode: int = 0o644, *, sync: bool = True, target: str = "") -> None:
    """Put a file in its place at once.

    Args:
        sync: wait until its content is on the disk before it takes its place, and then for its name.
        target: what it takes the place of, be that a link; empty: what ``place`` leads to.

    Raises:
        FileTrouble: it cannot be written.
    """
    try:
        touching(place)
        target = target or os.path.realpath(place)
        facts = os.lstat(target) if os.path.lexists(target) else None
        if facts is not None and stat.S_ISLNK(facts.st_mode):
            facts = None
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
        raise file_trouble("cannot write output file", place, error) from None


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
        raise file_trouble("cannot make link", place, error) from None


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
