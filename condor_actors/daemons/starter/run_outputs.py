"""Gathers what a run leaves in its scratch directory, sends what goes to URLs, and lets its shadow fetch the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.cores.output_destinations import STARTER_LOG
from condor_actors.cores.starter import job_run as jr
from condor_actors.daemons.starter.uploads.checkpoint_upload import CheckpointUpload
from condor_actors.daemons.starter.uploads.output_uploads import OutputUploads
from condor_actors.machine.run.job_manifest import record_outputs
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import HeavyManifest
from condor_actors.transfer.service import Grant

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["RunOutputs"]


class RunOutputs:
    """The output files of one run.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._gathering = False
        self._fetched_bytes = 0
        self._uploads: OutputUploads | CheckpointUpload | None = None
        self._leaves = False

    @property
    def are_sent(self) -> bool:
        """Whether those that go to URLs are on their way: nothing of the job is left."""
        return self._uploads is not None

    def go_on(self) -> None:
        """Send what goes to URLs, if anything waits: a shadow is back, or a while has passed."""
        if self._uploads is not None:
            self._uploads.go_on()

    def timer(self, key: str) -> None:
        """A while has passed (``upload``), or the time that the machine gives (``leave``)."""
        if key == "leave":
            self.give_up()
        else:
            self.go_on()

    def look(self) -> None:
        """The run may have been given up while outputs are sent, or the machine may be wanted back."""
        core = self._starter.core
        if core.cause != "exited":
            self.give_up()
        elif core.closing is not None and not self._leaves:
            self._leaves = True
            self._starter.context.set_timer("leave", core.closing.grace_s)

    def give_up(self) -> None:
        """The run is given up: send no more."""
        if self._uploads is not None:
            self._uploads.stop()

    def gather(self, effect: jr.Gather) -> None:
        """Make a manifest of what goes home, and grant it; the core hears the result."""
        starter = self._starter
        sandbox, spec, complete = starter.sandbox, starter.spec, effect.complete
        assert sandbox is not None
        named = spec.outputs if effect.everything else ()
        if starter.core.checkpointing and spec.checkpoint_files:
            named = spec.checkpoint_files
        if self._gathering:
            return
        streams = starter.streams.paths

        # of the job as a whole, not of its checkpoints
        manifest = spec.manifest if not starter.core.checkpointing else ""
        log = starter.run_log.data if spec.log_level and not starter.core.checkpointing else b""
        besides = [name for name, is_made in ((manifest, manifest), (STARTER_LOG, log)) if is_made]
        besides += spec.tool.outputs if spec.tool is not None else ()

        def slowly() -> Any:
            sandbox.take_back()
            starter.tokens.remove(sandbox)
            if manifest:
                record_outputs(sandbox, manifest)
            if log:
                sandbox.leave_log(STARTER_LOG, log)
            return sandbox.gather(named, streams, complete=complete, keeps_paths=spec.keeps_paths, besides=besides)

        try:
            if sandbox.lent or besides or starter.tokens.are_wanted:
                raise HeavyManifest
            builder: Any = sandbox.gather(named, streams, complete=complete, light=True,
                                          keeps_paths=spec.keeps_paths)
        except HeavyManifest:
            self._gathering = True
            gathering = starter.held.in_thread(slowly)
            starter.context.defer_to_turn(gathering, self._gathered)
            return
        except (OSError, ValueError):
            builder = Failure()
        self._gathered(builder)

    def _gathered(self, builder: Any) -> None:
        self._gathering = False
        if isinstance(builder, Failure):
            builder.trap(OSError, ValueError)
            self._starter.decide(jr.Gathered(error=str(builder.value)))
            return
        core, urls = self._starter.core, self._starter.spec.urls
        if builder.missing:
            home = [entry for entry in builder.entries if not (urls and urls.of(entry.path))]
            self._listed(home, builder.sources, missing=builder.missing)
        elif core.checkpointing and core.cause == "exited" and self._starter.spec.checkpoint_destination is not None:
            self._uploads = CheckpointUpload(
                self._starter, builder.entries, builder.sources, builder.places, self._checkpoint_sent,
                lambda reason, subcode: self._starter.decide(jr.Gathered(unsent=reason, unsent_subcode=subcode)))
        elif urls and core.cause == "exited" and not core.checkpointing:
            uploads = self._uploads = OutputUploads(
                self._starter, builder.entries, builder.sources, builder.places,
                lambda entries: self._listed(entries, builder.sources),
                lambda reason, subcode: self._listed(
                    uploads.home, builder.sources, unsent=reason, unsent_subcode=subcode))
            self._starter.edges.plugins.when_known(self._starter.context.as_turn(uploads.begin))
        else:
            self._listed(builder.entries, builder.sources)

    def _checkpoint_sent(self, entries: Sequence[FileEntry], number: int) -> None:
        """The checkpoint is where it belongs; its next one has uploads of its own."""
        self._uploads = None
        self._listed(entries, {}, serial=number)

    def _listed(self, listed: Sequence[FileEntry], sources: Mapping[str, str], **facts: Any) -> None:
        """These go home, or the list of them, when they are a checkpoint that was sent elsewhere; ``facts``: what
        else the core hears of them."""
        edges, held = self._starter.edges, self._starter.held
        digest, entries = "", tuple(listed)
        wanted = {entry.digest for entry in entries}
        sources = {each: path for each, path in sources.items() if each in wanted}
        if sources:
            held.open_grant(Grant(sources=sources, opener=self._open))
        if len(entries) > edges.manifest_limit:
            digest = edges.write_manifest(held.blobs, entries)
            held.open_grant(Grant(store=held.blobs, sources=sources, opener=self._open,
                                  readable=frozenset({digest})))
            entries = ()
        self._starter.decide(jr.Gathered(entries=entries, digest=digest, **facts))

    def _open(self, path: str) -> int:
        """Open what was gathered, with the job's rights: by now it may be something else.

        Raises:
            OSError: it is.
        """
        sandbox = self._starter.sandbox
        if sandbox is None:
            raise OSError("the run is over")
        return sandbox.open_own(path)

    def fetched_more(self) -> bool:
        """Whether anything of what the run has left moved home since this was asked last."""
        grant = self._starter.held.grant()
        before = self._fetched_bytes
        self._fetched_bytes = self._starter.streams.bytes_home + (grant.read_bytes if grant else 0)
        return self._fetched_bytes > before
