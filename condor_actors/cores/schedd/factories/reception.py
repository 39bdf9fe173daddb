"""Submissions of clusters whose jobs are made as they are needed.

Theory: what the jobs are made of comes page by page and is stored page by page, under a number that nobody has yet; it
takes no memory.  With the last page the cluster enters the queue, in one transaction, and the first jobs are made in
the turns that follow.  What belongs to no cluster goes when its number is given back, or when the schedd starts.  Only
the first job is looked at here; each of the others is when it is made.
"""

from __future__ import annotations

import zlib

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.schedd.charging import CHARGED
from condor_actors.cores.schedd.entering.entry import SUBMISSION_STEPS
from condor_actors.cores.schedd.entering.rules import Invalid
from condor_actors.cores.schedd.factories.factories import GAP_S
from condor_actors.cores.schedd.factories.factory import Factory, pack
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.job_notices import JobNotices
from condor_actors.cores.schedd.job_status import say_why_held
from condor_actors.cores.schedd.queue_operations import DropItems, SaveItems
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.submission import Submissions
from condor_actors.effects import job_note
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.envelope import Delivery, Done, Refused
from condor_actors.messages.pages import LARGE_AD, MOST_AD_BYTES
from condor_actors.messages.submission import SubmitItems, Submitted

__all__ = ["MOST_JOBS", "FactoryReception"]

MOST_JOBS = 10_000_000
"""Of one cluster."""
MOST_BYTES = 256 << 20
"""Of the texts of one cluster, before they are compressed."""
LARGEST_TEXT = 64 << 10
"""Of one job, where one text is sent for many: it takes its submitter nothing, and the schedd so much for each."""
MOST_AT_ONCE = 50_000
"""Texts of one page."""


def _longest(text: bytes) -> int:
    """How long a text is when its holes are filled."""
    return len(text) + (text.count(b"\0P") + text.count(b"\0S")) * (len(str(MOST_JOBS)) - 2)


@attrs.define
class _Coming:
    """What came for a number: how many pages, jobs and bytes; the common ad and the first text."""

    first: SubmitItems
    pages: int = 0
    jobs: int = 0
    size_bytes: int = 0


class FactoryReception:
    """Takes the pages of such submissions, and checks the jobs that are made of them.

    Args:
        submissions: where numbers are reserved, and ads are checked.
    """

    def __init__(self, context: ScheddContext, notices: JobNotices, submissions: Submissions) -> None:
        self._context = context
        self._notices = notices
        self._submissions = submissions
        self._coming: dict[int, _Coming] = {}
        submissions.freed = self._freed

    def _freed(self, number: int) -> None:
        if self._coming.pop(number, None) is not None:
            self._context.persist(DropItems(number))

    def page(self, message: SubmitItems, delivery: Delivery) -> None:
        """Take a page; with the last, queue the cluster."""
        context, number = self._context, message.cluster_id
        owner = self._submissions.owner_of(number, delivery)
        if not owner:
            return
        coming = self._coming.get(number)
        if coming is None:
            coming = self._coming[number] = _Coming(message)
        problem = self._objection(message, coming, owner)
        if problem:
            self._refuse(number, problem)
            return
        first, jobs = coming.jobs, message.repeat or len(message.items)
        if message.repeat:
            context.persist(SaveItems(number, first, jobs, True, zlib.compress(message.items[0], 1)))
        else:
            for row in pack(number, first, message.items):
                context.persist(row)
        coming.pages += 1
        coming.jobs += jobs
        if not message.last:
            context.reply(Done())
            return
        try:
            cluster, edited = self._build(number, coming, delivery)
        except (ClassAdSyntaxError, ValueError) as error:
            self._refuse(number, str(error))
            return
        del self._coming[number]
        self._submissions.use_up(number)
        self._queue(cluster, edited, delivery)

    def _objection(self, message: SubmitItems, coming: _Coming, owner: str) -> str:
        """Why a page is refused; empty: it is not."""
        coming.size_bytes += len(message.cluster_ad) + sum(map(len, message.items))
        jobs = coming.jobs + (message.repeat or len(message.items))
        if message.page != coming.pages:
            return (f"page {message.page} of cluster {message.cluster_id} came instead of page {coming.pages}; "
                    "submit again")
        if message.repeat < 0 or (message.repeat and len(message.items) != 1) or not 0 < jobs <= MOST_JOBS \
                or len(message.items) > MOST_AT_ONCE:
            return f"a cluster has 1 to {MOST_JOBS} jobs, and a page at most {MOST_AT_ONCE} texts: this would be {jobs}"
        if len(message.cluster_ad) > MOST_AD_BYTES:
            return LARGE_AD
        if coming.size_bytes > MOST_BYTES:
            return f"a submission has at most {MOST_BYTES >> 20} MiB of items: submit fewer jobs at once"
        if message.repeat and _longest(message.items[0]) > LARGEST_TEXT:
            return (f"one text for {message.repeat} jobs has {_longest(message.items[0])} bytes: at most "
                    f"{LARGEST_TEXT} can be each job's own; say what is the same for all without $(Process)")
        if not message.repeat and any(b"\0" in text for text in message.items):
            return "the text of a job has a zero byte"
        return self._submissions.over_limits(1, owner) or (self._over_clusters(owner) if message.last else "")

    def _over_clusters(self, owner: str) -> str:
        """Which limit one more cluster would be over, where each that has no job now counts as one; empty: none."""
        queue, settings = self._context.queue, self._context.settings
        bare = [cluster.owner for cluster in queue.clusters.values() if not cluster.jobs]
        if sum(queue.counts(owner)) + bare.count(owner) >= settings.max_jobs_per_owner:
            return (f"{owner} would have more than MAX_JOBS_PER_OWNER ({settings.max_jobs_per_owner}) jobs, and "
                    "clusters that have none now")
        if sum(queue.everybody) + len(bare) >= settings.max_jobs_submitted:
            return (f"the queue would have more than MAX_JOBS_SUBMITTED ({settings.max_jobs_submitted}) jobs, and "
                    "clusters that have none now")
        return ""

    def _refuse(self, number: int, why: str) -> None:
        self._submissions.give_back(number)
        self._context.reply(Refused(code="invalid", text=why))

    def _build(self, number: int, coming: _Coming, delivery: Delivery) -> tuple[Cluster, set[str]]:
        """The cluster, and the attributes of which its value counts; nothing is in the queue yet."""
        rules = self._submissions.rules
        common = rules.cluster_ad(coming.first, delivery)
        common.store("TotalSubmitProcs", coming.jobs)
        if is_gang(common):
            raise Invalid("universe = parallel: the nodes of a gang are made at once; leave max_idle, max_materialize "
                          "and -factory out")
        cluster = Cluster(number, delivery.identity.user, common, coming.jobs)
        text = coming.first.items[0]
        job = ClassAd.from_bytes(text.replace(b"\0P", b"0").replace(b"\0S", b"0")) if text else ClassAd()
        job.parent = common
        self.check(job, cluster)
        job.store("ProcId", 0)
        own = dict(job.own)
        meter = Meter("the administrator's rules", None, SUBMISSION_STEPS)
        for _ in rules.transform(number, common, [job], meter):
            pass
        edited = {name for name in own.keys() | job.own.keys() if own.get(name) != job.own.get(name)} - {"procid"}
        for name in edited:  # what a transform says of the first job is said of all
            value = job.own.get(name)
            if value is not None:
                common.store(job.spelling(name), value)
        rules.check_commands(common, [job])
        rules.check_set(common, [job])
        rules.check_requirements(job)
        meter.refuse_when_spent()
        return Cluster(number, delivery.identity.user, common, coming.jobs), edited

    def _queue(self, cluster: Cluster, edited: set[str], delivery: Delivery) -> None:
        context = self._context
        cluster.factory = Factory(edited=edited)
        context.queue.clusters[cluster.number] = cluster
        context.queue.sets.join(cluster)
        context.persist(context.queue.cluster_row(cluster))
        context.persist(cluster.factory.row(cluster.number))
        context.timer(("materialize", cluster.number), GAP_S)  # when what they are made of is on the disk
        context.out.append(job_note(f"{cluster.number}.0", "submitted",
                                    f"submitted by {cluster.user}: {cluster.total} jobs, made as they are needed"))
        notice = self._notices.of_cluster(cluster, JobEventType.CLUSTER_SUBMIT, SubmitHost=context.submit_host)
        self._submissions.answer_when_logged({notice} if notice else set(), delivery, Submitted(
            cluster_id=cluster.number, first_proc=0, last_proc=cluster.total - 1))

    def check(self, ad: ClassAd, cluster: Cluster) -> None:
        """Look at the own attributes of a job that is made of an item.

        Raises:
            ValueError: it cannot be queued; says why.
        """
        rules = self._submissions.rules
        if not ad.own:
            return
        charged = sorted(name for name in CHARGED if name.lower() in ad.own)
        if charged:
            raise Invalid(f"{charged[0]} differs from job to job: jobs that are made as they are needed are all "
                          "charged to the same; submit one cluster for each, or all jobs at once")
        rules.without_ours(ad, cluster.owner)
        for name in ("JobMaterializeLimit", "JobMaterializeMaxIdle"):
            if name.lower() in ad.own:
                del ad[name]
        rules.check_status(ad)
        say_why_held(ad)
        rules.check_commands(cluster.ad, [ad])
        rules.check_set(cluster.ad, [ad])

    def check_made(self, ad: ClassAd, cluster: Cluster) -> None:
        """The same, for a job that is about to be queued."""
        self.check(ad, cluster)
        self._submissions.rules.check_requirements(ad)
