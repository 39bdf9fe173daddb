"""Pieces of a running job's output and error, written at home as they come."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer
from condor_actors.daemons.shadow.output_files import OutputPlaces, write_pieces
from condor_actors.messages.envelope import Delivery, Done, Refused

if TYPE_CHECKING:
    from condor_actors.daemons.shadow.shadow import Shadow

__all__ = ["StreamWriter"]


class StreamWriter:
    """Writes the streams of one run, piece after piece, each by a worker."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow
        self._waiting: deque[tuple[Sequence[tuple[str, int, bytes]], Delivery]] = deque()
        self._afterwards: Callable[[], None] | None = None
        self._no_room = False

    def write(self, pieces: Sequence[tuple[str, int, bytes]], delivery: Delivery) -> None:
        """Write what came, after what came before, and then answer: what finds no room is sent again."""
        self._waiting.append((pieces, delivery))
        if len(self._waiting) == 1:
            self._write_next()

    def when_written(self, function: Callable[[], None]) -> None:
        """Call it when nothing waits any more: at once, or at the end of the turn that writes the last piece."""
        if self._waiting:
            self._afterwards = function
        else:
            function()

    def _write_next(self) -> None:
        pieces, delivery = self._waiting[0]
        work = self._shadow.edges.in_thread(write_pieces, OutputPlaces(self._shadow.core.job), pieces)
        self._shadow.context.defer_to_turn(work, lambda result: self._written(result, delivery))

    def _written(self, result: Any, delivery: Delivery) -> None:
        """The starter may send the next piece, or has to send this one again."""
        if isinstance(result, Failure):
            result.trap(NoAnswer)
            error: Any = result.value
            result = [(error.filename, error)]
        had_none, self._no_room = self._no_room, False
        for path, error in result:
            full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
            self._no_room |= full
            if not (full and had_none):
                self._shadow.context.log.error("stream {path} of {run}: {error}", path=path,
                                               run=self._shadow.core.order.run_id, error=error)
        self._shadow.context.reply(delivery, Refused(code="busy", text="no room at home") if self._no_room else Done())
        self._waiting.popleft()
        if self._waiting:
            self._write_next()
        elif self._afterwards is not None:
            function, self._afterwards = self._afterwards, None
            function()
