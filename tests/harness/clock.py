"""A clock that steps from event to event, so that each timer runs at its own time."""

from __future__ import annotations

from twisted.internet.task import Clock


class SteppingClock(Clock):
    """A ``task.Clock`` whose :meth:`run` never jumps over a timer.

    It doubles as the wall clock: ``clock.wall`` starts at ``epoch_s`` and moves with it.
    """

    def __init__(self, epoch_s: float = 1_700_000_000.0) -> None:
        super().__init__()
        self.epoch_s = epoch_s

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.epoch_s + self.seconds()

    def run(self, span_s: float = 0.0, limit: int = 100_000) -> None:
        """Run everything due within the next ``span_s`` seconds, in order.

        Raises:
            AssertionError: more than ``limit`` calls ran: something goes round in circles.
        """
        end = self.seconds() + span_s
        while True:
            due = min((call.getTime() for call in self.getDelayedCalls()), default=None)
            if due is None or due > end:
                break
            self.advance(max(0.0, due - self.seconds()))
            limit -= 1
            assert limit > 0, "the clock never comes to rest"
        self.advance(max(0.0, end - self.seconds()))
