"""The job ad while it is being made: which section wrote and read what.

Theory: a job is made by a fixed sequence of *sections* (program, environment, transfer, requirements …).  Each is a
function of the macros it expands and of the attributes that earlier sections wrote.  So once the first job of a queue
statement is made, the next one needs only those sections again that asked for something that changed; ten thousand
jobs that differ in ``$(Process)`` alone re-make two or three sections each.

A `PendingAttributes` records that: writes in order with the section that made them, reads per section.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

Value = Any
"""str, int, float, bool, or a parsed expression."""


class PendingAttributes:
    """Attributes written so far; names keep the spelling they were first written with.

    Args:
        fixed: writes of sections that are not made again, ``{key: [(section, name, value)]}``.
    """

    def __init__(self, fixed: dict[str, list[tuple[int, str, Value]]] | None = None) -> None:
        self.fixed = fixed if fixed is not None else {}
        self.fresh: dict[str, list[tuple[int, str, Value]]] = {}
        self.section = 0
        self.reads: set[str] = set()

    def set(self, name: str, value: Value) -> None:
        """Write an attribute."""
        self.fresh.setdefault(name.lower(), []).append((self.section, name, value))

    def get(self, name: str) -> Value:
        """What an attribute is at this point, None when nothing wrote it yet."""
        key = name.lower()
        self.reads.add(key)
        found, at = None, -1
        for section, _, value in self.fixed.get(key, ()):
            if section <= self.section:
                found, at = value, section
        for section, _, value in self.fresh.get(key, ()):
            if section >= at:
                found, at = value, section
        return found

    def names(self, prefix: str) -> list[str]:
        """The attributes written so far whose name begins so (in any case), by their spelling."""
        start = prefix.lower()
        self.reads.add(start + "*")
        seen = {
            key: writes[0][1]
            for key, writes in self.fixed.items()
            if key.startswith(start) and writes[0][0] <= self.section
        }
        for key, writes in self.fresh.items():
            if key.startswith(start):
                seen.setdefault(key, writes[0][1])
        return list(seen.values())

    def final(self) -> dict[str, tuple[str, Value]]:
        """The last write of each attribute: ``{key: (name, value)}``."""
        out = {}
        for key in [*self.fixed, *(key for key in self.fresh if key not in self.fixed)]:
            writes = sorted((*self.fixed.get(key, ()), *self.fresh.get(key, ())), key=lambda write: write[0])
            out[key] = (writes[0][1], writes[-1][2])
        return out
