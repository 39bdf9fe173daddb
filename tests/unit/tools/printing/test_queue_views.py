"""The tables of condor_q."""

from __future__ import annotations

import time

from condor_actors.classads import ClassAd
from condor_actors.tools.lib.retrieval import remaps_of
from condor_actors.tools.printing.queue_views import batch_table, batches_of, job_table, total_line, totals


def job(cluster: int, proc: int, status: int, **more: object) -> ClassAd:
    values = {"ClusterId": cluster, "ProcId": proc, "JobStatus": status, "Owner": "cli", "QDate": 1_763_709_780,
              "Cmd": "/bin/sleep", "Args": "300", **more}  # fmt: skip
    return ClassAd(values)


def test_one_line_a_job() -> None:
    running = job(266, 2, 2, JobCurrentStartDate=1000, MemoryUsage=0)
    text = job_table([running], "default", 1000.0)
    day = time.strftime("%m/%d %H:%M", time.localtime(1_763_709_780))
    assert text == (
        " ID      OWNER            SUBMITTED     RUN_TIME ST PRI SIZE CMD\n"
        f" 266.2   cli            {day}   0+00:00:00 R  0    0.0 sleep 300\n"
    )


def test_the_batch_view_groups_by_cluster_or_name() -> None:
    named = [job(3, 0, 1, JobBatchName="night"), job(4, 0, 2, JobBatchName="night")]
    batches = batches_of([job(1, 0, 1, TotalSubmitProcs=5), job(1, 1, 2, TotalSubmitProcs=5), *named])
    text = batch_table(batches)
    assert text.splitlines()[0] == "OWNER BATCH_NAME    SUBMITTED   DONE   RUN    IDLE  TOTAL JOB_IDS"
    assert text.splitlines()[1].endswith("     3      1      1      5 1.0-1")
    assert "night" in text.splitlines()[2]
    assert text.splitlines()[2].endswith("     _      1      1      2 3.0 ... 4.0")


def test_held_jobs_bring_their_column() -> None:
    assert "  HOLD" in batch_table(batches_of([job(1, 0, 5)]))
    assert batch_table([]) == "OWNER BATCH_NAME      SUBMITTED   DONE   RUN    IDLE   HOLD  TOTAL JOB_IDS\n"


def test_totals_name_everybody_and_me() -> None:
    assert total_line({1: 2, 7: 1}) == "3 jobs; 0 completed, 0 removed, 2 idle, 0 running, 0 held, 1 suspended"
    text = totals({1: 1}, {1: 2}, ("me", {1: 1}))
    assert [line.partition(":")[0] for line in text.strip().splitlines()] == [
        "Total for query", "Total for me", "Total for all users",
    ]  # fmt: skip


def test_remaps_with_protected_signs() -> None:
    assert remaps_of("a = b; c=d/e ;f\\=g=h\\;i") == {"a": "b", "c": "d/e", "f=g": "h;i"}
    assert remaps_of("") == {}
