"""The end of a process as an event of the reactor.

Theory: a pidfd becomes readable when its process ends; it needs no SIGCHLD, no polling, and names exactly one process
for as long as it is open, no matter who started it.  Source: pidfd_open(2), Linux 5.3.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

__all__ = ["ProcessWatch"]


@implementer(IReadDescriptor)
class ProcessWatch:
    """Calls ``ended`` once, from the reactor, when process ``pid`` is gone.

    A process that is gone already is reported in the next iteration.
    """

    def __init__(self, pid: int, reactor: Any, ended: Callable[[], None]) -> None:
        self.pid = pid
        self._reactor = reactor
        self._ended: Callable[[], None] | None = ended
        self._fd = -1
        try:
            self._fd = os.pidfd_open(pid)
        except ProcessLookupError:
            reactor.callLater(0.0, self._fire)
            return
        reactor.addReader(self)

    def fileno(self) -> int:
        """The pidfd."""
        return self._fd

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """The process has ended."""
        self._fire()

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""
        self.stop()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "process"

    def _fire(self) -> None:
        ended = self._ended
        self.stop()
        if ended is not None:
            ended()

    def stop(self) -> None:
        """Watch no longer."""
        self._ended = None
        if self._fd >= 0:
            self._reactor.removeReader(self)
            os.close(self._fd)
            self._fd = -1
