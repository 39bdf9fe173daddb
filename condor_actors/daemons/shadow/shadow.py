"""A shadow: the actor that stands for one running job, inside its owner's shadow host.

Theory: :class:`~condor_actors.cores.shadow.shadow_run.ShadowRun` decides; here its effects touch files, the bulk
connection and the user log.  What touches a file happens beside the turn, by a worker, and comes back as an event.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from twisted.internet.defer import DeferredList, succeed
from twisted.python.failure import Failure

from condor_actors.actors import CoreActor
from condor_actors.actors.workers import NoAnswer
from condor_actors.classads import ERROR, UNDEFINED, ClassAd, unparse
from condor_actors.cores.checkpoints.destination import NUMBER, USED, destination_of
from condor_actors.cores.shadow.files_travel import files_travel
from condor_actors.cores.shadow.shadow_checkpoint import KeepCheckpoint, SetCheckpointAside
from condor_actors.cores.shadow.shadow_events import (
    BlobsFailed,
    BlobsSent,
    BringOutputs,
    InputsFailed,
    InputsReady,
    Log,
    OutputsNewer,
    PrepareInputs,
    Report,
    SendBlobs,
    SendLogged,
    Settled,
    ShadowState,
    Watch,
    WriteStreams,
)
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.shadow.slot_expansion import CannotExpand, expand_slot_references
from condor_actors.cores.trace_spans import RunSpans
from condor_actors.daemons.shadow.chirp_home import ChirpHome
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.gang_hubs import pass_on
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, ShadowReport
from condor_actors.daemons.shadow.image_login import bring_login
from condor_actors.daemons.shadow.input_files import Inputs, Outgoing, gather_inputs, manifest_file
from condor_actors.daemons.shadow.output_transfer import OutputTransfer, first_error
from condor_actors.daemons.shadow.run_tokens import bring_tokens
from condor_actors.daemons.shadow.shadow_edges import ShadowEdges
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.daemons.shadow.stream_writer import StreamWriter
from condor_actors.daemons.shadow.url_signer import sign_uploads
from condor_actors.effects import Effect
from condor_actors.messages.codes import HoldCode, JobEventType, Universe
from condor_actors.messages.credentials import FetchImageLogin, FetchRunTokens
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused
from condor_actors.messages.interactive import OpenPort, OpenShell, PortData, ReadRunFile, ShellData
from condor_actors.messages.run import ChirpCall, GangCall, RunProgress, SignUploads
from condor_actors.messages.shadow_host import RunEnded, StartRun
from condor_actors.transfer.manifest import INLINE_TOTAL_BYTES
from condor_actors.userlog.paths import log_paths
from condor_actors.userlog.writer import FAILED

__all__ = ["Shadow"]

MANIFEST_BYTES = 300_000
MANIFEST_INLINE_BYTES = 256 << 20
MAX_LARGE_FILES = 2_000
MAX_PROPS = 100
OF_NODE_0 = frozenset({JobEventType.EXECUTE, JobEventType.IMAGE_SIZE, JobEventType.FILE_TRANSFER,
                       JobEventType.JOB_SUSPENDED, JobEventType.JOB_UNSUSPENDED})
"""Events that a job has once, although each node of its gang could report them."""
RELAY_PATIENCE_S = 25.0
SPANS = {"preparing": "read input", "activating": "activate claim", "sending": "transfer input",
         "waiting": "wait for start", "running": "execute", "apart": "disconnected", "bringing": "transfer output"}
"""What a run's states are called in its job's trace."""
CLAIMS_REMEMBERED = 256
"""Slots whose ads are not read anew for each run."""


@lru_cache(maxsize=CLAIMS_REMEMBERED)
def _slot_ad(text: bytes) -> ClassAd:
    """The ad of a slot, which nothing changes: each run on a claim brings the same."""
    return ClassAd.from_bytes(text)


class Shadow(CoreActor):
    """The actor of one running job on its submit machine.

    Args:
        order: the schedd's.
        job: the ad in it, which becomes this actor's.
        edges: what all shadows of the host share.
        key: for the run's bulk connections.
    """

    core: ShadowRun

    def __init__(self, order: StartRun, job: ClassAd, edges: ShadowEdges, key: str) -> None:
        self._slot = _slot_ad(order.slot_ad)
        self._problem = ""
        if b"$$(" in order.job_ad:
            try:
                expand_slot_references(job, self._slot)
            except CannotExpand as error:
                self._problem = str(error)
        self._edges = edges
        self._transfers = self._wants_transfer(job, edges.domain)
        job["ShouldTransferFiles"] = "YES" if self._transfers else "NO"
        super().__init__(self._make_core(order, job, key))
        self._key = key
        self._progress: Delivery | None = None
        self._streams = StreamWriter(self)
        self._outputs = OutputTransfer(self, key, self._event, self._later)
        self._sources: dict[str, tuple[str, int]] = {}
        self._manifest_file = ""
        self._all_inline = False
        self._cluster, _, proc = order.run_id.partition("#")[0].partition(".")
        self._ids = int(self._cluster), int(proc)
        self._is_member = job.get_int("JobUniverse") == Universe.PARALLEL
        self._chirp: ChirpHome | None = None
        self._spans = None if edges.tell_span is None else RunSpans(
            edges.tell_span, job.get_str("GlobalJobId"), order.run_id, "shadow", SPANS,
            {"condor.slot": self._slot.get_str("Name")[:200]})

    @property
    def edges(self) -> ShadowEdges:
        """What all shadows of the host share."""
        return self._edges

    def _make_core(self, order: StartRun, job: ClassAd, key: str) -> ShadowRun:
        return ShadowRun(order, job, key)

    def _wants_transfer(self, job: ClassAd, domain: str) -> bool:
        return files_travel(job, self._slot, domain, of_root=self._edges.owner_uid == 0)

    def started(self) -> None:
        """Begin."""
        self._perform(self.core.start(self.context.now_s()))

    def receive(self, delivery: Delivery) -> None:
        """Words to and from a shell pass through; the rest is the core's."""
        message = delivery.message
        starter = Address(self.core.order.starter_node, f"starter/{self.core.order.run_id}")
        if delivery.sender.node not in ("", starter.node):
            refuse_stranger(self.context, delivery, self.core.order.run_id)
        elif isinstance(message, (ReadRunFile, OpenShell, OpenPort)):
            if self.core.state is not ShadowState.RUNNING:
                self.context.reply(delivery, Refused(code="invalid", text="the job is not executing now"))
                return
            self.context.ask(starter, message, timeout_s=RELAY_PATIENCE_S,
                             then=lambda answer: self._relay_answer(delivery, answer.message))
        elif isinstance(message, ChirpCall):
            if self._chirp is None:
                self._chirp = ChirpHome(self, self._edges.chirp, as_root=self._edges.owner_uid == 0)
            self._chirp.receive(delivery)
        elif isinstance(message, GangCall):
            pass_on(self, delivery)
        elif isinstance(message, SignUploads):
            sign_uploads(self, delivery)
        elif isinstance(message, FetchRunTokens):
            bring_tokens(self, delivery)
        elif isinstance(message, FetchImageLogin):
            bring_login(self, delivery)
        elif isinstance(message, (ShellData, PortData)):
            if delivery.sender.node:
                self._report(message)
            else:
                self.context.tell(starter, message)
        elif isinstance(message, Settled):
            self.settle()
            self.context.stop_actor(self.context.address.actor)
        else:
            self._progress = delivery if isinstance(message, RunProgress) else None
            self._perform(self.core.handle(message, self.context.now_s()))
            if self._progress is not None:  # it brought no piece of a stream
                self.context.reply(delivery, Done())

    def _execute_props(self) -> str:
        """``ulog_execute_attrs``: lines with what the slot's ad says of them."""
        names = [name.strip() for name in self.core.job.get_str("UserLogExecuteEventAttrs").split(",") if name.strip()]
        values = {name: self._slot.evaluate(name, self.core.job) for name in names[:MAX_PROPS]}
        return "\n".join(f"{name} = {unparse(value)}" for name, value in values.items()
                         if value is not UNDEFINED and value is not ERROR)

    def _report(self, message: Any) -> None:
        """A word for the schedd."""
        self.context.tell(SHADOW_HOST, ShadowReport(self.core.order.run_id, message))

    def _relay_answer(self, question: Delivery, answer: Any) -> None:
        if isinstance(answer, AskFailed):
            answer = Refused(code="busy", text=f"the starter did not answer: {answer.text or answer.reason}")
        self.context.reply(question, answer)

    def _event(self, event: Any) -> None:
        self._perform(self.core.handle(event, self.context.now_s()))

    def _perform(self, effects: Sequence[Effect]) -> None:
        self.context.perform(effects)
        if self._spans is not None:
            self._spans.enter(self.core.state.value, self.context.now_s())

    def settle(self) -> None:
        """The schedd has committed the end of the run."""
        self._event(Settled())

    def stopped(self) -> None:
        """The last turn: clean up."""
        self.dropped()

    def dropped(self) -> None:
        """Leave no file of its own behind, and none open."""
        if self._chirp is not None:
            self._chirp.close()
        if self._manifest_file:
            try:
                os.unlink(self._manifest_file)
            except OSError:
                pass

    # ---- effects

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """The effects of a shadow."""
        if isinstance(effect, Log):
            self._log(effect)
        elif isinstance(effect, Report):
            if (self._is_member and isinstance(effect.message, RunEnded) and effect.message.outcome == "exited"
                    and not effect.again):
                facts = ClassAd.from_bytes(effect.message.attributes)
                self._write(JobEventType.NODE_TERMINATED, dict(facts.items()), 0.0, self.core.order.reattach)
            self._report(effect.message)
        elif isinstance(effect, PrepareInputs):
            self._prepare()
        elif isinstance(effect, SendBlobs):
            self._send_blobs(effect.digests)
        elif isinstance(effect, BringOutputs):
            self._streams.when_written(lambda: self._outputs.bring(effect))  # they are outputs too
        elif isinstance(effect, KeepCheckpoint):
            self._outputs.keep_checkpoint(effect)
        elif isinstance(effect, SetCheckpointAside):
            self._outputs.set_checkpoint_aside(effect.number)
        elif isinstance(effect, SendLogged):
            send = self.context.as_turn(partial(self.context.tell, effect.to, effect.message))
            self._edges.logs.when_written(log_paths(self.core.job), send)
        elif isinstance(effect, WriteStreams):
            assert self._progress is not None
            delivery, self._progress = self._progress, None
            self._streams.write(effect.pieces, delivery)
        elif isinstance(effect, Watch):
            self.context.watch(self.core.order.starter_node)
        else:
            super().perform_own(effect, delivery)

    def _log(self, effect: Log) -> None:
        """Write an event; of a gang's members node 0 writes what is about the job as a whole."""
        if self._is_member and effect.event == JobEventType.EXECUTE:
            self._write(JobEventType.NODE_EXECUTE, effect.facts, effect.when_s, effect.again)
        if not self._is_member or self.core.job.get_int("Node") == 0 or effect.event not in OF_NODE_0:
            self._write(effect.event, effect.facts, effect.when_s, effect.again, effect.once_since_s)

    def write_event(self, event: int, more: dict[str, Any]) -> None:
        """Write an event that the job itself tells of."""
        self._write(event, more, 0.0, False)

    def _write(self, event: int, more: dict[str, Any], when_s: float, again: bool, once_since_s: float = 0.0) -> None:
        facts = self.core.job.copy()
        facts.update({"ExecuteHost": self.core.order.starter_node,
                      "SlotName": self._slot.get_str("Name") or self.core.order.slot_name,
                      "StartdAddr": self._slot.get_str("MyAddress")})
        facts.update(more)
        if event in (JobEventType.EXECUTE, JobEventType.NODE_EXECUTE):
            facts["ExecuteProps"] = self._execute_props()
        self._edges.logs.write(event, self._ids[0], [self._ids[1]], when_s or self.context.now_s(), facts,
                               maybe_written=again, once_since_s=once_since_s)

    # ---- inputs

    def _prepare(self) -> None:
        if self._problem:
            self._later(InputsFailed(self._problem, 0))
            return
        self._gather_inputs(INLINE_TOTAL_BYTES)

    def kept_folder(self) -> str:
        """Where an evicted run of the job leaves files for the next."""
        return self._edges.kept_folder(self.job_name)

    @property
    def job_name(self) -> str:
        """``CLUSTER.PROC``."""
        return self.core.order.run_id.partition("#")[0]

    def _gather_inputs(self, inline_bytes: int) -> None:
        edges, kept = self._edges, self.kept_folder() if self._transfers else None
        if kept is None and edges.logs.lately_written(self.core.job):  # nothing that could block
            self.context.defer_to_turn(succeed(Inputs("", (), Outgoing((), {}))), self._prepared)
            return
        work = edges.in_thread(gather_inputs, edges.logs, self.core.job, edges.cache, kept, inline_bytes,
                               self.context.now_s(), edges.lists(self.job_name))
        self.context.defer_to_turn(work, self._prepared)

    def _later(self, event: Any) -> None:
        self.context.defer_to_turn(succeed(event), self._event)

    def _prepared(self, inputs: Inputs | Failure) -> None:
        if isinstance(inputs, Failure):
            self._event(self._input_trouble(inputs))
            return
        if inputs.log_problem:
            self._event(InputsFailed(inputs.log_problem, HoldCode.UNABLE_TO_INIT_USER_LOG))
            return
        if inputs.skipped:
            self._event(OutputsNewer())
            return
        if not self._transfers:
            self._event(InputsReady((), transfers=False))
            return
        if inputs.kept:
            self.core.job["KeptFiles"] = ",".join(inputs.kept)
        if destination_of(self.core.job) is not None:
            self.core.job.update({NUMBER: inputs.number, USED: inputs.used})
        outgoing = inputs.outgoing
        self._sources = dict(outgoing.sources)
        size = sum(len(entry.inline or b"") + len(entry.path) + 120 for entry in outgoing.entries)
        if size <= MANIFEST_BYTES:
            self._event(InputsReady(outgoing.entries))
        elif self._all_inline:
            self._large_manifest(outgoing)
        else:
            self._all_inline = True
            self._gather_inputs(MANIFEST_INLINE_BYTES)

    def _input_trouble(self, failure: Failure) -> InputsFailed:
        """Why the inputs cannot be had; names the file, or the log."""
        error: Any = failure.check(FileTrouble, NoAnswer) and failure.value
        if not error:
            failure.raiseException()
        if isinstance(error, FileTrouble):
            return InputsFailed(f"Transfer input files failure: {error}", subcode=error.subcode)
        if error.filename in log_paths(self.core.job):
            return InputsFailed(f"{FAILED}{error.filename}: {error.strerror}", HoldCode.UNABLE_TO_INIT_USER_LOG)
        return InputsFailed(f"Transfer input files failure: cannot read {error.filename or 'the files'}: "
                            f"{error.strerror}", subcode=error.errno)

    def _large_manifest(self, outgoing: Outgoing) -> None:
        """The manifest goes as a blob with all small files in it; the message names the large ones."""
        large = tuple([entry for entry in outgoing.entries
                       if entry.kind == "file" and entry.inline is None and not entry.url])
        if len(large) > MAX_LARGE_FILES:
            self._event(InputsFailed(f"Transfer input files failure: {len(large)} files over 16 KiB, at most "
                                     f"{MAX_LARGE_FILES} can travel; put them into an archive"))
            return

        def written(result: Any) -> None:
            if isinstance(result, Failure):
                result.trap(OSError)
                self._event(InputsFailed(f"Transfer input files failure: the manifest: {result.getErrorMessage()}"))
                return
            self._manifest_file, digest, size = result
            self._sources[digest] = (self._manifest_file, size)
            self._event(InputsReady(large, digest))

        self.context.defer_to_turn(self._edges.in_thread(manifest_file, outgoing.entries), written)

    def _send_blobs(self, digests: Sequence[str]) -> None:
        unknown = [digest for digest in digests if digest not in self._sources]
        if unknown:
            self._later(BlobsFailed(f"the starter asks for {unknown[0]}, which is not of this job", local=False))
            return
        node = self.core.order.starter_node
        puts = [self._edges.bulk.put(node, self._key, digest, self._sources[digest][1], self._sources[digest][0])
                for digest in dict.fromkeys(digests)]
        self.context.defer_to_turn(DeferredList(puts, fireOnOneErrback=True, consumeErrors=True), self._sent)

    def _sent(self, result: Any) -> None:
        if isinstance(result, Failure):
            error = first_error(result)
            self._event(BlobsFailed(str(error), local=getattr(error, "code", "") in ("local", "changed")))
        else:
            self._event(BlobsSent())
