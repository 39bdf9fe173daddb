"""Writes the event logs of an owner's jobs: appended, locked, synced in groups, by workers.

Theory: events wait for a moment; then each file is locked, written with one call, and synced once for the group, and
only then are they reported as written.  An event that someone waits for ends the moment at the end of the reactor
iteration, or when the last such group is :data:`PACE_S` old: where many runs end, they share a group, and all that
follows from it.  What else a run has to tell goes along with it, in order.  A log is opened for each group, so one that
its owner moves or deletes is made anew, and nothing stays open for ten thousand jobs.

A log is a path that its owner chose: it may be a pipe, be locked forever by another process, or lie on a file system
whose server is gone.  Each log is written by a worker, one group after the other; logs do not wait for each other.  A
lock is waited for :data:`LOCK_PATIENCE_S`, a worker for its deadline; then those who wait for the log's events are let
go, and what a stuck worker was writing is not written a second time before it comes back.

A job whose log cannot be opened when a run begins is held (:meth:`UserLogs.problem`).  One that cannot be written later
must not stop the job: it is reported, and what could not be written is tried again with the next event of any job, and
later and later without one: the last event of a job is what others wait for.  What keeps the events meanwhile asks
:meth:`UserLogs.when_kept`, and is not told before there was room for them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, BinaryIO

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, NoAnswer, at_once, open_plain, touching
from condor_actors.classads import ClassAd
from condor_actors.userlog.event_text import event_text, event_xml, information_text, information_xml
from condor_actors.userlog.paths import log_paths

__all__ = ["LogFiles", "UserLogs"]

MOMENT_S = 0.03
"""How long an event waits for company when nobody waits for it."""

PACE_S = 0.01
"""How far apart groups begin that someone waits for."""

BLOCK_BYTES = 262_144
"""How much of a log's end is read at a time to look for what may have been written before a crash."""

MARGIN_S = 7200.0
"""How much earlier than an event the lines before it must be, so that it cannot be among them: clocks are set."""

KEPT_BYTES = 1 << 22
"""How much is kept for a log that cannot be written."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

RETRY_S, LONGEST_RETRY_S = 1.0, 30.0
"""When a log that could not be written is tried again, at first and at last."""

LOCK_PATIENCE_S = 20.0
"""How long events wait for a log that another process has locked."""

LOCK_RETRY_S = 0.05

LATELY_S = 1.0
"""A log that was written within this time can be written."""

LATELY_LOGS = 1_000

_HEADER = re.compile(
    rb"^\d{3} \(\d+\.\d+\.\d+\) (?P<text>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) .*$"
    rb'|^<c>\n    <a n="MyType">.*\n    <a n="EventTypeNumber">.*\n'
    rb'    <a n="EventTime"><s>(?P<xml>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+</s></a>\n'
    rb'    <a n="Cluster">.*\n    <a n="Proc">.*(?:\n    <a n="Subproc">.*\n    <a n="Type">.*)?$', re.MULTILINE)
"""What tells an event from all others of a log: its first line, or the first lines of its element."""


class LogFiles:
    """The files themselves; the simulation has its own."""

    def append(self, path: str, data: bytes, *, lock: bool, sync: bool) -> None:
        """Add to a log's end, with one write; ``lock`` keeps others out, ``sync`` waits for the disk.

        Raises:
            BlockingIOError: another process has locked it.
            OSError: it cannot be written.
        """
        descriptor = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            if lock:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        return os.fdopen(open_plain(path, os.O_RDONLY), "rb")


@attrs.frozen
class _Event:
    """An event's text.

    Attributes:
        maybe_s: when it happened, if it may have been written before a crash; with ``is_once``: since when it can have
            been written, with any date and in other words.
    """

    text: str
    maybe_s: float | None
    is_once: bool = False

    @property
    def header(self) -> str:
        found = _HEADER.match(self.text.encode("utf-8", "surrogateescape"))
        return found[0].decode("utf-8", "surrogateescape") if found is not None else self.text


@attrs.define(eq=False)
class _Log:
    """One log.

    Attributes:
        waiting: what the next group has.
        unwritten: bytes of groups that could not be written.
        said, settled: events that were added, and those that are written or given up.
        kept: those that are written, or will never be; the others wait for room.
        writing: a worker has it; stuck: and was given up.
        sick: the last group could not be written.
        locked_s: since when its lock has been waited for; None: it is not; resting: until the next try.
        failures: groups in a row that could not be written; again: when they are tried without a new event.
    """

    path: str
    waiting: list[_Event] = attrs.field(factory=list)
    unwritten: bytes = b""
    said: int = 0
    settled: int = 0
    kept: int = 0
    writing: bool = False
    stuck: bool = False
    sick: bool = False
    locked_s: float | None = None
    resting: bool = False
    failures: int = 0
    again: IDelayedCall | None = None


@attrs.frozen(eq=False)
class _Wish:
    """To call ``then`` when logs are ``settled`` or ``kept`` up to those numbers of events."""

    logs: list[tuple[_Log, int]]
    then: Callable[[], None]
    how_far: str = "settled"


class UserLogs:
    """Writes the user logs of one owner's jobs, locked and synced in groups.

    Args:
        clock: for the end of the iteration.
        sync: whether to wait for the disk (ENABLE_USERLOG_FSYNC).
        lock: whether to lock (ENABLE_USERLOG_LOCKING).
        files: where logs are.
        in_worker: runs what touches a file.
    """

    def __init__(self, clock: IReactorTime, *, sync: bool = True, lock: bool = True, log: Logger | None = None,
                 files: LogFiles | None = None, in_worker: InWorker = at_once) -> None:
        self._files = files or LogFiles()
        self._clock = clock
        self._sync = sync
        self._lock = lock
        self._log = log or Logger("condor.shadow")
        self._in_worker = in_worker
        self._logs: dict[str, _Log] = {}
        self._written_s: dict[str, float] = {}
        self._then: list[_Wish] = []
        self._call: IDelayedCall | None = None
        self._next_s = 0.0

    def write(self, event: int, cluster: int, procs: Iterable[int], when_s: float, facts: ClassAd, *,
              maybe_written: bool = False, once_since_s: float = 0.0) -> None:
        """Write an event of these jobs with the next group.

        Args:
            maybe_written: look at the log's end first, and leave out what is there.
            once_since_s: then leave it out also where the log has one like it of another date, which is not earlier
                than this; 0: it has its date.
        """
        is_xml = facts.get_bool("UserLogUseXML")
        forms = (event_xml, information_xml) if is_xml else (event_text, information_text)
        maybe_s = (once_since_s or when_s) if maybe_written else None
        procs = tuple(procs)
        for path in log_paths(facts):
            log = self._logs.setdefault(path, _Log(path))
            log.waiting += [_Event("".join(each(event, cluster, proc, when_s, facts) for each in forms), maybe_s,
                                   once_since_s > 0) for proc in procs]
            log.said += len(procs)
            if self._call is None:
                self._call = self._clock.callLater(MOMENT_S, self.flush)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._logs

    def when_written(self, paths: Iterable[str], then: Callable[[], None]) -> None:
        """Call ``then`` when everything said so far for these logs is on the disk, or was given up."""
        self._wish(paths, then, "settled")

    def when_kept(self, paths: Iterable[str], then: Callable[[], None], waits: Callable[[], None]) -> None:
        """Call ``then`` when everything said so far for these logs is on the disk, or cannot be for another reason
        than want of room; ``waits`` before that, as soon as it is known that they wait for room."""
        told = False

        def is_kept() -> None:
            nonlocal told
            told = True
            then()

        def is_tried() -> None:
            if not told:
                waits()

        self._wish(paths, is_kept, "kept")
        self.when_written(paths, is_tried)

    def _wish(self, paths: Iterable[str], then: Callable[[], None], how_far: str) -> None:
        logs = [log for path in paths if (log := self._logs.get(path)) is not None]
        self._then.append(_Wish([(log, log.said) for log in logs], then, how_far))
        now_s = self._clock.seconds()
        due_s = max(now_s, self._next_s)
        if self._call is None or self._call.getTime() > due_s:
            if self._call is not None:
                self._call.cancel()
            self._call = self._clock.callLater(due_s - now_s, self._flush_wanted)

    def _flush_wanted(self) -> None:
        self._next_s = self._clock.seconds() + PACE_S
        self.flush()

    def flush(self) -> Deferred[None]:
        """Write what waits; fires when it is written, or was given up."""
        if self._call is not None and self._call.active():
            self._call.cancel()
        self._call = None
        done: Deferred[None] = Deferred()
        self._then.append(_Wish([(log, log.said) for log in self._logs.values()], lambda: done.callback(None)))
        for log in tuple(self._logs.values()):
            self._begin(log)
        self._settled()
        return done

    def _begin(self, log: _Log) -> None:
        """Give a log's next group to a worker."""
        if log.writing or log.resting or not (log.waiting or log.unwritten):
            return
        log.writing = True
        events, log.waiting = log.waiting, []
        group = _Group(log.unwritten, events, log.said)
        work = self._in_worker(_write_group, self._files, log.path, group, self._lock, self._sync)
        work.addBoth(self._ended, log, group)

    def _ended(self, result: Any, log: _Log, group: _Group) -> None:
        """A worker is done with a group, or was given up."""
        error = result.value if isinstance(result, Failure) else None
        if isinstance(error, NoAnswer) and error.late is not None:
            self._complain(log, f"{error.strerror}; its events wait")
            log.stuck = True
            error.late.addCallback(self._came_back, log, group)
        elif isinstance(error, BlockingIOError) and self._waits_for_lock(log):
            log.waiting[:0] = group.events
            log.writing = False
        else:
            self._conclude(error, log, group)
        self._settled()

    def _waits_for_lock(self, log: _Log) -> bool:
        """Whether to try again soon: a log that was given up is tried with the next event only."""
        now_s = self._clock.seconds()
        if log.locked_s is None:
            log.locked_s = now_s
        waited_s = now_s - log.locked_s
        if log.sick or waited_s > LOCK_PATIENCE_S:
            return False
        log.resting = True
        self._clock.callLater(LOCK_RETRY_S + waited_s / 8, self._try_lock, log)
        return True

    def _try_lock(self, log: _Log) -> None:
        log.resting = False
        self._begin(log)

    def _came_back(self, result: Any, log: _Log, group: _Group) -> None:
        """A worker that was given up has come back after all."""
        self._conclude(result if isinstance(result, Exception) else None, log, group)
        self._settled()

    def _conclude(self, error: BaseException | None, log: _Log, group: _Group) -> None:
        log.writing, log.stuck, log.locked_s = False, False, None
        log.settled = max(log.settled, group.said)
        if log.again is not None and log.again.active():
            log.again.cancel()
        if error is None:
            log.kept, log.failures = log.settled, 0
            log.unwritten = b""
            if len(self._written_s) >= LATELY_LOGS:
                self._written_s.clear()
            self._written_s[log.path] = self._clock.seconds()
            if log.sick:
                log.sick = False
                self._log.info("user log {path} can be written again", path=log.path)
            if log.waiting and self._call is None:
                self._begin(log)
            elif not log.waiting:
                del self._logs[log.path]
            return
        self._written_s.pop(log.path, None)
        self._complain(log, error.strerror or str(error) if isinstance(error, OSError) else str(error))
        log.unwritten = group.data
        if len(log.unwritten) > KEPT_BYTES:
            self._log.error("{count} bytes of events for {path} are lost", count=len(log.unwritten), path=log.path)
            log.unwritten, log.kept = b"", log.settled
            if not log.waiting:
                del self._logs[log.path]
                return
        if not (isinstance(error, OSError) and error.errno in NO_ROOM):
            log.kept = log.settled
        wait_s = min(LONGEST_RETRY_S, RETRY_S * 2.0 ** min(log.failures, 10))
        log.failures += 1
        log.again = self._clock.callLater(wait_s, self._begin, log)

    def _complain(self, log: _Log, why: str) -> None:
        if not log.sick:
            self._log.error("user log {path} cannot be written: {error}", path=log.path, error=why)
        log.sick = True

    def _settled(self) -> None:
        """Call those whose events are written; nobody waits for a log that was given up."""
        for log in self._logs.values():
            if log.stuck:
                self._keep_little(log)
                log.settled = log.kept = log.said
        over: list[Callable[[], None]] = []
        waiting = []
        for each in self._then:
            for log, said in each.logs:
                if (log.kept if each.how_far == "kept" else log.settled) < said:
                    waiting.append(each)
                    break
            else:
                over.append(each.then)
        self._then = waiting
        for then in over:
            then()

    def _keep_little(self, log: _Log) -> None:
        """What waits for a stuck log is bounded."""
        size = sum(len(event.text) for event in log.waiting)
        if size > KEPT_BYTES:
            self._log.error("{count} bytes of events for {path} are lost", count=size, path=log.path)
            log.waiting.clear()

    def lately_written(self, facts: ClassAd) -> bool:
        """Whether every log of this job was written a moment ago: then there is no :meth:`problem` to look for."""
        since_s = self._clock.seconds() - LATELY_S
        return all(self._written_s.get(path, since_s) > since_s for path in log_paths(facts))

    def problem(self, facts: ClassAd) -> str:
        """Why a log of this job cannot be opened; empty when all can.  It may block: for a worker.

        Raises:
            NoAnswer: another worker is stuck there.
        """
        for path in log_paths(facts):
            touching(path)
            try:
                self._files.append(path, b"", lock=False, sync=False)
            except OSError as error:
                return f"{FAILED}{path}: {error.strerror}"
        return ""


FAILED = "Failed to initialize user log to "


@attrs.define(eq=False)
class _Group:
    """What is written to a log with one call: bytes that could not be written before, and events.

    Attributes:
        said: of the log, with the last of them.
        data: all of it, once what was written before is left out.
    """

    unwritten: bytes
    events: list[_Event]
    said: int
    data: bytes = b""


def _write_group(files: LogFiles, path: str, group: _Group, lock: bool, sync: bool) -> None:
    """In a worker: leave out what the log has, and append the rest.

    Raises:
        OSError: as :meth:`LogFiles.append`.
    """
    group.data = group.unwritten + "".join([event.text for event in group.events]).encode("utf-8", "surrogateescape")
    touching(path)
    earliest_s = min([event.maybe_s for event in group.events if event.maybe_s is not None], default=None)
    if earliest_s is not None:
        seen = set(_headers_since(files, path, earliest_s - MARGIN_S))
        last = dict(sorted(_parted(header) for header in seen)) if any(each.is_once for each in group.events) else {}
        events = []
        for event in group.events:
            if event.maybe_s is not None and event.is_once:
                told = last.get(_parted(event.header)[0], "") >= _day(event.maybe_s)
            else:
                told = event.maybe_s is not None and event.header in seen
            if not told:
                events.append(event.text)
                seen.add(event.header)
        group.data = group.unwritten + "".join(events).encode("utf-8", "surrogateescape")
    if group.data:
        files.append(path, group.data, lock=lock, sync=sync)


def _day(when_s: float) -> str:
    return datetime.fromtimestamp(int(when_s)).isoformat(" ")  # noqa: DTZ006 - logs show local time


def _parted(header: str) -> tuple[str, str]:
    """What an event is and whose, and its date."""
    found = _HEADER.match(header.encode("utf-8", "surrogateescape"))
    if found is None:
        return header, ""
    if found["text"]:
        return header[: found.start("text")], found["text"].decode()
    return header.replace(found["xml"].decode(), ""), found["xml"].decode().replace("T", " ")


def _headers_since(files: LogFiles, path: str, earliest_s: float) -> Sequence[str]:
    """The first lines of a log's events, from the end back to the first that is earlier."""
    first = _day(earliest_s).encode()
    try:
        with files.open(path) as stream:
            size = BLOCK_BYTES
            end = stream.seek(0, os.SEEK_END)
            while True:
                stream.seek(max(0, end - size))
                found = list(_HEADER.finditer(stream.read(size)))
                if size >= end or (found and (found[0]["text"] or found[0]["xml"].replace(b"T", b" ")) < first):
                    return [each[0].decode("utf-8", "surrogateescape") for each in found]
                size *= 4
    except OSError:
        return []
