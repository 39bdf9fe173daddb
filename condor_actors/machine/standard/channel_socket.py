"""One end of a runtime's channel in a reactor: bytes, and descriptors that travel beside them.

Theory: the channel is a UNIX socket because some answers hand over a descriptor (a file for a checkpoint, the channel
of a new member).  Who relays such a channel to another machine passes the bytes on and makes the descriptor anew there;
so the frames are followed here, byte by byte and without copying them.  Numbers are those of ``native/protocol.h``.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.interfaces import IReadWriteDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

__all__ = [
    "ANSWER_BYTES", "AnswerFollower", "ChannelSocket", "OP_DESCRIBE", "OP_EXIT", "OP_FORK", "OP_GATHER", "OP_HELLO",
    "OP_IMAGE_BEGIN", "OP_IMAGE_END", "OP_PART", "Request", "RequestFollower",
]

OP_HELLO, OP_EXIT, OP_DESCRIBE, OP_IMAGE_BEGIN, OP_IMAGE_END = 1000, 1002, 1006, 1008, 1009
OP_FORK, OP_GATHER, OP_PART = 1013, 1024, 1027
ANSWER_BYTES, REQUEST_BYTES = 16, 56
READ_BYTES = 256 << 10
ROOM_BYTES = 4 << 20
"""A socket whose reader is so far behind makes the other side wait."""
_REQUEST = struct.Struct("<IHH6q")
_ANSWER = struct.Struct("<IHHq")
_FD = array.array("i")


@implementer(IReadWriteDescriptor)
class ChannelSocket:
    """One end of a channel: bytes with the descriptors that travel beside them.

    Args:
        sock: connected; this object's from now on.
        reactor: Twisted's.
        received: called with bytes, and the descriptors that came beside them (the callee's from then on).
        closed: called once, when the other end is gone.
    """

    def __init__(self, sock: socket.socket, reactor: Any, received: Callable[[bytes, list[int]], None],
                 closed: Callable[[], None]) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._reactor = reactor
        self._received = received
        self._closed = closed
        self._out: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._waiting = 0
        self._over = False
        self._ending = False
        reactor.addReader(self)

    def fileno(self) -> int:
        """For the reactor."""
        return self._socket.fileno()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "channel"

    # ---- in

    def pause(self) -> None:
        """Read no more for now."""
        if not self._over:
            self._reactor.removeReader(self)

    def resume(self) -> None:
        """Read again."""
        if not self._over:
            self._reactor.addReader(self)

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Take what is there."""
        try:
            data, ancillary, _, _ = self._socket.recvmsg(READ_BYTES, socket.CMSG_SPACE(4 * _FD.itemsize))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, ancillary = b"", []
        passed_fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                passed_fds.frombytes(content[: len(content) - len(content) % passed_fds.itemsize])
        if data:
            self._received(data, passed_fds.tolist())
        else:
            self._gone()

    # ---- out

    def write(self, data: bytes, *passed_fds: int) -> None:
        """Send bytes, with descriptors (-1: none) beside the first of them, which are closed afterwards."""
        beside = tuple(passed_fd for passed_fd in passed_fds if passed_fd >= 0)
        if self._over:
            for passed_fd in beside:
                os.close(passed_fd)
            return
        if data:
            self._out.append((data, beside))
            self._waiting += len(data)
            if len(self._out) == 1:
                self.doWrite()

    def doWrite(self) -> None:  # noqa: N802 - Twisted's name
        """Send what waits."""
        while self._out:
            data, passed_fds = self._out[0]
            beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed_fds))] if passed_fds else []
            try:
                sent = self._socket.sendmsg([data], beside, socket.MSG_NOSIGNAL)
            except (BlockingIOError, InterruptedError):
                self._reactor.addWriter(self)
                return
            except OSError:
                self._gone()
                return
            for passed_fd in passed_fds:
                os.close(passed_fd)
            self._waiting -= sent
            if sent < len(data):
                self._out[0] = (data[sent:], ())
            else:
                self._out.popleft()
        self._reactor.removeWriter(self)
        if self._ending:
            self._gone()


    # ---- end

    def finish(self) -> None:
        """Close when everything is sent."""
        self._ending = True
        if not self._out:
            self._gone()

    def close(self) -> None:
        """Close now; nobody is told."""
        self._closed = lambda: None
        self._gone()

    def _gone(self) -> None:
        if self._over:
            return
        self._over = True
        self._reactor.removeReader(self)
        self._reactor.removeWriter(self)
        self._socket.close()
        for _, passed_fds in self._out:
            for passed_fd in passed_fds:
                os.close(passed_fd)
        self._out.clear()
        self._closed()

    def connectionLost(self, reason: Failure | None = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor says that it is over (hung up, or the reactor stops); what is still there is read first."""
        if reason is not None:
            self.read_all()
        self._gone()

    def read_all(self) -> None:
        """Take everything that is there now."""
        while not self._over and self._has_data():
            self.doRead()

    def _has_data(self) -> bool:
        try:
            return bool(self._socket.recv(1, socket.MSG_PEEK))
        except OSError:
            return False


@attrs.frozen
class Request:
    """A request that a relay must know of."""

    call: int
    identifier: int
    arguments: tuple[int, ...]


class RequestFollower:
    """Follows the requests of a runtime and finds those of ``calls``.

    Bytes go on as they came; only the header of a request that is divided between two reads waits for its rest, and
    what follows a request of interest comes in a part of its own.
    """

    def __init__(self, calls: frozenset[int]) -> None:
        self._calls = calls
        self._head = b""
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[Request | None, bytes]]:
        """Cut ``data`` before and after each request of interest: (the request, its bytes), (None, others)."""
        if self._left >= len(data):
            self._left -= len(data)
            return [(None, data)]
        data = self._head + data
        self._head = b""
        found: list[tuple[Request | None, bytes]] = []
        start, at = 0, self._left
        self._left = 0
        while at + REQUEST_BYTES <= len(data):
            size, identifier, call, *arguments = _REQUEST.unpack_from(data, at)
            end = at + REQUEST_BYTES + size
            if call in self._calls:
                if at > start:
                    found.append((None, data[start:at]))
                stop = min(end, len(data))
                found.append((Request(call, identifier, tuple(arguments)), data[at:stop]))
                start = stop
            at = end
        if at > len(data):
            self._left = at - len(data)
        else:
            self._head = data[at:]
        stop = len(data) - len(self._head)
        if stop > start:
            found.append((None, data[start:stop]))
        return found


class AnswerFollower:
    """Follows the answers to a runtime and finds those to requests of interest."""

    def __init__(self) -> None:
        self.expected: dict[int, int] = {}
        """Identifier of a request that was sent, to its call."""
        self._head = b""
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[int, int, bytes]]:
        """Cut ``data`` before each answer of interest: (call or 0, result, bytes)."""
        if self._left >= len(data):
            self._left -= len(data)
            return [(0, 0, data)]
        data = self._head + data
        self._head = b""
        found: list[tuple[int, int, bytes]] = []
        start, at = 0, self._left
        self._left = 0
        call = result = 0
        while at + ANSWER_BYTES <= len(data):
            size, identifier, _, answered = _ANSWER.unpack_from(data, at)
            wanted = self.expected.pop(identifier, 0) if self.expected else 0
            if wanted:
                if at > start:
                    found.append((call, result, data[start:at]))
                start, call, result = at, wanted, answered
            at += ANSWER_BYTES + size
        if at > len(data):
            self._left = at - len(data)
        else:
            self._head = data[at:]
        stop = len(data) - len(self._head)
        if stop > start:
            found.append((call, result, data[start:stop]))
        return found
