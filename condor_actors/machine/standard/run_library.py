"""What one run has of the contents that its machine keeps: a shelf to read, and files for what is new."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from condor_actors.machine.standard.library_cache import Content, LibraryCache, shelf_name

__all__ = ["RunLibrary"]

MOST_ROOMS, MOST_STORED_AT_ONCE = 64, 4
"""So often may a run hand over new contents, and so many of these wait for the disk: what it does here is bounded."""


class RunLibrary:
    """The contents that one run has.

    Args:
        cache: of the machine.
        owner: whose shelf it is.
        in_thread: runs a function where it does not hold the reactor up.
        log: hears of what cannot be kept.
    """

    def __init__(self, cache: LibraryCache, owner: str, in_thread: Callable[..., Deferred[Any]], log: Logger) -> None:
        self._cache = cache
        self._name = shelf_name(owner)
        self._in_thread = in_thread
        self._log = log
        self._contents: tuple[Content, ...] = ()
        self._room = -1
        self._rooms = 0
        self._storing = 0

    def open(self) -> dict[str, int]:
        """Descriptors for the runtime, by the words that name them; the caller's to close.  Empty: nothing is kept.

        A shelf that has not been compared with its digests yet is empty for this run.
        """
        if self._cache.limit_bytes <= 0:
            return {}
        opened: list[int] = []
        try:
            lent = self._cache.lend(self._name)
            if lent is None:
                self._cache.turns.run(self._in_thread, self._cache.load, self._name).addErrback(self._told)
            else:
                opened.append(lent[0])
                self._contents = lent[1].contents
            if not opened:
                opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
            opened.append(os.memfd_create("table", os.MFD_CLOEXEC))
            os.write(opened[1], lent[1].table() if lent is not None else b"")
        except OSError as error:
            for descriptor in opened:
                os.close(descriptor)
            self._contents = ()
            self._log.warn("contents of files that are kept here cannot be used: {why}", why=error)
            return {}
        return {"library": opened[0], "table": opened[1]}

    def room(self) -> int:
        """A file for new contents, the caller's to close.

        Raises:
            OSError: there is none.
        """
        self._drop_room()
        if self._rooms == MOST_ROOMS or self._storing == MOST_STORED_AT_ONCE:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._rooms += 1
        self._room = os.memfd_create("contents", os.MFD_CLOEXEC)
        return os.dup(self._room)

    def new(self) -> None:
        """They are in it."""
        room, self._room = self._room, -1
        if room < 0:
            return
        self._storing += 1

        def stored(_: Any) -> None:
            self._storing -= 1
            os.close(room)

        self._cache.turns.run(self._in_thread, self._cache.add, self._name, room).addErrback(self._told).addBoth(stored)

    def used(self, number: int) -> None:
        """The content at that place of the table was used."""
        if 0 <= number < len(self._contents):
            self._cache.note_used(self._contents[number])

    def close(self) -> None:
        """The run is over."""
        self._drop_room()

    def _drop_room(self) -> None:
        if self._room >= 0:
            os.close(self._room)
            self._room = -1

    def _told(self, why: Any) -> None:
        self._log.warn("contents of files cannot be kept here: {why}", why=why.value)
