"""The progress of a copy, shown at a terminal when it takes longer than two seconds."""

from __future__ import annotations

import sys
import time

from condor_actors.tools.printing.terminal import shown, untamed

__all__ = ["CopyProgress"]

PATIENCE_S = 2.0
GAP_S = 0.5


class CopyProgress:
    """A line on standard error that is overwritten; nothing when standard error is not a terminal.

    Args:
        verb: what is done, as in ``sent``.
    """

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._began_s = self._said_s = time.monotonic()
        self._bytes = 0
        self._width = 0
        self._shown = sys.stderr.isatty()

    def add(self, size_bytes: int, name: str) -> None:
        """So much more of a file is there."""
        self._bytes += size_bytes
        now_s = time.monotonic()
        spent_s = now_s - self._began_s
        if not self._shown or spent_s < PATIENCE_S or now_s - self._said_s < GAP_S:
            return
        self._said_s = now_s
        text = f"{self._bytes / 1e6:,.1f} MB {self._verb}, {self._bytes / 1e6 / spent_s:,.1f} MB/s: {name}"[:100]
        untamed(sys.stderr).write(f"\r{shown(text).ljust(self._width)}")
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        """It is over: the line is the next one's."""
        if self._width:
            untamed(sys.stderr).write(f"\r{' ' * self._width}\r")
            sys.stderr.flush()
            self._width = 0
