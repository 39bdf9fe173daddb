"""What the parts of a workflow's nodes come to, in a simulation: known beforehand, and always the same."""

from __future__ import annotations

from random import Random

__all__ = ["MENDED", "Outcomes"]

MENDED = 3
"""From this run of a workflow on, nothing fails: its user has mended it."""
DEFERRED = 9


class Outcomes:
    """Of one workflow.

    Args:
        seed: says everything.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _chance(self, *what: object) -> Random:
        return Random(f"{self._seed}/{what}")

    def status(self, run: int, node: str, attempt: int, part: str) -> int:
        """The exit status of a part: ``pre``, ``post``, ``job0`` …; mostly 0."""
        if run >= MENDED:
            return 0
        return self._chance(run, node, attempt, part).choice((0, 0, 0, 0, 0, 0, 1, 3))

    def jobs(self, node: str) -> int:
        """How many jobs a node has."""
        return self._chance(node, "jobs").choice((1, 1, 1, 3))

    def is_late(self, node: str) -> bool:
        """Whether they are made as they are needed."""
        return self._chance(node, "late").random() < 0.3

    def cpu_s(self, node: str, proc: int) -> float:
        """How long one of them computes."""
        return round(self._chance(node, proc, "cpu").uniform(2.0, 90.0), 3)

    def script_s(self, node: str, attempt: int, which: str) -> float:
        """How long a script takes."""
        return self._chance(node, attempt, which, "time").uniform(0.1, 8.0)
