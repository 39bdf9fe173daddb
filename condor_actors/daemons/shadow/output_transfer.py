"""The outputs of a run on their way home, over the bulk connection and into their places.

Theory: what rides in the manifest is written first, by a worker; the rest is fetched from the starter host.  What is
kept for the next run of the job lies beside its place until all of it is here, and takes that place at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import DeferredList
from twisted.python.failure import Failure

from condor_actors.cores.checkpoints.destination import destination_of
from condor_actors.cores.output_names import SENT
from condor_actors.cores.shadow.shadow_checkpoint import CheckpointAside, CheckpointHome, KeepCheckpoint
from condor_actors.cores.shadow.shadow_events import (
    BringOutputs,
    OutputsFailed,
    OutputsHome,
)
from condor_actors.cores.starter.run_spec import appends_output
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.output_files import OutputPlaces, place_inline
from condor_actors.messages.codec import MalformedMessage, decode_parts
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import BadManifest, check_manifest

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["OutputTransfer", "first_error"]

MANIFEST_LIMIT_BYTES = 512 << 20


class OutputTransfer:
    """Brings the files of one run home; how that went becomes an event of its shadow.

    Args:
        shadow: of the run.
        key: names the run in bulk transfers.
        event: takes an event within a turn; later: takes it in a turn of its own.
    """

    def __init__(self, shadow: Shadow, key: str, event: Callable[[Any], None], later: Callable[[Any], None]) -> None:
        self._shadow = shadow
        self._key = key
        self._event = event
        self._later = later

    def bring(self, effect: BringOutputs) -> None:
        """Bring the outputs of a run, or what an evicted one leaves for the next."""
        kept = self._shadow.kept_folder() if effect.keep else ""
        self._bring_files(_Bringing(kept, OutputsHome, OutputsFailed, partly=effect.partly),
                          effect.entries, effect.manifest_digest)

    def keep_checkpoint(self, effect: KeepCheckpoint) -> None:
        """Bring a checkpoint that the job has made by itself, and keep it for its next run."""
        def failed(reason: str, subcode: int = 0, remote: bool = False) -> CheckpointHome:
            return CheckpointHome(effect.number, f"checkpoint {effect.number} cannot be kept: {reason}")

        def kept(size_bytes: int, files: int) -> CheckpointHome:
            return CheckpointHome(effect.number, "", size_bytes, effect.when_s, files, effect.serial,
                                  effect.before)

        bringing = _Bringing(self._shadow.kept_folder(), kept, failed, effect.serial)
        self._bring_files(bringing, effect.entries, effect.manifest_digest)

    def set_checkpoint_aside(self, number: int) -> None:
        """What came from a checkpoint's destination is not what was sent there."""
        shadow = self._shadow

        def done(result: Any) -> None:
            if isinstance(result, Failure):
                result.trap(OSError)
                self._event(CheckpointAside(0, str(result.value)))
                return
            self._remove_unused()
            self._event(CheckpointAside(result))

        work = shadow.edges.in_thread(shadow.edges.lists(shadow.job_name).set_aside, number)
        shadow.context.defer_to_turn(work, done)

    def _remove_unused(self) -> None:
        """Have checkpoints removed at their destination that are not used any more; what fails is tried again with the
        next one, and when the job leaves the queue."""
        shadow = self._shadow
        log, name = shadow.context.log, shadow.job_name
        shadow.edges.remover.remove(shadow.core.job, shadow.edges.lists(name).folder, all_of_them=False).addCallback(
            lambda why: log.warn("a checkpoint of {job} that is not needed stays where it is: {why}", job=name, why=why)
            if why else None)

    def _keep_list(self, bringing: _Bringing, entries: tuple[FileEntry, ...]) -> None:
        """A checkpoint is at its destination: keep the list of it, which is newer than what was kept here."""
        shadow = self._shadow
        destination, lists = destination_of(shadow.core.job), shadow.edges.lists(shadow.job_name)
        if destination is None:
            self._event(bringing.failed("the machine has sent it elsewhere, and the job names no destination"))
            return
        base = destination.base(shadow.core.order.run_id, bringing.serial)
        kept = shadow.kept_folder()

        def keep() -> None:
            lists.keep(entries, bringing.serial, base, shadow.edges.remover.settings.most)
            _Bringing("", bringing.home, bringing.failed).take_place(kept)

        def done(result: Any) -> None:
            if isinstance(result, Failure):
                self._event(_output_trouble(bringing, result))
                return
            files = [entry for entry in entries if entry.kind == "file"]
            self._event(bringing.home(sum(entry.size_bytes for entry in files), len(files)))
            self._remove_unused()

        shadow.context.defer_to_turn(shadow.edges.in_thread(keep), done)

    def _bring_files(self, bringing: _Bringing, entries: tuple[FileEntry, ...], digest: str) -> None:
        if not digest:
            self._bring_entries(bringing, entries)
            return
        fetching = self._shadow.edges.bulk.fetch_bytes(self._shadow.core.order.starter_node, self._key, digest,
                                                       MANIFEST_LIMIT_BYTES)
        self._shadow.context.defer_to_turn(fetching, lambda result: self._manifest_here(bringing, result))

    def _manifest_here(self, bringing: _Bringing, result: Any) -> None:
        if isinstance(result, Failure):
            self._event(bringing.failed(result.getErrorMessage(), remote=True))
            return
        try:
            entries = decode_parts(FileEntry, result)
        except MalformedMessage as error:
            self._event(bringing.failed(f"the list of outputs cannot be read: {error}", remote=True))
            return
        self._bring_entries(bringing, entries)

    def _bring_entries(self, bringing: _Bringing, entries: tuple[FileEntry, ...]) -> None:
        """Write what came along and fetch the rest."""
        if bringing.serial:
            self._keep_list(bringing, entries)
            return
        if bringing.kept and len(entries) == 0:
            self._later(bringing.home(0, 0))
            return
        places = OutputPlaces(self._shadow.core.job, bringing.part or None, appends_output(self._shadow.core.job))
        self._shadow.context.defer_to_turn(self._shadow.edges.in_thread(_place, entries, places, bringing.part),
                                   lambda result: self._placed(bringing, result, entries))

    def _placed(self, bringing: _Bringing, result: Any, entries: tuple[FileEntry, ...]) -> None:
        """What came along is at home; fetch the rest."""
        if isinstance(result, Failure):
            self._event(_output_trouble(bringing, result))
            return
        node, bulk = self._shadow.core.order.starter_node, self._shadow.edges.bulk
        wanted, left = result
        if left:
            self._shadow.context.log.warn("files of {run} stay away: in its owner's home, names with a dot that the "
                                          "job does not say; anywhere, links to what is no output: {files}",
                                          run=self._shadow.core.order.run_id, files=", ".join(left)[:500])
        fetches = [bulk.fetch_file(node, self._key, entry.digest, entry.size_bytes, target, entry.mode)
                   for entry, target in wanted]
        size = (sum(entry.size_bytes for entry in entries), sum(entry.kind == "file" for entry in entries))
        if fetches:
            self._shadow.context.defer_to_turn(DeferredList(fetches, fireOnOneErrback=True, consumeErrors=True),
                                       lambda fetched: self._fetched(bringing, fetched, size))
        else:
            self._brought(bringing, size)

    def _fetched(self, bringing: _Bringing, result: Any, size: tuple[int, int]) -> None:
        if isinstance(result, Failure):
            error = first_error(result)
            local = getattr(error, "code", "") == "local" or isinstance(error, OSError)
            number = getattr(error, "number", 0) or getattr(error, "errno", 0) or 0
            self._event(bringing.failed(str(error), number, remote=not local))
        else:
            self._brought(bringing, size)

    def _brought(self, bringing: _Bringing, size: tuple[int, int]) -> None:
        """Everything is here, so many bytes and files; what is kept takes the place of what was kept before, at once;
        outputs end its use."""
        work = self._shadow.edges.in_thread(bringing.take_place, self._shadow.kept_folder())
        self._shadow.context.defer_to_turn(work, lambda result: self._event(
            _output_trouble(bringing, result) if isinstance(result, Failure) else bringing.home(*size)))


@attrs.frozen
class _Bringing:
    """Files on their way home: where those for the next run are kept (empty: they are the job's outputs), what to say
    when all are here (with their size and number), or not; ``serial`` above 0: they are the checkpoint of that number
    at its destination; ``partly``: the job may go on from what was kept before."""

    kept: str
    home: Callable[[int, int], Any]
    failed: Callable[..., Any]
    serial: int = 0
    partly: bool = False

    @property
    def part(self) -> str:
        """Where they lie until all are here."""
        return f"{self.kept}.part" if self.kept else ""

    def take_place(self, kept: str) -> None:
        """In a worker: put them in the place of what was kept before; one of the two is there at every moment.
        Outputs end the use of what was kept in ``kept``, unless the job may go on from it.

        Raises:
            OSError: it cannot be done.
        """
        if self.partly:
            return
        if not self.kept:
            for folder in (kept, f"{kept}.old", f"{kept}.part"):
                if os.path.isdir(folder):
                    shutil.rmtree(folder, ignore_errors=True)
        elif os.path.isdir(self.part):
            old = f"{self.kept}.old"
            shutil.rmtree(old, ignore_errors=True)
            if os.path.isdir(self.kept):
                os.rename(self.kept, old)
            os.rename(self.part, self.kept)
            shutil.rmtree(old, ignore_errors=True)


def _place(entries: Sequence[FileEntry], places: OutputPlaces, part: str) -> tuple[
        list[tuple[FileEntry, str]], list[str]]:
    """In a worker: write what came along with a manifest; what has to be fetched with where it belongs, and the paths
    of what stays away.

    Raises:
        BadManifest, FileTrouble, OSError: it cannot be done.
    """
    check_manifest(entries)
    if part and (sent := SENT & {entry.path for entry in entries}):
        raise BadManifest(f"the machine sent {min(sent)} for the next run, which is not of this one's making")
    if part:
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part, exist_ok=True)
    coming, left = (entries, []) if part else places.split(entries)
    place_inline(coming, places)
    return [(entry, target) for entry in coming if entry.kind == "file" and entry.inline is None
            and (target := places.target(entry.path)) is not None], left


def _output_trouble(bringing: _Bringing, failure: Failure) -> Any:
    """Why outputs are not at home."""
    error: Any = failure.value
    if failure.check(BadManifest, FileTrouble):
        return bringing.failed(str(error), getattr(error, "subcode", 0))
    failure.trap(OSError)
    return bringing.failed(f"cannot write {error.filename}: {error.strerror}", error.errno or 0)


def first_error(failure: Failure) -> Any:
    """What went wrong first among several transfers."""
    value: Any = failure.value
    return value.subFailure.value if hasattr(value, "subFailure") else value
