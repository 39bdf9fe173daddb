"""Each process writes ``$(LOG)/<Name>Log``: one event a line, put aside when it has grown.

``<SUBSYS>_LOG`` names another file, ``MAX_<SUBSYS>_LOG`` and ``MAX_NUM_<SUBSYS>_LOG`` say when it is put aside and how
many are kept, ``LOG_FORMAT = json`` makes each line a JSON object with the event's fields, and ``D_FULLDEBUG`` in
``ALL_DEBUG``, ``<SUBSYS>_DEBUG`` or ``DEFAULT_DEBUG`` tells everything. Twisted's own remarks on sockets that open and
close are left to that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    eventAsText,
    formatEvent,
    globalLogPublisher,
)
from twisted.python.logfile import LogFile
from zope.interface import implementer

from condor_actors.config import Config

PLUMBING = ("twisted", "log_legacy", "condor.wire")
"""Loggers of these names and below tell of sockets that open and close: for debugging."""


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
        self._file = LogFile(path.name, str(path.parent), rotateLength=max_bytes, maxRotatedFiles=max(keep, 1))

    def __call__(self, event: LogEvent) -> None:
        """One event; a log that cannot be written must not stop the daemon."""
        try:
            self._file.write(self._form(event) + "\n")
        except OSError:
            return

    def close(self) -> None:
        """End the file."""
        self._file.close()


def as_line(event: LogEvent) -> str:
    """``MM/DD/YY hh:mm:ss text``, the form that HTCondor's administrators search."""
    stamp = datetime.fromtimestamp(event.get("log_time", 0.0)).strftime("%m/%d/%y %H:%M:%S")
    level = event.get("log_level", LogLevel.info)
    word = {LogLevel.warn: "WARNING: ", LogLevel.error: "ERROR: ", LogLevel.critical: "ERROR: "}.get(level, "")
    return f"{stamp} {word}{eventAsText(event, includeSystem=False, includeTimestamp=False)}"


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

    def __call__(self, event: LogEvent) -> None:
        """One event; a log that cannot be written must not stop the process."""
        with suppress(OSError):
            os.write(self._descriptor, f"{self._form(event)}\n".encode(errors="replace"))

    def close(self) -> None:
        """Nothing: it is the process's standard error as well."""


def start_logging(config: Config, daemon: str, *, suffix: str = "", into: int | None = None) -> Callable[[], None]:
    """Send what is logged in this process to its file.

    Args:
        config: see the module.
        daemon: its name, as in the service's name.
        suffix: appended to the file's name (the owner, for a shadow host).
        into: the descriptor of a file that is open already, in place of that one.

    Returns:
        A function that ends it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    subsystem = daemon.upper().replace("-", "_")
    own = config.text(f"{subsystem}_LOG")
    path = Path(own) if own else config.path("LOG") / log_name(daemon)
    form = as_json if config.text("LOG_FORMAT") == "json" else as_line
    max_bytes = config.size(f"MAX_{subsystem}_LOG") or None
    log: RotatingLog | GivenLog = GivenLog(into, form) if into is not None else RotatingLog(
        path.with_name(path.name + suffix), max_bytes, config.integer(f"MAX_NUM_{subsystem}_LOG"), form)
    everything = config.is_debugged(subsystem)
    levels = LogLevelFilterPredicate(defaultLogLevel=LogLevel.debug if everything else LogLevel.info)
    if not everything:
        for name in PLUMBING:
            levels.setLogLevelForNamespace(name, LogLevel.warn)
    observer = FilteringLogObserver(log, [levels])
    globalLogPublisher.addObserver(observer)

    def stop() -> None:
        globalLogPublisher.removeObserver(observer)
        log.close()

    return stop
