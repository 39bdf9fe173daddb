"""Queries about job sets: an ad for each, in pages."""

from __future__ import annotations

from bisect import bisect_right

from condor_actors.classads import is_true, parse_expression
from condor_actors.classads.evaluation.budget import Meter
from condor_actors.cores.schedd.sets.job_sets import JobSets
from condor_actors.messages.pages import AdPage
from condor_actors.messages.queue import JobsPage, QueryJobs

__all__ = ["sets_page"]

SETS_A_PAGE = 2_000


def sets_page(sets: JobSets, question: QueryJobs, now_s: float) -> JobsPage:
    """The next page of the ads of job sets; an id asked for is that of a cluster in one, or a JobSetId.

    Raises:
        ClassAdSyntaxError: the constraint is none.
        ValueError: the cursor is none, or the constraint takes more than it may.
    """
    constraint = parse_expression(question.constraint) if question.constraint else None
    meter = Meter("the constraint", constraint)
    wanted = {cluster for cluster, _ in question.ids}
    numbers = sorted(sets.by_number)
    page, last = AdPage(), question.cursor
    for looked, number in enumerate(numbers[bisect_right(numbers, int(question.cursor or -1)):], 1):
        found = sets.by_number[number]
        is_asked_for = not wanted or number in wanted or not wanted.isdisjoint(found.clusters)
        if is_asked_for and question.owner in ("", found.owner, found.user):
            ad = found.ad()
            if constraint is None or is_true(constraint.evaluate(ad, None, now_s)):
                if not page.add((ad.project(question.projection) if question.projection else ad).to_bytes()):
                    return JobsPage(ads=tuple(page.ads), cursor=last)
            if question.limit and len(page.ads) >= question.limit:
                break
        last = str(number)
        if page.is_full or looked >= SETS_A_PAGE or meter.is_spent():
            return JobsPage(ads=tuple(page.ads), cursor=last)
    return JobsPage(ads=tuple(page.ads))
