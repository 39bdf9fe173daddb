"""Python's cyclic collector in a daemon that keeps much: what has lived long is no longer looked at again and again.

Theory: the collector walks its oldest generation as a whole whenever that has grown by a quarter.  A schedd with a
million jobs would stand still for half a second each time, although hardly anything of a daemon's forms cycles.  So
what survives a collection of the oldest generation is set aside (``gc.freeze``), and each collection looks only at what
came after the last one.  So that no cycle of old objects stays forever, everything is looked at in a quiet moment
after as many objects may have come as there were at the last such look; after many times as many, at any moment; and
after many times as many again where hardly any of those that came were cycles.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime

__all__ = ["Tenure"]

OLDEST = 2
LEAST_OBJECTS = 100_000
"""As many have to come at least before everything is looked at."""
MOST_OBJECTS = 2_000_000
"""As many may come at most before everything is looked at, quiet or not, where less than a quarter were there."""
AT_ANY_MOMENT = 4
HARDLY_ANY = 1_000
WITHOUT_CYCLES = 16
"""Where fewer than one of so many that came were found to be cycles, so many times as many more may come."""
LOOK_S = 2.0
QUIET = 0.05
"""A process that used less of a processor than this since the last look has a quiet moment."""


class Tenure:
    """Sets aside what has lived long in this process; nothing happens before :meth:`begin`.

    Args:
        reactor: its timers find quiet moments.
        cpu_s: the processor time of the process.

    Attributes:
        least, most: see :data:`LEAST_OBJECTS`, :data:`MOST_OBJECTS`.
        whole_rounds: looks at everything so far.
    """

    def __init__(self, reactor: IReactorTime, cpu_s: Callable[[], float] = time.process_time) -> None:
        self.least, self.most = LEAST_OBJECTS, MOST_OBJECTS
        self.whole_rounds = 0
        self._reactor = reactor
        self._cpu_s = cpu_s
        self._used_s = 0.0
        self._kept = 0
        self._came = 0
        self._found = 0
        self._is_whole = False

    def begin(self) -> None:
        """From now on; once a process."""
        gc.callbacks.append(self._collecting)
        self._used_s = self._cpu_s()
        self._reactor.callLater(LOOK_S, self._look)

    def _look(self) -> None:
        """Look at everything, if that is due and nobody waits."""
        before_s, self._used_s = self._used_s, self._cpu_s()
        if self._came >= max(self.least, self._kept) and self._used_s - before_s < QUIET * LOOK_S:
            self._is_whole = True
            gc.collect()
            self._used_s = self._cpu_s()
        self._reactor.callLater(LOOK_S, self._look)

    def _collecting(self, phase: str, about: dict[str, Any]) -> None:
        if about["generation"] != OLDEST:
            return
        if phase == "start":
            first, second, third = gc.get_threshold()
            self._came += first * max(second, 1) * max(third, 1)
            rare = WITHOUT_CYCLES if self._found * HARDLY_ANY < self._came else 1
            self._is_whole = self._is_whole or self._came >= rare * max(self.most, AT_ANY_MOMENT * self._kept)
            if self._is_whole:
                gc.unfreeze()
            return
        gc.freeze()
        self._found += about["collected"]
        if self._is_whole:
            self.whole_rounds += 1
            self._kept, self._came, self._found, self._is_whole = gc.get_freeze_count(), 0, 0, False
