"""The log of one run, for the user whose job it is (``starter_log``): what its starter decided and did, with dates.

It says what the starter's own log says of the run, is kept in memory, and goes home with the outputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from condor_actors.classads import ClassAd
from condor_actors.effects import Effect, Note
from condor_actors.numerals import moment

__all__ = ["RunLog", "log_level"]

MOST_BYTES = 262_144
_DETAILS = re.compile(r"FULLDEBUG|D_ALL\b|D_ANY\b|:2\b", re.IGNORECASE)


def log_level(job: ClassAd) -> str:
    """How much of its starter's log a job wants home (JobStarterLog, JobStarterDebug): ``info`` or ``debug``; empty:
    nothing."""
    path, level = job.evaluate("JobStarterLog"), job.evaluate("JobStarterDebug")
    if not isinstance(path, str) or not path:
        return ""
    return "debug" if isinstance(level, str) and _DETAILS.search(level) else "info"


class RunLog:
    """Keeps the lines of one run.

    Args:
        level: as of :func:`log_level`; empty: none is kept.
    """

    def __init__(self, level: str) -> None:
        self._level = level
        self._lines: list[bytes] = []
        self._bytes = 0

    def note(self, effects: Iterable[Effect], now_s: float) -> None:
        """Keep the notes of a turn."""
        if self._level:
            for each in effects:
                if isinstance(each, Note) and (each.level != "debug" or self._level == "debug"):
                    self.say(each.text, now_s)

    def say(self, text: str, now_s: float, *, is_detail: bool = False) -> None:
        """Keep a line, one of the details only where they are wanted.  The last one says that there is no more room."""
        if not self._level or self._bytes > MOST_BYTES or (is_detail and self._level != "debug"):
            return
        when = moment(now_s).replace(tzinfo=None).isoformat(" ", "milliseconds")
        line = f"{when} {' '.join(text.split())}\n".encode("utf-8", "surrogateescape")
        self._bytes += len(line)
        self._lines.append(line if self._bytes <= MOST_BYTES else f"{when} (more is not kept)\n".encode())

    @property
    def data(self) -> bytes:
        """All lines so far."""
        return b"".join(self._lines)
