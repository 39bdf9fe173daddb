"""A local user who sends little, of which the schedd is to make much: clusters whose jobs are made as they are needed.

Each test has a schedd with its real database; a schedd that an attack breaks does not answer the question after it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.cores.schedd.factories import factories, reception
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction
from condor_actors.messages.submission import ReserveCluster, SubmitItems, SubmitPage, Submitted
from tests.harness.submit_side import SubmitPool
from tests.unit.cores.schedd.factories.test_factories import common, procs, send

ENDLESS = ('real("INF")', 'real("-INF")', 'real("NaN")', "1.0e300", "-1.0e300", "1.0 / 0.0", "2.0E9 * 4.0E9")


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("name", ["JobMaterializeLimit", "JobMaterializeMaxIdle"])
def test_limits_that_are_no_integers(pool: SubmitPool, name: str, value: str) -> None:
    before = pool.schedd.actor
    assert isinstance(send(pool, f"{name} = {value}", repeat=5), Submitted)
    pool.run()
    assert pool.schedd.actor is before, "the schedd broke"
    pool.kill_schedd()  # what breaks it once would break it forever
    pool.start_schedd()
    pool.submit()
    pool.run()
    assert len(procs(pool)) == 6


def test_limits_that_become_none_by_an_edit(pool: SubmitPool) -> None:
    answer = send(pool, "JobMaterializeMaxIdle = 1", repeat=5)
    pool.run()
    pool.ask(EditJobs(ids=((answer.cluster_id, -1),), attributes=b'JobMaterializeMaxIdle = real("INF")'))
    pool.run()
    assert procs(pool) == [0, 1, 2, 3, 4]


def test_one_short_submission_of_jobs_that_are_large(pool: SubmitPool) -> None:
    """A few hundred bytes a job are cheap to send once; holes make them larger still."""
    holes = b'A = "' + b"\0P" * 20_000 + b'"\n'
    refused = send(pool, items=(holes,), repeat=100_000)
    assert isinstance(refused, Refused)
    assert "can be each job's own" in refused.text
    refused = send(pool, items=(b'A = "' + b"x" * reception.LARGEST_TEXT + b'"\n',), repeat=100_000)
    assert isinstance(refused, Refused)


def test_large_jobs_are_made_a_few_in_a_turn(pool: SubmitPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a turn makes is bounded by its size, not by the number of jobs alone; and all are made in the end."""
    taken: list[int] = []
    as_much = factories.Factories._as_much

    def watched(self: factories.Factories, found: object) -> list[bytes]:
        texts = as_much(self, found)  # type: ignore[arg-type]
        taken.append(sum(map(len, texts)))
        return texts

    monkeypatch.setattr(factories.Factories, "_as_much", watched)
    text = b'A = "' + b"x" * 60_000 + b' \0P"\n'
    assert isinstance(send(pool, "JobStatus = 5", items=(text,), repeat=40), Submitted)
    pool.run(10)
    assert len(pool.jobs(projection=("ProcId",))) == 40
    assert max(taken) <= factories.MOST_BYTES_A_TURN + len(text)


def test_clusters_without_jobs_count_as_well(tmp_path: Path) -> None:
    """A limit of no job at a time makes a cluster that no limit of jobs is about, as often as one likes."""
    pool = SubmitPool(tmp_path, max_jobs_per_owner=5)
    answers = [send(pool, "JobMaterializeLimit = 0", repeat=1_000_000) for _ in range(7)]
    assert [isinstance(each, Submitted) for each in answers] == [True] * 5 + [False] * 2
    assert "clusters that have none now" in answers[-1].text


def test_two_ways_of_submission_under_one_number(pool: SubmitPool) -> None:
    """What came as items goes when the number is used up for jobs; it stayed in memory and on the disk for good."""
    number = pool.ask(ReserveCluster()).cluster_id
    assert isinstance(pool.ask(SubmitItems(cluster_id=number, page=0, cluster_ad=common(pool), items=(b"A = 1\n",) * 9,
                                           last=False)), Done)
    answer = pool.ask(SubmitPage(cluster_id=number, page=0, cluster_ad=common(pool, "JobStatus = 5"), procs=(b"",),
                                 first_proc=0, last=True))
    assert isinstance(answer, Submitted)
    pool.run()
    assert pool.store.database.connection.execute("SELECT count(*) FROM items").fetchone()[0] == 0
    actor = pool.schedd.actor
    assert actor is not None
    assert not actor.core.reception._coming


def test_counts_at_the_ends_of_integers(pool: SubmitPool) -> None:
    for count in (1 << 31, (1 << 31) - 1, (1 << 63) - 1, -1, -(1 << 31), reception.MOST_JOBS + 1):
        refused = send(pool, repeat=count)
        assert isinstance(refused, Refused), count
    assert isinstance(send(pool, "JobMaterializeLimit = 1", repeat=reception.MOST_JOBS), Submitted)
    pool.run()
    assert procs(pool) == [0]


def test_a_cluster_of_another_owners(pool: SubmitPool) -> None:
    answer = send(pool, "JobMaterializeLimit = 1", repeat=100)
    pool.run()
    his = pool.net.probe(pool.net.system("<tool:2>", identity=Identity(name="mallory@test", method="local", uid=4711)))
    for message in (EditJobs(ids=((answer.cluster_id, -1),), attributes=b"JobMaterializeLimit = 50"),
                    EditJobs(ids=((answer.cluster_id, 0),), attributes=b"JobMaterializeLimit = 50"),
                    ActOnJobs(action=JobAction.REMOVE, ids=((answer.cluster_id, -1),), reason="mine")):
        pool.ask(message, his)
    pool.run()
    assert procs(pool) == [0]
    assert pool.jobs()[0].get_int("JobStatus") == JobStatus.IDLE
    stolen = pool.ask(ReserveCluster()).cluster_id
    refused = pool.ask(SubmitItems(cluster_id=stolen, page=0, cluster_ad=common(pool), items=(b"",), last=True),
                       his)
    assert isinstance(refused, Refused)
