"""The standard files of a job that are to be seen at home while it runs (``stream_output``, ``stream_error``).

Theory: a piece of each file is asked home at a time, and what was not acknowledged is sent again, so a link that breaks
loses nothing and a job that writes faster than its home takes costs its starter no memory.  The end of the program is
told when all that it wrote is at home.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import NULL
from condor_actors.messages.envelope import AskFailed, Refused
from condor_actors.messages.run import RunExited, RunProgress

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["OutputStreams"]

STREAM_S = 1.0
PATIENCE_S = 60.0
PIECE_BYTES = 128 * 1024

Piece = tuple[str, int, bytes]
"""Name at home, offset, data."""


class OutputStreams:
    """Writes a job's streamed output to the submit machine as it arrives.

    Args:
        starter: whose run it is.
    """

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self._at: dict[str, tuple[str, int]] = {}
        self._there: set[str] = set()  # names of files that are at home, be they empty
        self._under_way = False
        self._end: RunExited | None = None
        spec, job = starter.spec, ClassAd.from_bytes(starter.job_ad)
        if spec.transfers and spec.stream_stdout and spec.stdout != NULL:
            self._at[spec.stdout] = (job.get_str("Out"), 0)
        if spec.transfers and spec.stream_stderr and spec.stderr not in (NULL, spec.stdout):
            self._at[spec.stderr] = (job.get_str("Err"), 0)

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths in the sandbox."""
        return tuple(self._at)

    @property
    def bytes_home(self) -> int:
        """How much has arrived."""
        return sum(offset for _, offset in self._at.values())

    def go_on_later(self) -> None:
        """Look again soon, while there may be more to send."""
        if self._at and (self._end is not None or self._starter.core.state in (jr.StarterState.STARTING, *jr.ALIVE)):
            self._starter.context.set_timer("stream", STREAM_S)

    def finish(self, end: RunExited) -> None:
        """The program has ended: say so when all is at home."""
        self._end = end
        self.go_on()

    def give_up(self) -> None:
        """Nobody wants the rest: say the end now, where it waits to be said."""
        end, self._end = self._end, None
        if end is not None and self._starter.core.connected:
            self._starter.context.tell(self._starter.shadow, end)

    def go_on(self) -> None:
        """Send the next pieces."""
        starter = self._starter
        if self._under_way or not starter.core.connected:
            self.go_on_later()
            return
        pieces = self._pieces()
        if pieces:
            self._under_way = True
            progress = RunProgress(run_id=starter.run_id, usage=starter.core.usage, streams=pieces)
            starter.context.ask(starter.shadow, progress, timeout_s=PATIENCE_S,
                                then=lambda answer: self._answered(pieces, answer.message))
        elif self._end is not None:
            self.give_up()
        else:
            self.go_on_later()

    def _pieces(self) -> tuple[Piece, ...]:
        """Of each file what was written since the last that is at home, up to a piece; at first also nothing."""
        pieces = []
        for path, (name, offset) in self._at.items():
            with contextlib.suppress(OSError, ValueError):
                assert self._starter.sandbox is not None
                _, data, _ = self._starter.sandbox.read(path, offset, PIECE_BYTES)
                if data or name not in self._there:
                    pieces.append((name, offset, data))
        return tuple(pieces)

    def _answered(self, pieces: Sequence[Piece], answer: Any) -> None:
        self._under_way = False
        if isinstance(answer, Refused) and answer.code != "busy":
            self.give_up()
            self.go_on_later()
        elif isinstance(answer, (AskFailed, Refused)):
            self.go_on_later()
        else:
            self._there.update(name for name, _, _ in pieces)
            ends = {name: offset + len(data) for name, offset, data in pieces}
            self._at = {path: (name, ends.get(name, offset)) for path, (name, offset) in self._at.items()}
            if self._end is not None or any(len(data) == PIECE_BYTES for _, _, data in pieces):
                self.go_on()
            else:
                self.go_on_later()
