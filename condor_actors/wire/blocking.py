"""A client for the tools: asks one question after the other and waits, without Twisted.

Use::

    with connect("unix:/run/condor/schedd.sock") as client:
        page = client.ask("queue", QueryJobs(owner="alice"))

Nodes are ``unix:/path`` or ``<host:port>`` (TLS, needs ``credentials``).  It speaks the same bytes as
:class:`condor_actors.wire.post_office.PostOffice`.  A tool lives for some ten milliseconds, so nothing is imported
that a UNIX socket does not need.
"""

from __future__ import annotations

import os
import time
from _socket import (  # the module ``socket`` around it takes 7 ms to import
    AF_UNIX,
    SO_SNDTIMEO,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
)
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from struct import pack
from types import TracebackType

from condor_actors.messages.codec import MalformedMessage, NotText, OversizedMessage, decode, encode
from condor_actors.messages.envelope import TOOL, Envelope, Refused
from condor_actors.wire import banana, frames
from condor_actors.wire.errors import (
    LinkLost,
    NotTrusted,
    ProtocolError,
    RequestRefused,
    TimedOut,
    Unreachable,
    WireError,
)
from condor_actors.wire.nodes import BadNode, TlsNode, UnixNode, parse_node, short_socket_path

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from condor_actors.wire.certificates.tool_credentials import ToolCredentials
    from condor_actors.wire.idtokens.bearer import TokenCredentials


__all__ = [
    "Client", "LinkLost", "NotTrusted", "ProtocolError", "RequestRefused", "TimedOut", "Unreachable", "WireError",
    "connect", "connect_tls",
]

CHUNK_BYTES = 256 * 1024
SIGN_OF_LIFE_S = 30.0
"""A daemon cuts links that are silent for three times as long."""
WRITE_TIMEOUT_S = 20.0
MAILBOX = "tool"
AT_ONCE = 32
BYTES_AT_ONCE = 256 * 1024
"""Questions of one caller on their way together, and their bytes, unless one alone has more."""


def connect(node: str, credentials: ToolCredentials | TokenCredentials | None = None,
            timeout_s: float = 20.0) -> Client:
    """A client of the daemon at ``node``.

    Args:
        node: ``unix:/path`` or ``<host:port>``.
        credentials: what we show over TLS; None where the node is a UNIX socket.
        timeout_s: for the connection and its greeting.

    Raises:
        Unreachable, NotTrusted, ProtocolError, TimedOut: why there is none.
    """
    deadline_s = time.monotonic() + timeout_s
    try:
        parsed = parse_node(node)
    except BadNode as error:
        raise Unreachable(str(error)) from None
    connected = _unix(parsed, timeout_s) if isinstance(parsed, UnixNode) else _tls(parsed, credentials, timeout_s)
    client = Client(node, connected)
    try:
        client.greet(deadline_s)
    except BaseException:
        client.close()
        raise
    return client


def _body(message: Any) -> bytes:
    """What we say, exactly: nothing else is asked for, or acted on, than what the caller meant.

    Raises:
        RequestRefused: it cannot be said.
    """
    try:
        return encode(message, exactly=True)
    except (NotText, OversizedMessage) as error:
        raise RequestRefused("invalid", str(error)) from None


def _unix(node: UnixNode, timeout_s: float) -> socket:
    connected = socket(AF_UNIX, SOCK_STREAM)
    # Where others wait to be let in it waits behind them; with a timeout of Python's it would be turned away at once.
    connected.setsockopt(SOL_SOCKET, SO_SNDTIMEO, pack("ll", int(timeout_s), int(timeout_s % 1.0 * 1e6)))
    descriptor = None
    try:
        spelling, descriptor = short_socket_path(node.path)
        connected.connect(spelling)
    except OSError as error:
        connected.close()
        raise Unreachable(f"nobody answers at {node.path}: {_reason(error)}") from None
    finally:
        if descriptor is not None:
            os.close(descriptor)
    connected.settimeout(timeout_s)
    return connected


def _tls(node: TlsNode, credentials: ToolCredentials | TokenCredentials | None, timeout_s: float) -> socket:
    if credentials is None:
        raise NotTrusted(f"{node} is another machine, and this user has neither a certificate of the pool nor a token")
    connected = connect_tls(node, credentials, timeout_s)
    try:
        credentials.introduce(connected, str(node))
    except BaseException:
        connected.close()
        raise
    return connected


def connect_tls(node: TlsNode, credentials: ToolCredentials | TokenCredentials, timeout_s: float) -> ssl.SSLSocket:
    """A TLS connection to a machine of the pool, whose certificate has been verified, before its first line.

    Raises:
        Unreachable, NotTrusted: why there is none.
    """
    import ssl
    from socket import IPPROTO_TCP, TCP_NODELAY, create_connection

    context = credentials.context(node.realm)
    try:
        plain = (_through_gateway(node, credentials, timeout_s) if node.realm and credentials.gateways
                 else create_connection((node.name, node.port), timeout=timeout_s))
    except OSError as error:
        raise Unreachable(f"nobody answers at {node}: {_reason(error)}") from None
    plain.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    try:
        return context.wrap_socket(plain, server_hostname=node.name)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        pool = f"the pool {node.realm}" if node.realm else "this pool"
        raise NotTrusted(f"{node} is not a machine of {pool}: {error.verify_message}") from None
    except OSError as error:
        plain.close()
        raise Unreachable(f"{node}: {_reason(error)}") from None


def _through_gateway(node: TlsNode, credentials: Any, timeout_s: float) -> Any:
    from condor_actors.wire.relays.tool_dialing import circuit_to

    return circuit_to(node, credentials, timeout_s)


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


class Client:
    """One connection to one daemon; a context manager.

    Attributes:
        node: as given.
        peer: the daemon's hello: its process name and public node.
    """

    def __init__(self, node: str, connected: socket) -> None:
        self.node = node
        self.peer = frames.Hello()
        self._socket = connected
        self._decoder = banana.Decoder()
        self._request = 0
        self._sequence = 0
        self._taken = 0
        self._told = 0
        self._prefix = f"{os.getpid():x}-{os.urandom(8).hex()}."
        self._frames: deque[bytes] = deque()
        self._envelopes: deque[Envelope] = deque()
        self._greeting: list[Any] = []
        self._chosen = False
        self._spoke_s = 0.0

    def local_peer(self) -> tuple[int, int]:
        """Process and user at the other end of a UNIX socket, as the kernel knows them; of another, none: (0, -1)."""
        from condor_actors.wire.peers import peer_process

        return peer_process(self._socket) if self._socket.family == AF_UNIX else (0, -1)

    # ---- greeting

    def greet(self, deadline_s: float) -> None:
        """Agree on the protocol; :func:`connect` does it."""
        self._write(frames.ACTORS_LINE)
        while not self._greeting:
            self._read(deadline_s)
        dialects = self._greeting.pop(0)
        if not isinstance(dialects, list) or banana.DIALECT not in dialects:
            raise ProtocolError(f"{self.node} does not speak our protocol")
        self._chosen = True
        hello = frames.Hello(boot_id=self._prefix, process=TOOL)
        self._write(banana.CHOSEN_DIALECT + banana.VERSION + self._call(frames.pack_hello(hello)))
        while not self._frames:
            self._read(deadline_s)
        fields = self._unpack(self._frames.popleft())
        if fields[0] != frames.HELLO:
            raise ProtocolError(f"{self.node} did not say hello")
        self.peer = fields[1]
        objection = frames.check_hello(self.peer)
        if objection:
            raise ProtocolError(f"{self.node}: {objection}")

    # ---- questions

    def ask(self, actor: str, message: Any, timeout_s: float = 20.0) -> Any:
        """The answer of ``actor`` to ``message``.

        Raises:
            RequestRefused: the answer was ``Refused``.
            TimedOut, LinkLost: there was none.
        """
        deadline_s = time.monotonic() + timeout_s
        message_id = self._send(actor, message, timeout_s)
        while True:
            for envelope in self._envelopes:
                if envelope.in_reply_to == message_id:
                    self._envelopes.remove(envelope)
                    return self._answer(envelope)
            self._take(deadline_s)

    def ask_all(self, actor: str, messages: Iterable[Any], timeout_s: float = 20.0) -> Iterator[Any]:
        """The answers of ``actor`` to many messages, in their order; a `RequestRefused` where one is refused.

        Some messages are on their way while the first is being answered.

        Raises:
            TimedOut, LinkLost: an answer did not come.
        """
        under_way: deque[tuple[str, int]] = deque()
        size = 0
        for message in messages:
            body = _body(message)
            while under_way and (len(under_way) >= AT_ONCE or size + len(body) > BYTES_AT_ONCE):
                message_id, done = under_way.popleft()
                size -= done
                yield self._answer_to(message_id, timeout_s)
            under_way.append((self._send_body(actor, message, body, timeout_s), len(body)))
            size += len(body)
        for message_id, _ in under_way:
            yield self._answer_to(message_id, timeout_s)

    def ask_on(self, actor: str, message: Any, following: Callable[[Any], Any], timeout_s: float = 20.0
               ) -> Iterator[Any]:
        """The answers of ``actor`` to a question and to what follows from each of them.

        Args:
            actor: whom we ask.
            message: the first question.
            following: the next question from an answer; None: there is none.  It is on its way while the caller is
                busy with that answer.
            timeout_s: for each answer.

        Raises:
            RequestRefused, TimedOut, LinkLost: an answer did not come.
        """
        message_id = self._send(actor, message, timeout_s)
        while message_id:
            answer = self._answer_to(message_id, timeout_s)
            if isinstance(answer, RequestRefused):
                raise answer
            question = following(answer)
            message_id = self._send(actor, question, timeout_s) if question is not None else ""
            yield answer

    def _answer_to(self, message_id: str, timeout_s: float) -> Any:
        deadline_s = time.monotonic() + timeout_s
        while True:
            for envelope in self._envelopes:
                if envelope.in_reply_to == message_id:
                    self._envelopes.remove(envelope)
                    try:
                        return self._answer(envelope)
                    except RequestRefused as refused:
                        return refused
            self._take(deadline_s)

    def tell(self, actor: str, message: Any) -> None:
        """Send ``message`` one way."""
        self._send(actor, message, 0.0)

    def receive(self, timeout_s: float) -> Any:
        """The next message that the daemon told us unasked (``ShellData`` …).

        Raises:
            TimedOut: there was none.
        """
        deadline_s = time.monotonic() + timeout_s
        while True:
            for envelope in self._envelopes:
                if not envelope.in_reply_to:
                    self._envelopes.remove(envelope)
                    return self._decode(envelope)
            self._take(deadline_s)

    def fileno(self) -> int:
        """For ``select``: readable when :meth:`receive` may have something; ask :meth:`pending` first."""
        return self._socket.fileno()

    def pending(self) -> bool:
        """Whether :meth:`receive` has something that was read already."""
        return bool(self._envelopes or self._frames) or bool(getattr(self._socket, "pending", int)())

    def _send(self, actor: str, message: Any, timeout_s: float) -> str:
        return self._send_body(actor, message, _body(message), timeout_s)

    def _send_body(self, actor: str, message: Any, body: bytes, timeout_s: float) -> str:
        self._sequence += 1
        message_id = f"{self._prefix}{self._sequence:x}"
        envelope = Envelope(kind=message.KIND, version=message.VERSION, body=body, message_id=message_id,
                            to=actor, reply_to=MAILBOX, deadline_s=float(timeout_s))
        self._told = self._taken
        self._write(self._call(frames.pack_batch(self._taken, [envelope])))
        return message_id

    def _answer(self, envelope: Envelope) -> Any:
        answer = self._decode(envelope)
        if isinstance(answer, Refused):
            raise RequestRefused(answer.code, answer.text, answer.retry_after_s, answer.incident)
        return answer

    def _decode(self, envelope: Envelope) -> Any:
        try:
            return decode(envelope.kind, envelope.version, envelope.body)
        except MalformedMessage as error:
            raise ProtocolError(f"{self.node} said something we do not understand: {error}") from None

    def _take(self, deadline_s: float) -> None:
        """Read until there is something new."""
        while not self._frames:
            self._read(deadline_s)
        while self._frames:
            fields = self._unpack(self._frames.popleft())
            if fields[0] == frames.BATCH:
                self._taken += len(fields[2])
                self._envelopes.extend(fields[2])
            elif fields[0] == frames.BYE:
                raise LinkLost(f"{self.node}: {fields[2]}")
        if self._taken - self._told > frames.WINDOW // 4:
            self._told = self._taken
            self._write(self._call(frames.pack_ack(self._taken)))

    # ---- bytes

    def _unpack(self, frame: bytes) -> tuple[Any, ...]:
        try:
            return frames.unpack(frame)
        except frames.BadFrame as error:
            raise ProtocolError(f"{self.node} does not keep to the protocol: {error}") from None

    def _call(self, frame: bytes) -> bytes:
        self._request += 1
        return banana.encode_call(self._request, frame)

    def _write(self, data: bytes) -> None:
        self._spoke_s = time.monotonic()
        self._socket.settimeout(WRITE_TIMEOUT_S)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise TimedOut(f"{self.node} takes nothing more") from None
        except OSError as error:
            raise LinkLost(f"{self.node} hung up: {_reason(error)}") from None

    def _read(self, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0.0:
            raise TimedOut(f"{self.node} did not answer in time")
        quiet_s = self._spoke_s + SIGN_OF_LIFE_S - time.monotonic()
        if quiet_s <= 0.0 and self.peer.boot_id:  # or it would take this end for gone
            self._write(self._call(frames.pack_ack(self._taken)))
            quiet_s = SIGN_OF_LIFE_S
        waits_on = 0.0 < quiet_s < left_s and bool(self.peer.boot_id)
        self._socket.settimeout(quiet_s if waits_on else left_s)
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except TimeoutError:
            if waits_on:
                return
            raise TimedOut(f"{self.node} did not answer in time") from None
        except OSError as error:
            raise LinkLost(f"{self.node} hung up: {_reason(error)}") from None
        if not data:
            raise LinkLost(f"{self.node} hung up" + ("" if self.peer.boot_id else " at once: it may not trust us"))
        try:
            for item in self._decoder.feed(data):
                if type(item) is tuple:
                    self._frames.append(item[2])
                elif not self._chosen:
                    self._greeting.append(item)
        except banana.BadBanana as error:
            raise ProtocolError(f"{self.node} does not speak our protocol: {error}") from None

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
