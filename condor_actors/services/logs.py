"""Each process writes ``$(LOG)/<Name>Log``: one line an event, rotated by size (``MAX_DEFAULT_LOG`` and its kin)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from twisted.logger import (
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    LogLevelFilterPredicate,
    eventAsText,
    globalLogPublisher,
)
from twisted.python.logfile import LogFile
from zope.interface import implementer

from condor_actors.config import Config


@implementer(ILogObserver)
class RotatingLog:
    """Writes events as ``MM/DD/YY hh:mm:ss text`` (the form that HTCondor's admins grep) to a rotating file."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LogFile(path.name, str(path.parent), rotateLength=max_bytes, maxRotatedFiles=keep)

    def __call__(self, event: LogEvent) -> None:
        """One event; a log that cannot be written must not stop the daemon."""
        text = eventAsText(event, includeSystem=False, includeTimestamp=True)
        try:
            self._file.write(text + "\n")
        except OSError:
            return

    def close(self) -> None:
        """End the file."""
        self._file.close()


def log_name(daemon: str) -> str:
    """``schedd`` → ``ScheddLog``, ``shadow-host`` → ``ShadowHostLog``."""
    return "".join(part.capitalize() for part in daemon.split("-")) + "Log"


def start_logging(config: Config, daemon: str, *, suffix: str = "") -> Callable[[], None]:
    """Send what is logged in this process to its file.

    Args:
        config: ``LOG``, ``MAX_DEFAULT_LOG``, ``MAX_NUM_DEFAULT_LOG``, ``DEFAULT_DEBUG``.
        daemon: its name, as in the service's name.
        suffix: appended to the file's name (the owner, for a shadow host).

    Returns:
        A function that ends it.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder = Path(config.text("LOG") or "log")
    log = RotatingLog(folder / (log_name(daemon) + suffix), config.integer("MAX_DEFAULT_LOG"),
                      config.integer("MAX_NUM_DEFAULT_LOG"))
    debug = "D_FULLDEBUG" in (config.text("DEFAULT_DEBUG") or "").upper()
    level = LogLevel.debug if debug else LogLevel.info
    observer = FilteringLogObserver(log, [LogLevelFilterPredicate(defaultLogLevel=level)])
    globalLogPublisher.addObserver(observer)

    def stop() -> None:
        globalLogPublisher.removeObserver(observer)
        log.close()

    return stop

