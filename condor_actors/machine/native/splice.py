"""Two bare connections as one: what comes in at one end goes out at the other, unread, and past Python.

=====================================  =====================================================================
at one end                             at the other
=====================================  =====================================================================
bytes                                  the same bytes; who sends waits for who receives
it will say no more (a half-close)     the same, once what came before it is written; answers still go back
it is closed or reset                  closed when what came before is written, after a minute at the latest
=====================================  =====================================================================
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IDelayedCall

from condor_actors.machine.native.relays import Spliced, native_relays
from condor_actors.wire.relays.socket_handover import keep_alive

__all__ = ["Splice"]

LINGER_S = 60.0
"""When one end is gone the other gets so long to take what it still has to get."""


class Splice:
    """Two connections spliced.

    Args:
        reactor: Twisted's.
        first, second: connected; this object's from now on.
        ended: called once, when both are closed.
    """

    def __init__(self, reactor: Any, first: socket.socket, second: socket.socket, ended: Callable[[], None]) -> None:
        self._reactor = reactor
        self._ended = ended
        self._linger: IDelayedCall | None = None
        self._spliced: Spliced | None = None
        try:
            for sock in (first, second):
                keep_alive(sock)
            self._spliced = native_relays(reactor).splice(first, second, self._over, self._lingers)
        except OSError:  # an end was reset meanwhile, or there is no memory
            first.close()
            second.close()
            reactor.callLater(0, ended)

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes from the first to the second, and the other way."""
        return self._spliced.carried if self._spliced is not None else (0, 0)

    def cut(self) -> None:
        """End both at once."""
        if self._spliced is not None:
            self._spliced.cut()

    def _lingers(self) -> None:
        """Only what still has to be taken keeps it."""
        if self._linger is None:
            self._linger = self._reactor.callLater(LINGER_S, self.cut)

    def _over(self, why: str) -> None:
        if self._linger is not None and self._linger.active():
            self._linger.cancel()
        self._ended()
