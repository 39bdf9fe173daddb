"""What changed in the queue and when, for followers who see only what is new to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection

from condor_actors.cores.schedd.queued_job import Job
from condor_actors.numerals import job_numbers, numeral

__all__ = ["CHANGES_A_PAGE", "CHANGES_KEPT", "ChangeJournal", "Position"]

CHANGES_KEPT = 50_000
"""Jobs and clusters whose last change is known."""
CHANGES_A_PAGE = 1_000
"""Jobs in one answer to a follower: some ten milliseconds of the schedd."""


class Position:
    """How far a follower of the queue has come, as his token says.

    ========================  ============================================
    token                     the next answer has
    ========================  ============================================
    ``life/number``           what changed after the number
    ``life/number/12.3``      all jobs after 12.3; afterwards as above
    anything else             all jobs from the first on
    ========================  ============================================
    """

    __slots__ = ("after", "life", "number")

    def __init__(self, life: str, number: int, after: str = "") -> None:
        self.life = life
        self.number = number
        self.after = after

    @classmethod
    def of(cls, token: str) -> Position | None:
        """The position that a token names; None: it is none."""
        life, _, rest = token.partition("/")
        number, _, after = rest.partition("/")
        place = numeral(number)
        if not life or place is None or len(token) > 100 or (after and job_numbers(after) is None):
            return None
        return cls(life, place, after)

    def __str__(self) -> str:
        return f"{self.life}/{self.number}" + (f"/{self.after}" if self.after else "")


class ChangeJournal:
    """The last change of each job and cluster, so that a follower of a hundred thousand jobs pays only for changes.

    Theory: each change of a job or of a cluster's ad gives that job or cluster the next number; the journal keeps for
    each the last number only, in order.  A follower's token names the queue's life (a schedd started again begins
    another one) and the last number that he has seen.  Who is too far behind, or of another life, begins anew.

    Args:
        life: names this life of the queue; no two queues of a schedd have the same.
        kept: the most that are remembered.
    """

    def __init__(self, life: str, kept: int = CHANGES_KEPT) -> None:
        self.life = life
        self.number = 0
        self._kept = kept
        self._floor = 0
        self._last: OrderedDict[tuple[int, int], int] = OrderedDict()

    def note(self, cluster: int, proc: int) -> None:
        """A job, or with -1 the ad of a cluster, has changed, come or gone."""
        self.number += 1
        key = (cluster, proc)
        self._last[key] = self.number
        self._last.move_to_end(key)
        if len(self._last) > self._kept:
            _, self._floor = self._last.popitem(last=False)

    def note_jobs(self, jobs: Collection[Job]) -> None:
        """Several jobs have changed."""
        if len(jobs) >= self._kept:  # nobody's place is left behind so many
            self.number += len(jobs)
            self._floor = self.number
            self._last.clear()
            return
        for job in jobs:
            self.note(job.cluster.number, job.proc)

    def is_known(self, position: Position | None) -> bool:
        """Whether the changes since a position are all here."""
        return position is not None and position.life == self.life and self._floor <= position.number <= self.number

    def since(self, number: int) -> list[tuple[tuple[int, int], int]]:
        """What changed after a number, oldest first, with the numbers."""
        found = []
        for key in reversed(self._last):
            if self._last[key] <= number:
                break
            found.append((key, self._last[key]))
        return found[::-1]
