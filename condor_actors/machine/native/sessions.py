"""The native shadow's sessions in a reactor: each event goes to the session's opener."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

from condor_actors.machine.native.shadow import EventKind, ShadowEvent, ShadowHost, Statistics, Task

__all__ = ["NativeSessions"]


@implementer(IReadDescriptor)
class NativeSessions:
    """All sessions of this process; the C code is loaded when the first one is opened.

    Args:
        reactor: Twisted's.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._host: ShadowHost | None = None
        self._listeners: dict[int, Callable[[ShadowEvent], None]] = {}

    def open(self, sock: socket.socket, task: Task, told: Callable[[ShadowEvent], None]) -> int:
        """Serve one end of a channel; the session's number.

        Raises:
            OSError: no thread, no memory.
        """
        host = self.load()
        session = host.open(sock, task)
        self._listeners[session] = told
        return session

    def load(self) -> ShadowHost:
        """Load the C code; a process that is to lose its rights does so before."""
        if self._host is None:
            self._host = ShadowHost()
            self._reactor.addReader(self)
        return self._host

    def statistics(self, session: int) -> Statistics | None:
        """What a session did; None when it is over."""
        with contextlib.suppress(OSError):
            return self.load().statistics(session)
        return None

    def vacate(self, session: int) -> None:
        """Make the next checkpoint its last act."""
        self.load().vacate(session)

    def spare(self, session: int, sock: socket.socket | None, label: int) -> None:
        """Give a session a connection for its next helper, or say that there will be none."""
        try:
            self.load().spare(session, sock, label)
        except OSError:  # it is over
            if sock is not None:
                sock.close()

    def close(self, session: int) -> None:
        """End a session; its ENDED event follows."""
        self.load().close(session)

    # ---- the reactor's

    def fileno(self) -> int:
        """Readable while there are events."""
        assert self._host is not None
        return self._host.fileno()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "sessions"

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Hand the events out."""
        assert self._host is not None
        for event in self._host.events():
            if event.kind is EventKind.ENDED:
                told = self._listeners.pop(event.session, None)
            else:
                told = self._listeners.get(event.session)
            if told is not None:
                told(event)
            elif event.kind is EventKind.MEMBER:
                os.close(event.value)

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
