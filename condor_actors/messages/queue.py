"""Queue: tools and a schedd.  A job is its owner's: identity comes from the link, never from the message."""

from __future__ import annotations

import enum

from condor_actors import records
from condor_actors.messages.codec import message

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import ClassVar


TOTALS_BY = ("Owner", "Outcome", "Day", "Month", "Year")
"""What totals of the history can be grouped by and chosen by; dates are texts (``2026-11``)."""


@message
@records.frozen(kw_only=True)
class QueryJobs:
    """Which jobs satisfy all of this?  Answer: :class:`JobsPage`.

    Attributes:
        source: one of

            * ``queue``
            * ``history``, ``epochs`` (of every run that has ended), ``transfers`` (how their files travelled),
              ``daemon`` (the schedd's own ads): the newest first
            * ``totals``: what the jobs of the history came to (Jobs, JobStarts, WallClockSeconds, CoreSeconds,
              CpuSeconds), an ad for each group; ``projection`` says by what they are grouped, any attributes or
              those of `TOTALS_BY`; a group of others than these may come on several pages and is to be added up
            * to a startd ``startd``, of every run that has ended on its machine: the newest first
            * ``autoclusters``: ads with the significant attributes of the jobs asked for, AutoClusterId, JobCount and
              JobIds, one for each autocluster; ``constraint`` is then one on these ads
            * ``factories``: an ad for each cluster that makes its jobs as they are needed
            * ``jobsets``: an ad for each set of jobs
        ids: (cluster, proc) pairs, proc -1 for a whole cluster; empty: all.
        owner: only this user's; empty: all.
        constraint: ClassAd text; empty: none.
        projection: attributes wanted; empty: all.
        limit: 0: none.
        since: what has ended only: stop at this job id or when this expression is true.
    """

    KIND: ClassVar[str] = "condor.queue.QueryJobs"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    source: str = "queue"
    ids: tuple[tuple[int, int], ...] = ()
    owner: str = ""
    constraint: str = ""
    projection: tuple[str, ...] = ()
    limit: int = 0
    since: str = ""
    cursor: str = ""


@message
@records.frozen(kw_only=True)
class JobsPage:
    """Answer to :class:`QueryJobs`: flat ads (cluster and proc merged); ``cursor`` empty on the last page.

    Attributes:
        looked: of totals by any attribute, how many jobs this page is about.
        scanned: how many of them were looked at one by one.
        left: how many are left for other pages.
        reason: why they were.
    """

    KIND: ClassVar[str] = "condor.queue.JobsPage"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    ads: tuple[bytes, ...]
    cursor: str = ""
    looked: int = 0
    scanned: int = 0
    left: int = 0
    reason: str = ""


@message
@records.frozen(kw_only=True)
class QueryTotals:
    """How many jobs in which state, for ``owner`` and for all?  Answer: :class:`Totals`.

    ``batches`` True: also the lines of condor_q's batch view (of ``owner``'s jobs, or of all when it is empty), a page
    at a time: ``cursor`` is that of the page before.
    """

    KIND: ClassVar[str] = "condor.queue.QueryTotals"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "READ"

    owner: str = ""
    constraint: str = ""
    batches: bool = False
    cursor: str = ""


@message
@records.frozen(kw_only=True)
class Totals:
    """Pairs (JobStatus, number of jobs), of the owner's jobs and of everybody's.

    ``batches``, when asked for: ads with Owner, JobBatchName, ClusterId, QDate, Done, Run, Idle, Hold, Suspended,
    Removed, Total and JobIds (as text, ``12.0-9``), one for each batch of one owner among the clusters of this page;
    a batch of several clusters may come again on the next.  ``cursor``: where that begins; empty: there is none.
    """

    KIND: ClassVar[str] = "condor.queue.Totals"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    mine: tuple[tuple[int, int], ...]
    everybody: tuple[tuple[int, int], ...]
    batches: tuple[bytes, ...] = ()
    cursor: str = ""


class JobAction(str, enum.Enum):
    """What :class:`ActOnJobs` can do."""

    REMOVE = "remove"
    REMOVE_FORCED = "remove-forced"
    HOLD = "hold"
    RELEASE = "release"
    SUSPEND = "suspend"
    CONTINUE = "continue"
    VACATE = "vacate"
    VACATE_FAST = "vacate-fast"
    CHECKPOINT = "checkpoint"


class ActionResult(str, enum.Enum):
    """What became of it, per job; tools turn these into HTCondor's sentences."""

    SUCCESS = "success"
    NOT_FOUND = "not-found"
    BAD_STATUS = "bad-status"
    ALREADY_DONE = "already-done"
    PERMISSION_DENIED = "permission-denied"
    ERROR = "error"


@message
@records.frozen(kw_only=True)
class ActOnJobs:
    """Do ``action`` to the jobs named by ``ids`` (proc -1: the cluster) or by ``constraint``.

    Answer: :class:`ActionResults`, after the commit.
    """

    KIND: ClassVar[str] = "condor.queue.ActOnJobs"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    action: JobAction
    ids: tuple[tuple[int, int], ...] = ()
    constraint: str = ""
    reason: str = ""
    subcode: int = 0


@message
@records.frozen(kw_only=True)
class ActionResults:
    """(cluster, proc, result) for each id of the question (for a cluster: one line, proc -1, and ``count`` jobs)."""

    KIND: ClassVar[str] = "condor.queue.ActionResults"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    results: tuple[tuple[int, int, ActionResult], ...]
    count: int
    text: str = ""


@message
@records.frozen(kw_only=True)
class EditJobs:
    """condor_qedit, condor_prio: set ``attributes`` (ad text) in the jobs; answer: :class:`ActionResults`."""

    KIND: ClassVar[str] = "condor.queue.EditJobs"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    attributes: bytes
    ids: tuple[tuple[int, int], ...] = ()
    constraint: str = ""


MOST_VACATED = 100


@message
@records.frozen(kw_only=True)
class RunNow:
    """condor_now: vacate jobs, and run another one in their place (cluster and proc of each).

    Answer: :class:`~condor_actors.messages.envelope.Done` when they were asked to go.
    """

    KIND: ClassVar[str] = "condor.queue.RunNow"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    job: tuple[int, int]
    vacate: tuple[tuple[int, int], ...]

    def __attrs_post_init__(self) -> None:
        if len(self.vacate) > MOST_VACATED:
            raise ValueError(f"at most {MOST_VACATED} jobs are vacated at once, not {len(self.vacate)}")
