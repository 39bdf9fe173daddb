"""Both ends of channels that outlive their connections, and what stands in for the lines between them."""

from __future__ import annotations

import random
import select
import socket
import threading
from typing import Any

from condor_actors.machine.native.relays import NativeRelays, NumberedChannel

__all__ = ["Breaking", "HereEnd", "Reactor"]

PIECE_BYTES = 64 << 10


class Reactor:
    """Watches nothing: the test hears the news when it wants to."""

    def addReader(self, reader: object) -> None:  # noqa: N802 - Twisted's
        """Not here."""

    def removeReader(self, reader: object) -> None:  # noqa: N802
        """Not here."""


class HereEnd(threading.Thread):
    """The end here of a channel without a socket, in a thread as a session's: what it takes goes to ``inner``, what
    that says comes from it, as far as there is room."""

    def __init__(self, relay: NumberedChannel, inner: socket.socket) -> None:
        super().__init__(daemon=True)
        from condor_actors.machine.native import _native

        self._lib, self._ffi = _native.lib, _native.ffi
        self._at, self._inner = relay.end_here(), socket.socket(fileno=inner.detach())
        self._lib.relay_hold(self._at)

    def run(self) -> None:
        """Serve until nothing comes any more."""
        room = self._ffi.new("uint8_t[]", PIECE_BYTES)
        says = True
        self._lib.relay_take(self._at)
        while (got := self._lib.relay_receive(self._at, room, PIECE_BYTES)) != 0:
            if got > 0:
                self._say(self._ffi.buffer(room, got)[:])
                continue
            fits = says and self._lib.relay_has_room(self._at) == 1
            if self._inner in self._wait(fits):
                data = self._inner.recv(PIECE_BYTES)
                says = data != b""
                if says:
                    self._lib.relay_send(self._at, data, len(data), 0)
                else:
                    self._lib.relay_shut(self._at, 0)
        self._inner.close()
        self._lib.relay_leave(self._at)

    def _say(self, data: bytes) -> None:
        try:
            self._inner.sendall(data)
        except OSError:  # nobody listens there any more
            self._lib.relay_shut(self._at, 1)

    def _wait(self, fits: bool) -> list[Any]:
        found = self._ffi.new("int[2]")
        self._lib.relay_wait_for(self._at, found)
        ends = [number for number in found if number >= 0]
        return select.select([*ends, self._inner] if fits else ends, [], [])[0]


class Breaking(threading.Thread):
    """Joins channels, those of home with those far away, and breaks all connections again and again."""

    def __init__(self, seed: int) -> None:
        super().__init__(daemon=True)
        self.relays = NativeRelays(Reactor())
        self._dice = random.Random(seed)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._channels: list[tuple[NumberedChannel, NumberedChannel]] = []
        self.broken = 0

    def pair(self) -> tuple[NumberedChannel, socket.socket]:
        """A channel: its end at home, for a session, and the socket of the one that is far away."""
        own, theirs = socket.socketpair()
        with self._lock:
            both = (self.relays.channel(None, lambda why: None), self.relays.channel(theirs, lambda why: None))
            self._channels.append(both)
            self._join(*both)
        return both[0], own

    def _join(self, home: NumberedChannel, far: NumberedChannel) -> bool:
        """Give both a connection; what was under way over another is lost.  Returns whether both go on."""
        at_home, at_far = home.detach(), far.detach()
        if at_home is None or at_far is None:
            for each in (home, far):  # as the other host does, which is asked for a channel that it has forgotten
                each.cut()
            return False
        one, other = socket.socketpair()
        return far.attach(other, at_home, listens=True) and home.attach(one, at_far, listens=False)

    def run(self) -> None:
        """Break them, until the end."""
        while not self._over.wait(self._dice.random() * 0.02):
            with self._lock:
                self.relays.doRead()
                self._channels = [both for both in self._channels if self._join(*both)]
                self.broken += len(self._channels)

    def close(self) -> None:
        """No more of it."""
        self._over.set()
        self.join()
        for both in self._channels:
            for each in both:
                each.cut()
        self.relays.doRead()
