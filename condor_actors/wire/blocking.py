"""A client for the tools: asks one question after the other and waits, without Twisted.

Use::

    with connect("unix:/run/condor/schedd.sock") as client:
        page = client.ask("queue", QueryJobs(owner="alice"))

Nodes are ``unix:/path`` or ``<host:port>`` (TLS, needs ``credentials``).  It speaks the same bytes as
:class:`condor_actors.wire.post_office.PostOffice`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from condor_actors.wire.errors import (
    LinkLost,
    NotTrusted,
    ProtocolError,
    RequestRefused,
    TimedOut,
    Unreachable,
    WireError,
)

__all__ = [
    "Client", "LinkLost", "NotTrusted", "ProtocolError", "RequestRefused", "TimedOut", "Unreachable", "WireError",
    "connect",
]


def connect(node: str, credentials: Any = None, timeout_s: float = 20.0) -> Client:
    """A client of the daemon at ``node``.

    Raises:
        Unreachable, NotTrusted, ProtocolError, TimedOut: why there is none.
    """
    raise NotImplementedError


class Client:
    """One connection to one daemon; a context manager."""

    def ask(self, actor: str, message: Any, timeout_s: float = 20.0) -> Any:
        """The answer of ``actor`` to ``message``.

        Raises:
            RequestRefused: the answer was ``Refused``.
            TimedOut, LinkLost: there was none.
        """
        raise NotImplementedError

    def tell(self, actor: str, message: Any) -> None:
        """Send ``message`` one way."""
        raise NotImplementedError

    def receive(self, timeout_s: float) -> Any:
        """The next message that the daemon told us unasked (``ShellData`` …).

        Raises:
            TimedOut: there was none.
        """
        raise NotImplementedError

    def fileno(self) -> int:
        """For ``select``: readable when :meth:`receive` may have something."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection."""
        raise NotImplementedError

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
