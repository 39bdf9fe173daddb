"""Each process writes ``$(LOG)/<Name>Log``: one event a line, put aside when it has grown.

``<SUBSYS>_LOG`` names another file, ``MAX_<SUBSYS>_LOG`` and ``MAX_NUM_<SUBSYS>_LOG`` say when it is put aside and how
many are kept, ``LOG_FORMAT = json`` makes each line a JSON object with the event's fields, and ``D_FULLDEBUG`` in
``ALL_DEBUG``, ``<SUBSYS>_DEBUG`` or ``DEFAULT_DEBUG`` tells everything. Twisted's own remarks on sockets that open and
close are left to that. ``LOG_TO_JOURNAL`` sends the same events to systemd's journal as well (:mod:`.journal`).

Theory: a daemon writes a line for each step of each job, so a line has to be cheap and their number bounded.  Which
events count is a comparison of two numbers, the text of a second's time stamp is made once, and of one kind of event a
second has :data:`BURST` lines: one more line says how many there were beyond that.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from twisted.logger import (
    ILogObserver,
    LogEvent,
    LogLevel,
    eventAsText,
    formatEvent,
    globalLogBeginner,
    globalLogPublisher,
)
from twisted.python.logfile import LogFile
from zope.interface import implementer, provider

from condor_actors.config import Config, ConfigError
from condor_actors.own_files import open_own
from condor_actors.services.telemetry.event_text import text_of
from condor_actors.services.telemetry.journal import JournalLog

BURST = 1_000
"""Lines of one kind in one second; what is beyond that is counted."""
RANK = {level: rank for rank, level in enumerate(LogLevel.iterconstants())}
WORDS = {LogLevel.warn: "WARNING: ", LogLevel.error: "ERROR: ", LogLevel.critical: "ERROR: "}
PLUMBING = ("twisted", "log_legacy", "condor.wire")
"""Loggers of these names and below tell of sockets that open and close: for debugging."""


class _OwnFile(LogFile):
    """One that nobody leads elsewhere while root still writes it; any thread may write a line."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self._in_order = threading.Lock()
        super().__init__(*arguments, **named)  # type: ignore[no-untyped-call]  # Twisted says no types

    def write(self, data: str) -> None:
        """Add a line: what Twisted's does with a third of the calls; jobs have many lines.

        Raises:
            OSError: the disk is full, or the file cannot be put aside; nothing of the line is there.
        """
        line = data.encode(errors="replace")
        with self._in_order:
            if self._file.closed:  # it was put aside when no other could be made
                self._openFile()
            elif self.rotateLength and self.size >= self.rotateLength:
                self.rotate()  # type: ignore[no-untyped-call]
            if self._file.write(line) != len(line):
                self._file.truncate(self.size)
                self._file.seek(self.size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
            self.size += len(line)

    def _openFile(self) -> None:  # noqa: N802 - Twisted's
        self.closed = False
        descriptor = open_own(self.path, os.O_RDWR | os.O_CREAT)
        if self.defaultMode is not None:  # that of the one which was put aside
            with suppress(OSError):
                os.fchmod(descriptor, self.defaultMode)
        self._file = os.fdopen(descriptor, "rb+", 0)
        self._file.seek(0, os.SEEK_END)
        self.size = self._file.tell()


class Missing:
    """Counts the lines that a log could not take, for the line that says so when it takes some again."""

    def __init__(self) -> None:
        self._lines = 0
        self._since_s = 0.0
        self._why = ""

    def __bool__(self) -> bool:
        return self._lines > 0

    def add(self, event: LogEvent, error: OSError) -> None:
        """The line of an event was not written."""
        if not self._lines:
            self._since_s = event.get("log_time", 0.0)
        self._lines += 1
        self._why = error.strerror or str(error)

    def told(self) -> None:
        """It was said how many they were."""
        self._lines = 0

    def event(self, event: LogEvent) -> LogEvent:
        """What to say before an event that can be written."""
        now_s = event.get("log_time", self._since_s)
        text = f"lines are missing here: {self._lines}, of {max(0.0, now_s - self._since_s):.0f} s: {self._why}"
        return {"log_time": now_s, "log_level": LogLevel.warn, "log_namespace": __name__, "log_format": "{text}",
                "text": text}


@implementer(ILogObserver)
class RotatingLog:
    """Writes events to a file that is put aside at a size.

    Args:
        path: the file.
        max_bytes: the size; None for never.
        keep: how many old ones stay.
        form: what an event looks like, a line without its end.
    """

    def __init__(self, path: Path, max_bytes: int | None, keep: int, form: Callable[[LogEvent], str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._form = form
        make: Any = _OwnFile
        self._file: Any = make(path.name, str(path.parent), rotateLength=max_bytes, maxRotatedFiles=max(keep, 1))
        self._missing = Missing()

    def __call__(self, event: LogEvent) -> None:
        """One event; a log that cannot be written must not stop the daemon."""
        try:
            if self._missing:
                self._file.write(self._form(self._missing.event(event)) + "\n")
                self._missing.told()
            self._file.write(self._form(event) + "\n")
        except OSError as error:
            self._missing.add(event, error)

    def close(self) -> None:
        """End the file."""
        self._file.close()


class Lines:
    """``MM/DD/YY hh:mm:ss text``, the form that HTCondor's administrators search."""

    def __init__(self) -> None:
        self._second = -1
        self._stamp = ""

    def __call__(self, event: LogEvent) -> str:
        """The line of an event, without its end: one line, whatever its words contain, but for a traceback."""
        second = int(event.get("log_time", 0.0))
        if second != self._second:
            self._second, self._stamp = second, datetime.fromtimestamp(second).strftime("%m/%d/%y %H:%M:%S")
        word = WORDS.get(event.get("log_level", LogLevel.info), "")
        return f"{self._stamp} {word}{text_of(event)}"


def as_json(event: LogEvent) -> str:
    """One JSON object: time, level, text, and every plain field of the event."""
    fields: dict[str, Any] = {
        "time": event.get("log_time"),
        "level": event.get("log_level", LogLevel.info).name,
        "text": formatEvent(event),
    }
    if "log_failure" in event:
        fields["traceback"] = event["log_failure"].getTraceback()
    for name, value in event.items():
        if not name.startswith("log_") and name not in fields and isinstance(value, str | int | float | bool):
            fields[name] = value
    return json.dumps(fields)


def log_name(daemon: str) -> str:
    """``schedd`` → ``ScheddLog``, ``shadow-host`` → ``ShadowHostLog``."""
    return "".join(part.capitalize() for part in daemon.split("-")) + "Log"


@implementer(ILogObserver)
class GivenLog:
    """Writes events to a file that was opened for this process by another account; it is never put aside.

    Args:
        descriptor: of the file, open for appending.
        form: what an event looks like, a line without its end.
    """

    def __init__(self, descriptor: int, form: Callable[[LogEvent], str]) -> None:
        self._descriptor = descriptor
        self._form = form
        self._missing = Missing()
        self._owed = b""

    def __call__(self, event: LogEvent) -> None:
        """One event; a log that cannot be written must not stop the process."""
        try:
            if self._missing:
                self._write(self._form(self._missing.event(event)))
                self._missing.told()
            self._write(self._form(event))
        except OSError as error:
            self._missing.add(event, error)

    def _write(self, line: str) -> None:
        """Add a line; where the disk has taken but a part of one, the next begins a new one."""
        data = self._owed + f"{line}\n".encode(errors="replace")
        written = os.write(self._descriptor, data)
        if written != len(data):
            self._owed = b"\n"
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._owed = b""

    def close(self) -> None:
        """Nothing: it is the process's standard error as well."""


@implementer(ILogObserver)
class Both:
    """Gives events to a log and to the journal."""

    def __init__(self, log: RotatingLog | GivenLog, journal: JournalLog) -> None:
        self._log = log
        self._journal = journal

    def __call__(self, event: LogEvent) -> None:
        """One event."""
        self._log(event)
        self._journal(event)

    def close(self) -> None:
        """End both."""
        self._log.close()
        self._journal.close()


@implementer(ILogObserver)
class Threshold:
    """Passes on what is important enough, judged by level and namespace.

    Args:
        log: gets it.
        everything: also details, and what the plumbing has to say.
    """

    def __init__(self, log: ILogObserver, everything: bool) -> None:
        self._log = log
        self._everything = everything
        self._least: dict[str, int] = {}

    def __call__(self, event: LogEvent) -> None:
        """One event."""
        name = event.get("log_namespace", "")
        least = self._least.get(name)
        if least is None:
            least = self._least[name] = self._least_of(name)
        if RANK.get(event.get("log_level"), RANK[LogLevel.info]) >= least:
            self._log(event)

    def _least_of(self, name: str) -> int:
        if self._everything:
            return RANK[LogLevel.debug]
        plumbing = any(name == each or name.startswith(f"{each}.") for each in PLUMBING)
        return RANK[LogLevel.warn if plumbing else LogLevel.info]


@implementer(ILogObserver)
class Bursts:
    """Passes on the first events of a kind in each second, and sums up the others in one line.

    The kind is the event's field ``kind``, or else its format.

    Args:
        log: gets them.
        later: calls a function after so many seconds: the sum is told when nothing else happens, too.
        most: how many of a kind a second has.
    """

    def __init__(self, log: ILogObserver, later: Callable[[float, Callable[[], None]], Any], most: int = BURST) -> None:
        self._log = log
        self._later = later
        self._most = most
        self._second = 0
        self._seen: dict[Any, int] = {}
        self._last: dict[Any, LogEvent] = {}

    def __call__(self, event: LogEvent) -> None:
        """One event."""
        second = int(event.get("log_time", 0.0))
        if second != self._second:
            self.sum_up()
            self._second = second
        kind = event.get("kind") or event.get("log_format")
        seen = self._seen[kind] = self._seen.get(kind, 0) + 1
        if seen <= self._most:
            self._log(event)
            return
        if not self._last:
            self._later(1.0, self.sum_up)
        self._last[kind] = event

    def sum_up(self) -> None:
        """The second is over: say how many events were passed over, and what the last of each kind was."""
        seen, last = self._seen, self._last
        self._seen, self._last = {}, {}
        for kind, event in last.items():
            text = f"{seen[kind] - self._most} more lines like the last {self._most} of this kind, in the same " \
                   f"second; the last of them: {formatEvent(event)}"
            self._log({**event, "log_format": "{text}", "text": text})


def leave_standard_error() -> None:
    """Keep only what is critical on standard error: called once, before a process starts its service.

    Until then Twisted remembers every event, and asks a filter whether it belongs on standard error.  It goes on with
    both for each line of the log unless it is told that logging has begun.
    """
    globalLogBeginner.beginLoggingTo([_critical], discardBuffer=True, redirectStandardIO=False)


@provider(ILogObserver)
def _critical(event: LogEvent) -> None:
    """Show an event on standard error where it is critical."""
    if event.get("log_level") is LogLevel.critical:
        with suppress(OSError, ValueError):  # its disk is full, or it is closed: no reason to tell that it was not told
            sys.stderr.write(f"{eventAsText(event, includeSystem=False, includeTimestamp=False)}\n")


def unwritable(config: Config, name: str, folder: Path, error: OSError) -> ConfigError:
    """The error of a setting whose folder cannot be made or written; LOCAL_DIR's where that alone says where it is."""
    if not config.where(name)[1] and config.where("LOCAL_DIR")[1]:
        name = "LOCAL_DIR"
    return config.unusable(name, f"{folder} cannot be made or written: {error.strerror}",
                           "a folder that its daemons may make and write to")


def start_logging(config: Config, daemon: str, *, suffix: str = "", into: int | None = None,
                  later: Callable[[float, Callable[[], None]], Any] | None = None) -> Callable[[], None]:
    """Send what is logged in this process to its file.

    Args:
        config: see the module.
        daemon: its name, as in the service's name.
        suffix: appended to the file's name (the owner, for a shadow host).
        into: the descriptor of a file that is open already, in place of that one.
        later: as of :class:`Bursts`; by default the reactor's.

    Returns:
        A function that ends it.

    Raises:
        ConfigError: the folder cannot be made or written.
    """
    subsystem = daemon.upper().replace("-", "_")
    own = config.text(f"{subsystem}_LOG")
    path = Path(own) if own else config.path("LOG") / log_name(daemon)
    form = as_json if config.text("LOG_FORMAT") == "json" else Lines()
    max_bytes = config.size(f"MAX_{subsystem}_LOG") or None
    try:
        file: RotatingLog | GivenLog = GivenLog(into, form) if into is not None else RotatingLog(
            path.with_name(path.name + suffix), max_bytes, config.integer(f"MAX_NUM_{subsystem}_LOG"), form)
    except OSError as error:
        raise unwritable(config, f"{subsystem}_LOG" if own else "LOG", path.parent, error) from None
    log = Both(file, JournalLog(daemon)) if config.boolean("LOG_TO_JOURNAL") else file
    everything = config.is_debugged(subsystem)
    bursts = None if everything else Bursts(log, later or _by_reactor)
    observer = Threshold(bursts or log, everything)
    globalLogPublisher.addObserver(observer)

    def stop() -> None:
        globalLogPublisher.removeObserver(observer)
        if bursts is not None:
            bursts.sum_up()
        log.close()

    return stop


def _by_reactor(delay_s: float, function: Callable[[], None]) -> None:
    from twisted.internet import reactor  # noqa: PLC0415 - a process logs before it has chosen its reactor

    reactor.callLater(delay_s, function)
