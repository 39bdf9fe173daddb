"""Time that does not jump when someone sets the machine's clock.

Theory: Twisted's timers run on the wall clock, so a clock set back by an hour would stop every timer for an hour, and
one set forward would end every lease and cut every link at once.  Here timers run on ``CLOCK_BOOTTIME``, which nobody
can set and which also counts the time a laptop sleeps.  The wall clock that daemons see follows the machine's, but
after a jump it only goes a tenth faster or slower until it is right again; it never goes back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MAX_SLEW = 0.1
"""How much faster or slower than time itself the wall clock may go."""


def boot_time_s() -> float:
    """Seconds since the machine was started, its sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_timers(reactor: Any) -> None:
    """Let the reactor's timers run on :func:`boot_time_s`; nothing happens when it has timers already."""
    if not reactor.getDelayedCalls():
        reactor.seconds = boot_time_s


class SteadyClock:
    """A wall clock, seconds since 1970; see the module.

    Args:
        wall: the machine's, which may jump.
        elapsed: what cannot.
    """

    def __init__(self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = boot_time_s) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._last_s = elapsed()
        self._offset_s = wall() - self._last_s

    def __call__(self) -> float:
        """The time now."""
        now_s = self._elapsed()
        error_s = self._wall() - now_s - self._offset_s
        if error_s:
            limit_s = MAX_SLEW * (now_s - self._last_s)
            self._offset_s += max(-limit_s, min(limit_s, error_s))
        self._last_s = now_s
        return now_s + self._offset_s
