"""Whether a process that is silent has nothing to say, or does not get the processor.

Theory: a process that hangs sleeps, is stopped, or spins.  One that is starved wants to run and may not: the kernel
counts how long its main thread stood in the queue (``/proc/PID/schedstat``, nanoseconds), but adds a wait only when it
is over; until then the thread shows as runnable (``R`` in ``/proc/PID/stat``) without its processor time growing.
"""

from __future__ import annotations

import os
import time

import attrs

__all__ = ["ProcessorWait", "Reading", "read", "was_starved"]

_TICKS_S = 1.0 / os.sysconf("SC_CLK_TCK")
STARVED_SHARE = 0.5
"""Of the time: who waited for the processor so much of it is starved."""


@attrs.frozen
class Reading:
    """The main thread of a process at one moment.

    Attributes:
        when_s: of the monotonic clock; used_s: processor time; waited_s: in the queue for it, waits that are over.
        is_runnable: whether it runs or wants to.
    """

    when_s: float
    used_s: float
    waited_s: float
    is_runnable: bool


def read(pid: int) -> Reading | None:
    """How it is now; None: there is no such process, or the kernel does not say."""
    try:
        with open(f"/proc/{pid}/task/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as file:
            waited = file.read().split()[1]
        used = int(fields[11]) + int(fields[12])
        return Reading(time.monotonic(), used * _TICKS_S, int(waited) / 1e9, fields[0] == "R")
    except (OSError, ValueError, IndexError):
        return None


def was_starved(before: Reading, now: Reading) -> bool:
    """Whether it waited for the processor most of the time between two readings."""
    span_s = now.when_s - before.when_s
    waited_s = now.waited_s - before.waited_s
    if now.is_runnable:  # the wait that is not over yet
        waited_s += max(0.0, span_s - waited_s - (now.used_s - before.used_s))
    return span_s > 0.0 and waited_s >= STARVED_SHARE * span_s


class ProcessorWait:
    """Watches one process at a time."""

    def __init__(self) -> None:
        self._pid = 0
        self._before: Reading | None = None

    def since_last(self, pid: int) -> bool:
        """Whether a process was starved since it was last asked about; False when it was not."""
        before, self._before = self._before if pid == self._pid else None, read(pid)
        self._pid = pid
        return before is not None and self._before is not None and was_starved(before, self._before)
