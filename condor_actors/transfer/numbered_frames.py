"""What lets a stream outlive its connections: each end numbers its frames, and keeps those that have not arrived.

Theory: both ends count the frames that they send, and those that have come.  An acknowledgement says how many have
come; only then the sender forgets them.  When a connection breaks, what had come of a frame is dropped, both say on the
next connection how many whole ones they have, and each sends the rest again: so every frame comes once, and in order.
What is kept is bounded: an end that has :attr:`NumberedFrames.full` takes nothing new to send.
"""

from __future__ import annotations

from collections import deque

from condor_actors.transfer.streams import BadStream

__all__ = ["NumberedFrames"]

WINDOW_BYTES = 4 << 20
"""From so much that has not arrived on, nothing new is taken."""
TELL_BYTES = 256 << 10
"""So much has come since the last acknowledgement: the other end is told at once, and not soon."""


class NumberedFrames:
    """The frames of one end.

    Attributes:
        received: how many have come.
    """

    def __init__(self) -> None:
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._arrived = 0
        self.received = 0
        self._untold_bytes = 0

    @property
    def full(self) -> bool:
        """Whether nothing new should be sent before something has arrived."""
        return self._kept_bytes >= WINDOW_BYTES

    @property
    def unacknowledged(self) -> tuple[bytes, ...]:
        """What may not have arrived, in order."""
        return tuple(self._kept)

    def sent(self, frame: bytes) -> None:
        """A frame goes out, or will."""
        self._kept.append(frame)
        self._kept_bytes += len(frame)

    def acknowledged(self, number: int) -> None:
        """The other end has had so many, from the first one on.

        Raises:
            BadStream: fewer than it has said before, or more than were sent.
        """
        new = number - self._arrived
        if not 0 <= new <= len(self._kept):
            raise BadStream(f"{number} frames are said to have come, of {self._arrived + len(self._kept)} that were "
                            f"sent, {self._arrived} of which had come before")
        for _ in range(new):
            self._kept_bytes -= len(self._kept.popleft())
        self._arrived = number

    def came(self, size: int) -> bool:
        """A frame of ``size`` bytes has come; whether the other end is to be told at once."""
        self.received += 1
        self._untold_bytes += size
        return self._untold_bytes >= TELL_BYTES

    def told(self) -> int:
        """The number for an acknowledgement that is sent now."""
        self._untold_bytes = 0
        return self.received
