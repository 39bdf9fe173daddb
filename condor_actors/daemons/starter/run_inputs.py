"""Lays a run's input files out in its scratch directory.

Theory: what the shadow sends lies in the blob store by now, and is copied from there; a manifest that came as a blob
itself may name more that has to be sent first; what has a URL is fetched from there, one after another, at the end
(:mod:`condor_actors.daemons.starter.url_inputs`), and last of all by transfer plugins
(:mod:`condor_actors.daemons.starter.plugin_transfers`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import EXECUTABLE, BadJob
from condor_actors.daemons.starter.container_image import ContainerImage, without_image
from condor_actors.daemons.starter.plugin_transfers import PluginTransfers, plugins_of
from condor_actors.daemons.starter.url_inputs import UrlInputs
from condor_actors.messages.codes import HoldCode, plugin_subcode
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import shown_url
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

    @property
    def are_plain(self) -> bool:
        """Whether all that is laid out are files that the shadow has sent, and folders: no name leads elsewhere."""
        return all(entry.kind != "link" and not entry.url for entry in self._entries)

    def prepare(self) -> None:
        """Make the scratch directory and fill it, or ask the shadow for what is missing; the core hears the result."""
        if self._preparing:
            return
        self._preparing = True
        self._starter.held.close_grant()
        if self._succeeds(self._read) and not self._starter.hooks.before_transfer(self._lay_out):
            self._lay_out()

    def _lay_out(self) -> None:
        """Make the scratch directory and fill it with what the shadow has sent."""
        if self._succeeds(self._fill):
            self._filled(None)

    def _succeeds(self, step: Callable[[], bool]) -> bool:
        """Whether a step is done and the next one follows; what has gone wrong is told."""
        try:
            return step()
        except BadJob as error:
            self._starter.decide(jr.PrepareFailed(str(error), HoldCode.FAILED_TO_CREATE_PROCESS))
        except (BadManifest, BlobError, OSError) as error:
            self._not_filled(error)
        return False

    def _read(self) -> bool:
        """What there is to lay out, and whose it is to be; False: the shadow is asked for more."""
        starter = self._starter
        if self._manifest_digest:
            self._entries = starter.edges.read_manifest(starter.held.blobs, self._manifest_digest)
            self._manifest_digest = ""
            if self._wants_more():
                return False
        starter.account = starter.edges.account_for(starter.spec, starter.claim)
        return True

    def _fill(self) -> bool:
        """The scratch directory; False: a thread fills it."""
        starter = self._starter
        held = starter.held
        sandbox = held.sandbox = starter.edges.root.create(starter.account)
        entries = without_image(_executable(self._entries, starter.spec.plugins), starter.spec.container)
        ads = (self._job_ad(), starter.claim.slot_ad)
        if is_light(entries):
            sandbox.fill(entries, held.blobs, *ads)
            return True
        starter.context.defer_to_turn(held.in_thread(lambda: sandbox.fill(entries, held.blobs, *ads)), self._filled)
        return False

    def _job_ad(self) -> bytes:
        """The job's ad as the job sees it: with the ports of the machine that lead to it.

        Raises:
            OSError: there are none.
        """
        visits = self._starter.held.visits
        if visits is None:
            return self._starter.job_ad
        visits.services.open()
        return visits.services.ad_with_ports(self._starter.job_ad)

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

    def _fail(self, reason: str, subcode: int = 0) -> None:
        """The job's fault, not the machine's: it is held."""
        self._starter.decide(jr.PrepareFailed(reason, HoldCode.TRANSFER_INPUT_ERROR, subcode))

    def _filled(self, result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(BadManifest, BlobError, OSError)
            self._not_filled(result.value)
            return
        if any(entry.url for entry in self._entries):
            self._starter.edges.plugins.when_known(self._starter.context.as_turn(self._fetch))
        else:
            self._fetched()

    def _fetch(self) -> None:
        """What is built in fetches its URLs first, plugins theirs afterwards."""
        starter, plugins = self._starter, plugins_of(self._starter)
        if starter.sandbox is None or not self._wanted():
            return
        folder = starter.sandbox.path
        urls = [entry for entry in self._entries if entry.url]
        unknown = [entry.url for entry in urls if not plugins.knows(entry.url)]
        if unknown:
            self._fail(f"Transfer input files failure: {shown_url(unknown[0])}: this machine fetches "
                       f"{', '.join(plugins.methods)} only")
            return
        brought = [(plugin, entry.url, os.path.join(folder, entry.path)) for entry in urls
                   if (plugin := plugins.of(entry.url)) is not None]
        last = PluginTransfers(starter, brought, upload=False, wanted=self._wanted, done=self._brought)
        UrlInputs(starter, [entry for entry in urls if plugins.of(entry.url) is None], last.go_on).go_on()

    def _wanted(self) -> bool:
        return self._starter.sandbox is not None and self._starter.core.state is jr.StarterState.PREPARING

    def _brought(self, reason: str, status: int) -> None:
        if reason:
            self._fail(f"Transfer input files failure: {reason}", plugin_subcode(status))
            return
        sandbox, held = self._starter.sandbox, self._starter.held
        promised = [(entry.path, entry.digest) for entry in self._entries if entry.url and entry.digest]
        if promised and sandbox is not None:
            verified = held.in_thread(lambda: sandbox.first_other(promised))
            self._starter.context.defer_to_turn(verified, self._verified)
        else:
            self._fetched()

    def _verified(self, result: Any) -> None:
        """Whether the files of the checkpoint are those that were sent."""
        if isinstance(result, Failure):
            result.trap(OSError)
            self._not_filled(result.value)
        elif result and self._wanted():
            entry = next(entry for entry in self._entries if entry.path == result)
            self._starter.decide(jr.PrepareFailed(
                f"the checkpoint at its destination is damaged: {shown_url(entry.url)} is not what was sent there",
                HoldCode.TRANSFER_INPUT_ERROR, self._starter.spec.checkpoint_used, damaged=True))
        elif self._wanted():
            self._fetched()

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
        starter.tokens.bring(lambda: starter.decide(jr.Prepared(image_digest)))


def _executable(entries: tuple[FileEntry, ...], plugins: Mapping[str, str]) -> tuple[FileEntry, ...]:
    """The program itself can always be executed, and so can the job's plugins."""
    programs = {EXECUTABLE, *map(os.path.basename, plugins.values())}
    return tuple(
        attrs.evolve(entry, mode=entry.mode | 0o555)
        if entry.path in programs and entry.mode & 0o555 != 0o555 else entry
        for entry in entries)
