"""``JobEventLog`` and ``JobEvent``."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

from condor_actors.api import event_log
from condor_actors.compat.classad2 import ClassAd, wrapped
from condor_actors.compat.errors import HTCondorException
from condor_actors.compat.htcondor2.enums import JobEventType


class JobEvent(Mapping[str, Any]):
    """An event: a mapping of what the log says of it."""

    def __init__(self, data: ClassAd, event_text: str) -> None:
        self._data = data
        self._event_text = event_text

    @property
    def type(self) -> JobEventType:
        """Which event it is."""
        return JobEventType(self._data["EventTypeNumber"])

    @property
    def cluster(self) -> int:
        """The job's cluster, -1 where there is none."""
        return int(self._data.get("Cluster", -1))

    @property
    def proc(self) -> int:
        """The job's number in it, -1 where there is none."""
        return int(self._data.get("Proc", -1))

    @property
    def timestamp(self) -> int:
        """When, in seconds since 1970."""
        return int(time.mktime(time.strptime(self._data["EventTime"][:19], "%Y-%m-%dT%H:%M:%S")))

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"JobEvent(type={self.type:d}, cluster={self.cluster}, proc={self.proc}, timestamp={self.timestamp})"

    def __str__(self) -> str:
        return self._event_text


class JobEventLog:
    """The events of a log, waited for or not; a pickled one goes on where it was."""

    def __init__(self, filename: str) -> None:
        if not isinstance(filename, str):
            raise TypeError("filename must be a string")
        if not filename:
            raise ValueError("filename must not be empty")
        self._filename = filename
        self._deadline: float | None = None
        self._taken = 0
        self._open()

    def _open(self) -> None:
        try:
            self._log: event_log.JobEventLog | None = event_log.JobEventLog(self._filename)
        except OSError as error:
            raise HTCondorException(
                f"Could not initialize JobEventLog: {os.strerror(error.errno or 0)}: '{self._filename}'.") from error

    def events(self, stop_after: int | None = None) -> JobEventLog:
        """The same log, which waits so many seconds in all for its next events (None: without end)."""
        if stop_after is not None and not isinstance(stop_after, int):
            raise TypeError("deadline must be an integer")
        self._deadline = None if stop_after is None else time.monotonic() + stop_after
        return self

    def close(self) -> None:
        """End it."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def __iter__(self) -> JobEventLog:
        return self

    def __next__(self) -> JobEvent:
        if self._log is None:
            raise StopIteration
        event = self._log.next(self._deadline)
        if event is None:
            raise StopIteration
        self._taken += 1
        return JobEvent(wrapped(event.ad), event.text.removesuffix("...\n"))

    def __enter__(self) -> JobEventLog:
        self._deadline = None
        return self

    def __exit__(self, exceptionType: Any, exceptionValue: Any, traceback: Any) -> None:
        self.close()

    def __getstate__(self) -> tuple[str, int]:
        return self._filename, self._taken

    def __setstate__(self, state: tuple[str, int]) -> None:
        self._filename, self._taken = state
        self._deadline = None
        self._open()
        for _ in range(self._taken):
            if self._log is not None:
                self._log.take()
