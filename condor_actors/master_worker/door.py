"""Who comes to a master: connections are few until they have said which worker they are.

Theory: anybody on the network may connect, and each connection takes a descriptor of the program's.  So a connection is
a stranger until its worker has greeted, and there are never more than `MOST_STRANGERS` of these.  One more costs the
oldest of the source that has most: a flood turns itself out, and a worker from elsewhere comes in meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any

MOST_STRANGERS = 48
PAUSE_S = 0.2
"""Until connections are taken again, where the program has no descriptor left."""


class Door:
    """Takes connections.

    Args:
        context: the master's end of TLS.
        make: a protocol for a connection whose two ends know each other.
        patience_s: for how long a handshake may take.
    """

    def __init__(self, context: ssl.SSLContext, make: Callable[[], Any], patience_s: float) -> None:
        self._context, self._make, self._patience_s = context, make, patience_s
        self._strangers: dict[socket.socket, tuple[str, asyncio.Task[None]]] = {}
        self._listening: socket.socket | None = None

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        assert self._listening is not None
        host, port = self._listening.getsockname()[:2]
        return str(host), int(port)

    async def listen(self, host: str, port: int) -> None:
        """Be there for connections.

        Raises:
            OSError: it cannot.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        made = socket.create_server(address[:2], family=family, backlog=MOST_STRANGERS)
        made.setblocking(False)
        self._listening = made

    async def serve(self) -> None:
        """Take connections, forever."""
        assert self._listening is not None
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    made, source = await loop.sock_accept(self._listening)
                except OSError:
                    await asyncio.sleep(PAUSE_S)
                    continue
                self._strangers[made] = str(source[0]), loop.create_task(self._meet(made))
                while len(self._strangers) > MOST_STRANGERS:
                    await self._turn_out()
        finally:
            self._listening.close()
            for _, meeting in self._strangers.values():
                meeting.cancel()

    async def _turn_out(self) -> None:
        """One stranger has to go; when this is over, its descriptor is free."""
        sources = Counter(source for source, _ in self._strangers.values())
        most = max(sources.values())
        oldest = next(made for made, (source, _) in self._strangers.items() if sources[source] == most)
        _, meeting = self._strangers.pop(oldest)
        meeting.cancel()
        await asyncio.wait([meeting])
        oldest.close()  # where the meeting had not begun

    async def _meet(self, made: socket.socket) -> None:
        """A stranger, until it is known or gone."""
        transport: asyncio.Transport | None = None
        try:
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                transport, protocol = await asyncio.get_running_loop().connect_accepted_socket(
                    self._make, made, ssl=self._context, ssl_handshake_timeout=self._patience_s)
                await protocol.is_known.wait()
        except asyncio.CancelledError:
            if transport is not None:
                transport.abort()
            raise
        finally:
            self._strangers.pop(made, None)
            if transport is None:
                made.close()
