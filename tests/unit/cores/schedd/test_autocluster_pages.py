"""What condor_q -autocluster is answered: what the jobs that no slot can tell apart want, and how many they are."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.config import load_config
from condor_actors.cores.schedd import job_query
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.messages.envelope import SELF
from condor_actors.messages.queue import QueryJobs


@pytest.fixture
def context() -> ScheddContext:
    """Jobs 1.0 to 1.3 of alice (the last one wants more memory), 2.0 of bob, and 2.1, which has never waited."""
    made = ScheddContext(schedd_settings(load_config(files=[], environ={}), machine="here"))
    for number, owner, memories in ((1, "alice", (100, 100, 100, 200)), (2, "bob", (100, 100))):
        cluster = Cluster(number, owner, ClassAd.from_text(
            f'ClusterId = {number}\nRequestCpus = 1\nOwner = "{owner}"\nRequirements = TARGET.Memory >= RequestMemory\n'
        ), len(memories))  # fmt: skip
        made.queue.clusters[number] = cluster
        for proc, memory in enumerate(memories):
            ad = ClassAd({"ProcId": proc, "RequestMemory": memory})
            ad.parent = cluster.ad
            job = made.queue.enter(cluster, proc, ad)
            if (number, proc) != (2, 1):
                made.autoclusters.add(job)
    return made


def asked(context: ScheddContext, **question: object) -> list[tuple[int, int, str, int, str]]:
    page = job_query.autoclusters_page(
        context.queue, context.autoclusters, QueryJobs(source="autoclusters", **question),  # type: ignore[arg-type]
        context.sight(SELF), 0.0)
    ads = [ClassAd.from_bytes(text) for text in page.ads]
    assert page.cursor == ""
    return [(ad.get_int("AutoClusterId"), ad.get_int("JobCount"), ad.get_str("JobIds"), ad.get_int("RequestMemory"),
             ad.get_str("Owner")) for ad in ads]  # fmt: skip


def test_one_ad_for_each_with_what_it_wants(context: ScheddContext) -> None:
    assert asked(context) == [
        (1, 3, "1.0 ... 1.2", 100, "alice"), (2, 1, "1.3", 200, "alice"), (3, 1, "2.0", 100, "bob"),
    ]  # fmt: skip


def test_a_job_that_runs_still_counts(context: ScheddContext) -> None:
    context.autoclusters.remove(context.queue.clusters[1].jobs[0])
    assert asked(context, owner="alice")[0][:3] == (1, 3, "1.0 ... 1.2")


def test_restrictions(context: ScheddContext) -> None:
    assert [row[0] for row in asked(context, ids=((2, -1),))] == [3]
    assert [row[2] for row in asked(context, ids=((1, 0), (1, 1)))] == ["1.0 1.1"]
    assert [row[0] for row in asked(context, constraint="RequestMemory > 150")] == [2]
    assert [row[0] for row in asked(context, limit=1)] == [1]
    with pytest.raises(ClassAdSyntaxError):
        asked(context, constraint="a >")


def test_pages_follow_each_other(context: ScheddContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_query, "PAGE_BYTES", 1)
    seen, cursor = [], ""
    while True:
        page = job_query.autoclusters_page(context.queue, context.autoclusters, QueryJobs(cursor=cursor),
                                            context.sight(SELF), 0.0)
        seen += [ClassAd.from_bytes(text).get_int("AutoClusterId") for text in page.ads]
        cursor = page.cursor
        if not cursor:
            break
    assert seen == [1, 2, 3]
