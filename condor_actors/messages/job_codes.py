"""What a job is and how it stands, as numbers: those that every command about jobs needs, and nothing else loads.

They belong to `condor_actors.messages.codes`, which has them too.

**Source**: the manual's appendix of job ClassAd attributes (``JobStatus``, ``JobUniverse``).
"""

from __future__ import annotations

import enum

__all__ = ["JobStatus", "Universe"]


class JobStatus(enum.IntEnum):
    """The attribute ``JobStatus``."""

    IDLE = 1
    RUNNING = 2
    REMOVED = 3
    COMPLETED = 4
    HELD = 5
    TRANSFERRING_OUTPUT = 6
    SUSPENDED = 7


class Universe(enum.IntEnum):
    """The attribute ``JobUniverse``."""

    STANDARD = 1
    VANILLA = 5
    SCHEDULER = 7
    GRID = 9
    JAVA = 10
    PARALLEL = 11
    LOCAL = 12
    VM = 13
