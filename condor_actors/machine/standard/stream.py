"""What both ends of the stream between a standard-universe job and its home have in common.

Theory: frames, the channels of the family's members, and the moving of one image at a time in either direction.
:class:`~.submit_endpoint.SubmitEndpoint` stands beside the native shadow, :class:`~.execute_endpoint.ExecuteEndpoint`
beside the runtime.  Where the shadow hands the runtime a descriptor, the execute endpoint makes one of its own: a file
for a checkpoint, which travels home before the shadow hears of its end, and a channel for a new member.

The runtime waits while its checkpoint travels: so the shadow empties the undo journal in the same moment in which the
checkpoint at home is whole, and a crash at any time leaves an image and a journal that belong together.
"""

from __future__ import annotations

import contextlib
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

from condor_actors.machine.standard.channel_socket import ChannelSocket
from condor_actors.transfer import standard_frames as ss
from condor_actors.transfer.image_pieces import ImageList, ImageSink, decode_numbers, encode_numbers, take_over
from condor_actors.transfer.streams import BadStream
from condor_actors.wire.relays.socket_handover import raw_transport

__all__ = ["ImageRefused", "StandardStream", "direct_write"]

_DONE = Failure(ConnectionDone())
FRAME_BYTES = 256 << 10
COMPRESSION_PROBE = 16
SILENT_S, PROBE_S, PROBES = 20, 10, 3
"""A stream without a word for so long is asked whether it is alive, so often, before it counts as dead."""


def direct_write(transport: Any) -> Callable[[bytes], None]:
    """What sends at once: the TLS of a server would collect writes for a turn of the reactor."""
    if isinstance(transport, BufferingTLSTransport):
        return partial(TLSMemoryBIOProtocol.write, transport)
    write: Callable[[bytes], None] = transport.write
    return write


class ImageRefused(Exception):
    """A checkpoint that comes is not taken: ``number`` (errno) and why; the stream goes on."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(text)
        self.number = number


@implementer(IPushProducer)
class StandardStream(Protocol):
    """The common part; see the module.

    Args:
        reactor: Twisted's.
        local: the other end is on this machine: nothing is compressed.
        beside: runs a slow function beside the reactor.
    """

    def __init__(self, reactor: Any, *, local: bool, in_thread: Callable[..., Deferred[Any]] = deferToThread) -> None:
        self.reactor = reactor
        self.in_thread = in_thread
        self.members: dict[int, ChannelSocket] = {}
        self.over = False
        self.sent_bytes = self.images_in_bytes = self.images_out_bytes = 0
        self._local = local
        self._reader = ss.StreamReader()
        self._paused = False
        self._resumed: list[Callable[[], None]] = []
        self._sink: ImageSink | None = None
        self._given_up: ImageSink | None = None
        self._receiving = False
        self.increment_comes = False
        self._sending: Callable[[int, str], None] | None = None
        self._wanted: Callable[[bytes], None] | None = None
        self._write: Callable[[bytes], None] = lambda data: None
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._worth = False

    # ---- the stream

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """It begins."""
        self.use(self.transport)

    def use(self, transport: Any) -> None:
        """Send over this connection, which says when the other end is slower than we are."""
        self._local = self._local or str(getattr(transport.getPeer(), "host", "")).startswith("127.")
        transport.registerProducer(self, True)
        self._write = direct_write(transport)
        for setting in ("setTcpNoDelay", "setTcpKeepAlive"):
            if hasattr(transport, setting):
                getattr(transport, setting)(True)
        sock: Any = getattr(raw_transport(transport), "socket", None)
        for option, value in ((socket.TCP_KEEPIDLE, SILENT_S), (socket.TCP_KEEPINTVL, PROBE_S),
                              (socket.TCP_KEEPCNT, PROBES),
                              (socket.TCP_USER_TIMEOUT, 1000 * (SILENT_S + PROBES * PROBE_S))):
            with contextlib.suppress(OSError, AttributeError):
                sock.setsockopt(socket.IPPROTO_TCP, option, value)

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
                    self.came(letter, member, payload)
        except (ValueError, OSError) as error:
            self.cut(str(error))

    def came(self, letter: int, member: int, payload: bytes) -> None:
        """One frame, before anything is made of it.

        Raises:
            BadStream: no honest peer sends it.
        """
        self.take(letter, member, payload)

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
            self.increment_comes = member == ss.INCREMENT
            self._image_comes(payload)
        elif letter in (ss.PIECE, ss.PACKED):
            if self._sink is not None:
                self._piece(payload, letter == ss.PACKED)
            elif self._given_up is not None:
                self._given_up.drop(payload)
            else:
                raise BadStream("a piece that nobody asked for")
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
            self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection, if there is one."""
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
        self._given_up = None
        try:
            target, old_path, old = self.image_place(wanted)
        except ImageRefused as refusal:
            self.answer_image(refusal.number, str(refusal))
            return
        self._receiving = True

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

        self.in_thread(take_over, wanted, target, old_path, old).addBoth(looked)

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
        """All is here, or cannot be: then pieces are on their way still, and the sender has yet to hear of it."""
        self._given_up = self._sink if number else None
        self._sink = None
        self._receiving = False
        self.image_here(number, text)

    def answer_image(self, number: int, text: str) -> None:
        """Tell the sender whether its image is kept."""
        self.send(ss.message_frame(ss.KEPT, number, text[:1000]))

    # ---- an image that goes

    def send_image(self, path: str, wanted: ImageList, done: Callable[[int, str], None], *,
                   increment: bool = False) -> None:
        """Send the image (or increment) at ``path``; ``done(errno, text)`` says how that ended."""
        if self.over or self._sending is not None:
            done(5, "the stream is over")
            return
        self._sending = done

        def numbers(payload: bytes) -> None:
            lacking = decode_numbers(payload, len(wanted.pieces))
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self._send_pieces(descriptor, wanted, iter(lacking))

        self._wanted = numbers
        self.send(ss.frame(ss.IMAGE, wanted.to_bytes(), ss.INCREMENT if increment else 0))

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
        """Where an image that comes is to go (a descriptor), and an older one.

        Raises:
            ImageRefused: it is not taken.
        """
        raise NotImplementedError

    def image_here(self, number: int, text: str) -> None:
        """An image has come, or (errno, why) could not."""
        raise NotImplementedError

    def ended(self, reason: str) -> None:
        """The stream is over."""
        raise NotImplementedError
