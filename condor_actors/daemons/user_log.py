"""Writes the event logs of an owner's jobs: appended, locked, synced in groups.

Theory: events wait for a moment; then each file is locked, written with one call, and synced once for all of them, and
only then are they reported as written.  An event that somebody waits for ends the moment at the end of the reactor
iteration; what else a run has to tell goes along with it, in order.  A log is opened for each group, so one that its
owner moves or deletes is made anew, and nothing stays open for ten thousand jobs.

A log that cannot be written must not stop the job: it is reported, and the events count as dealt with.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.cores.event_log import event_header, event_text, event_xml

__all__ = ["UserLogs", "log_paths"]

MOMENT_S = 0.03
"""How long an event waits for company when nobody waits for it."""

TAIL_BYTES = 262_144
"""How far back to look for an event that may have been written before a crash."""


def log_paths(facts: ClassAd) -> tuple[str, ...]:
    """The logs of a job: its own, and the one of the workflow it belongs to."""
    iwd = facts.get_str("Iwd", "/")
    paths = [facts.get_str(name) for name in ("UserLog", "DAGManNodesLog")]
    return tuple(dict.fromkeys(os.path.join(iwd, path) for path in paths if path and path != "/dev/null"))


class UserLogs:
    """See the module.

    Args:
        clock: for the end of the iteration.
        sync: whether to wait for the disk (ENABLE_USERLOG_FSYNC).
        lock: whether to lock (ENABLE_USERLOG_LOCKING).
    """

    def __init__(self, clock: IReactorTime, *, sync: bool = True, lock: bool = True, log: Logger | None = None) -> None:
        self._clock = clock
        self._sync = sync
        self._lock = lock
        self._log = log or Logger("condor.shadow")
        self._waiting: dict[str, list[str]] = {}
        self._then: list[Callable[[], None]] = []
        self._call: IDelayedCall | None = None
        self._sick: set[str] = set()

    def write(self, event: int, cluster: int, procs: Iterable[int], when_s: float, facts: ClassAd, *,
              maybe_written: bool = False) -> None:
        """Write an event of these jobs with the next group.

        Args:
            maybe_written: look at the log's end first, and leave out what is there.
        """
        form = event_xml if facts.get_bool("UserLogUseXML") else event_text
        for path in log_paths(facts):
            lines = self._waiting.setdefault(path, [])
            seen = self._tail(path) + "".join(lines) if maybe_written else ""
            for proc in procs:
                if maybe_written and form is event_text and _has(seen, event, cluster, proc, when_s, facts):
                    continue
                lines.append(form(event, cluster, proc, when_s, facts))
        if self._call is None and self._waiting:
            self._call = self._clock.callLater(MOMENT_S, self.flush)

    def when_written(self, then: Callable[[], None]) -> None:
        """Call ``then`` when everything said so far is on the disk."""
        if not self._then:
            if self._call is not None:
                self._call.cancel()
            self._call = self._clock.callLater(0.0, self.flush)
        self._then.append(then)

    def flush(self) -> None:
        """Write what waits."""
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None
        waiting, self._waiting = self._waiting, {}
        for path, lines in waiting.items():
            if lines:
                self._append(path, "".join(lines).encode("utf-8", "surrogateescape"))
        then, self._then = self._then, []
        for each in then:
            each()

    def _append(self, path: str, data: bytes) -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                if self._lock:
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view):]
                if self._sync:
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            self._sick.discard(path)
        except OSError as error:
            if path not in self._sick:
                self._sick.add(path)
                self._log.error("user log {path} cannot be written: {error}", path=path, error=error.strerror)

    def _tail(self, path: str) -> str:
        try:
            with open(path, "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - TAIL_BYTES))
                return stream.read().decode("utf-8", "surrogateescape")
        except OSError:
            return ""


def _has(text: str, event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> bool:
    """Whether the end of a log has this very event: same job, number and date."""
    first = event_text(event, cluster, proc, when_s, facts).split("\n", 1)[0]
    assert first.startswith(event_header(event, cluster, proc))
    return first + "\n" in text
