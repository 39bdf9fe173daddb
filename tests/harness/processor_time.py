"""What each file of tests costs in processor time: that, and not the clock, is what a whole run can save.

Counted are the process of the tests, what it has waited for, and what pools of processes had used when they were
stopped (:meth:`ProcessorTime.add`).
"""

from __future__ import annotations

import os
import resource
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["TIME", "ProcessorTime", "at_most", "of_processes", "table"]

MOST = 20
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class ProcessorTime:
    """Seconds by file, of this process's tests.

    Attributes:
        by_file: what was counted so far.
    """

    def __init__(self) -> None:
        self.by_file: Counter[str] = Counter()
        self._others_s = 0.0

    def add(self, spent_s: float) -> None:
        """What processes used that this one does not wait for."""
        self._others_s += spent_s

    def _now_s(self) -> float:
        own, waited = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return own.ru_utime + own.ru_stime + waited.ru_utime + waited.ru_stime + self._others_s

    @contextmanager
    def of(self, file: str) -> Iterator[None]:
        """Count what is used meanwhile."""
        before_s = self._now_s()
        try:
            yield
        finally:
            self.by_file[file] += self._now_s() - before_s  # type: ignore[assignment]


TIME = ProcessorTime()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End what takes more processor time."""
    def over(*_: object) -> None:
        raise AssertionError(f"it takes more than {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def of_processes(pids: Iterable[int]) -> float:
    """Seconds that living processes used, with what they have waited for."""
    spent_s = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        spent_s += sum(int(field) for field in fields[11:15]) * TICK_S
    return spent_s


def table(by_file: Counter[str]) -> Iterator[str]:
    """The most expensive files and the sum, as lines."""
    whole_s = sum(by_file.values())
    for file, spent_s in by_file.most_common(MOST):
        yield f"{spent_s:8.1f} s {spent_s / whole_s:6.1%}  {file}"
    yield f"{whole_s:8.1f} s in all {len(by_file)} files"
