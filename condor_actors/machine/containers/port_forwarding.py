"""Passes connections to ports of the machine on to the services of a job in an image.

Theory: a listening socket belongs to the network in which it was opened.  The starter host opens one for each service
and starts this program in the job's network with them, as one of the job's processes: it has the job's account, limits
and control group, ends with it, and what a client does to it concerns that job alone.  Nothing that is said is kept but
what the other side has not taken yet.

The order comes over standard input; only few modules are loaded, since its memory counts as the job's.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import socket
import sys
from collections.abc import Sequence

__all__ = ["Forwarder", "main"]

MOST_CONNECTIONS = 256
BLOCK_BYTES = 64 * 1024
HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
"""Where a service may listen, as seen from beside it."""


class _End:
    """One of the two sockets of a connection.

    Attributes:
        pending: what is to be written to it; has_ended: whether it says no more; is_told_end: whether it knows that
            the other does not; is_connected: whether the service has answered.
    """

    def __init__(self, own: socket.socket, *, is_connected: bool) -> None:
        self.own = own
        self.pending = bytearray()
        self.has_ended = self.is_told_end = False
        self.is_connected = is_connected
        self.other = self


class Forwarder:
    """Accepts connections, and passes on what both sides say.

    Args:
        services: listening sockets, each with the port in the job's network.
    """

    def __init__(self, services: Sequence[tuple[socket.socket, int]]) -> None:
        self._selector = selectors.DefaultSelector()
        self._services = services
        self._ends: set[_End] = set()
        self._is_full = False
        for listening, _ in services:
            listening.setblocking(False)
        self._listen(True)

    def _listen(self, on: bool) -> None:
        for listening, port in self._services:
            if on:
                self._selector.register(listening, selectors.EVENT_READ, port)
            else:
                self._selector.unregister(listening)

    def turn(self) -> None:
        """Wait for something to happen, and do it."""
        for key, events in self._selector.select():
            if isinstance(key.data, _End):
                if key.data in self._ends:
                    self._moves(key.data, events)
            else:
                self._accept(key.fileobj, key.data)  # type: ignore[arg-type]
        is_full = len(self._ends) >= 2 * MOST_CONNECTIONS
        if is_full != self._is_full:
            self._is_full = is_full
            self._listen(not is_full)

    # ---- a connection

    def _accept(self, listening: socket.socket, port: int) -> None:
        if len(self._ends) >= 2 * MOST_CONNECTIONS:
            return
        try:
            client, _ = listening.accept()
        except OSError:
            return  # it has gone already
        client.setblocking(False)
        service = _connecting(port)
        if service is None:
            client.close()
            return
        one, two = _End(client, is_connected=True), _End(service, is_connected=False)
        one.other, two.other = two, one
        for end in (one, two):
            self._ends.add(end)
            self._selector.register(end.own, self._wanted(end) or selectors.EVENT_READ, end)
            self._look(end)

    def _moves(self, end: _End, events: int) -> None:
        try:
            if not end.is_connected:
                problem = end.own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if problem:
                    raise OSError(problem, os.strerror(problem))
                end.is_connected = True
            if events & selectors.EVENT_WRITE:
                self._write(end)
            if events & selectors.EVENT_READ and not end.has_ended:
                self._read(end)
        except BlockingIOError:
            pass
        except OSError:
            self._close(end)
            return
        if end.has_ended and end.other.has_ended and not end.pending and not end.other.pending:
            self._close(end)
            return
        self._look(end)
        self._look(end.other)

    def _read(self, end: _End) -> None:
        data, other = end.own.recv(BLOCK_BYTES), end.other
        if data:
            other.pending += data
        else:
            end.has_ended = True
        if other.is_connected:
            with contextlib.suppress(BlockingIOError):
                self._write(other)

    def _write(self, end: _End) -> None:
        while end.pending:
            count = end.own.send(end.pending)
            del end.pending[:count]
        if end.other.has_ended and not end.is_told_end:
            end.is_told_end = True
            end.own.shutdown(socket.SHUT_WR)

    def _wanted(self, end: _End) -> int:
        """What is waited for at a socket."""
        reads = end.is_connected and not end.has_ended and len(end.other.pending) < BLOCK_BYTES
        writes = not end.is_connected or bool(end.pending) or (end.other.has_ended and not end.is_told_end)
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)

    def _look(self, end: _End) -> None:
        wanted, known = self._wanted(end), self._selector.get_map().get(end.own)
        if known is None and wanted:
            self._selector.register(end.own, wanted, end)
        elif known is not None and not wanted:
            self._selector.unregister(end.own)
        elif known is not None and known.events != wanted:
            self._selector.modify(end.own, wanted, end)

    def _close(self, end: _End) -> None:
        for each in (end, end.other):
            self._ends.discard(each)
            if self._selector.get_map().get(each.own) is not None:
                self._selector.unregister(each.own)
            each.own.close()


def _connecting(port: int) -> socket.socket | None:
    """A connection that is being made to a service; None: nobody listens there.

    The loopback says at once whether any process does.
    """
    for family, host in HOSTS:
        try:
            made = socket.socket(family, socket.SOCK_STREAM)
        except OSError:
            continue  # a kernel without that family
        made.setblocking(False)
        problem = made.connect_ex((host, port))
        if problem == errno.EINPROGRESS:
            problem = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem in (0, errno.EINPROGRESS):
            return made
        made.close()
    return None


def _become(account: dict[str, object]) -> None:
    uid, gid = int(str(account["uid"])), int(str(account["gid"]))
    groups = [int(each) for each in account["groups"]]  # type: ignore[attr-defined]
    os.setgroups(groups or [gid])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def main() -> int:
    """Carry out the order on standard input: the job's account, and pairs of a descriptor and a port."""
    order = json.loads(sys.stdin.buffer.read())
    if order["account"] is not None and os.geteuid() == 0:
        _become(order["account"])
    forwarder = Forwarder([(socket.socket(fileno=number), port) for number, port in order["services"]])
    while True:
        forwarder.turn()


if __name__ == "__main__":
    sys.exit(main())
