"""How long the process's one reactor thread was kept: by a turn, a commit, a socket, a timer.

Theory: whatever runs on the reactor holds everybody up.  Each edge is measured on the wall clock; what the kernel kept
the thread waiting for a processor meanwhile (``schedstat``) is the machine's doing and is taken off.  What remains,
computing or blocking, is ours.  Above :data:`SLOW_S` a line of the log names the edge, innermost first and once; the
longest and their number are metrics.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from twisted.logger import Logger

__all__ = ["SAMPLE_S", "SLOW_S", "SlowEdges"]

SLOW_S = 0.05
SAMPLE_S = 0.005
"""So long what the kernel told of waiting is taken for true: an edge's own time is exact to that."""

_WAITED = 64
"""More bytes than the line of ``schedstat`` has."""


class SlowEdges:
    """Measures what runs on the reactor of this process.

    Args:
        log: gets a line for each slow edge.

    Attributes:
        count: slow edges so far.
        longest_s: the longest of them, less what the machine kept it waiting; total_s: of all of them.
    """

    def __init__(self, log: Logger) -> None:
        self.count = 0
        self.longest_s = self.total_s = 0.0
        self._log = log
        self._told = 0
        self._descriptor = -1
        self._sample_s, self._sampled_s = 0.0, -SAMPLE_S

    def run(self, name: Callable[[], str], function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; ``name`` says what it is about, if it was slow."""
        told, began_s = self._told, time.perf_counter()
        if began_s - self._sampled_s >= SAMPLE_S:
            self._sample_s, self._sampled_s = self._waited_s(), began_s
        waited_s = self._sample_s
        try:
            return function(*arguments)
        finally:
            wall_s = time.perf_counter() - began_s
            if wall_s > SLOW_S and told == self._told:
                self._slow(name, wall_s, self._waited_s() - waited_s)

    def _slow(self, name: Callable[[], str], wall_s: float, waited_s: float) -> None:
        own_s = wall_s - waited_s
        if own_s <= SLOW_S:
            return
        self._told += 1
        self.count += 1
        self.total_s += own_s
        self.longest_s = max(self.longest_s, own_s)
        self._log.warn("the reactor was kept {own} ms by {edge} ({waited} ms more for want of a processor)",
                       own=round(own_s * 1e3), edge=name(), waited=round(waited_s * 1e3))

    def _waited_s(self) -> float:
        """How long this thread has waited for a processor in its life; 0 where the kernel does not say."""
        try:
            if self._descriptor < 0:
                self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
            return int(os.pread(self._descriptor, _WAITED, 0).split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            return 0.0

    def watch_reactor(self, reactor: Any) -> None:
        """Measure what the reactor calls for its descriptors and timers as well."""
        for name, describe in (("_doReadOrWrite", _descriptor_name), ("runUntilCurrent", lambda *_: "timed calls")):
            function = getattr(reactor, name, None)
            if function is not None:
                setattr(reactor, name, self._measured(function, describe))

    def _measured(self, function: Callable[..., Any], describe: Callable[..., str]) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            return self.run(lambda: describe(*arguments), function, *arguments)

        return measured


def _descriptor_name(selectable: Any, *_: Any) -> str:
    protocol = getattr(selectable, "protocol", None)
    return f"a descriptor of {type(protocol if protocol is not None else selectable).__name__}"
