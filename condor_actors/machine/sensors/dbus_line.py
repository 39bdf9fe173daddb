"""A line to a D-Bus: calls, their answers, and signals, as a Twisted protocol.

Theory: jeepney knows the wire format and the handshake and does no I/O of its own; this class gives it Twisted's.  A
call that is not answered within CALL_S fails; a lost line fails all that wait.

Source: the D-Bus specification.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

from jeepney import DBusAddress, MatchRule, Message, MessageType, message_bus, new_method_call
from jeepney.auth import AuthenticationError, Authenticator
from jeepney.low_level import HeaderFields, Parser
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

__all__ = ["BadBus", "DBusLine", "dial_bus", "session_bus_path", "system_bus_path"]

CALL_S = 10.0
SYSTEM_BUS = "/run/dbus/system_bus_socket"


class BadBus(Exception):
    """The bus refuses, does not answer, or is no bus."""


def _path(address: str) -> str:
    """The socket of a bus address (``unix:path=/run/…,guid=…``); empty when it has none."""
    for one in address.split(";"):
        kind, _, rest = one.partition(":")
        if kind == "unix":
            pairs = dict(pair.partition("=")[::2] for pair in rest.split(","))
            if "path" in pairs:
                return pairs["path"]
            if "abstract" in pairs:
                return "\0" + pairs["abstract"]
    return ""


def system_bus_path() -> str:
    """The socket of the machine's bus."""
    return _path(os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "")) or SYSTEM_BUS


def session_bus_path() -> str:
    """The socket of the session's bus; empty when there is none."""
    named = _path(os.environ.get("DBUS_SESSION_BUS_ADDRESS", ""))
    usual = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "bus")
    return named or (usual if os.path.isabs(usual) and os.path.exists(usual) else "")


def dial_bus(reactor: Any, path: str) -> Deferred[DBusLine]:
    """A line to the bus at ``path``, ready for calls; fails with what stood in the way."""
    line = DBusLine(reactor)
    ready: Deferred[DBusLine] = line.ready
    dialled = connectProtocol(UNIXClientEndpoint(reactor, path, timeout=CALL_S), line)
    dialled.addErrback(lambda failure: None if ready.called else ready.errback(failure))
    return ready


class DBusLine(Protocol):
    """A D-Bus connection that speaks the line-based authentication first, then messages.

    Attributes:
        ready: fires with this line when calls can be made.
        signal: called with each signal that a rule of :meth:`listen` lets through.
        lost: called once when the line is gone.
    """

    def __init__(self, reactor: Any) -> None:
        self.ready: Deferred[DBusLine] = Deferred()
        self.signal: Callable[[Message], None] = lambda message: None
        self.lost: Callable[[str], None] = lambda why: None
        self._reactor = reactor
        self._auth = Authenticator()
        self._parser = Parser()
        self._serials = itertools.count(1)
        self._waiting: dict[int, tuple[Deferred[Any], Any]] = {}

    # ---- Twisted's

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        """Say who we are."""
        self._write(self._auth.data_to_send())

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        """Part of the handshake, or messages."""
        try:
            if not self._auth.authenticated:
                self._auth.feed(data)
                answer = self._auth._to_send if self._auth.authenticated else self._auth.data_to_send()
                if answer:
                    self._write(answer)
                if self._auth.authenticated:
                    self.call(message_bus, "Hello").addCallbacks(self._welcomed, self._unwelcome)
                return
            self._parser.add_data(data)
            while (message := self._parser.get_next_message()) is not None:
                self._heard(message)
        except (AuthenticationError, ValueError, KeyError, IndexError, UnicodeError) as error:
            self.close(f"the bus says what cannot be understood: {error}")

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: N802 - Twisted's name
        """The bus is gone."""
        why = "closed" if reason.check(ConnectionDone) else reason.getErrorMessage()
        waiting, self._waiting = self._waiting, {}
        for answer, timer in waiting.values():
            if timer.active():
                timer.cancel()
            answer.errback(BadBus(f"the bus is gone: {why}"))
        if not self.ready.called:
            self.ready.errback(BadBus(f"the bus does not let us in: {why}"))
        lost, self.lost = self.lost, lambda why: None
        lost(why)

    # ---- ours

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def _welcomed(self, _: Any) -> None:
        if not self.ready.called:
            self.ready.callback(self)

    def _unwelcome(self, failure: Failure) -> None:
        if not self.ready.called:
            self.ready.errback(failure)
        self.close()

    def call(self, to: DBusAddress, method: str, signature: str | None = None, body: tuple[Any,
                                                                                           ...] = ()) -> Deferred[Any]:
        """Call a method; fires with the tuple that it returns, or fails with :class:`BadBus`."""
        serial = next(self._serials)
        self._write(new_method_call(to, method, signature, body).serialise(serial=serial))
        answer: Deferred[Any] = Deferred()
        self._waiting[serial] = (answer, self._reactor.callLater(CALL_S, self._too_late, serial, method))
        return answer

    def _too_late(self, serial: int, method: str) -> None:
        answer, _ = self._waiting.pop(serial)
        answer.errback(BadBus(f"{method}: no answer within {CALL_S:g} s"))

    def listen(self, rule: MatchRule) -> Deferred[Any]:
        """Have the signals that ``rule`` describes."""
        return self.call(message_bus, "AddMatch", "s", (rule.serialise(),))

    def _heard(self, message: Message) -> None:
        kind = message.header.message_type
        if kind is MessageType.signal:
            self.signal(message)
            return
        waiting = self._waiting.pop(message.header.fields.get(HeaderFields.reply_serial, 0), None)
        if waiting is None:
            return
        answer, timer = waiting
        timer.cancel()
        if kind is MessageType.error:
            name = message.header.fields.get(HeaderFields.error_name, "")
            answer.errback(BadBus(f"{name}: {message.body[0] if message.body else 'no reason given'}"))
        else:
            answer.callback(message.body)

    def close(self, why: str = "") -> None:
        """End the line."""
        if self.transport is not None:
            self.transport.abortConnection()  # type: ignore[attr-defined]
