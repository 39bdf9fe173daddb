"""Sends a checkpoint that the job has made by itself to the URL that it names, with a list of what it consists of.

Theory: files and list go there like outputs (:mod:`condor_actors.daemons.starter.uploads.output_uploads`), the list
last, so that where it is, the rest is.  What the shadow keeps is the same list, made of the same entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors import records
from condor_actors.cores.checkpoints.destination import url_below
from condor_actors.cores.checkpoints.manifest import CheckpointList, list_name, write_list
from condor_actors.daemons.starter.uploads.output_uploads import OutputUploads
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import digest_bytes

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["CheckpointUpload"]


class CheckpointUpload:
    """Sends one.

    Args:
        starter: whose run it is; its program has ended, and has saved its work.
        entries, sources, places: as for the uploads of outputs.
        done: called with the entries, which no content rides in, and the checkpoint's number.
        failed: as for the uploads of outputs.
    """

    def __init__(self, starter: Starter, entries: Sequence[FileEntry], sources: Mapping[str, str],
                 places: Mapping[str, str], done: Callable[[Sequence[FileEntry], int], None],
                 failed: Callable[[str, int], None]) -> None:
        destination, core = starter.spec.checkpoint_destination, starter.core
        assert destination is not None
        self._starter, self._entries = starter, entries
        self._sources, self._places = sources, places
        self._done, self._failed = done, failed
        self._number = starter.spec.checkpoint_number + core.checkpoints + 1
        self._base = destination.base(starter.run_id, self._number)
        self._name = list_name(self._number)
        self._uploads: OutputUploads | None = None
        data = write_list(CheckpointList(number=self._number, base=self._base, entries=tuple(entries)))
        written = starter.held.in_thread(lambda: self._write(data))
        starter.context.defer_to_turn(written, lambda result: self._send(result, data))

    def go_on(self) -> None:
        """Go on, if anything waits: a shadow is back, or a while has passed."""
        if self._uploads is not None:
            self._uploads.go_on()

    def stop(self) -> None:
        """Nobody wants it any more."""
        if self._uploads is not None:
            self._uploads.stop()

    def _write(self, data: bytes) -> None:
        sandbox = self._starter.sandbox
        if sandbox is not None:
            sandbox.clear_files([self._name])
            with open(sandbox.make_file(self._name, 0o600), "wb") as stream:
                stream.write(data)

    def _send(self, result: Any, data: bytes) -> None:
        sandbox = self._starter.sandbox
        if sandbox is None:
            return  # the run is over
        if isinstance(result, Failure):
            result.trap(OSError)
            self._failed(f"the list of the checkpoint's files cannot be written: {result.value}", 0)
            return
        path = f"{sandbox.path}/{self._name}"
        own = FileEntry(path=self._name, mode=0o600, size_bytes=len(data), digest=digest_bytes(data))
        files = [entry for entry in self._entries if entry.kind == "file"]
        self._uploads = OutputUploads(
            self._starter, [*files, own], {**self._sources, own.digest: path}, {**self._places, own.path: path},
            lambda _: self._sent(), self._failed, url_of=lambda name: url_below(self._base, name),
            checkpoint=self._number)
        self._starter.edges.plugins.when_known(self._starter.context.as_turn(self._uploads.begin))

    def _sent(self) -> None:
        starter, sandbox = self._starter, self._starter.sandbox
        assert sandbox is not None
        cleared = starter.held.in_thread(lambda: sandbox.clear_files([self._name]))
        starter.context.defer_to_turn(cleared, lambda _: self._done(
            [records.evolve(entry, inline=None) for entry in self._entries], self._number))
