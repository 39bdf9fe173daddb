"""The shadow of a standard-universe job: its program's system calls are done here, as its owner.

Theory: :class:`~condor_actors.cores.shadow.standard_run.StandardRun` decides.  The work is done by four others: the
native session does the calls, which have a way of their own from the runtime
(:mod:`condor_actors.machine.standard.channel`);
:class:`~condor_actors.machine.standard.submit_endpoint.SubmitEndpoint` brings checkpoints and the calls of helpers
over TLS from the starter host, and the job's
:class:`~condor_actors.machine.standard.checkpoint_folder.CheckpointFolder` keeps what it can go on from.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import InputsFailed, InputsReady, PrepareInputs, ShadowState
from condor_actors.cores.shadow.standard_run import (
    Checkpointed,
    CheckpointFacts,
    CloseHome,
    HomeEnded,
    HomeFailed,
    HomeOpen,
    HomeProblem,
    HomeStatistics,
    NotTaken,
    OpenHome,
    ProgramExited,
    StandardRun,
)
from condor_actors.cores.starter.run_spec import NULL
from condor_actors.daemons.shadow.remote_checkpoint_store import RemoteCheckpointStore
from condor_actors.daemons.shadow.shadow import Shadow
from condor_actors.daemons.shadow.shadow_edges import ShadowEdges
from condor_actors.daemons.shadow.standard_task import Unusable, make_task
from condor_actors.effects import Effect
from condor_actors.machine.native.calls import call_names
from condor_actors.machine.native.image import ImageDamaged, read_image
from condor_actors.machine.native.sessions import NativeSessions
from condor_actors.machine.native.shadow import EventKind, ShadowEvent
from condor_actors.machine.standard.channel import HomeChannel
from condor_actors.machine.standard.checkpoint_folder import CheckpointFolder, GoodImage
from condor_actors.machine.standard.numbered_channel import HomeChannels
from condor_actors.machine.standard.resuming import Redialling
from condor_actors.machine.standard.submit_endpoint import SubmitEndpoint
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.interactive import ReadRunFile, RunFileBytes
from condor_actors.messages.run import RunProgress
from condor_actors.messages.shadow_host import StartRun
from condor_actors.transfer.image_pieces import ImageList

__all__ = ["StandardEdges", "StandardShadow"]

TAIL_BYTES = 256 * 1024
SPARES = 2
"""Connections that are kept for the next helpers of a program that has started some."""
_READS = (0, 17, 19, 295, 327, 40, 326)
_WRITES = (1, 18, 20, 296, 328, 277)
_SEEK = 8


@attrs.frozen(kw_only=True)
class StandardEdges:
    """What shadows of this universe share beside the others'.

    Attributes:
        reactor: Twisted's; sessions: the native shadow.
        endpoint: how a node is dialled.
        folder: the checkpoints of a job (``cluster.proc``).
        environment: of the owner, beneath the job's.
        identity: as whom calls are done where this process is root: (uid, gid); None: as this process.
        server: the checkpoint server's endpoint; None: there is none.
        active: the jobs that have a shadow in this process now.
        is_relayed: whether gateways pass on what is said to a node.
        list_of: the words of a parameter.
        nobody_s: how long the other pool's gateway may say of a run's machine that nobody answers there.
    """

    reactor: Any
    sessions: NativeSessions
    endpoint: Callable[[str], IStreamClientEndpoint]
    folder: Callable[[str], Path]
    environment: Mapping[str, str]
    identity: Callable[[], tuple[int, int] | None]
    server: Callable[[], IStreamClientEndpoint | None] = lambda: None
    active: set[str] = attrs.field(factory=set)
    is_relayed: Callable[[str], bool] = lambda node: False
    list_of: Callable[[str], Sequence[str]] = lambda name: ()
    nobody_s: float


class StandardShadow(Shadow):
    """The shadow of a standard-universe job, which performs the program's system calls.

    ``standard`` are its own edges.
    """

    core: StandardRun

    def __init__(self, order: StartRun, job: ClassAd, edges: ShadowEdges, key: str, standard: StandardEdges) -> None:
        self._standard = standard
        self._folder = CheckpointFolder(standard.folder(order.run_id.partition("#")[0]), standard.identity())
        super().__init__(order, job, edges, key)
        self._good: GoodImage | None = None
        self._stream: SubmitEndpoint | None = None
        self._channels: HomeChannels | None = None
        self._session = -1
        self._spares = self._label = 0
        self._vacating = False
        self._pending: ImageList | None = None
        self._checkpoint_bytes = 0
        self._whole_bytes = 0
        self._remote_store = RemoteCheckpointStore(standard, self._folder, self._folder.path.name, self.core.job)
        standard.active.add(self._folder.path.name)

    def _make_core(self, order: StartRun, job: ClassAd, key: str) -> StandardRun:
        ended = self._folder.how_ended()
        exited = ended[1] if ended is not None and ended[0] == order.run_id else None
        if ended is not None and exited is None:
            self._folder.clear()  # of a run whose end is in the queue: this one begins anew
        return StandardRun(order, job, key, exited)

    def _wants_transfer(self, job: ClassAd, domain: str) -> bool:
        return False

    def receive(self, delivery: Delivery) -> None:
        """What is known of the home goes along with the starter's reports."""
        if delivery.sender.node in ("", self.core.order.starter_node):
            if isinstance(delivery.message, ReadRunFile):
                self.context.reply(delivery, self._read_at_home(delivery.message))
                return
            if isinstance(delivery.message, RunProgress):
                self._count()
        super().receive(delivery)

    def _read_at_home(self, message: ReadRunFile) -> RunFileBytes | Refused:
        """condor_tail: the job's output is here."""
        attribute = {"_condor_stdout": "Out", "_condor_stderr": "Err"}.get(message.path)
        if attribute is None:
            return Refused(code="invalid", text="the files of a standard universe job are where you submitted it")
        path = os.path.join(self.core.job.get_str("Iwd", "/"), self.core.job.get_str(attribute) or NULL)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            try:
                size = os.fstat(descriptor).st_size
                count = min(message.max_bytes, TAIL_BYTES)
                start = max(0, size - count) if message.offset < 0 else message.offset
                return RunFileBytes(offset=start, data=os.pread(descriptor, count, start), size_bytes=size)
            finally:
                os.close(descriptor)
        except OSError as error:
            return Refused(code="not-found", text=f"{path}: {error.strerror}")

    def dropped(self) -> None:
        """Nothing is left open: a program whose shadow is gone has nobody to do its calls."""
        self._close_home()
        self._standard.active.discard(self._folder.path.name)
        super().dropped()

    def settle(self) -> None:
        """The schedd has committed the end of the run: one that was an exit leaves nothing behind."""
        ended = self.core.ended
        if ended is not None and ended.outcome == "exited":
            self._folder.clear()
            self._remote_store.forget()
        else:
            self._remote_store.keep_only_there()
        super().settle()

    # ---- effects

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """The effects of a standard run."""
        if isinstance(effect, PrepareInputs):
            if self._problem:
                self._later(InputsFailed(self._problem, 0))
            else:
                self.context.defer_to_turn(self._edges.in_thread(self._find_checkpoint), self._found_checkpoint)
        elif isinstance(effect, OpenHome):
            self._open_home()
        elif isinstance(effect, CloseHome):
            self._close_home()
        else:
            super().perform_own(effect, delivery)

    def _find_checkpoint(self) -> tuple[GoodImage | None, str] | InputsFailed:
        """Find what the program can go on from (beside the reactor: all of it is read)."""
        problem = self._edges.logs.problem(self.core.job)
        if problem:
            return InputsFailed(problem, HoldCode.UNABLE_TO_INIT_USER_LOG)
        good, why = self._folder.good_image()
        return (self._folder.take_up(good) if good is not None else None), why

    def _found_checkpoint(self, result: Any) -> None:
        if isinstance(result, Failure):
            self._event(InputsFailed(f"the checkpoints of the job cannot be read: {result.getErrorMessage()}"))
            return
        if isinstance(result, InputsFailed):
            self._event(result)
            return
        self._good, why = result
        if self._good is None and self._remote_store.may_have_it:
            fetching = self._remote_store.fetch().addBoth(lambda _: self._edges.in_thread(self._find_checkpoint))
            self.context.defer_to_turn(fetching, self._found_checkpoint)
            return
        run = self.core.order.run_id
        if self._good is not None and self._good.is_previous:
            self.context.log.error("{run} goes on from its checkpoint before the last: {why}", run=run,
                                   why=self._good.why)
        elif why:
            self.context.log.error("{run} begins anew: {why}", run=run, why=why)
            self._folder.drop_images()
        self._event(InputsReady((), transfers=False))

    # ---- home

    def _open_home(self) -> None:
        node = self.core.order.starter_node
        local = node.startswith(("unix:", "<127.", "<[::1]"))
        guarded, run = self.context.guarded, (self.core.order.run_id, self._key)
        redialling = Redialling(self._standard.reactor, run, lambda: self._standard.endpoint(node),
                                self.core.order.lease_s, self._standard.nobody_s)
        self._channels = HomeChannels(self._standard.reactor, run, lambda: self._standard.endpoint(node),
                                      self.core.order.lease_s)
        stream: SubmitEndpoint
        stream = self._stream = SubmitEndpoint(
            self._standard.reactor, local=local, run_id=run[0], key=run[1],
            interrupted=(lambda: redialling.begin(stream)) if self._standard.is_relayed(node) else None,
            ready=guarded(self._ready), image_kept=guarded(self._image_kept), old_image=self._folder.newest,
            image=self._folder.image, vacating=guarded(self._vacate), lost=guarded(self._stream_lost))
        try:
            connecting = self._standard.endpoint(node).connect(Factory.forProtocol(lambda: stream))
        except (ValueError, OSError) as error:
            self._later(HomeFailed(str(error)))
            return
        connecting.addErrback(lambda failure: self._turn(HomeFailed(
            f"nobody answers at {node}: {failure.getErrorMessage()}")))

    def _turn(self, event: Any) -> None:
        """An event from outside of a turn."""
        self._later(event)

    def _ready(self, problem: str) -> None:
        """The starter takes the stream, or not."""
        if problem:
            self._turn(HomeFailed(f"the starter host does not take the run: {problem}"))
        elif self._good is not None and self._stream is not None and self._good.added is not None:
            self._stream.send_image(self._good.delta, self._good.added, self.context.guarded(self._increment_sent),
                                    increment=True)
        else:
            self._increment_sent(0, "")

    def _increment_sent(self, number: int, text: str) -> None:
        if not number and self._good is not None and self._stream is not None:
            self._stream.send_image(self._good.path, self._good.pieces, self.context.guarded(self._image_sent))
        else:
            self._image_sent(number, text)

    def _image_sent(self, number: int, text: str) -> None:
        if number == errno.EKEYREJECTED:
            self._turn(HomeFailed(
                f"{self.core.order.slot_name} refuses the checkpoint in {self._folder.path}: {text}. Release the job "
                "to try again; to have it begin anew remove that folder first", HoldCode.FAILED_TO_CHECKPOINT, number))
        elif number:
            self._turn(HomeFailed(f"the checkpoint could not be sent: {text or os.strerror(number)}"))
        else:
            self._dial_channel(0, self._serve)

    def _dial_channel(self, label: int, ready: Callable[[socket.socket | None, bytes | None], None]) -> None:
        """A way for the calls of a process (0: the first one) that no Python relays; where there is none, the stream
        carries them."""
        order = self.core.order
        if self._channels is not None and self._stream is not None and self._stream.lasts:
            self._channels.open(label, self.context.guarded(ready))
            return
        channel = HomeChannel(self._standard.reactor, order.run_id, self._key, self.context.guarded(ready),
                              label or None)
        connecting = self._standard.endpoint(order.starter_node).connect(Factory.forProtocol(lambda: channel))
        connecting.addErrback(channel.connectionLost)

    def _dial_spares(self) -> None:
        """Connections that become the channels of the next helpers: some are kept, once the program has started any."""
        while self._spares < SPARES and self._stream is not None:
            self._spares += 1
            self._label += 1
            self._dial_channel(self._label, partial(self._spare, self._label))

    def _spare(self, label: int, sock: socket.socket | None, _secret: bytes | None) -> None:
        """One is there, or will not be: then helpers' calls are relayed."""
        self._spares -= sock is None
        if self._session >= 0:
            self._standard.sessions.spare(self._session, sock, label)
        elif sock is not None:
            sock.close()

    def _serve(self, direct: socket.socket | None, secret: bytes | None) -> None:
        """Open the session: from now on the program's calls are answered."""
        stream = self._stream
        if stream is None or stream.over or self.core.state is not ShadowState.SENDING:
            if direct is not None:
                direct.close()
            return
        opened: list[int] = []
        theirs: socket.socket | None = None
        try:
            task = make_task(self.core, self._folder, self._good, self._standard, opened)
            if direct is not None:
                ours, task = direct, attrs.evolve(task, direct=True, spares=True, key=secret)
            else:
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            self._session = self._standard.sessions.open(ours, task, self.context.guarded(self._told))
        except Unusable as problem:
            if direct is not None:
                direct.close()
            self._turn(problem.event)
            return
        except OSError as error:
            self._turn(HomeFailed(f"no session can be opened: {error.strerror}"))
            return
        finally:
            for descriptor in opened:
                os.close(descriptor)
        if theirs is not None:
            stream.serve(theirs)
        self._turn(HomeOpen(self._good is not None, stream.lasts))

    def _close_home(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.cut("the run is over")
        if self._session >= 0:
            self._standard.sessions.close(self._session)
        self._cut_channels()

    def _cut_channels(self) -> None:
        channels, self._channels = self._channels, None
        if channels is not None:
            channels.cut()

    def _stream_lost(self, reason: str) -> None:
        if self._session >= 0:  # its channel may have a connection of its own
            self._standard.sessions.close(self._session)
        elif self._stream is not None:
            self._turn(HomeFailed(f"the stream to the starter host ended: {reason}"))

    # ---- what the session tells

    def _told(self, event: ShadowEvent) -> None:
        kind = event.kind
        if kind is EventKind.EXITED:
            self._count()
            if not event.detail:
                self._folder.say_ended(self.core.order.run_id, event.value)
            self._turn(ProgramExited(event.value, event.detail, os.strerror(event.detail)))
        elif kind in (EventKind.IMAGE, EventKind.INCREMENT):
            self._checkpointed(event)
        elif kind is EventKind.NO_IMAGE:
            self._turn(NotTaken(event.value, event.text))
        elif kind is EventKind.WRITE_LOST:
            self._turn(HomeProblem(f"{event.text}: {os.strerror(event.value)}"))
        elif kind is EventKind.REFUSED:
            self._turn(HomeProblem(event.text))
        elif kind is EventKind.BROKEN:
            self.context.log.warn("{run}: {text} ({number})", run=self.core.order.run_id, text=event.text,
                                  number=event.value)
        elif kind is EventKind.LOST:
            self._count()
        elif kind is EventKind.MEMBER:
            helper = socket.socket(fileno=event.value)
            if self._stream is not None:
                self._stream.member_born(helper, event.detail)
            else:
                helper.close()
        elif kind is EventKind.MEMBER_STRAIGHT:
            self._spares -= 1
            if self._stream is not None:
                self._stream.member_straight(event.detail, event.value)
            self._dial_spares()
        elif kind is EventKind.WANTS_SPARE:
            self._dial_spares()
        elif kind is EventKind.ENDED:
            self._session = -1
            self._cut_channels()
            stream, self._stream = self._stream, None
            if stream is not None:
                stream.cut("the session has ended")
            self._turn(HomeEnded("the stream to the starter host ended"))

    def _vacate(self) -> None:
        self._vacating = True
        if self._session >= 0:
            self._standard.sessions.vacate(self._session)

    # ---- checkpoints

    def _image_kept(self, pieces: ImageList, done: Callable[[int, str], None]) -> None:
        """A checkpoint has come: keep its list before the session puts it in its place."""
        def kept(result: Any) -> None:
            if isinstance(result, Failure):
                error: Any = result.value
                done(getattr(error, "errno", 0) or 5, str(error))
            else:
                self._pending = pieces
                done(0, "")

        self._edges.in_thread(self._folder.keep_list, pieces).addBoth(kept)

    def _checkpointed(self, event: ShadowEvent) -> None:
        pieces, self._pending = self._pending, None
        stream = self._stream
        sent = stream.images_in_bytes - self._checkpoint_bytes if stream is not None else 0
        self._checkpoint_bytes += sent
        self._count()
        level = threads = processes = 1
        try:
            image = read_image(self._folder.image if event.kind is EventKind.IMAGE else self._folder.delta)
            level, threads, processes = image.cpu_level, image.threads, image.processes
        except (ImageDamaged, OSError) as error:
            self.context.log.error("{run}: the checkpoint cannot be read: {error}", run=self.core.order.run_id,
                                   error=error)
        stored = pieces.stored_bytes if pieces is not None else event.value
        if event.kind is EventKind.IMAGE:
            self._whole_bytes = stored
        else:
            stored += self._whole_bytes
        if pieces is not None:
            self._folder.settle(pieces)
            if event.kind is EventKind.IMAGE:
                self._remote_store.store(pieces)
        self._turn(Checkpointed(CheckpointFacts(
            digest=pieces.digest if pieces is not None else "", size_bytes=event.value,
            generation=str(pieces.seal.generation) if pieces is not None and pieces.seal is not None else "",
            stored_bytes=stored, sent_bytes=sent,
            cpu_level=level, threads=threads, processes=processes, took_s=event.detail / 1e9), self._vacating))

    # ---- statistics

    def _count(self) -> None:
        found = self._standard.sessions.statistics(self._session) if self._session >= 0 else None
        if found is not None:
            calls = found.by_number
            names = call_names()
            self._turn(HomeStatistics(
                calls=found.calls, opened_files=found.files_opened, read_bytes=found.bytes_out,
                written_bytes=max(0, found.bytes_in), checkpoint_bytes=self._checkpoint_bytes,
                read_calls=sum(calls.get(number, 0) for number in _READS),
                write_calls=sum(calls.get(number, 0) for number in _WRITES), seek_calls=calls.get(_SEEK, 0),
                local_cpu_s=found.served_ns / 1e9, kept_files=found.files_kept_there,
                kept_bytes=found.bytes_kept_there,
                by_name=tuple((names.get(number, f"call_{number}"), count)
                              for number, count in sorted(calls.items(), key=lambda each: -each[1]))))
