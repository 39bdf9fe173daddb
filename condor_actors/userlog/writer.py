"""Writes the event logs of an owner's jobs: appended, locked, synced in groups.

Theory: events wait for a moment; then each file is locked, written with one call, and synced once for all of them, and
only then are they reported as written.  An event that someone waits for ends the moment at the end of the reactor
iteration; what else a run has to tell goes along with it, in order.  A log is opened for each group, so one that its
owner moves or deletes is made anew, and nothing stays open for ten thousand jobs.

A job whose log cannot be opened when a run begins is held (:meth:`UserLogs.problem`).  One that cannot be written later
must not stop the job: it is reported, and what could not be written is tried again with the next event of any job.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import BinaryIO

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.userlog.event_text import event_text, event_xml

__all__ = ["LogFiles", "UserLogs", "log_paths"]

MOMENT_S = 0.03
"""How long an event waits for company when nobody waits for it."""

BLOCK_BYTES = 262_144
"""How much of a log's end is read at a time to look for what may have been written before a crash."""

MARGIN_S = 7200.0
"""How much earlier than an event the lines before it must be, so that it cannot be among them: clocks are set."""

KEPT_BYTES = 262_144
"""How much is kept for a log that cannot be written."""

_HEADER = re.compile(rb"^\d{3} \(\d+\.\d+\.\d+\) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) .*$", re.MULTILINE)


def log_paths(facts: ClassAd) -> tuple[str, ...]:
    """The logs of a job: its own, and the one of the workflow it belongs to."""
    iwd = facts.get_str("Iwd", "/")
    paths = [facts.get_str(name) for name in ("UserLog", "DAGManNodesLog")]
    return tuple(dict.fromkeys(os.path.join(iwd, path) for path in paths if path and path != "/dev/null"))


class LogFiles:
    """The files themselves; the simulation has its own."""

    def append(self, path: str, data: bytes, *, lock: bool, sync: bool) -> None:
        """Add to a log's end, with one write; ``lock`` keeps others out, ``sync`` waits for the disk.

        Raises:
            OSError: it cannot be written.
        """
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if lock:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.lseek(descriptor, 0, os.SEEK_END)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view):]
                if sync:
                    os.fdatasync(descriptor)
            except OSError:
                if lock:
                    os.ftruncate(descriptor, size)  # no half event
                raise
        finally:
            os.close(descriptor)

    def open(self, path: str) -> BinaryIO:
        """Read a log.

        Raises:
            OSError: it cannot be read.
        """
        return open(path, "rb")


class UserLogs:
    """Writes the user logs of one owner's jobs, locked and synced in groups.

    Args:
        clock: for the end of the iteration.
        sync: whether to wait for the disk (ENABLE_USERLOG_FSYNC).
        lock: whether to lock (ENABLE_USERLOG_LOCKING).
        files: where logs are.
    """

    def __init__(self, clock: IReactorTime, *, sync: bool = True, lock: bool = True, log: Logger | None = None,
                 files: LogFiles | None = None) -> None:
        self._files = files or LogFiles()
        self._clock = clock
        self._sync = sync
        self._lock = lock
        self._log = log or Logger("condor.shadow")
        self._waiting: dict[str, list[str]] = {}
        self._seen: dict[str, tuple[float, set[str]]] = {}
        self._then: list[Callable[[], None]] = []
        self._call: IDelayedCall | None = None
        self._sick: dict[str, bytes] = {}

    def write(self, event: int, cluster: int, procs: Iterable[int], when_s: float, facts: ClassAd, *,
              maybe_written: bool = False) -> None:
        """Write an event of these jobs with the next group.

        Args:
            maybe_written: look at the log's end first, and leave out what is there.
        """
        form = event_xml if facts.get_bool("UserLogUseXML") else event_text
        for path in log_paths(facts):
            lines = self._waiting.setdefault(path, [])
            seen = self._headers(path, lines, when_s) if maybe_written and form is event_text else set()
            for proc in procs:
                text = form(event, cluster, proc, when_s, facts)
                if text.split("\n", 1)[0] not in seen:
                    lines.append(text)
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
        self._seen = {}
        for path in {**waiting, **self._sick}:
            data = "".join(waiting.get(path, ())).encode("utf-8", "surrogateescape")
            if data or self._sick.get(path):
                self._append(path, data)
        then, self._then = self._then, []
        for each in then:
            each()

    def _append(self, path: str, data: bytes) -> None:
        whole = self._sick.get(path, b"") + data
        try:
            self._files.append(path, whole, lock=self._lock, sync=self._sync)
            if self._sick.pop(path, None) is not None:
                self._log.info("user log {path} can be written again", path=path)
        except OSError as error:
            if path not in self._sick:
                self._log.error("user log {path} cannot be written: {error}", path=path, error=error.strerror)
            if len(whole) > KEPT_BYTES:
                self._log.error("{count} bytes of events for {path} are lost", count=len(whole), path=path)
                whole = b""
            self._sick[path] = whole

    def problem(self, facts: ClassAd) -> str:
        """Why a log of this job cannot be opened; empty when all can."""
        for path in log_paths(facts):
            try:
                self._files.append(path, b"", lock=False, sync=False)
            except OSError as error:
                return f"Failed to initialize user log to {path}: {error.strerror}"
        return ""

    def _headers(self, path: str, waiting: list[str], when_s: float) -> set[str]:
        """First lines of the events that a log has, or will have with this group, since shortly before ``when_s``.

        However many events one notice stands for: read once for a group, back to the first that is too early.
        """
        since_s, seen = self._seen.get(path, (math.inf, set()))
        if when_s < since_s:
            seen = {text.split("\n", 1)[0] for text in self._since(path, when_s - MARGIN_S)}
            self._seen[path] = (when_s, seen)
        return seen | {text.split("\n", 1)[0] for text in waiting}

    def _since(self, path: str, earliest_s: float) -> list[str]:
        """The first lines of a log's events, from the end back to the first that is earlier."""
        first = datetime.fromtimestamp(int(earliest_s)).isoformat(" ").encode()  # noqa: DTZ006 - logs show local time
        try:
            with self._files.open(path) as stream:
                size = BLOCK_BYTES
                end = stream.seek(0, os.SEEK_END)
                while True:
                    stream.seek(max(0, end - size))
                    found = list(_HEADER.finditer(stream.read(size)))
                    if size >= end or (found and found[0][1] < first):
                        return [each[0].decode("utf-8", "surrogateescape") for each in found]
                    size *= 4
        except OSError:
            return []
