"""What became of the checkpoints that a command has asked for: the schedd has passed the wish on, and no more.

Theory: the ads of standard-universe jobs have when they were last checkpointed, and when and why they could not be
(LastCkptTime, LastCkptProblem, LastCkptProblemTime).  They are read before the command and, for some seconds, after it;
what has changed is the answer.  The problem is whatever the runtime says.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from condor_actors.classads import ClassAd
from condor_actors.messages.job_codes import JobStatus, Universe
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.contact import Schedd

__all__ = ["PROBLEM_NAMES", "CheckpointOutcome", "standing_problem"]

PATIENCE_S = 10.0
PAUSE_S = 0.25
MOST_JOBS = 100
PROBLEM_NAMES = ("JobUniverse", "LastCkptProblem", "LastCkptProblemTime", "LastCkptTime")
"""What :func:`standing_problem` looks at."""
_NAMES = ("ClusterId", "ProcId", "JobStatus", "NumCkpts", "NumShadowStarts", *PROBLEM_NAMES)
_RUNS = f"JobUniverse == {int(Universe.STANDARD)} && JobStatus == {int(JobStatus.RUNNING)}"

Job = tuple[int, int]


def standing_problem(job: ClassAd) -> str:
    """Why a job could not be checkpointed when that was last tried; empty: it could, or was not."""
    if job.get_int("JobUniverse") != Universe.STANDARD:
        return ""
    since_s = job.get_float("LastCkptProblemTime")
    return job.get_str("LastCkptProblem") if since_s and since_s >= job.get_int("LastCkptTime") else ""


class CheckpointOutcome:
    """Watches the running standard-universe jobs among those that a command is about.

    Args:
        there: their schedd.
        ids, constraint: the jobs, as in ``ActOnJobs``.

    Attributes:
        unheard: the jobs of which nothing was heard while :meth:`problems` waited: theirs take long.
    """

    def __init__(self, there: Schedd, ids: tuple[Job, ...], constraint: str) -> None:
        self._there = there
        self.unheard: list[str] = []
        self._ids = ids
        terms = f"({constraint}) && {_RUNS}" if constraint else _RUNS
        self._before = self._ads(ids, terms)

    def _ads(self, ids: tuple[Job, ...], constraint: str) -> dict[Job, ClassAd]:
        page = self._there.ask(QueryJobs(ids=ids, constraint=constraint, projection=_NAMES, limit=MOST_JOBS))
        ads = [ClassAd.from_bytes(text) for text in page.ads]
        return {(ad.get_int("ClusterId"), ad.get_int("ProcId")): ad for ad in ads}

    def problems(self, concerned: Iterable[Job]) -> list[tuple[str, str]]:
        """Wait until each job was checkpointed, could not be, or runs no more; the jobs with a problem, and which.

        Args:
            concerned: the jobs that the schedd has passed the wish on for.
        """
        wanted = set(concerned)
        waiting = {job: ad for job, ad in self._before.items() if not wanted or job in wanted}
        found: list[tuple[str, str]] = []
        until_s = time.monotonic() + PATIENCE_S
        while waiting and time.monotonic() < until_s:
            time.sleep(PAUSE_S)
            now = self._ads(tuple(waiting), "")
            for job, before in list(waiting.items()):
                ad = now.get(job)
                name = f"{job[0]}.{job[1]}"
                if ad is not None and ad.get_float("LastCkptProblemTime") > before.get_float("LastCkptProblemTime"):
                    found.append((name, ad.get_str("LastCkptProblem")))
                elif ad is not None and ad.get_int("NumCkpts") == before.get_int("NumCkpts") \
                        and ad.get_int("NumShadowStarts") == before.get_int("NumShadowStarts") \
                        and ad.get_int("JobStatus") == JobStatus.RUNNING:
                    continue
                del waiting[job]
        self.unheard = [f"{cluster}.{proc}" for cluster, proc in waiting]
        return found
