"""The execute endpoint of a standard-universe job's stream: beside the runtime, on the execute machine.

A process has its channel straight home where that can be (:mod:`condor_actors.machine.standard.channel`), and a
control socket to this end for what cannot come that way; else the stream carries the channel.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from twisted.python.failure import Failure

from condor_actors.machine.native.image import ImageDamaged, merge_images
from condor_actors.machine.standard.channel import FarChannel
from condor_actors.machine.standard.channel_socket import (
    OP_DESCRIBE,
    OP_EXIT,
    OP_FORK,
    OP_GATHER,
    OP_HELLO,
    OP_IMAGE_BEGIN,
    OP_IMAGE_END,
    OP_PART,
    AnswerFollower,
    ChannelSocket,
    RequestFollower,
)
from condor_actors.machine.standard.numbered_channel import FarNumbered
from condor_actors.machine.standard.resumable import ResumableStream
from condor_actors.machine.standard.run_library import RunLibrary
from condor_actors.machine.standard.stream import ImageRefused
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList, list_image
from condor_actors.transfer.streams import BadStream

__all__ = ["ExecuteEndpoint"]

KEY_S = 20.0
"""How long a stream may take to say whose it is."""
CONTROL = struct.Struct("<IIq")
"""What the runtime's first process says and is answered on its control socket (native/protocol.h)."""
LABELLED = struct.Struct("<QQ")
SPARES, MOST_AWAITED = 16, 1000
BEGAN, FILE, WRITTEN, DROPPED, REFUSED, MEMBER, EXITED, ROOM, NEW, USED = range(1, 11)
EIO, EAGAIN = 5, 11


class _Control:
    """The control socket of one process: whole records for ``hear(control, what, value)``, and answers."""

    def __init__(self, sock: socket.socket, reactor: Any, hear: Callable[[_Control, int, int], None],
                 ended: Callable[[_Control], None]) -> None:
        self._said = b""
        self._hear = hear
        self.socket = ChannelSocket(sock, reactor, self._take, lambda: ended(self))

    def _take(self, data: bytes, passed_fds: list[int]) -> None:
        for passed_fd in passed_fds:
            os.close(passed_fd)
        self._said += data
        while len(self._said) >= CONTROL.size:
            what, _, value = CONTROL.unpack_from(self._said)
            self._said = self._said[CONTROL.size :]
            self._hear(self, what, value)

    def answer(self, value: int, *passed_fds: int) -> None:
        """0 or more, or -errno, with descriptors that are this object's to close."""
        self.socket.write(CONTROL.pack(0, 0, value), *passed_fds)


class ExecuteEndpoint(ResumableStream):
    """The end beside the runtime.

    Args:
        accept: finds the run of (run id, key): None, or the object that gets ``attached(end, answer)`` and calls
            ``answer(why not)`` soon, with nothing when it takes the stream.
        local: see :class:`~condor_actors.machine.standard.stream.StandardStream`.

    Attributes:
        exit_said: the program has ended by itself and home knows.
        began: the runtime has said its first words: signals are safe.
        runtime_gone: the first process has closed its channel.
        library: contents of files that its processes have here; None: none.
    """

    def __init__(self, reactor: Any, *, local: bool, accept: Callable[[str, str], Any]) -> None:
        super().__init__(reactor, local=local)
        self._accept = accept
        self._run: Any = None
        self.exit_said = False
        self.began = False
        self.runtime_gone = False
        self.library: RunLibrary | None = None
        self._requests: dict[int, RequestFollower] = {}
        self._answers: dict[int, AnswerFollower] = {}
        self._newborn = 0
        self._control: _Control | None = None
        self._helpers: set[_Control] = set()
        self._spares: dict[int, FarChannel | FarNumbered] = {}
        self._born: dict[int, int] = {}
        self._straight: dict[int, int] = {}
        self._awaited: dict[int, _Control] = {}
        self._image_fd = -1
        self._written_fd = -1
        self._image_path = ""
        self._increment = False
        self._added: tuple[str, ImageList] | None = None
        self._coming = ImageList(0, ())
        self._patience = reactor.callLater(KEY_S, self._too_slow)

    def _too_slow(self) -> None:
        if self._run is None:
            self.cut("nobody said whose stream it is")

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """Beside the common frames: whose stream it is, and members that are born."""
        if self._run is None:
            if letter != ss.KEY:
                raise BadStream("a stream that does not say whose it is")
            if self._patience.active():
                self._patience.cancel()
            self._run = self._accept(*ss.fields_of(letter, payload))
            if self._run is None:
                self.send(ss.message_frame(ss.NO, "there is no such run here, or it has its stream already"))
                transport: Any = self.transport
                transport.unregisterProducer()
                transport.loseConnection()
                return
            self._run.attached(self, self._attached)
        elif letter == ss.MEMBER:
            self._newborn = member
        elif letter == ss.BORN:
            child = int.from_bytes(payload, "little")
            self._born[child] = member
            if child in self._awaited:
                self._give_member(child, self._awaited.pop(child))
        elif letter == ss.STRAIGHT:
            if len(payload) != LABELLED.size:
                raise BadStream("a helper without a connection")
            child, label = LABELLED.unpack(payload)
            self._straight[child] = label
            if child in self._awaited:
                self._give_member(child, self._awaited.pop(child))
        else:
            super().take(letter, member, payload)

    def _attached(self, problem: str) -> None:
        self.offered = not problem
        self.send(ss.message_frame(ss.NO, problem) if problem else ss.frame(ss.READY, ss.OFFER))

    def broken(self, reason: str) -> None:
        """Home dials again, within the job's lease."""
        self._patience = self.reactor.callLater(self._run.lease_s, self.cut, f"no other came in time: {reason}")

    def resume(self, line: Any, received: int, *, answer: bool = False) -> None:
        """It has."""
        super().resume(line, received, answer=answer)
        if self._patience.active():
            self._patience.cancel()

    # ---- the runtime

    def open_channel(self) -> int:
        """Make the first channel; the runtime's end, for the caller to pass on and close."""
        return self._open(0)

    def _open(self, number: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        calls = {OP_HELLO, OP_EXIT, OP_DESCRIBE, OP_IMAGE_BEGIN, OP_IMAGE_END, OP_FORK, OP_GATHER, OP_PART}
        self._requests[number] = RequestFollower(frozenset(calls))
        self._answers[number] = AnswerFollower()
        self.add_member(number, ours, partial(self._requested, number))
        return theirs.detach()

    def member_ended(self, number: int) -> None:
        """A member has ended."""
        self.runtime_gone = self.runtime_gone or number == 0
        self._requests.pop(number, None)
        self._answers.pop(number, None)

    def _requested(self, number: int, data: bytes, passed_fds: list[int]) -> None:
        for passed_fd in passed_fds:  # no runtime of ours sends any
            os.close(passed_fd)
        for request, part in self._requests[number].feed(data):
            if request is None:
                self.began = True
                self.forward(number, part)
            elif request.call == OP_IMAGE_END and request.arguments[0] and self._image_path and number == 0:
                self._image_written(part)
            else:
                if request.call != OP_IMAGE_END:
                    self._answers[number].expected[request.identifier] = request.call
                elif self._image_path and number == 0:  # given up: its file is not needed
                    path, self._image_path = self._image_path, ""
                    self._run.drop_image(path)
                    self._run.image_refused(request.arguments[1])
                self.forward(number, part)

    def channel_data(self, member: int, data: bytes) -> None:
        """Answers for the runtime, with what it gets beside them."""
        channel, follower = self.members.get(member), self._answers.get(member)
        if channel is None or follower is None:
            return
        for call, result, part in follower.feed(data):
            passed_fd = -1
            if call == OP_IMAGE_BEGIN and result >= 0:
                passed_fd = self._new_image()
                self._increment = result == 1
            elif call == OP_IMAGE_BEGIN or (result < 0 and (call, member) in ((OP_DESCRIBE, 0), (OP_GATHER, member))):
                self._run.image_refused(-result)
            elif call == OP_PART and result >= 0 and member != 0:
                passed_fd = self._members_file()
            elif call == OP_FORK and result >= 0 and self._newborn:
                number, self._newborn = self._newborn, 0
                passed_fd = self._open(number)
            elif call == OP_EXIT and member == 0:
                self.exit_said = True
            channel.write(part, passed_fd)

    # ---- the control socket of a process whose channel goes straight home

    def open_control(self) -> int:
        """Make it; the runtime's end, for the caller to pass on and close."""
        self._control, theirs = self._new_control()
        return theirs

    def _new_control(self) -> tuple[_Control, int]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return _Control(ours, self.reactor, self._hear, self._control_ended), theirs.detach()

    def catch_up(self) -> None:
        """Hear what a process has said before it ended."""
        if self._control is not None:
            self._control.socket.read_all()

    def _control_ended(self, control: _Control) -> None:
        self._helpers.discard(control)
        if control is self._control:
            self._control = None
            self.runtime_gone = True

    def _hear(self, control: _Control, what: int, value: int) -> None:
        if self.over:
            return
        if what == MEMBER:
            if value in self._born or value in self._straight:
                self._give_member(value, control)
            elif len(self._awaited) < MOST_AWAITED:
                self._awaited[value] = control
            else:
                control.answer(-EAGAIN)
        elif what in (ROOM, NEW, USED):
            self._use_library(control, what, value)
        elif control is not self._control:
            if what == FILE:  # a helper writes its part of the family's checkpoint
                passed_fd = self._members_file()
                control.answer(0, passed_fd)
            return  # it has no say in the rest
        elif what == BEGAN:
            self.began = True
        elif what == EXITED:
            self.exit_said = True
        elif what == REFUSED:
            self._run.image_refused(value)
        elif what == FILE:
            self._increment = value == 1
            self._give_file()
        elif what == WRITTEN:
            self._bring_home(lambda number: self._answer_control(-number))
        elif what == DROPPED and self._image_path:
            path, self._image_path = self._image_path, ""
            self._run.drop_image(path)
            self._run.image_refused(value)

    def _use_library(self, control: _Control, what: int, value: int) -> None:
        if what == ROOM:
            try:
                if self.library is None:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
                control.answer(0, self.library.room())
            except OSError as error:
                control.answer(-(error.errno or EIO))
        elif self.library is not None and what == NEW:
            self.library.new()
        elif self.library is not None:
            self.library.used(value)

    def _members_file(self) -> int:
        """One more descriptor of the file that the first process has begun."""
        if self._written_fd < 0:
            return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # its part will be missing, and no image made
        return os.dup(self._written_fd)

    def _keep_file(self, descriptor: int) -> None:
        """Keep what helpers are to write to, until it is complete; -1: it is."""
        if self._written_fd >= 0:
            os.close(self._written_fd)
        self._written_fd = os.dup(descriptor) if descriptor >= 0 else -1

    def _answer_control(self, value: int, passed_fd: int = -1) -> None:
        if self._control is not None:
            self._control.answer(value, passed_fd)
        elif passed_fd >= 0:
            os.close(passed_fd)

    def _give_file(self) -> None:
        try:
            self._image_path, descriptor = self._run.new_image()
        except OSError as error:
            self._answer_control(-(error.errno or EIO))
        else:
            self._keep_file(descriptor)
            self._answer_control(0, descriptor)

    def spare(self, channel: FarChannel | FarNumbered, label: int) -> bool:
        """A connection that is to become the channel of a helper; whether there is a use for it."""
        if self.over or self._control is None or len(self._spares) >= SPARES or label in self._spares:
            return False
        self._spares[label] = channel
        return True

    def _give_member(self, child: int, control: _Control) -> None:
        if child in self._born:
            control.answer(0, self._open(self._born.pop(child)))
            return
        channel = self._spares.pop(self._straight.pop(child), None)
        try:
            straight = channel.socket() if channel is not None else None
        except OSError:
            straight = None
        if straight is None:  # it has ended meanwhile
            control.answer(-EIO)
            return
        own, theirs = self._new_control()
        self._helpers.add(own)
        control.answer(1, straight.detach(), theirs)

    # ---- images

    def _new_image(self) -> int:
        """A file for a checkpoint; the runtime's descriptor of it."""
        try:
            self._image_path, descriptor = self._run.new_image()
        except OSError:
            return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # its end will be a failure
        self._keep_file(descriptor)
        return int(descriptor)

    def _image_written(self, end_frame: bytes) -> None:
        """The runtime has written a checkpoint and says so to the shadow."""
        def brought(number: int) -> None:
            frame = end_frame
            if number:  # not good after all
                frame = end_frame[:8] + struct.pack("<qq", 0, number) + end_frame[24:]
            self.forward(0, frame)

        self._bring_home(brought)

    def _bring_home(self, brought: Callable[[int], None]) -> None:
        """A checkpoint is whole here: it goes home before the shadow hears of it; ``brought(errno)``."""
        path, self._image_path = self._image_path, ""
        self._keep_file(-1)
        increment = self._increment
        if not path:
            brought(EIO)
            return
        self._run.image_written()

        def listed(result: Any) -> None:
            if isinstance(result, Failure):
                sent(getattr(result.value, "errno", 0) or EIO, result.getErrorMessage())
            else:
                sealed = attrs.evolve(result, seal=self._run.guard.seal(result.digest))
                self.send_image(path, sealed, sent, increment=increment)

        def sent(number: int, text: str) -> None:
            self._run.drop_image(path)
            self._run.image_sent()
            brought(number)

        self.in_thread(list_image, path).addBoth(listed)

    def vacate(self) -> None:
        """Let the next checkpoint be the program's last act here."""
        self.send(ss.frame(ss.VACATE))

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """A file in the sandbox, for a checkpoint that the seal speaks for."""
        if self._image_fd >= 0 or (self.increment_comes and self._added is not None):
            raise BadStream("two checkpoints at once")
        guard, added = self._run.guard, self._added
        problem = guard.increment_problem(wanted.digest, wanted.seal) if self.increment_comes else guard.image_problem(
            wanted.digest, wanted.seal, added[1].seal if added is not None else None)
        if problem:
            raise ImageRefused(errno.EKEYREJECTED, problem)
        self._image_path, self._image_fd = self._run.new_image()
        self._coming = wanted
        return self._image_fd, "", None

    def image_here(self, number: int, text: str) -> None:
        """The checkpoint to start from, or the increment that the one to come is merged with."""
        os.close(self._image_fd)
        path, self._image_path, self._image_fd = self._image_path, "", -1
        if number:
            self._run.drop_image(path)
            self.answer_image(number, text)
        elif self.increment_comes:
            self._added = path, self._coming
            self.answer_image(0, "")
        elif self._added is None:
            self._here(path)
        else:
            self._merge(path, self._added[0])

    def _merge(self, base: str, increment: str) -> None:
        """Both are what the pool made: the whole of them is what is started."""
        self._added = None
        try:
            path, descriptor = self._run.new_image()
        except OSError as error:
            self.answer_image(error.errno or EIO, str(error))
            return

        def merged(result: Any) -> None:
            os.close(descriptor)
            for done in (base, increment):
                self._run.drop_image(done)
            if isinstance(result, Failure):
                self._run.drop_image(path)
                number = errno.EKEYREJECTED if isinstance(result.value, ImageDamaged) else 0
                self.answer_image(number or getattr(result.value, "errno", 0) or EIO, result.getErrorMessage())
            elif not self.over:
                self._here(path)

        self.in_thread(merge_images, base, increment, descriptor).addBoth(merged)

    def _here(self, path: str) -> None:
        self._run.image_received(path)
        self.answer_image(0, "")

    def ended(self, reason: str) -> None:
        """Home is gone."""
        if self._patience.active():
            self._patience.cancel()
        if self._image_fd >= 0:
            os.close(self._image_fd)
            self._image_fd = -1
        self._keep_file(-1)
        if self.library is not None:
            self.library.close()
        control, self._control = self._control, None
        if control is not None:
            self._helpers.add(control)
        for each in tuple(self._helpers):
            each.socket.close()
        self._helpers.clear()
        for channel in self._spares.values():
            channel.cut()
        self._spares.clear()
        if self._run is not None:
            self._run.detached(self, reason)
