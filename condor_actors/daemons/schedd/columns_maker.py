"""Starts the process that makes columns of the history, when a piece of it is full.

Theory: making the columns of a piece takes some tenths of a second of the processor and must not stop the queue, so it
is another process's, with what processor time others leave.  Whether one is needed costs the reactor a look for the
newest entry; the rest (which files are missing) a thread looks for, which then waits for the process.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from twisted.logger import Logger

from condor_actors.store.history_columns import FOLDER, PIECE_JOBS

__all__ = ["ColumnsMaker"]

LONGEST_S = 900.0
"""After which a process that makes columns is killed: it takes seconds, but gets only what others leave."""

LOOKS = 60
"""After so many looks the files are gone through though nothing has changed: one may have been damaged, and removed."""

Start = Callable[[Callable[[], None]], None]


def beside(work: Callable[[], None]) -> None:
    """Run it on a thread that keeps no process from ending."""
    threading.Thread(target=work, name="history-columns", daemon=True).start()


class ColumnsMaker:
    """Has the columns of full pieces made, one process at a time.

    Args:
        spool: where the job queue is.
        percent: HISTORY_COLUMNS_PERCENT.
        log: of the daemon.
        start: runs work beside the reactor.
    """

    def __init__(self, spool: Path, percent: int, log: Logger, start: Start = beside) -> None:
        self._spool = spool
        self.percent = percent
        self._log = log
        self._start = start
        self._works = False
        self._looks = 0
        self._seen: tuple[int, int, int] | None = None

    def look(self, first: int, last: int) -> None:
        """Have made what is missing.

        Args:
            first: the oldest entry of the history; last: the newest.
        """
        now = ((first - 1) // PIECE_JOBS, last // PIECE_JOBS, self.percent)
        self._looks += 1
        is_short = last < PIECE_JOBS and not (self._spool / FOLDER).exists()
        if is_short or self._works or (now == self._seen and self._looks < LOOKS):
            return
        self._looks = 0
        self._works = True

        def work() -> None:
            try:
                is_done = self._made()
                self._seen = now if is_done else None
            finally:
                self._works = False

        self._start(work)

    def _made(self) -> bool:
        """Make a lot of them; whether that was all, or cannot be done."""
        words = [sys.executable, "-P", "-m", "condor_actors.store.history_columns", str(self._spool), str(self.percent)]
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_S,  # noqa: S603
                                  check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._log.warn("columns of the history cannot be made, totals of it take longer: {why}", why=error)
            return True
        if done.returncode:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            self._log.warn("columns of the history cannot be made, totals of it take longer: {why}",
                           why=lines[-1] if lines else f"exit status {done.returncode}")
            return True
        return done.stdout.strip() == b"0"
