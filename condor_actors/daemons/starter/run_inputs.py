"""Lays a run's input files out in its scratch directory.

Theory: what the shadow sends lies in the blob store by now, and is copied from there; a manifest that came as a blob
itself may name more that has to be sent first; what has a URL is fetched from there, one after another, at the end
(:mod:`condor_actors.daemons.starter.url_inputs`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import EXECUTABLE
from condor_actors.daemons.starter.container_image import ContainerImage, without_image
from condor_actors.daemons.starter.url_inputs import UrlInputs
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import Activated
from condor_actors.transfer.blob_store import BlobError
from condor_actors.transfer.manifest import BadManifest, is_light
from condor_actors.transfer.service import Grant

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["RunInputs"]


class RunInputs:
    """Fills the scratch directory of one run.

    Args:
        starter: whose run it is.
        entries: the manifest, empty while a digest of it is to come; digest: that.
    """

    def __init__(self, starter: Starter, entries: tuple[FileEntry, ...], digest: str) -> None:
        self._starter = starter
        self._entries = entries
        self._manifest_digest = digest
        self._preparing = False

    def prepare(self) -> None:
        """Make the scratch directory and fill it, or ask the shadow for what is missing; the core hears the result."""
        if self._preparing:
            return
        self._preparing = True
        starter = self._starter
        edges, held = starter.edges, starter.held
        held.close_grant()
        try:
            if self._manifest_digest:
                self._entries = edges.read_manifest(held.blobs, self._manifest_digest)
                self._manifest_digest = ""
                if self._wants_more():
                    return
            starter.account = edges.account_for(starter.spec, starter.claim)
            sandbox = held.sandbox = edges.root.create(starter.account)
            entries = without_image(_executable(self._entries), starter.spec.container)
            ads = (starter.job_ad, starter.claim.slot_ad)
            if not is_light(entries):
                filling = held.in_thread(lambda: sandbox.fill(entries, held.blobs, *ads))
                starter.context.defer_to_turn(filling, self._filled)
                return
            sandbox.fill(entries, held.blobs, *ads)
        except (BadManifest, BlobError, OSError) as error:
            self._not_filled(error)
            return
        self._filled(None)

    def _wants_more(self) -> bool:
        """Ask for what a manifest names that came as a blob itself."""
        starter = self._starter
        store = starter.held.blobs
        digests = [entry.digest for entry in self._entries if entry.kind == "file" and entry.inline is None
                   and not entry.url]
        missing = store.missing(digests)
        for digest in digests:
            store.pin(digest, starter.run_id)
        if not missing:
            return False
        self._preparing = False
        starter.core.waits_for_inputs = True
        starter.held.open_grant(Grant(store=store, writable=frozenset(missing)))
        starter.context.tell(starter.shadow, Activated(run_id=starter.run_id, missing=missing))
        return True

    def _not_filled(self, error: BaseException | None) -> None:
        if isinstance(error, OSError):
            self._starter.decide(jr.PrepareFailed(f"the scratch directory cannot be filled: {error}"))
        else:
            self._fail(f"the input files cannot be laid out: {error}")

    def _fail(self, reason: str) -> None:
        """The job's fault, not the machine's: it is held."""
        self._starter.decide(jr.PrepareFailed(reason, HoldCode.TRANSFER_INPUT_ERROR))

    def _filled(self, result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(BadManifest, BlobError, OSError)
            self._not_filled(result.value)
            return
        UrlInputs(self._starter, [entry for entry in self._entries if entry.url], self._fetched).go_on()

    def _fetched(self) -> None:
        spec = self._starter.spec.container
        if spec is None:
            self._prepared("")
        else:
            ContainerImage(self._starter, spec, self._entries, self._prepared).find()

    def _prepared(self, image_digest: str) -> None:
        starter = self._starter
        if starter.sandbox is not None and starter.spec.transfers:
            starter.sandbox.remember(starter.spec.kept)
        starter.decide(jr.Prepared(image_digest))


def _executable(entries: tuple[FileEntry, ...]) -> tuple[FileEntry, ...]:
    """The program itself can always be executed."""
    return tuple(
        attrs.evolve(entry, mode=entry.mode | 0o555)
        if entry.path == EXECUTABLE and entry.mode & 0o555 != 0o555 else entry
        for entry in entries)
