"""Python's cyclic collector in a daemon that keeps much: what has lived long is no longer looked at again and again.

Theory: the collector walks its oldest generation as a whole whenever that has grown by a quarter.  A schedd with a
million jobs would stand still for half a second each time, although hardly anything of a daemon's forms cycles.  So
what survives a collection of the oldest generation is set aside (``gc.freeze``), and each collection looks only at what
came after the last one.  So that no cycle of old objects stays for ever, everything is looked at when as many objects
may have come as there were at the last such look.
"""

from __future__ import annotations

import gc
from typing import Any

__all__ = ["LEAST_OBJECTS", "Tenure"]

OLDEST = 2
LEAST_OBJECTS = 400_000
"""As many have to come at least before everything is looked at; walking them takes a few hundredths of a second."""


class Tenure:
    """Sets aside what has lived long in this process; nothing happens before :meth:`begin`.

    Attributes:
        rounds: collections of what came lately; whole_rounds: those of everything.
    """

    def __init__(self, least_objects: int = LEAST_OBJECTS) -> None:
        self.rounds = self.whole_rounds = 0
        self._least = least_objects
        self._kept = 0
        self._came = 0
        self._is_whole = False

    def begin(self) -> None:
        """From now on; once a process."""
        gc.callbacks.append(self._collecting)

    def end(self) -> None:
        """Leave the collector to itself again."""
        gc.callbacks.remove(self._collecting)
        gc.unfreeze()

    def _collecting(self, phase: str, about: dict[str, Any]) -> None:
        if about["generation"] != OLDEST:
            return
        if phase == "start":
            first, second, third = gc.get_threshold()
            self._came += first * max(second, 1) * max(third, 1)
            self._is_whole = self._came >= max(self._least, self._kept)
            if self._is_whole:
                gc.unfreeze()
            return
        gc.freeze()
        self.rounds += 1
        if self._is_whole:
            self.whole_rounds += 1
            self._kept, self._came, self._is_whole = gc.get_freeze_count(), 0, False
