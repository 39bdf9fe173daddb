"""Queries about clusters that make their jobs as they are needed: an ad for each, in pages."""

from __future__ import annotations

from bisect import bisect_right

from condor_actors.classads import is_true, parse_expression
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.schedd.factories.factory import factory_ad
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.messages.pages import AdPage
from condor_actors.messages.queue import JobsPage, QueryJobs

__all__ = ["factories_page"]

CLUSTERS_A_PAGE = 2_000
STORE = "job_queue.sqlite"


def factories_page(queue: JobQueue, question: QueryJobs, sight: JobSight, now_s: float, spool: str) -> JobsPage:
    """The next page of the ads of such clusters, as far as the asker sees them.

    Args:
        spool: the schedd's folder.

    Raises:
        ClassAdSyntaxError: the constraint is none.
        ValueError: the cursor is none, or the constraint takes more than it may.
    """
    constraint = parse_expression(question.constraint) if question.constraint else None
    meter = Meter("the constraint", constraint)
    wanted = {cluster for cluster, _ in question.ids}
    numbers = sorted(wanted & queue.clusters.keys() if question.ids else queue.clusters)
    page, last = AdPage(), question.cursor
    for looked, number in enumerate(numbers[bisect_right(numbers, int(question.cursor or -1)):], 1):
        cluster = queue.clusters[number]
        if cluster.factory is not None and question.owner in ("", cluster.owner, cluster.user):
            ad = factory_ad(cluster, cluster.factory, sight.cluster(cluster), f"{spool}/{STORE}")
            if constraint is None or is_true(constraint.evaluate(ad, None, now_s)):
                if not page.add((ad.project(question.projection) if question.projection else ad).to_bytes()):
                    return JobsPage(ads=tuple(page.ads), cursor=last)
            if question.limit and len(page.ads) >= question.limit:
                break
        last = str(number)
        if page.is_full or looked >= CLUSTERS_A_PAGE or meter.is_spent():
            return JobsPage(ads=tuple(page.ads), cursor=last)
    return JobsPage(ads=tuple(page.ads))
