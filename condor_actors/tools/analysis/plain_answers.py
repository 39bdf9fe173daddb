"""What condor_q -better-analyze and condor_status -why ask of the pool for their answers in plain words.

A daemon that does not answer leaves a gap: an incomplete explanation is better than none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.estimate import estimate
from condor_actors.cores.answers.held import why_it_is_held
from condor_actors.cores.answers.machine import why_it_does_nothing
from condor_actors.cores.answers.moves import run_ends, why_it_moves
from condor_actors.cores.answers.waiting import PoolFacts, why_it_waits
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.negotiate import QueryTrace
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.watch import QueryStory
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import NEGOTIATOR, Schedd, negotiator, query, schedd
from condor_actors.wire.blocking import WireError

if TYPE_CHECKING:
    from condor_actors.config import Config

__all__ = ["JobAnswers", "machine_answer"]

CASES = 600
"""Jobs of the history that an estimate is made from, at most; as many that wait."""
KINDS = 200
"""Waiting jobs of a schedd that are tried on a machine."""
_CASE = ("QDate", "JobStartDate", "DeferralTime", "NumHolds", "JobUniverse", "AccountingGroup", "User", "RequestCpus",
         "RequestMemory", "RequestGPUs")


class JobAnswers:
    """Answers about jobs of one schedd.

    Args:
        config: of the pool.
        there: the schedd; None: the jobs come from a file.
        pool: another pool's collector.
        slots: the ads of all slots, as :class:`PoolFacts` wants them.
    """

    def __init__(self, config: Config, there: Schedd | None, pool: str, slots: Sequence[ClassAd]) -> None:
        self._config = config
        self._there = there
        self._pool = pool
        self._slots = slots
        self._now_s = time.time()

    def paragraph(self, job: ClassAd) -> str:
        """Why a job does not run, or does not get on; empty: there is nothing to say."""
        status = job.get_int("JobStatus")
        if status == JobStatus.HELD:
            return why_it_is_held(job, self._now_s)
        said = []
        if status == JobStatus.IDLE:
            facts = PoolFacts(slots=self._slots, trace=self._trace(job), priorities=self._priorities, now_s=self._now_s,
                              cycle_s=self._config.seconds("NEGOTIATOR_INTERVAL"))
            said.append(why_it_waits(job, facts))
            guess = estimate(job, self._cases, self._now_s)
            if guess is not None:
                said.append(guess.text())
        if status in (JobStatus.IDLE, JobStatus.RUNNING, JobStatus.SUSPENDED) and job.get_int("NumShadowStarts") > 1:
            said.append(self._moves(job))
        return " ".join(text for text in said if text)

    def _trace(self, job: ClassAd) -> ClassAd | None:
        """The negotiator's last word on the job's request."""
        if self._there is None:
            return None
        name = f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}"
        submitter = job.get_str("AccountingGroup") or job.get_str("User")
        with suppress(ToolError, WireError), negotiator(self._config, pool=self._pool) as client:
            page = client.ask(NEGOTIATOR, QueryTrace(submitter=submitter, job_id=name))
            ads = [ClassAd.from_bytes(text) for text in page.ads]
            here = [ad for ad in ads if self._there is None or ad.get_str("ScheddName") == self._there.name] or ads
            return next((ad for ad in here if ad.get_str("JobId") == name), here[0] if len(here) == 1 else None)
        return None

    @cached_property
    def _priorities(self) -> dict[str, float]:
        with suppress(ToolError):
            ads = query(self._config, AdKind.ACCOUNTING, "", ("Name", "Priority"), pool=self._pool)
            return {ad.get_str("Name"): ad.get_float("Priority") for ad in ads if ad.get_float("Priority") > 0}
        return {}

    @cached_property
    def _cases(self) -> list[ClassAd]:
        """Jobs to compare with: those that have begun lately, and those that wait."""
        if self._there is None:
            return []
        found: list[ClassAd] = []
        idle = f"JobStatus == {int(JobStatus.IDLE)} && NumShadowStarts =?= 0"
        for source, constraint in (("history", ""), ("queue", "JobStartDate > 0"), ("queue", idle)):
            with suppress(WireError):
                page = self._there.ask(QueryJobs(source=source, constraint=constraint, projection=_CASE, limit=CASES))
                found += [ClassAd.from_bytes(text) for text in page.ads]
        return found

    def _moves(self, job: ClassAd) -> str:
        if self._there is None:
            return ""
        with suppress(WireError):
            story = self._there.ask(QueryStory(cluster=job.get_int("ClusterId"), proc=job.get_int("ProcId")))
            return why_it_moves(run_ends(story.lines), self._now_s)
        return ""


def machine_answer(config: Config, slots: Sequence[ClassAd], pool: str = "") -> str:
    """Why a machine runs nothing, or no more than it does.

    Args:
        slots: the ads of all its slots.
        pool: another pool's collector.
    """
    in_all, jobs = 0, []
    for ad in query(config, AdKind.SCHEDD, "", ("Name", "TotalIdleJobs"), pool=pool):
        idle = ad.get_int("TotalIdleJobs")
        in_all += idle
        if not idle:
            continue
        with suppress(ToolError, WireError), schedd(config, name=ad.get_str("Name"), pool=pool) as there:
            page = there.ask(QueryJobs(source="queue", constraint=f"JobStatus == {int(JobStatus.IDLE)}", limit=KINDS))
            kinds: dict[object, ClassAd] = {}
            for text in page.ads:
                job = ClassAd.from_bytes(text)
                kinds.setdefault(job.evaluate("AutoClusterId") or job.get_int("ClusterId"), job)
            jobs += list(kinds.values())
    return why_it_does_nothing(slots, jobs, in_all, time.time())
