"""`JobEventLog`: the events of a job event log, as they are written."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.reader import Event, EventReader
from condor_actors.userlog.watch import FALLBACK_S, GrowingFile


class JobEvent(Mapping[str, Any]):
    """One event of one job: a mapping of what the log says of it, by the names that ClassAds use (ReturnValue,
    HoldReason, ExecuteHost …).

    Attributes:
        number: which event; ``type`` is the same as an enumeration.
        cluster, proc: the job.
        text: the event as it stands in the log.
    """

    __slots__ = ("_facts", "_is_xml", "cluster", "number", "proc", "text")

    def __init__(self, event: Event, is_xml: bool) -> None:
        self.number = event.number
        self.cluster = event.cluster
        self.proc = event.proc
        self.text = event.text
        self._is_xml = is_xml
        self._facts: ClassAd | None = None

    @property
    def type(self) -> JobEventType | int:
        """Which event it is; a number where this version has no name for it."""
        try:
            return JobEventType(self.number)
        except ValueError:
            return self.number

    @property
    def ad(self) -> ClassAd:
        """All that the log says of the event."""
        if self._facts is None:
            self._facts = facts_of(Event(self.number, self.cluster, self.proc, 0, self.text), is_xml=self._is_xml)
        return self._facts

    @property
    def timestamp(self) -> int:
        """When, in seconds since 1970; 0: the log does not say."""
        moment = self.ad.get_str("EventTime")
        try:
            return int(time.mktime(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S")))
        except (ValueError, OverflowError):
            return 0

    def __getitem__(self, name: str) -> Any:
        return self.ad[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ad)

    def __len__(self) -> int:
        return len(self.ad)

    def __repr__(self) -> str:
        return f"JobEvent({self.type!r}, {self.cluster}.{self.proc}, timestamp={self.timestamp})"

    def __str__(self) -> str:
        return self.text


class JobEventLog:
    """Follows a job event log; a context manager, an iterator, and an asynchronous one.

    Use::

        with condor.JobEventLog("job.log") as log:
            for event in log:                      # waits for the next one, without end
                ...
            for event in log.events(stop_after=0):  # what is there now
                ...
            async for event in log:                # the same, waiting in asyncio's loop
                ...

    Nobody polls: the kernel tells when the file has grown (inotify).

    Args:
        path: the log; it must exist.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = GrowingFile(os.fspath(path))
        self._reader = EventReader()
        self._ready: deque[JobEvent] = deque()
        self._is_closed = False

    def take(self) -> JobEvent | None:
        """The next event that is there already; None: there is none."""
        if not self._ready and not self._is_closed:
            while data := self._file.read():
                self._ready.extend(JobEvent(event, self._reader.is_xml) for event in self._reader.feed(data))
                if self._ready:
                    break
        return self._ready.popleft() if self._ready else None

    def events(self, stop_after: float | None = None) -> Iterator[JobEvent]:
        """The events, as they come.

        Args:
            stop_after: end when none has come for so many seconds; 0: with those that are there; None: never.
        """
        while not self._is_closed:
            event = self.next(None if stop_after is None else time.monotonic() + stop_after)
            if event is None:
                return
            yield event

    def next(self, deadline_s: float | None) -> JobEvent | None:
        """The next event; None: there was none until a moment of the monotonic clock (None: never)."""
        while True:
            event = self.take()
            if event is not None or self._is_closed or not self._file.wait(deadline_s):
                return event

    def __iter__(self) -> Iterator[JobEvent]:
        return self.events()

    async def __aiter__(self) -> AsyncIterator[JobEvent]:
        import asyncio

        loop = asyncio.get_running_loop()
        grown = asyncio.Event()
        descriptor = self._file.fileno()
        if descriptor is not None:
            loop.add_reader(descriptor, grown.set)
        try:
            while not self._is_closed:
                grown.clear()
                self._file.forget()
                event = self.take()
                if event is not None:
                    yield event
                elif descriptor is not None:
                    await grown.wait()
                else:
                    await asyncio.sleep(FALLBACK_S)
        finally:
            if descriptor is not None:
                loop.remove_reader(descriptor)

    def fileno(self) -> int | None:
        """A descriptor that is readable when the log may have grown; None where the kernel has no watch to give."""
        return self._file.fileno()

    def forget(self) -> None:
        """Take what the kernel has told so far, before `take` looks at the log."""
        self._file.forget()

    def close(self) -> None:
        """End it; what iterates over it ends too."""
        if not self._is_closed:
            self._is_closed = True
            self._ready.clear()
            self._file.close()

    def __enter__(self) -> JobEventLog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
