"""Both ends of the stream between a standard-universe job and its home: channels and checkpoints.

Theory: :class:`StandardStream` is what the two ends have in common: frames, the channels of the family's members, and
the moving of one image at a time in either direction.  :class:`HomeEnd` stands beside the native shadow,
:class:`FarEnd` beside the runtime.  Where the shadow hands the runtime a descriptor, the far end makes one of its own:
a file for a checkpoint, which travels home before the shadow hears of its end, and a channel for a new member.

The runtime waits while its checkpoint travels: so the shadow empties the undo journal in the same moment in which the
checkpoint at home is whole, and a crash at any time leaves an image and a journal that belong together.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import zstandard
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.machine.channel_socket import (
    OP_EXIT,
    OP_FORK,
    OP_HELLO,
    OP_IMAGE_BEGIN,
    OP_IMAGE_END,
    AnswerFollower,
    ChannelSocket,
    RequestFollower,
)
from condor_actors.transfer import standard_stream as ss
from condor_actors.transfer.image_pieces import (
    ImageList,
    ImageSink,
    decode_numbers,
    encode_numbers,
    list_image,
    take_over,
)
from condor_actors.transfer.streams import BadStream

__all__ = ["FarEnd", "HomeEnd", "StandardStream"]

_DONE = Failure(ConnectionDone())
FRAME_BYTES = 256 << 10
COMPRESSION_PROBE = 16
KEY_S = 20.0
"""How long a stream may take to say whose it is."""
MEMBERS = 1000


@implementer(IPushProducer)
class StandardStream(Protocol):
    """The common part; see the module.

    Args:
        reactor: Twisted's.
        local: the other end is on this machine: nothing is compressed.
        beside: runs a slow function beside the reactor.
    """

    def __init__(self, reactor: Any, *, local: bool, beside: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self.reactor = reactor
        self.beside = beside
        self.members: dict[int, ChannelSocket] = {}
        self.over = False
        self.sent_bytes = self.images_in_bytes = self.images_out_bytes = 0
        self._local = local
        self._reader = ss.StreamReader()
        self._paused = False
        self._resumed: list[Callable[[], None]] = []
        self._sink: ImageSink | None = None
        self._receiving = False
        self._sending: Callable[[int, str], None] | None = None
        self._wanted: Callable[[bytes], None] | None = None
        self._write: Callable[[bytes], None] = lambda data: None
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._worth = False

    # ---- the stream

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say when the other end is slower than we are."""
        transport: Any = self.transport
        self._local = self._local or str(getattr(transport.getPeer(), "host", "")).startswith("127.")
        transport.registerProducer(self, True)
        self._write = transport.write
        if isinstance(transport, BufferingTLSTransport):  # it would collect writes for a turn of the reactor
            self._write = partial(TLSMemoryBIOProtocol.write, transport)
        for setting in ("setTcpNoDelay", "setTcpKeepAlive"):
            if hasattr(transport, setting):
                getattr(transport, setting)(True)

    def send(self, data: bytes) -> None:
        """Frames to the other end."""
        if not self.over:
            self.sent_bytes += len(data)
            self._write(data)

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's
        """The other end takes no more for now."""
        self._paused = True
        for member in self.members.values():
            member.pause()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's
        """It does again."""
        self._paused = False
        for member in tuple(self.members.values()):
            member.resume()
        resumed, self._resumed = self._resumed, []
        for function in resumed:
            function()

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's
        """The connection is gone; connectionLost follows."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """Frames of the other end."""
        try:
            for letter, member, payload in self._reader.feed(data):
                if not self.over:
                    self.take(letter, member, payload)
        except (ValueError, OSError) as error:
            self.cut(str(error))

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """One frame.

        Raises:
            BadStream: no honest peer sends it.
        """
        if letter == ss.DATA:
            self.channel_data(member, payload)
        elif letter == ss.ENDED:
            channel = self.members.pop(member, None)
            if channel is not None:
                channel.finish()
        elif letter == ss.IMAGE:
            self._image_comes(payload)
        elif letter in (ss.PIECE, ss.PACKED):
            if self._sink is None:
                raise BadStream("a piece that nobody asked for")
            self._piece(payload, letter == ss.PACKED)
        elif letter == ss.WANTED and self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            wanted(payload)
        elif letter == ss.KEPT and self._sending is not None:
            sending, self._sending, self._wanted = self._sending, None, None
            sending(*ss.fields_of(letter, payload))
        else:
            raise BadStream(f"frame {letter:#x} in the wrong place")

    def cut(self, reason: str) -> None:
        """End it."""
        if not self.over:
            self._end(reason)
            transport: Any = self.transport
            if transport is not None:
                transport.abortConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """It has ended."""
        self._end(reason.getErrorMessage())

    def _end(self, reason: str) -> None:
        if self.over:
            return
        self.over = True
        for member in tuple(self.members.values()):
            member.close()
        self.members.clear()
        if self._sending is not None:
            sending, self._sending = self._sending, None
            sending(5, f"the stream ended: {reason}")
        self.ended(reason)

    # ---- channels

    def add_member(self, number: int, sock: socket.socket, received: Callable[[bytes, list[int]], None]) -> None:
        """Take charge of one end of a channel."""
        def closed() -> None:
            if self.members.pop(number, None) is not None:
                self.send(ss.frame(ss.ENDED, b"", number))
                self.member_ended(number)

        member = self.members[number] = ChannelSocket(sock, self.reactor, received, closed)
        if self._paused:
            member.pause()

    def forward(self, member: int, data: bytes) -> None:
        """Bytes of a channel to the other end."""
        for start in range(0, len(data), FRAME_BYTES):
            self.send(ss.frame(ss.DATA, data[start : start + FRAME_BYTES], member))

    # ---- an image that comes

    def _image_comes(self, payload: bytes) -> None:
        wanted = ImageList.from_bytes(payload)
        if self._receiving:
            raise BadStream("two checkpoints at once")
        self._receiving = True
        target, old_path, old = self.image_place(wanted)

        def looked(result: Any) -> None:
            if self.over:
                return
            if isinstance(result, Failure):
                self._received(getattr(result.value, "errno", 0) or 5, result.getErrorMessage())
                return
            self._sink = ImageSink(wanted, target, result)
            self.send(ss.frame(ss.WANTED, encode_numbers(result)))
            if self._sink.whole:
                self._received(0, "")

        self.beside(take_over, wanted, target, old_path, old).addBoth(looked)

    def _piece(self, payload: bytes, packed: bool) -> None:
        assert self._sink is not None
        try:
            self._sink.take(payload, packed)
        except OSError as error:
            self._received(error.errno or 5, error.strerror or str(error))
            return
        self.images_in_bytes += len(payload)
        if self._sink.whole:
            self._received(0, "")

    def _received(self, number: int, text: str) -> None:
        """All is here, or cannot be."""
        self._sink = None
        self._receiving = False
        self.image_here(number, text)

    def answer_image(self, number: int, text: str) -> None:
        """Tell the sender whether its image is kept."""
        self.send(ss.message_frame(ss.KEPT, number, text[:1000]))

    # ---- an image that goes

    def send_image(self, path: str, wanted: ImageList, done: Callable[[int, str], None]) -> None:
        """Send the image at ``path``; ``done(errno, text)`` says how that ended."""
        if self.over or self._sending is not None:
            done(5, "the stream is over")
            return
        self._sending = done

        def numbers(payload: bytes) -> None:
            lacking = decode_numbers(payload, len(wanted.pieces))
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._send_pieces(descriptor, wanted, iter(lacking))

        self._wanted = numbers
        self.send(ss.frame(ss.IMAGE, wanted.to_bytes()))

    def _send_pieces(self, descriptor: int, wanted: ImageList, numbers: Iterator[int]) -> None:
        """As many as the other end takes now."""
        while not self._paused and not self.over and self._sending is not None:
            number = next(numbers, -1)
            if number < 0:
                break
            piece = wanted.pieces[number]
            data = os.pread(descriptor, piece.length, piece.offset)
            self.send(self._pack(number, data))
        else:
            if not self.over and self._sending is not None:
                self._resumed.append(lambda: self._send_pieces(descriptor, wanted, numbers))
                return
        os.close(descriptor)

    def _pack(self, number: int, data: bytes) -> bytes:
        name = struct.pack("<I", number)
        probe = number % COMPRESSION_PROBE == 0
        if not self._local and (self._worth or probe):
            packed = self._compressor.compress(data)
            if probe:
                self._worth = len(packed) < 0.8 * len(data)
            if len(packed) < len(data):
                self.images_out_bytes += len(packed)
                return ss.frame(ss.PACKED, name + packed)
        self.images_out_bytes += len(data)
        return ss.frame(ss.PIECE, name + data)

    # ---- what the two ends do

    def channel_data(self, member: int, data: bytes) -> None:
        """Bytes of a channel came."""
        raise NotImplementedError

    def member_ended(self, number: int) -> None:
        """Our end of a channel is gone."""

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """Where an image that comes is to go (a descriptor), and an older one."""
        raise NotImplementedError

    def image_here(self, number: int, text: str) -> None:
        """An image has come, or (errno, why) could not."""
        raise NotImplementedError

    def ended(self, reason: str) -> None:
        """The stream is over."""
        raise NotImplementedError


class HomeEnd(StandardStream):
    """The end beside the native shadow.

    Args:
        run_id, key: what is shown to the starter host.
        ready: called with an empty text when the starter takes the run, else with why not.
        image_kept: called in place of keeping an image: (list, done(errno, text)); the file is complete by then.
        old_image: where the last image is and what it consists of.
        vacating: called when the next image is to be the last.
        lost: called with the reason when the stream is over.
    """

    def __init__(self, reactor: Any, *, local: bool, run_id: str, key: str, ready: Callable[[str], None],
                 image_kept: Callable[[ImageList, Callable[[int, str], None]], None],
                 old_image: Callable[[], tuple[str, ImageList | None]], vacating: Callable[[], None],
                 lost: Callable[[str], None]) -> None:
        super().__init__(reactor, local=local)
        self._run = run_id, key
        self._ready: Callable[[str], None] | None = ready
        self._image_kept = image_kept
        self._old_image = old_image
        self._vacating = vacating
        self._lost = lost
        self._born = 0
        self._image_fd = -1
        self._list: ImageList | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say whose stream it is."""
        super().connectionMade()
        self.send(ss.STANDARD_LINE)
        self.send(ss.message_frame(ss.KEY, *self._run))

    def take(self, letter: int, member: int, payload: bytes) -> None:
        """Beside the common frames: the starter's yes and no, and that it makes way."""
        if letter in (ss.READY, ss.NO) and self._ready is not None:
            ready, self._ready = self._ready, None
            ready("" if letter == ss.READY else ss.fields_of(letter, payload)[0] or "refused")
        elif letter == ss.VACATE:
            self._vacating()
        else:
            super().take(letter, member, payload)

    def serve(self, sock: socket.socket) -> None:
        """Relay the channel of the first process, whose other end the native shadow has."""
        self.add_member(0, sock, partial(self._answers, 0))

    def _answers(self, member: int, data: bytes, gifts: list[int]) -> None:
        for gift in gifts:
            try:
                sock = socket.socket(fileno=gift)
            except OSError:  # no socket: the file of an image
                self._drop_image()
                self._image_fd = gift
                continue
            if len(self.members) >= MEMBERS:
                sock.close()
                continue
            number = self._free_number()
            self.send(ss.frame(ss.MEMBER, b"", number))
            self.add_member(number, sock, partial(self._answers, number))
        self.forward(member, data)

    def _free_number(self) -> int:
        self._born = self._born % 65535 + 1
        while self._born in self.members:
            self._born = self._born % 65535 + 1
        return self._born

    def channel_data(self, member: int, data: bytes) -> None:
        """Requests for the native shadow."""
        channel = self.members.get(member)
        if channel is not None:
            channel.write(data)

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """The file that the native shadow has made."""
        if self._image_fd < 0:
            raise BadStream("a checkpoint that nobody began")
        self._list = wanted
        return (self._image_fd, *self._old_image())

    def image_here(self, number: int, text: str) -> None:
        """Whole: its list is kept first, then the shadow hears of it."""
        wanted, self._list = self._list, None
        self._drop_image()
        if number or wanted is None:
            self.answer_image(number or 5, text)
        else:
            self._image_kept(wanted, self.answer_image)

    def _drop_image(self) -> None:
        if self._image_fd >= 0:
            os.close(self._image_fd)
            self._image_fd = -1

    def ended(self, reason: str) -> None:
        """Nothing comes any more."""
        self._drop_image()
        if self._ready is not None:
            ready, self._ready = self._ready, None
            ready(f"the stream ended: {reason}")
        self._lost(reason)


class FarEnd(StandardStream):
    """The end beside the runtime.

    Args:
        accept: finds the run of (run id, key): None, or the object that gets ``attached(end)``.
        local: see :class:`StandardStream`.

    Attributes:
        exit_said: the program has ended by itself and home knows.
        began: the runtime has said its first words: signals are safe.
        runtime_gone: the first process has closed its channel.
    """

    def __init__(self, reactor: Any, *, local: bool, accept: Callable[[str, str], Any]) -> None:
        super().__init__(reactor, local=local)
        self._accept = accept
        self._run: Any = None
        self.exit_said = False
        self.began = False
        self.runtime_gone = False
        self._requests: dict[int, RequestFollower] = {}
        self._answers: dict[int, AnswerFollower] = {}
        self._newborn = 0
        self._image_fd = -1
        self._image_path = ""
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
            problem = self._run.attached(self)
            self.send(ss.message_frame(ss.NO, problem) if problem else ss.frame(ss.READY))
        elif letter == ss.MEMBER:
            self._newborn = member
        else:
            super().take(letter, member, payload)

    # ---- the runtime

    def open_channel(self) -> int:
        """Make the first channel; the runtime's end, for the caller to pass on and close."""
        return self._open(0)

    def _open(self, number: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        calls = {OP_HELLO, OP_EXIT, OP_IMAGE_BEGIN, OP_IMAGE_END, OP_FORK}
        self._requests[number] = RequestFollower(frozenset(calls))
        self._answers[number] = AnswerFollower()
        self.add_member(number, ours, partial(self._requested, number))
        return theirs.detach()

    def member_ended(self, number: int) -> None:
        """A member has ended."""
        self.runtime_gone = self.runtime_gone or number == 0
        self._requests.pop(number, None)
        self._answers.pop(number, None)

    def _requested(self, number: int, data: bytes, gifts: list[int]) -> None:
        for gift in gifts:  # no runtime of ours sends any
            os.close(gift)
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
                    self._run.image_sent(path, 5, "given up")
                self.forward(number, part)

    def channel_data(self, member: int, data: bytes) -> None:
        """Answers for the runtime, with what it gets beside them."""
        channel, follower = self.members.get(member), self._answers.get(member)
        if channel is None or follower is None:
            return
        for call, result, part in follower.feed(data):
            gift = -1
            if call == OP_IMAGE_BEGIN and result >= 0:
                gift = self._new_image()
            elif call == OP_IMAGE_BEGIN:
                self._run.image_refused(-result)
            elif call == OP_FORK and result >= 0 and self._newborn:
                number, self._newborn = self._newborn, 0
                gift = self._open(number)
            elif call == OP_EXIT and member == 0:
                self.exit_said = True
            channel.write(part, gift)

    # ---- images

    def _new_image(self) -> int:
        """A file for a checkpoint; the runtime's descriptor of it."""
        try:
            self._image_path, descriptor = self._run.new_image()
        except OSError:
            return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # its end will be a failure
        return int(descriptor)

    def _image_written(self, end_frame: bytes) -> None:
        """The runtime has written a checkpoint: bring it home before the shadow hears of it."""
        path, self._image_path = self._image_path, ""
        self._run.image_written()

        def listed(result: Any) -> None:
            if isinstance(result, Failure):
                sent(getattr(result.value, "errno", 0) or 5, result.getErrorMessage())
            else:
                self.send_image(path, result, sent)

        def sent(number: int, text: str) -> None:
            self._run.image_sent(path, number, text)
            frame = end_frame
            if number:  # not good after all
                frame = end_frame[:8] + struct.pack("<qq", 0, number) + end_frame[24:]
            self.forward(0, frame)

        self.beside(list_image, path).addBoth(listed)

    def vacate(self) -> None:
        """Let the next checkpoint be the program's last act here."""
        self.send(ss.frame(ss.VACATE))

    def image_place(self, wanted: ImageList) -> tuple[int, str, ImageList | None]:
        """A file in the sandbox."""
        if self._image_fd >= 0:
            raise BadStream("two checkpoints at once")
        self._image_path, self._image_fd = self._run.new_image()
        return self._image_fd, "", None

    def image_here(self, number: int, text: str) -> None:
        """The checkpoint to start from."""
        os.close(self._image_fd)
        path, self._image_path, self._image_fd = self._image_path, "", -1
        self._run.image_received(path, number, text)
        self.answer_image(number, text)

    def ended(self, reason: str) -> None:
        """Home is gone."""
        if self._patience.active():
            self._patience.cancel()
        if self._image_fd >= 0:
            os.close(self._image_fd)
            self._image_fd = -1
        if self._run is not None:
            self._run.detached(self, reason)
