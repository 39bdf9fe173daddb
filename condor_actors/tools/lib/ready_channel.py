"""Where a program that has started a daemon hears from it: ``NOTIFY_SOCKET``, as of systemd's protocol.

Every process of the machine may write to a socket of an abstract name, and reads the names in ``/proc``; so only what
the kernel says to be from our account or root's counts.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import struct
import time
from types import TracebackType

__all__ = ["ReadyChannel"]

MOST_BYTES = 4096
_CREDENTIALS = struct.Struct("3i")


class ReadyChannel:
    """A socket that a daemon tells how far it is; closed at the end of its ``with`` block.

    Args:
        what: part of its name, for people who look at the machine's sockets.

    Attributes:
        address: the value of ``NOTIFY_SOCKET``.
    """

    def __init__(self, what: str) -> None:
        self.address = f"@{what}-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind("\0" + self.address[1:])

    def __enter__(self) -> ReadyChannel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._socket.close()

    def lines(self, process: int, until_s: float) -> list[str]:
        """Wait for the daemon's next word.

        Args:
            process: a descriptor that is readable when the daemon has ended (a pidfd).
            until_s: on the monotonic clock.

        Returns:
            Its lines.

        Raises:
            ProcessLookupError: it has ended instead.
            TimeoutError: it has said nothing in time.
        """
        while True:
            channel, patience_s = self._socket.fileno(), max(until_s - time.monotonic(), 0.0)
            readable, _, _ = select.select([channel, process], [], [], patience_s)
            if channel in readable:
                if said := self._heard():
                    return said
            elif readable:
                raise ProcessLookupError
            else:
                raise TimeoutError

    def _heard(self) -> list[str]:
        """The lines of a message that is there; none when it is a stranger's."""
        data, ancillary, _, _ = self._socket.recvmsg(MOST_BYTES, socket.CMSG_SPACE(_CREDENTIALS.size))
        for level, kind, said in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                _, uid, _ = _CREDENTIALS.unpack(said[:_CREDENTIALS.size])
                if uid in (0, os.geteuid()):
                    return data.decode(errors="replace").splitlines()
        return []
