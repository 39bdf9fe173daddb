"""Waits until something happens to the daemons of this machine: one listens, or one ends.

Theory: a daemon writes ``$(RUN)/<name>.address`` when it listens, which the kernel tells, as it tells
of the end of a process.  Nothing is looked at between two such events.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from pathlib import Path

from inotify_simple import INotify, flags

__all__ = ["DaemonWatch"]

SEEN = flags.CREATE | flags.MOVED_TO | flags.DELETE | flags.MODIFY


class DaemonWatch:
    """Watches from the moment it is made; what happens between two calls of :meth:`wait` is not missed.

    Args:
        folder: ``$(RUN)``, which need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watched: Path | None = None
        self._inotify = INotify()
        self._processes: dict[int, int] = {}
        self._follow()

    def __enter__(self) -> DaemonWatch:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close everything."""
        self._inotify.close()
        for descriptor in self._processes.values():
            os.close(descriptor)

    def _follow(self) -> bool:
        """Watch the folder, or the nearest one above it that exists; whether that is another one than before."""
        place = self._folder
        while not place.is_dir() and place != place.parent:
            place = place.parent
        if place == self._watched:
            return False
        self._inotify.close()
        self._inotify = INotify()
        self._inotify.add_watch(str(place), SEEN)
        self._watched = place
        return True

    def wait(self, pids: Iterable[int], timeout_s: float) -> None:
        """Return when a daemon may have begun to listen, when one of these processes has ended, or after that time."""
        wanted = set(pids)
        for pid in self._processes.keys() - wanted:
            os.close(self._processes.pop(pid))
        for pid in wanted - self._processes.keys():
            try:
                self._processes[pid] = os.pidfd_open(pid)
            except ProcessLookupError:
                return
        if self._follow():
            return  # something may have happened there before it was watched
        select.select([self._inotify, *self._processes.values()], [], [], max(0.0, timeout_s))
        self._inotify.read(timeout=0)
