"""Events also go to systemd's journal: one datagram each, with the event's fields under names of their own.

============================  ====================================================================================
field                         says
============================  ====================================================================================
``MESSAGE``, ``PRIORITY``     the text, and its level as syslog has it
``SYSLOG_IDENTIFIER``         ``condor-schedd``, as the service is called
``CONDOR_JOB``                of an event of a job's story: its number, ``12.0``
``CONDOR_KIND`` and others    the event's other plain fields
============================  ====================================================================================

Theory: the journal is a help, and the log file is the record.  So nothing waits for it: a datagram that has no room, or
finds no journal, is counted and dropped, and the next one that is taken says how many were.

**Source**: systemd's description of its native journal protocol.
"""

from __future__ import annotations

import re
import socket
from typing import Any

from twisted.logger import ILogObserver, LogEvent, LogLevel
from zope.interface import implementer

from condor_actors.services.telemetry.event_text import text_of

__all__ = ["SOCKET", "JournalLog", "packed"]

SOCKET = "/run/systemd/journal/socket"
PRIORITIES = {LogLevel.debug: 7, LogLevel.info: 6, LogLevel.warn: 4, LogLevel.error: 3, LogLevel.critical: 2}
MOST_LETTERS = 32 * 1024
"""Of the text; of any other field a thirty-second of it."""
_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,50}")


def packed(fields: dict[str, str]) -> bytes:
    """Fields as one datagram; a value of several lines has its length before it."""
    pieces = []
    for name, text in fields.items():
        value = text.encode("utf-8", "replace")
        if b"\n" in value:
            pieces.append(b"%s\n%s%s\n" % (name.encode(), len(value).to_bytes(8, "little"), value))
        else:
            pieces.append(b"%s=%s\n" % (name.encode(), value))
    return b"".join(pieces)


@implementer(ILogObserver)
class JournalLog:
    """Sends events to the journal.

    Args:
        daemon: the service's name.
        path: of the journal's socket.

    Attributes:
        dropped: events that the journal has not taken since the last one that it took.
    """

    def __init__(self, daemon: str, path: str = SOCKET) -> None:
        self.dropped = 0
        self._path = path
        self._fixed = {"SYSLOG_IDENTIFIER": f"condor-{daemon}", "CONDOR_DAEMON": daemon}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)

    def __call__(self, event: LogEvent) -> None:
        """One event; a journal that does not take it must not stop the daemon."""
        fields = {"MESSAGE": text_of(event)[:MOST_LETTERS],
                  "PRIORITY": str(PRIORITIES.get(event.get("log_level", LogLevel.info), 6)), **self._fixed}
        if self.dropped:
            fields["CONDOR_DROPPED"] = str(self.dropped)
        for name, value in event.items():
            if isinstance(value, str | int | float) and name != "text" and not name.startswith("log_"):
                fields.setdefault(f"CONDOR_{_field_name(name)}", str(value)[: MOST_LETTERS // 32])
        try:
            self._socket.sendto(packed(fields), self._path)
        except OSError:
            self.dropped += 1
        else:
            self.dropped = 0

    def close(self) -> None:
        """End it."""
        self._socket.close()


def _field_name(name: Any) -> str:
    upper = str(name).upper()
    return upper if _NAME.fullmatch(upper) else "OTHER"
