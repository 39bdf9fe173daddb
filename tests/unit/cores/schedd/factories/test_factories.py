"""Clusters whose jobs are made as they are needed: limits, crashes, and what users do to them.

Each test has a schedd with its real database, a shadow host, and an execute side that is played.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import FactoryMode, JobStatus
from condor_actors.messages.envelope import Refused
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction, QueryTotals
from condor_actors.messages.submission import ReserveCluster, SubmitItems, Submitted
from tests.harness.submit_side import SubmitPool

TEMPLATE = b'Args = "\0P of \0S"\n'


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def common(pool: SubmitPool, more: str = "") -> bytes:
    return (f'Cmd = "/bin/true"\nIwd = "{pool.home}"\nRequirements = true\nShouldTransferFiles = "YES"\n'
            "TransferExecutable = false\nRequestCpus = 1\nRequestMemory = 10\nRequestDisk = 10\n"
            f'UserLog = "{pool.home}/log"\n{more}\n').encode()


def send(pool: SubmitPool, more: str = "", items: tuple[bytes, ...] = (TEMPLATE,), repeat: int = 0) -> Any:
    cluster = pool.ask(ReserveCluster()).cluster_id
    return pool.ask(SubmitItems(cluster_id=cluster, page=0, cluster_ad=common(pool, more), items=items, last=True,
                                repeat=repeat))


def factory(pool: SubmitPool, **question: Any) -> ClassAd:
    found = pool.jobs(source="factories", **question)
    assert len(found) == 1
    return found[0]


def procs(pool: SubmitPool) -> list[int]:
    return [ad.get_int("ProcId") for ad in pool.jobs()]


def finish_all(pool: SubmitPool) -> None:
    for run in list(pool.execute.runs):
        if run not in pool.execute.exits:
            pool.execute.begin(run)
            pool.execute.finish(run)
    pool.run()


def test_jobs_are_made_as_the_limit_of_idle_ones_allows(pool: SubmitPool) -> None:
    answer = send(pool, "JobMaterializeMaxIdle = 3", repeat=1_000_000)
    assert isinstance(answer, Submitted)
    assert (answer.first_proc, answer.last_proc) == (0, 999_999)
    pool.run()
    assert procs(pool) == [0, 1, 2]
    assert pool.jobs()[2].get_str("Args") == "2 of 2"
    assert pool.match(2) == 2
    assert procs(pool) == [0, 1, 2, 3, 4]
    finish_all(pool)
    ad = factory(pool)
    assert (ad.get_int("JobsIdle"), ad.get_int("JobMaterializeNextProcId"), ad.get_int("JobMaterializePaused")) == (
        3, ad.get_int("JobsPresent") + len(pool.history()), FactoryMode.RUNNING)
    assert "ProcId" not in ad
    batch = ClassAd.from_bytes(pool.ask(QueryTotals(batches=True)).batches[0])
    assert (batch.get_int("Done"), batch.get_int("Total")) == (len(pool.history()), 1_000_000)


def test_no_more_than_the_limit_of_all_are_in_the_queue(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeLimit = 2", repeat=4)
    pool.run()
    assert procs(pool) == [0, 1]
    pool.match(2)
    assert procs(pool) == [0, 1]
    finish_all(pool)
    while len(pool.history()) < 4:
        finish_all(pool)
        pool.match(2)
    assert sorted(ad.get_int("ProcId") for ad in pool.history()) == [0, 1, 2, 3]
    assert pool.jobs(source="factories") == []
    log = (pool.home / "log").read_text()
    assert [log.count(f"\n{number} (001.") + log.startswith(f"{number} (") for number in ("035", "000", "005", "036")
            ] == [1, 4, 4, 1]
    assert "\tMaterialized 4 jobs from 4 items.\tComplete\n" in log


@pytest.mark.parametrize("when", range(1, 6))
def test_a_schedd_that_dies_makes_each_job_once(pool: SubmitPool, when: int) -> None:
    send(pool, "JobMaterializeMaxIdle = 2", items=tuple(b'Args = "%d"\n' % number for number in range(7)))
    for turn in range(60):
        pool.match(1)
        finish_all(pool)
        if turn % when == 0:
            pool.kill_schedd()
            pool.start_schedd()
            pool.run(2.0)
        if len(pool.history()) == 7:
            break
    assert sorted((ad.get_int("ProcId"), ad.get_str("Args")) for ad in pool.history()) == [
        (number, str(number)) for number in range(7)]


def test_items_of_a_submission_that_never_ended_go(pool: SubmitPool) -> None:
    cluster = pool.ask(ReserveCluster()).cluster_id
    page = SubmitItems(cluster_id=cluster, page=0, cluster_ad=common(pool), items=(b"A = 1\n",) * 1200, last=False)
    pool.ask(page)
    count = "SELECT count(*), sum(count) FROM items"
    assert tuple(pool.store.database.connection.execute(count).fetchone()) == (3, 1200)
    pool.kill_schedd()
    pool.start_schedd()
    assert tuple(pool.store.database.connection.execute(count).fetchone()) == (0, None)
    cluster = pool.ask(ReserveCluster()).cluster_id
    pool.ask(SubmitItems(cluster_id=cluster, page=0, cluster_ad=common(pool), items=(b"A = 1\n",), last=False))
    refused = pool.ask(SubmitItems(cluster_id=cluster, page=7, cluster_ad=b"", items=(b"A = 1\n",), last=True))
    assert isinstance(refused, Refused)
    assert "page 7" in refused.text
    assert tuple(pool.store.database.connection.execute(count).fetchone()) == (0, None)


def test_hold_and_release_of_the_cluster(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeMaxIdle = 2", repeat=9)
    pool.run()
    pool.act("hold", 1)
    ad = factory(pool)
    assert ad.get_int("JobMaterializePaused") == FactoryMode.HELD
    assert ad.get_str("JobMaterializePauseReason").startswith("via condor_hold (by user ")
    pool.act("remove", 1, 0)
    pool.kill_schedd()
    pool.start_schedd()
    pool.run()
    assert procs(pool) == [1]
    pool.act("release", 1)
    pool.run()
    assert procs(pool) == [1, 2]
    log = (pool.home / "log").read_text()
    assert "037 (001.-01.000)" in log
    assert "Job Materialization Resumed\n\tvia condor_release" in log


def test_remove_of_the_cluster(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeMaxIdle = 2", repeat=9)
    pool.run()
    assert pool.act("remove", 1).count == 2
    pool.run()
    assert (procs(pool), pool.jobs(source="factories")) == ([], [])
    assert "\tMaterialized 2 jobs from 2 items.\tIncomplete\n" in (pool.home / "log").read_text()
    assert pool.store.database.connection.execute("SELECT count(*) FROM items").fetchone()[0] == 0


def test_remove_of_a_cluster_without_jobs(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeMaxIdle = 0", repeat=9)
    pool.run()
    assert procs(pool) == []
    assert factory(pool).get_int("JobsPresent") == 0
    assert [result.name for _, _, result in pool.act("remove", 1).results] == ["SUCCESS"]
    assert pool.jobs(source="factories") == []


@pytest.mark.parametrize(("constraint", "left"), [("true", []), ("JobStatus == 1", [2, 3]), ("ProcId == 0", [1, 2])])
def test_a_constraint_that_names_no_job_is_about_the_cluster_too(
    pool: SubmitPool, constraint: str, left: list[int]
) -> None:
    send(pool, "JobMaterializeMaxIdle = 2", repeat=9)
    pool.run()
    pool.ask(ActOnJobs(action=JobAction.REMOVE, constraint=constraint))
    pool.run()
    assert procs(pool) == left


def test_the_log_of_a_workflow_alone_tells_of_the_cluster(pool: SubmitPool) -> None:
    """A node of a DAG without a log of its own: nothing said that its cluster had come and gone."""
    cluster = pool.ask(ReserveCluster()).cluster_id
    ad = common(pool, 'DAGNodeName = "A"').replace(b"UserLog = ", b"DAGManNodesLog = ")
    pool.ask(SubmitItems(cluster_id=cluster, page=0, cluster_ad=ad, items=(TEMPLATE,), last=True, repeat=1))
    pool.run()
    pool.match()
    finish_all(pool)
    text = (pool.home / "log").read_text()
    assert "035 (001.-01.000)" in text
    assert "DAG Node: A" in text
    assert text.rstrip().endswith("Materialized 1 jobs from 1 items.\tComplete\n...")


def test_a_workflow_that_goes_takes_clusters_along_that_make_their_jobs(pool: SubmitPool) -> None:
    """They went on making jobs for a workflow that was no more."""
    send(pool, f'OtherJobRemoveRequirements = "DAGManJobId =?= 1"\nJobStatus = {JobStatus.HELD}', items=(b"",))
    send(pool, "DAGManJobId = 1\nJobMaterializeMaxIdle = 1", repeat=9)
    send(pool, "DAGManJobId = 2\nJobMaterializeMaxIdle = 1", repeat=9)
    pool.run()
    pool.act("remove", 1)
    pool.run()
    assert [ad.get_int("ClusterId") for ad in pool.jobs(source="factories")] == [3]
    assert [ad.get_int("ClusterId") for ad in pool.jobs()] == [3]


def test_an_edit_of_the_cluster_is_one_of_jobs_to_come(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeMaxIdle = 1", repeat=5)
    pool.run()
    pool.ask(EditJobs(ids=((1, -1),), attributes=b'Args = "edited"\nJobMaterializeMaxIdle = 3\n'))
    pool.kill_schedd()
    pool.start_schedd()
    pool.run()
    assert [ad.get_str("Args") for ad in pool.jobs()] == ["edited"] * 3
    denied = pool.ask(EditJobs(ids=((1, -1),), attributes=b"JobMaterializeNextProcId = 0\n"))
    assert isinstance(denied, Refused)


def test_a_job_that_cannot_be_made_holds_the_cluster_until_that_is_mended(pool: SubmitPool) -> None:
    send(pool, "", items=(b"A = 1\n", b"JobStatus = 2\n", b"A = 3\n"))
    pool.run()
    ad = factory(pool)
    assert (procs(pool), ad.get_int("JobMaterializePaused")) == ([0], FactoryMode.HELD)
    assert "job 1.1 cannot be made: a job can be submitted idle" in ad.get_str("JobMaterializePauseReason")
    pool.act("release", 1)
    pool.run()
    assert procs(pool) == [0]


def test_items_that_are_damaged(pool: SubmitPool) -> None:
    send(pool, "JobMaterializeMaxIdle = 1", repeat=5)
    pool.run()
    pool.store.database.connection.execute("UPDATE items SET data = x'00'")
    pool.act("remove", 1, 0)
    pool.run()
    assert factory(pool).get_int("JobMaterializePaused") == FactoryMode.INVALID
    assert "is damaged" in factory(pool).get_str("JobMaterializePauseReason")
    assert [result.name for _, _, result in pool.act("release", 1).results] == ["BAD_STATUS"]
    pool.act("remove", 1)
    assert pool.jobs(source="factories") == []


@pytest.mark.parametrize(("more", "item", "says"), [
    ("", b'AccountingGroup = "x"\n', "all charged to the same"), ("", b'Owner = "nobody"\n', "one's own name"),
    ("JobUniverse = 11\nMaxHosts = 2\nMinHosts = 2", b"", "made at once"), ("", b'GridResource = "x"\n', "other batch"),
])
def test_what_is_refused(pool: SubmitPool, more: str, item: bytes, says: str) -> None:
    refused = send(pool, more, items=(item,))
    assert isinstance(refused, Refused)
    assert says in refused.text
    assert (procs(pool), pool.jobs(source="factories")) == ([], [])


def test_the_limits_of_the_queue_hold(tmp_path: Path) -> None:
    pool = SubmitPool(tmp_path, max_jobs_per_owner=3, max_jobs_per_submission=2)
    assert isinstance(send(pool, repeat=50), Submitted)
    assert isinstance(send(pool, repeat=50), Submitted)
    pool.run()
    assert [(ad.get_int("ClusterId"), ad.get_int("ProcId")) for ad in pool.jobs()] == [(1, 0), (1, 1), (2, 0)]
    pool.act("remove", 1)
    pool.run(15.0)
    assert [(ad.get_int("ClusterId"), ad.get_int("ProcId")) for ad in pool.jobs()] == [(2, 0), (2, 1)]


def test_jobs_submitted_on_hold_count_as_waiting(pool: SubmitPool) -> None:
    send(pool, f"JobMaterializeMaxIdle = 2\nJobStatus = {JobStatus.HELD}", repeat=50)
    pool.run()
    assert [ad.get_int("JobStatus") for ad in pool.jobs()] == [JobStatus.HELD] * 2
    assert factory(pool).get_int("JobsHeld") == 2
    pool.ask(EditJobs(ids=((1, -1),), attributes=b'Args = "look again"\n'))
    pool.run()
    assert procs(pool) == [0, 1]
