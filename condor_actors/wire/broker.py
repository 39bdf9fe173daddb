"""A Perspective Broker that can do exactly one thing: call ``deliver`` on the peer's ``link``.

Theory: Perspective Broker as it comes lets a peer name any method, copy any registered class, hold references to
local objects, and learn the text of exceptions.  Here both sides publish one object under a fixed name and no
expression can hand over another.  ``deliver`` takes one byte string, enqueues and returns nothing.  Any other
expression (an answer, an error, a cache message, a reference, a second argument) ends the connection.  Since nothing
but a byte string is ever unjellied, the security options allow no type at all.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any, Protocol

from twisted.internet.abstract import FileDescriptor
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IPushProducer
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.spread import jelly, pb
from zope.interface import implementer

from condor_actors.wire.banana import BadBanana, Decoder, encode_call
from condor_actors.wire.certificates.strangers import stranger_at
from condor_actors.wire.frames import ACTORS_LINE

_DONE = Failure(ConnectionDone())

TCP_RTO_MAX_MS = 44
"""Linux's number of the option; Python has no name for it."""
RESENT_WITHIN_MS = 3_000


class NothingAllowed(jelly.SecurityOptions):
    """Security options that refuse every type, module and class; the stock ones accept any dotted name."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted leaves it untyped
        self.allowedTypes = {}

    def isTypeAllowed(self, typeName: Any) -> bool:  # noqa: N802, N803 - Twisted's
        """No."""
        return False

    def isModuleAllowed(self, moduleName: Any) -> bool:  # noqa: N802, N803
        """No."""
        return False

    def isClassAllowed(self, klass: Any) -> bool:  # noqa: N802
        """No."""
        return False


def _send_at_once(transport: Any) -> None:
    """A small frame must not wait (40 ms) until the peer has acknowledged the one before."""
    set_no_delay = getattr(transport, "setTcpNoDelay", None)
    if set_no_delay is not None:
        with contextlib.suppress(OSError):  # a UNIX socket has nothing to set
            set_no_delay(True)


def _come_back_soon(transport: Any) -> None:
    """After a cut, what was not acknowledged is sent again within seconds; the kernel would wait as long again as the
    cut has lasted."""
    below = _descriptor_of(transport)
    connected = getattr(below, "socket", None)
    if connected is not None and connected.family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):  # a kernel before 6.15
            connected.setsockopt(socket.IPPROTO_TCP, TCP_RTO_MAX_MS, RESENT_WITHIN_MS)


def _descriptor_of(transport: Any) -> FileDescriptor | None:
    """The socket under a transport; None in tests that have none."""
    below = transport.transport if isinstance(transport, TLSMemoryBIOProtocol) else transport
    return below if isinstance(below, FileDescriptor) else None


class BrokerOwner(Protocol):
    """The link around a broker."""

    def broker_ready(self) -> None:
        """The greeting of Perspective Broker is done; frames may be sent."""

    def frame_received(self, frame: bytes) -> None:
        """The peer delivered a frame; ``ValueError`` ends the connection."""

    def filled(self, full: bool) -> None:
        """The peer reads more slowly than we write; or it has caught up."""

    def broker_lost(self, reason: str) -> None:
        """The connection is gone."""


@implementer(IPushProducer)
class _Flow:
    """Tells a link when its connection's buffer is full."""

    def __init__(self, owner: BrokerOwner) -> None:
        self._owner = owner

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's
        """The buffer is full."""
        self._owner.filled(True)

    def resumeProducing(self) -> None:  # noqa: N802
        """It is empty."""
        self._owner.filled(False)

    def stopProducing(self) -> None:  # noqa: N802
        """The connection is gone; the broker hears of it."""


class LinkBroker(pb.Broker):
    """One end of one connection; see the module."""

    transport: Any

    def __init__(self, owner: BrokerOwner, *, is_client: bool) -> None:
        super().__init__(isClient=is_client, security=NothingAllowed())  # type: ignore[no-untyped-call]
        self._owner = owner
        self._decoder = Decoder()
        self._request = 0
        self._violation = ""
        self._descriptor: FileDescriptor | None = None

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """The side that dialled says what the connection is for."""
        self._descriptor = _descriptor_of(self.transport)
        _send_at_once(self.transport)
        _come_back_soon(self.transport)
        if self.isClient:
            self.transport.write(ACTORS_LINE)
        super().connectionMade()  # type: ignore[no-untyped-call]
        self.transport.registerProducer(_Flow(self._owner), True)

    def connectionReady(self) -> None:  # noqa: N802
        """Both sides agreed on the dialect."""
        self.sendCall(b"version", self.version)  # type: ignore[no-untyped-call]
        self._owner.broker_ready()

    def deliver(self, frame: bytes) -> None:
        """Call ``deliver`` on the peer's link; no answer is asked for."""
        self._request = (self._request + 1) & 0x7FFFFFFF
        self.transport.write(encode_call(self._request, frame))
        descriptor = self._descriptor
        if descriptor is not None and descriptor.connected and not descriptor.disconnecting:
            # Not in the next iteration, when the descriptor is found writable: two system calls less a frame.  What
            # is left stays in its buffer, and the reactor meets any error when it tries itself.
            descriptor.doWrite()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Decode with our own limits in place of Banana's."""
        if self._violation:
            return
        try:
            for item in self._decoder.feed(data):
                if type(item) is tuple:
                    self._called(item)
                else:
                    self._other(item)
        except ValueError as error:
            self.violated(str(error))

    def _called(self, call: tuple[int, bool, bytes]) -> None:
        if self.currentDialect != b"pb":
            raise BadBanana("a call before the greeting")
        request, answer, frame = call
        self._owner.frame_received(frame)
        if answer and not self.disconnected:
            self.sendCall(b"answer", request, [b"None"])  # type: ignore[no-untyped-call]

    def _other(self, item: Any) -> None:
        if self.currentDialect is None:
            if not isinstance(item, list if self.isClient else bytes):
                raise BadBanana("not a greeting")
            self.callExpressionReceived(item)  # type: ignore[no-untyped-call]
        elif item != [b"version", self.version]:
            raise BadBanana("not a call of deliver")

    def violated(self, why: str) -> None:
        """Hang up on a peer that does not keep to the protocol."""
        if not self._violation:
            self._violation = why
            self.transport.abortConnection()

    def hang_up(self) -> None:
        """Send what is buffered and close."""
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def connectionLost(self, reason: Failure = _DONE) -> None:  # noqa: N802
        """Tell the link."""
        super().connectionLost(reason)  # type: ignore[no-untyped-call]
        self._owner.broker_lost(self._violation or stranger_at(self.transport) or reason.getErrorMessage())
