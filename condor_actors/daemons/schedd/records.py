"""What a schedd writes down for the admin, beside its database: one event log of all jobs, and histories as text.

====================================  ==================================================================
parameter                             gets
====================================  ==================================================================
``EVENT_LOG``                         the events of all users' jobs that the schedd decides or hears of
``HISTORY``, where it is set          the ad of each job that leaves the queue, with HTCondor's banner
``PER_JOB_HISTORY_DIR``               the same, a file ``history.CLUSTER.PROC`` for each job
``JOB_EPOCH_HISTORY``                 the ad of each job whenever a run of it ends (``epochs.py``)
``SCHEDD_DAEMON_HISTORY``             the schedd's own ad, from time to time (there, too)
====================================  ==================================================================

The histories have all of a job's ad, its environment too: they are readable by the account of the schedd alone.

A job is written to the histories behind the transaction in which it leaves the queue, so none is there twice, or with
an end that was taken back; after a crash in between it is missing there.  The database has each once, and is what
``condor_history`` asks.  Whatever cannot be written is reported and stops nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.settings import setting
from condor_actors.cores.schedd.job_notices import RecordEvent
from condor_actors.cores.schedd.queue_operations import ArchiveJob
from condor_actors.daemons.schedd.epochs import daemon_file, epoch_file
from condor_actors.store.record_file import RecordFile
from condor_actors.userlog.event_text import event_text, event_xml

__all__ = ["RecordSettings", "Records", "record_settings"]

NEVER = 1 << 62
FORMAT_OPTIONS = frozenset({"XML", "UTC", "SUB_SECOND", "ISO_DATE"})
"""Of an event log; dates are ISO_DATE in any case."""


@attrs.frozen(kw_only=True)
class RecordSettings:
    """The files; empty: none.  Sizes in bytes; ``…_rotations``: how many that were put aside are kept; ``…_format``:
    those of :data:`FORMAT_OPTIONS` that are wanted; ``daemon_every_s``: how often the schedd's ad is recorded."""

    event_log: str = ""
    event_log_bytes: int = setting("EVENT_LOG_MAX_SIZE")
    event_log_rotations: int = setting("EVENT_LOG_MAX_ROTATIONS")
    event_log_sync: bool = setting("EVENT_LOG_FSYNC")
    event_log_format: frozenset[str] = frozenset()
    history: str = ""
    history_bytes: int = setting("MAX_HISTORY_LOG")
    history_rotations: int = setting("MAX_HISTORY_ROTATIONS")
    per_job: str = ""
    daemon_every_s: float = setting("SCHEDD_HISTORY_RECORD_INTERVAL")


def record_settings(config: Config) -> RecordSettings:
    """Read them; HISTORY counts only where someone set it, for it has a default and the database has all it would."""
    rotates = config.boolean("ENABLE_HISTORY_ROTATION")
    return config.settings(
        RecordSettings, event_log=config.text("EVENT_LOG") or "",
        event_log_bytes=config.size("EVENT_LOG_MAX_SIZE") or NEVER,
        event_log_format=frozenset(word.upper() for word in config.list_of("EVENT_LOG_FORMAT_OPTIONS")),
        history=(config.text("HISTORY") or "") if config.source("HISTORY").file != "<Default>" else "",
        history_bytes=config.size("MAX_HISTORY_LOG") if rotates else NEVER,
        per_job=config.text("PER_JOB_HISTORY_DIR") or "")


def _one_line_each(ad: ClassAd) -> str:
    """The long form of an ad; a value with lines of its own is escaped, so that none of them passes for a record's."""
    text = ad.to_text()
    if text.count("\n") == len(ad):
        return text
    return ad.to_bytes().decode("utf-8", "surrogateescape")


class Records:
    """Writes the event log of all jobs and the text history.

    Without settings it writes nothing.
    """

    def __init__(self, settings: RecordSettings | None = None, wall_clock: Callable[[], float] | None = None,
                 epochs: RecordFile | None = None, daemon: RecordFile | None = None) -> None:
        self.settings = settings or RecordSettings()
        self.epochs = epochs or epoch_file()
        self.daemon = daemon or daemon_file()
        self._wall_clock = wall_clock
        self._log = Logger("condor.schedd")
        self._sick: set[str] = set()

    # ---- events

    def event(self, event: RecordEvent) -> None:
        """Append an event of these jobs to EVENT_LOG."""
        settings = self.settings
        if not settings.event_log:
            return
        facts = ClassAd.from_bytes(event.ad)
        options, procs = settings.event_log_format, range(event.proc, max(event.proc, event.last) + 1)
        if options - FORMAT_OPTIONS and "format" not in self._sick:
            self._sick.add("format")
            self._log.error("EVENT_LOG_FORMAT_OPTIONS: {words} cannot be written; there are {known}",
                            words=", ".join(sorted(options - FORMAT_OPTIONS)), known=", ".join(sorted(FORMAT_OPTIONS)))
        if "XML" in options:
            text = "".join(event_xml(event.event, event.cluster, proc, event.when_s, facts) for proc in procs)
        else:
            text = "".join(event_text(event.event, event.cluster, proc, event.when_s, facts, utc="UTC" in options,
                                      sub_second="SUB_SECOND" in options) for proc in procs)
        self._append(settings.event_log, text, settings.event_log_bytes, settings.event_log_sync, self._put_log_aside)

    def _put_log_aside(self, path: Path) -> None:
        """``LOG.old`` where one is kept, else ``LOG.1`` (the newest), ``LOG.2`` …"""
        kept = self.settings.event_log_rotations
        if kept <= 0:
            path.unlink()
        elif kept == 1:
            path.replace(f"{path}.old")
        else:
            for number in range(kept - 1, 0, -1):
                older = Path(f"{path}.{number}")
                if older.exists():
                    older.replace(f"{path}.{number + 1}")
            path.replace(f"{path}.1")

    # ---- histories

    def archived(self, operations: Sequence[Any]) -> None:
        """Write the jobs that have left the queue."""
        settings = self.settings
        if not settings.history and not settings.per_job:
            return
        for each in operations:
            if isinstance(each, ArchiveJob):
                ad = ClassAd.from_bytes(each.cluster_ad + each.ad)
                text = _one_line_each(ad)
                if settings.history:
                    banner = (f"*** ClusterId = {each.cluster} ProcId = {each.proc} Owner = \"{each.owner}\" "
                              f"CompletionDate = {ad.get_int('CompletionDate')}\n")
                    self._append(settings.history, text + banner, settings.history_bytes, False,
                                 self._put_history_aside, mode=0o600)
                if settings.per_job:
                    self._write_whole(Path(settings.per_job) / f"history.{each.cluster}.{each.proc}", text)

    def _put_history_aside(self, path: Path) -> None:
        """``HISTORY.<date>``, and the oldest of them go."""
        now_s = self._wall_clock() if self._wall_clock is not None else path.stat().st_mtime
        stamp = datetime.fromtimestamp(now_s).strftime("%Y%m%dT%H%M%S")  # noqa: DTZ006 - HTCondor's names are local
        path.replace(f"{path}.{stamp}")
        old = sorted(path.parent.glob(f"{path.name}.2*"))
        for each in old[: max(0, len(old) - self.settings.history_rotations)]:
            each.unlink()

    # ---- files

    def _append(self, name: str, text: str, most_bytes: int, sync: bool, put_aside: Callable[[Path], None], *,
                mode: int = 0o644) -> None:
        data = text.encode("utf-8", "surrogateescape")
        path = Path(name)
        try:
            size = path.stat().st_size if path.exists() else 0
            if size and size + len(data) > most_bytes:
                put_aside(path)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
            try:
                if mode == 0o600:
                    os.fchmod(descriptor, mode)  # one that others made may be open to all
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view):]
                if sync:
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            self._sick.discard(name)
        except OSError as error:
            self._failed(name, error)

    def _write_whole(self, path: Path, text: str) -> None:
        fresh = path.with_name(f".{path.name}.tmp")
        try:
            fresh.unlink(missing_ok=True)
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as stream:
                stream.write(text.encode("utf-8", "surrogateescape"))
            fresh.replace(path)
            self._sick.discard(str(path.parent))
        except OSError as error:
            self._failed(str(path.parent), error)

    def _failed(self, name: str, error: OSError) -> None:
        """Said once until it works again."""
        if name not in self._sick:
            self._sick.add(name)
            self._log.error("{name} cannot be written: {error}", name=name, error=error.strerror or error)
