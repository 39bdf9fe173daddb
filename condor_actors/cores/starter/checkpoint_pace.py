"""When the program of a run may be asked for a periodic checkpoint.

Theory: a program stands still while it is saved.  Where checkpoints are wanted more often than one takes (a short
period, a large program, a slow way home), each would begin when the one before has ended, and the program would never
compute.  So after each it computes for at least as long as that took.  A checkpoint that a person or an eviction asks
for does not wait.
"""

from __future__ import annotations

__all__ = ["CheckpointPace"]

LOST_S = 600.0
"""A checkpoint of which nothing was heard for so long is not waited for."""


class CheckpointPace:
    """The times of one run's checkpoints, by any clock that goes on."""

    def __init__(self) -> None:
        self._asked_s: float | None = None
        self._computes_until_s = float("-inf")

    def may_ask(self, now_s: float) -> bool:
        """Whether a periodic checkpoint may begin now."""
        if self._asked_s is not None and now_s - self._asked_s < LOST_S:
            return False
        return now_s >= self._computes_until_s

    def asked(self, now_s: float) -> None:
        """The program is asked for a checkpoint."""
        if self._asked_s is None or now_s - self._asked_s >= LOST_S:
            self._asked_s = now_s

    def over(self, now_s: float) -> float:
        """The checkpoint is at home, or there is none: the program goes on.  Returns how long that took."""
        if self._asked_s is None:
            return 0.0
        took_s = max(0.0, now_s - self._asked_s)
        self._computes_until_s, self._asked_s = now_s + took_s, None
        return took_s
