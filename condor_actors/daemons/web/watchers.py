"""Open pages: what has changed is pushed to them as server-sent events.

Theory: an event is encoded only once, for all pages.  A page that reads more slowly than things happen is not sent more
into its buffer: when it has read what is there, it gets everything anew (``begin``), which is what a new page gets
first; so nobody's slowness costs memory, and no page misses something without knowing.  One that reads nothing for
:data:`PATIENCE_S` is let go; its browser comes back.

=========  =========================================================================================
event      data
=========  =========================================================================================
begin      all slots (``slots``), and a summary
slots      ``changed`` slots and the names of those ``gone``
summary    counts of slots and jobs, the version of the queue, what is in the way
=========  =========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IPushProducer, IReactorTime
from zope.interface import implementer

from condor_actors.daemons.web.door import LATER, refuse

__all__ = ["Watchers", "event"]

PATIENCE_S = 60.0
HEARTBEAT_S = 15.0
RETRY_MS = 3000


def event(name: str, data: dict[str, Any]) -> bytes:
    """An event as it is sent."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(data, separators=(",", ":")).encode())


@implementer(IPushProducer)
class Watcher:
    """One open page."""

    def __init__(self, request: Any, watchers: Watchers) -> None:
        self._request = request
        self._watchers = watchers
        self.is_behind = False
        self.paused_s: float | None = None

    def send(self, data: bytes) -> None:
        """Send it, unless the page is still busy with the last one."""
        if self.paused_s is not None:
            self.is_behind = True
            return
        self._request.write(data)

    def pauseProducing(self) -> None:  # noqa: N802 - Twisted's name
        """Its buffer is full."""
        if self.paused_s is None:
            self.paused_s = self._watchers.clock.seconds()

    def resumeProducing(self) -> None:  # noqa: N802 - Twisted's name
        """It has read what was there."""
        self.paused_s = None
        if self.is_behind:
            self.is_behind = False
            self.send(self._watchers.beginning())

    def stopProducing(self) -> None:  # noqa: N802 - Twisted's name
        """It is gone; ``notifyFinish`` tells."""

    def drop(self) -> None:
        """End the connection at once."""
        channel = self._request.channel
        if channel is not None and channel.transport is not None:
            channel.transport.abortConnection()


class Watchers:
    """All open pages.

    Args:
        clock: the reactor.
        beginning: the event that a page gets first.
        most: how many there may be.
        came: called when one has come.
    """

    def __init__(self, clock: IReactorTime, beginning: Callable[[], bytes], most: Callable[[], int],
                 came: Callable[[], None]) -> None:
        self.clock = clock
        self._beginning = beginning
        self._most = most
        self._came = came
        self._open: dict[Any, Watcher] = {}
        self._encoded: bytes | None = None
        self._beat: Any = None

    def __len__(self) -> int:
        return len(self._open)

    def beginning(self) -> bytes:
        """The event that a page gets first; made only once for pages that come at the same time."""
        if self._encoded is None:
            self._encoded = self._beginning()
        return self._encoded

    def publish(self, name: str, data: dict[str, Any]) -> None:
        """Tell all pages."""
        self._encoded = None
        if self._open:
            encoded = event(name, data)
            for each in list(self._open.values()):
                each.send(encoded)

    def render(self, request: Any) -> Any:
        """A page comes."""
        if len(self._open) >= self._most():
            request.setHeader(b"retry-after", b"60")
            return refuse(request, 503, "as many pages are open as WEB_MAX_WATCHERS allows; try again in a minute")
        request.setHeader(b"content-type", b"text/event-stream")
        request.setHeader(b"cache-control", b"no-store")
        if request.method == b"HEAD":
            return b""
        watcher = Watcher(request, self)
        self._open[request] = watcher
        request.notifyFinish().addBoth(lambda _: self._open.pop(request, None))
        request.registerProducer(watcher, True)
        watcher.send(b"retry: %d\n\n" % RETRY_MS)
        watcher.send(self.beginning())
        if self._beat is None:
            self._beat = self.clock.callLater(HEARTBEAT_S, self._look)
        self._came()
        return LATER

    def stop(self) -> None:
        """End all of it."""
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None
        for each in list(self._open.values()):
            each.drop()

    def _look(self) -> None:
        """A sign of life for all pages; those that have read nothing for long are let go."""
        self._beat = self.clock.callLater(HEARTBEAT_S, self._look) if self._open else None
        for each in list(self._open.values()):
            if each.paused_s is not None and self.clock.seconds() >= each.paused_s + PATIENCE_S:
                each.drop()
            elif each.paused_s is None:
                each.send(b": still here\n\n")
