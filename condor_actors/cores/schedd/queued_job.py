"""A job of the queue, and the cluster whose attributes it shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.charging import CHARGED_TO, is_charged_apart
from condor_actors.cores.schedd.factories.factory import Factory
from condor_actors.messages.codes import JobStatus

__all__ = ["Cluster", "Counts", "FEW_JOBS", "Job", "SPARSE", "own_text"]

FEW_JOBS = 1_000
"""Jobs of a cluster that are looked through for those after one of them; of more, the numbers are counted up."""
SPARSE = 16
"""Where fewer than one in so many jobs of a cluster is left, they are looked through too."""
Counts = list[int]
"""Number of jobs per JobStatus; index 0 is unused."""


def own_text(ad: ClassAd) -> bytes:
    """The wire text of what an ad has itself, without what it shows from its parent."""
    if ad.parent is None:
        return ad.to_bytes()
    view = ClassAd()
    view.own = ad.own
    view.spellings = ad.spellings
    return view.to_bytes()


class Cluster:
    """What the jobs of one submission share.

    Attributes:
        number: the ClusterId.
        owner: the user (without domain) whose jobs these are; user: ``owner@uid.domain``.
        ad: the common attributes.
        jobs: by ProcId, those still in the queue.
        total: procs ever submitted.
        version: goes up with each edit of the ad.
        counts: of its jobs in the queue.
        apart: how many of these jobs say for themselves whom they are charged to.
        factory: how far it is when its jobs are made as they are needed; None: all are made.
        memo: facts derived from the ad (policies, autocluster keys); emptied when it changes.
    """

    __slots__ = ("_text", "ad", "apart", "counts", "factory", "jobs", "memo", "number", "owner", "submitter",
                 "total", "user", "version")

    def __init__(self, number: int, owner: str, ad: ClassAd, total: int = 0, version: int = 1) -> None:
        self.number = number
        self.owner = owner
        self.ad = ad
        self.user = ad.get_str("User", owner)
        self.submitter = self.submitter_by_ad()
        self.jobs: dict[int, Job] = {}
        self.total = total
        self.version = version
        self.counts: Counts = [0] * 8
        self.apart = 0
        self.factory: Factory | None = None
        self.memo: dict[Any, Any] = {}
        self._text: bytes | None = None

    def submitter_by_ad(self) -> str:
        """Whom the jobs are charged to, as the ad says now."""
        return self.submitter_called(self.ad.get_str("AccountingGroup", self.user))

    def submitter_called(self, name: str) -> str:
        """The whole name of one to be charged, as an ``AccountingGroup`` has it."""
        return name if "@" in name else f"{name}@{self.user.partition('@')[2]}"

    @property
    def may_make_more(self) -> bool:
        """Whether there may be jobs of it that were not made yet."""
        return self.factory is not None and self.factory.may_make_more

    @property
    def made(self) -> int:
        """How many of its jobs have ever been in the queue."""
        return self.total if self.factory is None else self.factory.next_proc

    @property
    def text(self) -> bytes:
        """The ad as it crosses the wire."""
        if self._text is None:
            self._text = self.ad.to_bytes()
        return self._text

    def jobs_after(self, proc: int) -> Iterator[Job]:
        """The jobs after one of them, in the order of their numbers; they may come and go meanwhile.

        However often a client pages on after the last job it has seen, each number is counted up once.
        """
        jobs = self.jobs
        numbers: Iterable[int]
        if len(jobs) <= FEW_JOBS or len(jobs) * SPARSE < self.made:
            numbers = sorted([each for each in jobs if each > proc])
        else:
            numbers = range(proc + 1, max(self.made, next(reversed(jobs)) + 1))
        for number in numbers:
            job = jobs.get(number)
            if job is not None:
                yield job

    def changed(self) -> None:
        """The ad was edited: what was derived from it is out of date."""
        self._text = None
        self.version += 1
        self.memo.clear()


class Job:
    """One job.

    Attributes:
        cluster, proc, ad, status: as in its ad.
        run_id: its run while it has one (also while that is being stopped), else empty.
        reserved: a claim was asked for in its name.
        not_before_s: earliest date of the next start, after a failure of the system.
        order: where it stands in its autocluster (see :mod:`condor_actors.cores.schedd.autoclusters`); None: nowhere.
        autocluster: number of its autocluster, 0 when not computed.
    """

    __slots__ = ("ad", "autocluster", "cluster", "not_before_s", "order", "proc", "reserved", "run_id", "status")

    def __init__(self, cluster: Cluster, proc: int, ad: ClassAd, status: JobStatus) -> None:
        self.cluster = cluster
        self.proc = proc
        self.ad = ad
        self.status = status
        self.run_id = ""
        self.reserved = False
        self.not_before_s = 0.0
        self.order: Any = None
        self.autocluster = 0

    @property
    def name(self) -> str:
        """``cluster.proc``."""
        return f"{self.cluster.number}.{self.proc}"

    @property
    def submitter(self) -> str:
        """Whom it is charged to: the one in its own ad, else its cluster's."""
        if is_charged_apart(self.ad):
            return self.cluster.submitter_called(self.ad.own[CHARGED_TO])
        return self.cluster.submitter

    @property
    def own(self) -> bytes:
        """The text of its own attributes."""
        return own_text(self.ad)

    @property
    def text(self) -> bytes:
        """The text of its whole ad."""
        return self.cluster.text + own_text(self.ad)

    @property
    def ready(self) -> bool:
        """Idle, without a run that still ends, and without a claim under way."""
        return self.status is JobStatus.IDLE and not self.run_id and not self.reserved
