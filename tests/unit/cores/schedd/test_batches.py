"""The batch view of a long queue comes page by page, and reads as one."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd import job_query
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queued_job import Cluster
from condor_actors.messages.codec import MAX_BODY_BYTES, encode
from condor_actors.messages.queue import Totals
from condor_actors.tools.printing.queue_views import joined_batches


def make_queue(clusters: int, name: str = "") -> JobQueue:
    queue = JobQueue()
    for number in range(1, clusters + 1):
        ad = ClassAd({"ClusterId": number, "Owner": "ann", "User": "ann@here", "QDate": number})
        if number % 3 == 0:
            ad["JobBatchName"] = f"third{name}"
        cluster = queue.clusters[number] = Cluster(number, "ann", ad, 2)
        for proc in range(2):
            own = ClassAd({"ProcId": proc, "JobStatus": 1 + 4 * proc})
            own.parent = ad
            queue.enter(cluster, proc, own)
    return queue


def pages(queue: JobQueue) -> list[tuple[bytes, ...]]:
    found, after = [], 0
    while True:
        lines, cursor = job_query.batches(queue, "ann", after)
        found.append(lines)
        if not cursor:
            return found
        after = int(cursor)


def test_a_long_queue_comes_in_pages_that_fit_a_message() -> None:
    found = pages(make_queue(12_000))
    assert len(found) > 3
    for lines in found:
        assert len(encode(Totals(mine=(), everybody=(), batches=lines))) < MAX_BODY_BYTES
    whole = joined_batches(ClassAd.from_bytes(text) for lines in found for text in lines)
    assert len(whole) == 8_001
    (third,) = [ad for ad in whole if ad.get_str("JobBatchName")]
    assert third.get_str("JobIds") == "3.0 ... 12000.1"
    assert (third.get_int("Total"), third.get_int("Idle"), third.get_int("Hold")) == (8_000, 4_000, 4_000)
    assert whole[0].get_str("JobIds") == "1.0-1"


def test_long_names_end_a_page_earlier() -> None:
    for lines in pages(make_queue(300, "x" * 20_000)):
        assert len(encode(Totals(mine=(), everybody=(), batches=lines))) < MAX_BODY_BYTES


def test_a_workflow_is_counted_in_nodes() -> None:
    queue = JobQueue()
    own = ClassAd({"ProcId": 0, "JobStatus": 2, "DAG_NodesTotal": 9, "DAG_NodesDone": 4})
    for number, ad, job in (
        (1, {"JobUniverse": 7}, own), (2, {"DAGManJobId": 1}, ClassAd({"ProcId": 0, "JobStatus": 2})),
        (3, {"DAGManJobId": 1}, ClassAd({"ProcId": 0, "JobStatus": 1})),
        (4, {"DAGManJobId": 77}, ClassAd({"ProcId": 0, "JobStatus": 1})),
    ):
        common = ClassAd({"ClusterId": number, "Owner": "ann", "User": "ann@here", "JobBatchName": "x", **ad})
        cluster = queue.clusters[number] = Cluster(number, "ann", common, 1)
        job.parent = common
        queue.enter(cluster, 0, job)
    (line,), _ = job_query.batches(queue, "ann")
    ad = ClassAd.from_bytes(line)
    assert [ad.get_int(name) for name in ("Done", "Run", "Idle", "Total")] == [4, 1, 2, 10]
    assert ad.get_str("JobIds") == "2.0 ... 4.0"
