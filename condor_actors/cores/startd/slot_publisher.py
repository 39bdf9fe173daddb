"""Which slots' ads have changed and are to be sent, and when.

Theory: many things change an ad, often several in a turn; it is sent once, at once when others wait for the change,
else a second later together with what else has changed by then.  A part is sent before the slot that it was taken out
of: else a negotiator sees that a match was taken up before it sees whose the part is, and its user's ceiling has room.
"""

from __future__ import annotations

from condor_actors.cores.startd.slots import Slot, Slots
from condor_actors.cores.startd.startd_events import Hide, Show
from condor_actors.cores.turn import Turn
from condor_actors.effects import SetTimer

__all__ = ["SlotPublisher"]

DISK_PART = 10
"""A slot whose disk differs by a tenth from what others know is shown anew..."""
DISK_LEAST_KIB = 1024
"""...and by this much: a nearly full disk, where every log's line is a tenth, is no reason for an ad."""


class SlotPublisher:
    """Collects what has changed until the timer ``publish``.

    Args:
        turn: of the core.
        slots: of the machine.
        spacing_s: at least this between ads that are not urgent.
    """

    def __init__(self, turn: Turn, slots: Slots, spacing_s: float) -> None:
        self._turn = turn
        self._slots = slots
        self._spacing_s = spacing_s
        self._changed: dict[str, None] = {}
        self._removed: dict[str, None] = {}
        self._shown_disk_kib: dict[str, int] = {}
        self._due_in_s: float | None = None

    def changed(self, slot: Slot, *, urgent: bool = False) -> None:
        """A slot's ad is to be sent, at once if it is urgent."""
        self._changed[slot.name] = None
        delay_s = 0.0 if urgent else self._spacing_s
        if self._due_in_s is None or delay_s < self._due_in_s:
            self._due_in_s = delay_s
            self._turn.do(SetTimer("publish", delay_s))

    def disk_changed(self, slot: Slot) -> None:
        """A slot's ad is to be sent if jobs that fit its disk would not be matched by the one sent last, or others."""
        shown_kib, now_kib = self._shown_disk_kib.get(slot.name), slot.ad.evaluate("Disk")
        if shown_kib is None or not isinstance(now_kib, int):
            return
        if abs(now_kib - shown_kib) >= max(DISK_LEAST_KIB, max(now_kib, shown_kib) // DISK_PART):
            self.changed(slot)

    def all_changed(self, *, urgent: bool = False) -> None:
        """Every slot's ad is to be sent."""
        for slot in self._slots:
            self.changed(slot, urgent=urgent)

    def removed(self, slot: Slot) -> None:
        """A slot exists no longer."""
        self._changed.pop(slot.name, None)
        self._removed[slot.name] = None
        self._shown_disk_kib.pop(slot.name, None)

    def publish(self) -> None:
        """Send what has changed."""
        self._due_in_s = None
        names, self._changed = tuple(self._changed), {}
        removed, self._removed = tuple(self._removed), {}
        self._turn.do(*(Hide(name) for name in removed if self._slots.get(name) is None))
        present = [slot for slot in map(self._slots.get, names) if slot is not None]
        for slot in sorted(present, key=lambda slot: slot.parent is None):
            self._slots.name_children(slot)
            self._slots.refresh(slot, self._turn.now_s)
            disk_kib = slot.ad.evaluate("Disk")
            if isinstance(disk_kib, int):
                self._shown_disk_kib[slot.name] = disk_kib
            self._turn.do(Show(slot))
