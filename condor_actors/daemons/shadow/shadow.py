"""A shadow: the actor that stands for one running job, inside its owner's shadow host.

Theory: :class:`~condor_actors.cores.shadow.shadow_run.ShadowRun` decides; here its effects touch files, the bulk
connection and the user log.  What touches a file happens beside the turn, by a worker, and comes back as an event.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import attrs
from twisted.internet.defer import Deferred, DeferredList, succeed
from twisted.python.failure import Failure

from condor_actors.actors import CoreActor
from condor_actors.actors.workers import InWorker, NoAnswer
from condor_actors.classads import ERROR, UNDEFINED, ClassAd, unparse
from condor_actors.cores.shadow.chirp_rights import ChirpLimits
from condor_actors.cores.shadow.shadow_checkpoint import CheckpointHome, KeepCheckpoint
from condor_actors.cores.shadow.shadow_events import (
    BlobsFailed,
    BlobsSent,
    BringOutputs,
    InputsFailed,
    InputsReady,
    Log,
    OutputsFailed,
    OutputsHome,
    OutputsNewer,
    PrepareInputs,
    Report,
    SendBlobs,
    Settled,
    ShadowState,
    Watch,
    WriteStreams,
)
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.shadow.slot_expansion import CannotExpand, expand_slot_references
from condor_actors.cores.starter.run_spec import appends_output
from condor_actors.daemons.shadow.chirp_home import ChirpHome
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, ShadowReport
from condor_actors.daemons.shadow.input_files import FileCache, Inputs, Outgoing, gather_inputs, manifest_file
from condor_actors.daemons.shadow.output_files import OutputPlaces, place_inline, write_pieces
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.effects import Effect
from condor_actors.messages.codec import MalformedMessage, decode_parts
from condor_actors.messages.codes import HoldCode, JobEventType, Universe
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused
from condor_actors.messages.interactive import OpenShell, ReadRunFile, ShellData
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.run import ChirpCall, RunProgress
from condor_actors.messages.shadow_host import RunEnded, StartRun
from condor_actors.transfer.manifest import INLINE_TOTAL_BYTES, BadManifest, check_manifest
from condor_actors.userlog.paths import log_paths
from condor_actors.userlog.writer import FAILED, UserLogs

__all__ = ["Bulk", "Shadow", "ShadowEdges"]

MANIFEST_BYTES = 300_000
MANIFEST_INLINE_BYTES = 256 << 20
MANIFEST_LIMIT_BYTES = 512 << 20
MAX_LARGE_FILES = 2_000
MAX_PROPS = 100
OF_NODE_0 = frozenset({JobEventType.EXECUTE, JobEventType.IMAGE_SIZE, JobEventType.FILE_TRANSFER,
                       JobEventType.JOB_SUSPENDED, JobEventType.JOB_UNSUSPENDED})
"""Events that a job has once, whoever else of its gang could tell of them."""
RELAY_PATIENCE_S = 25.0


class Bulk(Protocol):
    """What a shadow needs of the bulk transfers (``transfer.client.BulkClient``)."""

    def put(self, node: str, key: str, digest: str, size_bytes: int, source: str) -> Deferred[None]:
        """Give a file's content to a node."""

    def fetch_file(self, node: str, key: str, digest: str, size_bytes: int, target: str,
                   mode: int = 0o644) -> Deferred[None]:
        """Get a file from a node."""

    def fetch_bytes(self, node: str, key: str, digest: str, limit_bytes: int) -> Deferred[bytes]:
        """Get a content from a node into memory."""


@attrs.frozen(kw_only=True)
class ShadowEdges:
    """What all shadows of a host share.

    Attributes:
        logs: user logs.
        cache: digests of files.
        bulk: bulk transfers.
        kept_folder: where evicted runs of a job leave files for the next.
        domain: the file system domain of this machine.
        in_thread: runs what touches the owner's files.
        owner_uid: whose jobs these are; root's are run by a process that may be nobody's.
        chirp: what jobs may do here while they run.
    """

    logs: UserLogs
    cache: FileCache
    bulk: Bulk
    kept_folder: Callable[[str], str]
    domain: str
    in_thread: InWorker
    owner_uid: int = attrs.field(factory=os.getuid)
    chirp: ChirpLimits = attrs.field(factory=ChirpLimits)


class Shadow(CoreActor):
    """The actor of one running job on its submit machine."""

    core: ShadowRun

    def __init__(self, order: StartRun, edges: ShadowEdges, key: str) -> None:
        job = ClassAd.from_bytes(order.job_ad)
        self._slot = ClassAd.from_bytes(order.slot_ad)
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
        self._no_room = False
        self._progress: Delivery | None = None
        self._bring_later: BringOutputs | None = None
        self._streams: deque[tuple[Sequence[tuple[str, int, bytes]], Delivery]] = deque()
        self._sources: dict[str, tuple[str, int]] = {}
        self._manifest_file = ""
        self._all_inline = False
        self._cluster, _, proc = order.run_id.partition("#")[0].partition(".")
        self._ids = int(self._cluster), int(proc)
        self._is_member = job.get_int("JobUniverse") == Universe.PARALLEL
        self._chirp: ChirpHome | None = None

    @property
    def edges(self) -> ShadowEdges:
        """What all shadows of the host share."""
        return self._edges

    def _make_core(self, order: StartRun, job: ClassAd, key: str) -> ShadowRun:
        return ShadowRun(order, job, key)

    def _wants_transfer(self, job: ClassAd, domain: str) -> bool:
        should = job.get_str("ShouldTransferFiles", "IF_NEEDED").upper()
        if should == "IF_NEEDED":
            if self._edges.owner_uid == 0:
                return True  # nobody runs as root: the job could not use root's files in place
            theirs = self._slot.get_str("FileSystemDomain")
            return not theirs or theirs != job.get_str("FileSystemDomain", domain)
        return should == "YES"

    def started(self) -> None:
        """Begin."""
        self._perform(self.core.start(self.context.now_s()))

    def receive(self, delivery: Delivery) -> None:
        """Words to and from a shell pass through; the rest is the core's."""
        message = delivery.message
        starter = Address(self.core.order.starter_node, f"starter/{self.core.order.run_id}")
        if delivery.sender.node not in ("", starter.node):
            refuse_stranger(self.context, delivery, self.core.order.run_id)
        elif isinstance(message, (ReadRunFile, OpenShell)):
            if self.core.state is not ShadowState.RUNNING:
                self.context.reply(delivery, Refused(code="invalid", text="the job is not executing now"))
                return
            self.context.ask(starter, message, timeout_s=RELAY_PATIENCE_S,
                             then=lambda answer: self._relay_answer(delivery, answer.message))
        elif isinstance(message, ChirpCall):
            if self._chirp is None:
                self._chirp = ChirpHome(self, self._edges.chirp, as_root=self._edges.owner_uid == 0)
            self._chirp.receive(delivery)
        elif isinstance(message, ShellData):
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
            if self._is_member and isinstance(effect.message, RunEnded) and effect.message.outcome == "exited":
                facts = ClassAd.from_bytes(effect.message.attributes)
                self._write(JobEventType.NODE_TERMINATED, dict(facts.items()), 0.0, self.core.order.reattach)
            self._report(effect.message)
        elif isinstance(effect, PrepareInputs):
            self._prepare()
        elif isinstance(effect, SendBlobs):
            self._send_blobs(effect.digests)
        elif isinstance(effect, BringOutputs):
            self._bring(effect)
        elif isinstance(effect, KeepCheckpoint):
            self._keep_checkpoint(effect)
        elif isinstance(effect, WriteStreams):
            self._write_streams(effect)
        elif isinstance(effect, Watch):
            self.context.watch(self.core.order.starter_node)
        else:
            super().perform_own(effect, delivery)

    def _log(self, effect: Log) -> None:
        """Write an event; of a gang's members node 0 writes what is about the job as a whole."""
        if self._is_member and effect.event == JobEventType.EXECUTE:
            self._write(JobEventType.NODE_EXECUTE, effect.facts, effect.when_s, effect.again)
        if not self._is_member or self.core.job.get_int("Node") == 0 or effect.event not in OF_NODE_0:
            self._write(effect.event, effect.facts, effect.when_s, effect.again)

    def write_event(self, event: int, more: dict[str, Any]) -> None:
        """Write an event that the job itself tells of."""
        self._write(event, more, 0.0, False)

    def _write(self, event: int, more: dict[str, Any], when_s: float, again: bool) -> None:
        facts = self.core.job.copy()
        facts.update({"ExecuteHost": self.core.order.starter_node,
                      "SlotName": self._slot.get_str("Name") or self.core.order.slot_name,
                      "StartdAddr": self._slot.get_str("MyAddress")})
        facts.update(more)
        if event in (JobEventType.EXECUTE, JobEventType.NODE_EXECUTE):
            facts["ExecuteProps"] = self._execute_props()
        self._edges.logs.write(event, self._ids[0], [self._ids[1]], when_s or self.context.now_s(), facts,
                               maybe_written=again)

    # ---- inputs

    def _prepare(self) -> None:
        if self._problem:
            self._later(InputsFailed(self._problem, 0))
            return
        self._gather_inputs(INLINE_TOTAL_BYTES)

    def _gather_inputs(self, inline_bytes: int) -> None:
        edges, kept = self._edges, self._kept_folder() if self._transfers else None
        if kept is None and edges.logs.lately_written(self.core.job):  # nothing that could block
            self.context.defer_to_turn(succeed(Inputs("", (), Outgoing((), {}))), self._prepared)
            return
        work = edges.in_thread(gather_inputs, edges.logs, self.core.job, edges.cache, kept, inline_bytes)
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
            error = _first_error(result)
            self._event(BlobsFailed(str(error), local=getattr(error, "code", "") in ("local", "changed")))
        else:
            self._event(BlobsSent())

    # ---- outputs

    def _bring(self, effect: BringOutputs) -> None:
        if self._streams:  # they are outputs too
            self._bring_later = effect
            return
        kept = self._kept_folder() if effect.keep else ""
        self._bring_files(_Bringing(kept, OutputsHome, OutputsFailed), effect.entries, effect.manifest_digest)

    def _keep_checkpoint(self, effect: KeepCheckpoint) -> None:
        def failed(reason: str, subcode: int = 0, remote: bool = False) -> CheckpointHome:
            return CheckpointHome(effect.number, f"checkpoint {effect.number} cannot be kept: {reason}")

        bringing = _Bringing(self._kept_folder(), lambda size: CheckpointHome(effect.number, "", size), failed)
        self._bring_files(bringing, effect.entries, effect.manifest_digest)

    def _kept_folder(self) -> str:
        return self._edges.kept_folder(self.core.order.run_id.partition("#")[0])

    def _bring_files(self, bringing: _Bringing, entries: tuple[FileEntry, ...], digest: str) -> None:
        if not digest:
            self._bring_entries(bringing, entries)
            return
        fetching = self._edges.bulk.fetch_bytes(self.core.order.starter_node, self._key, digest, MANIFEST_LIMIT_BYTES)
        self.context.defer_to_turn(fetching, lambda result: self._manifest_here(bringing, result))

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
        if bringing.kept and len(entries) == 0:
            self._later(bringing.home(0))
            return
        places = OutputPlaces(self.core.job, bringing.part or None, appends_output(self.core.job))
        self.context.defer_to_turn(self._edges.in_thread(_place, entries, places, bringing.part),
                                   lambda result: self._placed(bringing, result, entries))

    def _placed(self, bringing: _Bringing, result: Any, entries: tuple[FileEntry, ...]) -> None:
        """What came along is at home; fetch the rest."""
        if isinstance(result, Failure):
            self._event(_output_trouble(bringing, result))
            return
        fetches = [self._edges.bulk.fetch_file(self.core.order.starter_node, self._key, entry.digest, entry.size_bytes,
                                               target, entry.mode) for entry, target in result]
        size = sum(entry.size_bytes for entry in entries)
        if fetches:
            self.context.defer_to_turn(DeferredList(fetches, fireOnOneErrback=True, consumeErrors=True),
                                       lambda fetched: self._fetched(bringing, fetched, size))
        else:
            self._brought(bringing, size)

    def _fetched(self, bringing: _Bringing, result: Any, size: int) -> None:
        if isinstance(result, Failure):
            error = _first_error(result)
            local = getattr(error, "code", "") == "local" or isinstance(error, OSError)
            number = getattr(error, "number", 0) or getattr(error, "errno", 0) or 0
            self._event(bringing.failed(str(error), number, remote=not local))
        else:
            self._brought(bringing, size)

    def _brought(self, bringing: _Bringing, size: int) -> None:
        """Everything is here; what is kept takes the place of what was kept before, at once; outputs end its use."""
        work = self._edges.in_thread(bringing.take_place, self._kept_folder())
        self.context.defer_to_turn(work, lambda result: self._event(
            _output_trouble(bringing, result) if isinstance(result, Failure) else bringing.home(size)))

    def _write_streams(self, effect: WriteStreams) -> None:
        """Write what came, after what came before, and then answer: what finds no room is sent again."""
        assert self._progress is not None
        delivery, self._progress = self._progress, None
        self._streams.append((effect.pieces, delivery))
        if len(self._streams) == 1:
            self._write_next()

    def _write_next(self) -> None:
        pieces, delivery = self._streams[0]
        work = self._edges.in_thread(write_pieces, OutputPlaces(self.core.job), pieces)
        self.context.defer_to_turn(work, lambda result: self._written(result, delivery))

    def _written(self, result: Any, delivery: Delivery) -> None:
        """The starter may send the next piece, or has to send this one again."""
        if isinstance(result, Failure):
            result.trap(NoAnswer)
            error: Any = result.value
            result = [(error.filename, error)]
        had_none, self._no_room = self._no_room, False
        for path, error in result:
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            self._no_room |= full
            if not (full and had_none):
                self.context.log.error("stream {path} of {run}: {error}", path=path, run=self.core.order.run_id,
                                       error=error)
        self.context.reply(delivery, Refused(code="busy", text="no room at home") if self._no_room else Done())
        self._streams.popleft()
        if self._streams:
            self._write_next()
        elif self._bring_later is not None:
            effect, self._bring_later = self._bring_later, None
            self._bring(effect)


@attrs.frozen
class _Bringing:
    """Files on their way home: where those for the next run are kept (empty: they are the job's outputs), what to say
    when all are here (with their size), or not."""

    kept: str
    home: Callable[[int], Any]
    failed: Callable[..., Any]

    @property
    def part(self) -> str:
        """Where they lie until all are here."""
        return f"{self.kept}.part" if self.kept else ""

    def take_place(self, kept: str) -> None:
        """In a worker: put them in the place of what was kept before; one of the two is there at every moment.
        Outputs end the use of what was kept in ``kept``.

        Raises:
            OSError: it cannot be done.
        """
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


def _place(entries: Sequence[FileEntry], places: OutputPlaces, part: str) -> list[tuple[FileEntry, str]]:
    """In a worker: write what came along with a manifest; what has to be fetched, and where it belongs.

    Raises:
        BadManifest, FileTrouble, OSError: it cannot be done.
    """
    check_manifest(entries)
    if part:
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part, exist_ok=True)
    place_inline(entries, places)
    return [(entry, os.path.realpath(place)) for entry in entries if entry.kind == "file" and entry.inline is None
            and (place := places.of(entry.path)) is not None]


def _output_trouble(bringing: _Bringing, failure: Failure) -> Any:
    """Why outputs are not at home."""
    error: Any = failure.value
    if failure.check(BadManifest, FileTrouble):
        return bringing.failed(str(error), getattr(error, "subcode", 0))
    failure.trap(OSError)
    return bringing.failed(f"cannot write {error.filename}: {error.strerror}", error.errno or 0)


def _first_error(failure: Failure) -> Any:
    """What went wrong first among several transfers."""
    value: Any = failure.value
    return value.subFailure.value if hasattr(value, "subFailure") else value
