"""What ended jobs asked for and did not use: the one line that lets more of the next ones run.

Theory: a request is what others cannot have.  The advice is the most that any of the jobs used, and a third of that on
top, so that a job that is a little larger than the others is not put on hold for it.
"""

from __future__ import annotations

import math

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.words import counted, listed

__all__ = ["Requests", "advice_for"]

MARGIN = 1.3
LEAST_GAIN = 2
"""So many times as many jobs fit, at least, or nothing is said."""
LEAST_MEMORY_MIB = 512
"""Smaller requests keep nothing else out."""
LEAST_WALL_S = 10.0
"""What a program of less time keeps busy says little about how many processors it can use."""


@attrs.define
class Requests:
    """What the ended jobs of a cluster asked for, and the most that one of them used.

    Attributes:
        jobs: whose use of memory is known.
        memory_mib, used_memory_mib: asked for (the smallest request), and used.
        timed_jobs: whose use of processors is known.
        cpus, used_cpus: asked for (the smallest request), and kept busy.
    """

    jobs: int = 0
    memory_mib: int = 0
    used_memory_mib: int = 0
    timed_jobs: int = 0
    cpus: int = 0
    used_cpus: float = 0.0

    def take(self, ad: ClassAd, wall_s: float) -> None:
        """Count a job that ended by itself.

        Args:
            ad: the job's ad, or the facts of the event of its end: MemoryUsage and RequestMemory (MiB), CpusUsage and
                RequestCpus.
            wall_s: how long it ran.
        """
        asked, used = (_amount(ad, name) for name in ("RequestMemory", "MemoryUsage"))
        if asked > 0 and used > 0:
            self.memory_mib = int(min(asked, self.memory_mib if self.jobs else asked))
            self.used_memory_mib = max(self.used_memory_mib, math.ceil(used))
            self.jobs += 1
        asked, used = (_amount(ad, name) for name in ("RequestCpus", "CpusUsage"))
        if asked > 0 and used > 0 and wall_s >= LEAST_WALL_S:
            self.cpus = int(min(asked, self.cpus if self.timed_jobs else asked))
            self.used_cpus = max(self.used_cpus, used)
            self.timed_jobs += 1

    def advice(self) -> str:
        """The line, without a full stop or a subject; empty: the requests suit."""
        parts, changes, gains = [], [], []
        enough_mib = _rounded_mib(self.used_memory_mib * MARGIN)
        if self.memory_mib >= max(LEAST_MEMORY_MIB, LEAST_GAIN * enough_mib):
            parts.append(f"{_memory(self.memory_mib)} and used {_memory(self.used_memory_mib)}")
            changes.append(f"request_memory = {_memory(enough_mib).replace(' ', '')}")
            gains.append(self.memory_mib // enough_mib)
        enough = max(1, math.ceil(self.used_cpus - 0.1))
        if self.cpus >= LEAST_GAIN * enough:
            parts.append(f"{counted(self.cpus, 'processor')} and kept {self.used_cpus:.1f} busy")
            changes.append(f"request_cpus = {enough}")
            gains.append(self.cpus // enough)
        if not parts:
            return ""
        most = " at most" if max(self.jobs, self.timed_jobs) > 1 else ""
        return (f"asked for {', for '.join(parts)}{most}; {listed(changes)} would have let up to {min(gains)} times as "
                "many run at a time")


def advice_for(ad: ClassAd) -> str:
    """What one ended job asked for and did not use, as a sentence; empty: nothing."""
    requests = Requests()
    requests.take(ad, ad.get_float("RemoteWallClockTime"))
    said = requests.advice()
    return f"It {said}." if said else ""


def _amount(ad: ClassAd, name: str) -> float:
    value = ad.get_float(name)
    return value if 0.0 < value < 1e15 else 0.0


def _rounded_mib(mib: float) -> int:
    """Up to what people write: a multiple of 64 MiB, above a GiB of a tenth of one."""
    step = 64 if mib <= 1024 else 1024 / 10
    return max(128, math.ceil(math.ceil(mib / step) * step))


def _memory(mib: int) -> str:
    return f"{mib} MB" if mib < 1024 else f"{mib / 1024:.1f} GB".replace(".0 ", " ")
