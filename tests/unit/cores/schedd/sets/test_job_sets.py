"""Sets of jobs: who is in which, over restarts; what is counted; and what cannot be in one.

Each test has a schedd with its real database, a shadow host, and an execute side that is played.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.sets.job_sets import LONGEST_NAME
from condor_actors.messages.envelope import Refused
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction
from condor_actors.messages.submission import ReserveCluster, SubmitItems, SubmitPage, Submitted
from tests.harness.submit_side import SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def common(pool: SubmitPool, more: str) -> bytes:
    return (f'Cmd = "/bin/true"\nIwd = "{pool.home}"\nRequirements = true\nShouldTransferFiles = "YES"\n'
            f"TransferExecutable = false\nRequestCpus = 1\nRequestMemory = 10\nRequestDisk = 10\n{more}\n").encode()


def send(pool: SubmitPool, more: str, jobs: tuple[bytes, ...] = (b"A = 1\n", b"A = 2\n")) -> Any:
    cluster = pool.ask(ReserveCluster()).cluster_id
    return pool.ask(SubmitPage(cluster_id=cluster, page=0, cluster_ad=common(pool, more), procs=jobs, first_proc=0,
                               last=True))


def sets(pool: SubmitPool, **question: Any) -> list[ClassAd]:
    return pool.jobs(source="jobsets", **question)


def restart(pool: SubmitPool) -> None:
    pool.kill_schedd()
    pool.start_schedd()
    pool.run(2.0)


def finish_all(pool: SubmitPool) -> None:
    for run in list(pool.execute.runs):
        if run not in pool.execute.exits:
            pool.execute.begin(run)
            pool.execute.finish(run)
    pool.run()


def counted(ad: ClassAd) -> tuple[int, ...]:
    return tuple(ad.get_int(f"Num{name}") for name in ("Jobs", "Idle", "Running", "Held", "Completed", "Removed"))


def counters(pool: SubmitPool) -> list[str]:
    rows = pool.store.database.connection.execute("SELECT name FROM counters WHERE name LIKE 'jobset %'")
    return [name for (name,) in rows]


def test_clusters_of_one_name_are_one_set_also_after_a_restart(pool: SubmitPool) -> None:
    first, second, other = (send(pool, f'JobSetName = "{name}"').cluster_id for name in ("Ants", "ants", "Bees"))
    send(pool, "Other = 1")
    for _ in range(2):
        assert [(ad.get_int("JobSetId"), ad.get_str("JobSetName"), ad.get_str("MyType")) for ad in sets(pool)] == [
            (first, "Ants", "JobSet"), (other, "Bees", "JobSet")]
        assert counted(sets(pool)[0]) == (4, 4, 0, 0, 0, 0)
        members = pool.jobs(constraint=f"JobSetId == {first}")
        assert sorted({ad.get_int("ClusterId") for ad in members}) == [first, second]
        restart(pool)
    third = send(pool, 'JobSetName = "ANTS"').cluster_id
    assert pool.jobs(ids=((third, 0),))[0].get_int("JobSetId") == first


def test_what_has_left_the_queue_is_counted_until_the_set_is_empty(pool: SubmitPool) -> None:
    first = send(pool, 'JobSetName = "Ants"').cluster_id
    second = send(pool, 'JobSetName = "Ants"').cluster_id
    pool.ask(ActOnJobs(action=JobAction.REMOVE, ids=((first, -1),)))
    pool.ask(ActOnJobs(action=JobAction.HOLD, ids=((second, 1),)))
    pool.run()
    assert pool.match(1) == 1
    finish_all(pool)
    for _ in range(2):
        (ad,) = sets(pool)
        assert (ad.get_int("JobSetId"), counted(ad)) == (first, (4, 0, 0, 1, 1, 2))
        restart(pool)
    assert len(counters(pool)) == 2
    pool.ask(ActOnJobs(action=JobAction.REMOVE, ids=((second, -1),)))
    pool.run()
    assert (sets(pool), counters(pool)) == ([], [])
    assert {ad.get_int("JobSetId") for ad in pool.history()} == {first}
    again = send(pool, 'JobSetName = "Ants"').cluster_id
    assert (sets(pool)[0].get_int("JobSetId"), counted(sets(pool)[0])) == (again, (2, 2, 0, 0, 0, 0))


def test_a_set_lives_while_a_cluster_may_make_jobs(pool: SubmitPool) -> None:
    cluster = pool.ask(ReserveCluster()).cluster_id
    pool.ask(SubmitItems(cluster_id=cluster, page=0, last=True, items=(b'Args = "\0P"\n',), repeat=3,
                         cluster_ad=common(pool, 'JobSetName = "Ants"\nJobMaterializeLimit = 1')))
    pool.run()
    pool.match(1)
    finish_all(pool)
    assert counted(sets(pool)[0])[4] == len(pool.history()) == 1
    pool.ask(ActOnJobs(action=JobAction.REMOVE, ids=((cluster, -1),)))
    pool.run()
    assert (sets(pool), counters(pool)) == ([], [])


def test_sets_are_asked_for_as_jobs_are(pool: SubmitPool) -> None:
    first = send(pool, 'JobSetName = "Ants"').cluster_id
    second = send(pool, 'JobSetName = "Ants"').cluster_id
    send(pool, 'JobSetName = "Bees"')
    assert [ad.get_int("JobSetId") for ad in sets(pool, ids=((second, -1),))] == [first]
    assert [ad.get_str("JobSetName") for ad in sets(pool, constraint="NumJobs == 2")] == ["Bees"]
    assert len(sets(pool, limit=1)) == 1
    assert sets(pool, owner="nobody-else") == []
    assert sorted(sets(pool, projection=("JobSetId",))[0].keys()) == ["JobSetId"]


@pytest.mark.parametrize(("more", "jobs", "why"), [
    ("JobSetName = 12", (b"",), "has a name, in quotes"),
    ('JobSetName = strcat("a", "b")', (b"",), "has a name, in quotes"),
    ('JobSetName = " "', (b"",), "has a name"),
    (f'JobSetName = "{"x" * (LONGEST_NAME + 1)}"', (b"",), "at most"),
    ('JobSetName = "a\\nb"', (b"",), "printable"),
    ("A = 1", (b'JobSetName = "a"\n', b'JobSetName = "b"\n'), "differs from job to job"),
])
def test_names_that_are_none_are_refused(pool: SubmitPool, more: str, jobs: tuple[bytes, ...], why: str) -> None:
    answer = send(pool, more, jobs)
    assert isinstance(answer, Refused)
    assert why in answer.text
    assert sets(pool) == []


def test_nobody_says_in_which_set_he_is_but_by_its_name(pool: SubmitPool) -> None:
    send(pool, 'JobSetName = "Ants"')
    stranger = send(pool, "JobSetId = 1")
    assert isinstance(stranger, Submitted)
    ids = ((stranger.cluster_id, -1),)
    assert "JobSetId" not in pool.jobs(ids=ids)[0]
    for name, value in (("JobSetId", "1"), ("JobSetName", '"Ants"')):
        answer = pool.ask(EditJobs(ids=ids, attributes=((name, value),)))
        assert "JobSetId" not in pool.jobs(ids=ids)[0], answer
    assert counted(sets(pool)[0])[0] == 2
