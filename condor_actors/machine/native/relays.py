"""The native relays (``native/relay``) in a reactor: bytes pass between connections without a turn of it.

One thread of the process serves them all.  Python makes them, and hears of their ends:

===========================  =======================================================================================
a :class:`Spliced`           two bare connections as one
a :class:`NumberedChannel`   a socket of this process, and a connection to another machine that may break: both ends
                             count the bytes, keep what has not arrived, and go on over another connection
===========================  =======================================================================================
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cache
from typing import Any

import attrs
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

__all__ = ["NativeRelays", "NumberedChannel", "Spliced", "native_relays"]

_ENDED, _LOST, _LINGERS = 1, 2, 4


@attrs.define(eq=False)
class _Relay:
    """One relay.

    Attributes:
        ended: called once, with what the other end has done wrong, if anything: all is closed.
    """

    _lib: Any
    _ffi: Any
    _at: Any
    ended: Callable[[str], None]

    def cut(self) -> None:
        """Close all at once; ``ended`` follows."""
        if self._at is not None:
            self._lib.relay_cut(self._at)

    def hear(self, what: int, why: str) -> None:
        """The news of it."""
        if what & _ENDED:
            self.last_look()
            self._lib.relay_free(self._at)
            self._at = None
            self.ended(why)

    def last_look(self) -> None:
        """It is forgotten next."""


@attrs.define(eq=False)
class Spliced(_Relay):
    """Two connections spliced.

    Attributes:
        lingers: called when one end is gone and the other still has to get something.
    """

    lingers: Callable[[], None] = lambda: None
    _carried: tuple[int, int] = (0, 0)

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes from the first to the second, and the other way."""
        if self._at is not None:
            found = self._ffi.new("uint64_t[2]")
            self._lib.relay_carried(self._at, found)
            self._carried = int(found[0]), int(found[1])
        return self._carried

    def last_look(self) -> None:
        """What it has carried."""
        _ = self.carried

    def hear(self, what: int, why: str) -> None:
        """One end may be gone."""
        if what & _LINGERS and not what & _ENDED:
            self.lingers()
        super().hear(what, why)


@attrs.define(eq=False)
class NumberedChannel(_Relay):
    """A channel that outlives its connections.

    Attributes:
        lost: called when its connection has ended, and it has not.
    """

    lost: Callable[[], None] = lambda: None

    def attach(self, sock: socket.socket, arrived: int, *, listens: bool) -> bool:
        """Go on over another connection, the relay's from then on; whether it does.

        Args:
            sock: connected, and bare.
            arrived: how many bytes have come at the other end.
            listens: the other end speaks first.
        """
        descriptor = sock.detach()
        failed = -1 if self._at is None else int(self._lib.relay_attach(self._at, descriptor, arrived, listens))
        if failed:
            os.close(descriptor)
        return not failed

    def detach(self) -> int | None:
        """Take its connection away; how many bytes have come.  None: it is over."""
        received = -1 if self._at is None else int(self._lib.relay_detach(self._at))
        return received if received >= 0 else None

    def hear(self, what: int, why: str) -> None:
        """Its connection may have ended."""
        if what & _LOST and not what & _ENDED:
            self.lost()
        super().hear(what, why)


@implementer(IReadDescriptor)
class NativeRelays:
    """All relays of this process; the C code is loaded, and its thread begins, with the first one.

    Args:
        reactor: Twisted's.
    """

    def __init__(self, reactor: Any) -> None:
        self._reactor = reactor
        self._live: dict[int, _Relay] = {}
        self._ffi: Any = None
        self._lib: Any = None
        self._descriptor = -1

    def splice(self, first: socket.socket, second: socket.socket, ended: Callable[[str], None],
               lingers: Callable[[], None]) -> Spliced:
        """Make one connection of two, which are the relay's from then on.

        Raises:
            OSError: no thread, no memory.
        """
        self._load()
        at = self._lib.relay_splice(first.fileno(), second.fileno())
        self._check(at)
        first.detach()
        second.detach()
        spliced = Spliced(self._lib, self._ffi, at, ended, lingers)
        self._enter(at, spliced)
        return spliced

    def channel(self, local: socket.socket, ended: Callable[[str], None],
                lost: Callable[[], None] = lambda: None) -> NumberedChannel:
        """Make a numbered channel with this end here, which is the relay's from then on.

        Raises:
            OSError: no thread, no memory.
        """
        self._load()
        at = self._lib.relay_channel(local.fileno())
        self._check(at)
        local.detach()
        channel = NumberedChannel(self._lib, self._ffi, at, ended, lost)
        self._enter(at, channel)
        return channel

    def _check(self, at: Any) -> None:
        if at == self._ffi.NULL:
            number = self._ffi.errno
            raise OSError(number, os.strerror(number))

    def _enter(self, at: Any, relay: _Relay) -> None:
        self._live[int(self._ffi.cast("uintptr_t", at))] = relay
        if len(self._live) == 1:
            self._reactor.addReader(self)

    def _load(self) -> None:
        if self._lib is not None:
            return
        from condor_actors.machine.native import _native

        descriptor = int(_native.lib.relay_news_descriptor())
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor))
        self._ffi, self._lib, self._descriptor = _native.ffi, _native.lib, descriptor

    # ---- the reactor's

    def fileno(self) -> int:
        """Readable while there are news."""
        return self._descriptor

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's name
        """For the reactor's log."""
        return "relays"

    def doRead(self) -> None:  # noqa: N802 - Twisted's name
        """Hand the news out."""
        news = self._ffi.new("struct relay_news *")
        while self._lib.relay_next_news(news):
            ended = news.what & _ENDED
            relay = self._live.pop(news.relay, None) if ended else self._live.get(news.relay)
            why = "" if news.why == self._ffi.NULL else self._ffi.string(news.why).decode()
            if relay is not None:
                relay.hear(news.what, why)
        if not self._live:
            self._reactor.removeReader(self)

    def connectionLost(self, reason: Any = None) -> None:  # noqa: N802 - Twisted's name
        """The reactor stops."""


@cache
def native_relays(reactor: Any) -> NativeRelays:
    """Those of this process."""
    return NativeRelays(reactor)
