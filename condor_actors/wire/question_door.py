"""A stranger's connection: one line of JSON comes in, lines of JSON go out, and the time for it is limited."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.protocols.basic import LineOnlyReceiver
from twisted.protocols.policies import TimeoutMixin
from twisted.python.failure import Failure

__all__ = ["CLOSED", "QuestionDoor"]

CLOSED = Failure(ConnectionDone())


class QuestionDoor(LineOnlyReceiver, TimeoutMixin):
    """Takes a question from someone who has nothing to show yet; who sends more than one line is hung up on.

    Args:
        clock: Twisted's.
        longest_bytes: of the line.
        line_s: how long the line may take to come.
    """

    delimiter = b"\n"

    def __init__(self, clock: IReactorTime, longest_bytes: int, line_s: float) -> None:
        self.MAX_LENGTH = longest_bytes
        self._clock = clock
        self._line_s = line_s
        self._has_asked = False

    def callLater(self, period: float, func: Callable[[], object]) -> IDelayedCall:  # noqa: N802 - Twisted's
        """The clock of the timeouts."""
        return self._clock.callLater(period, func)

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Wait for the line, but not forever."""
        self.allow(self._line_s)

    def allow(self, more_s: float | None) -> None:
        """Let the connection last so much longer from now on; None: as long as it likes."""
        self.setTimeout(more_s)  # type: ignore[no-untyped-call]  # not typed in Twisted

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Collect the line; nothing may come after it."""
        if self._has_asked:
            self.hang_up()
        else:
            super().dataReceived(data)  # type: ignore[no-untyped-call]  # not typed in Twisted

    def lineReceived(self, line: bytes) -> None:  # noqa: N802 - Twisted's
        """Take the first line as the question."""
        if self._has_asked:
            self.hang_up()
            return
        self._has_asked = True
        self.asked(line)

    def asked(self, line: bytes) -> None:
        """The question has come, without its end of line; answer with :meth:`say` and :meth:`hang_up`."""
        raise NotImplementedError

    def say(self, fields: Mapping[str, Any]) -> None:
        """Send a line of JSON."""
        if self.transport is not None:
            self.transport.write(json.dumps(fields).encode() + b"\n")

    def hang_up(self) -> None:
        """End the connection, once what was said is sent."""
        if self.transport is not None:
            self.transport.loseConnection()

    @property
    def address(self) -> str:
        """The peer's IP address; empty at a local socket."""
        return str(getattr(self.transport.getPeer(), "host", "")) if self.transport is not None else ""

    def connectionLost(self, reason: Failure = CLOSED) -> None:  # noqa: N802 - Twisted's
        """Stop waiting."""
        self.allow(None)
