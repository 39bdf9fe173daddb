"""The event log of the nodes' jobs, read as it grows, and the halt file, noticed when it comes and goes.

A thread of its own waits for the kernel to tell (inotify); what it reads goes to the reactor in order.
"""

from __future__ import annotations

import os
import re
import select
import threading
from collections.abc import Callable, Sequence

from inotify_simple import INotify, flags

from condor_actors.userlog.reader import Event, EventReader

__all__ = ["LogTail", "status_of"]

_PIECE = 1 << 20
_FALLBACK_S = 0.5
"""Where the kernel has no watch to give, the files are looked at this often."""
_NORMAL = re.compile(r"\(1\) Normal termination \(return value (-?\d{1,9})\)")
_SIGNAL = re.compile(r"\(0\) Abnormal termination \(signal (\d{1,4})\)")
_XML_CODE = re.compile(r'<a n="ReturnValue"><i>(-?\d{1,9})</i>')
_XML_SIGNAL = re.compile(r'<a n="TerminatedBySignal"><i>(\d{1,4})</i>')


def status_of(event: Event) -> int:
    """How a job ended: its exit status, a signal as its negative number."""
    for pattern, sign in ((_NORMAL, 1), (_SIGNAL, -1), (_XML_CODE, 1), (_XML_SIGNAL, -1)):
        found = pattern.search(event.text)
        if found:
            return sign * int(found.group(1))
    return 1


class LogTail:
    """Reads a log from an offset on.

    Args:
        path: the log; it exists.
        offset: where to begin.
        halt: the halt file.
        got: called in the reactor with events, and the offset behind them.
        halted: called in the reactor with whether the halt file is there, when that changes.
        in_reactor: calls a function there.
    """

    def __init__(self, path: str, offset: int, halt: str, got: Callable[[Sequence[Event], int], None],
                 halted: Callable[[bool], None], in_reactor: Callable[..., object]) -> None:
        self._path = path
        self._offset = offset
        self._halt = halt
        self._got = got
        self._halted = halted
        self._in_reactor = in_reactor
        self._stopped = False
        self._reader = EventReader()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="nodes log", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stopped = True
        os.write(self._wake_write, b"x")

    def _run(self) -> None:
        notify = self._watch()
        is_halted = False
        with open(self._path, "rb") as file:
            file.seek(self._offset)
            while not self._stopped:
                if os.path.exists(self._halt) != is_halted:
                    is_halted = not is_halted
                    self._in_reactor(self._halted, is_halted)
                data = file.read(_PIECE)
                if data:
                    self._take(data)
                    continue
                waits = [self._wake_read] if notify is None else [self._wake_read, notify.fileno()]
                ready, _, _ = select.select(waits, [], [], _FALLBACK_S if notify is None else None)
                if notify is not None and notify.fileno() in ready:
                    notify.read(timeout=0)

    def _take(self, data: bytes) -> None:
        self._offset += len(data)
        events = list(self._reader.feed(data))
        if events:
            self._in_reactor(self._got, events, self._offset - self._reader.rest_bytes)

    def _watch(self) -> INotify | None:
        try:
            notify = INotify()
            notify.add_watch(self._path, flags.MODIFY)
            notify.add_watch(os.path.dirname(os.path.abspath(self._halt)),
                             flags.CREATE | flags.DELETE | flags.MOVED_TO | flags.MOVED_FROM)
        except OSError:
            return None
        return notify

