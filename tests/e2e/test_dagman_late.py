"""Nodes whose jobs the schedd makes as they are needed, and runs that are made anew from their log, on a real pool."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.harness.user_pool import user_pool
from tests.harness.workflows import SAY, Workflows, alive
from tests.pool_fixture import until

SIX = SAY.replace("$(RETRY)", "$(Process)").replace("queue", "max_materialize = 2\nqueue 6")
WAITS = SIX.replace("$(then:exit 0)", "while ! test -e go; do sleep 0.1; done")


@pytest.fixture(scope="module")
def dags() -> Iterator[Workflows]:
    with user_pool() as pool:
        yield Workflows(pool)


def log_of(dags: Workflows) -> list[tuple[str, int, int]]:
    """Event, cluster and proc of each event of the nodes' log."""
    path = dags.folder / "x.dag.nodes.log"
    text = path.read_text() if path.exists() else ""
    return [(kind, int(cluster), int(proc))
            for kind, cluster, proc in re.findall(r"^(\d{3}) \((\d+)\.(-?\d+)\.", text, re.MULTILINE)]


def write_log(dags: Workflows, cluster: int, node: str) -> None:
    """A log of the pool's user that tells of one submission."""
    path = dags.folder / "x.dag.nodes.log"
    path.write_text(f"000 ({cluster:03d}.000.000) 2026-11-30 10:00:00 Job submitted from host: <x>\n"
                    f"    DAG Node: {node}\n...\n")
    if dags.pool.user:
        shutil.chown(path, dags.pool.user, dags.pool.user)


def cluster_of(dags: Workflows) -> int:
    """The cluster of the first node, when it is in the queue."""
    return int(until(lambda: [cluster for kind, cluster, _ in log_of(dags) if kind == "035"], dags.out)[0])


def test_jobs_of_a_node_are_made_as_they_are_needed(dags: Workflows) -> None:
    text = "JOB A six.sub\nJOB B say.sub\nPARENT A CHILD B\nSCRIPT POST A ./post $JOB_COUNT $EXIT_CODE_COUNTS\n"
    assert dags.run(text, six_sub=SIX, post="#!/bin/sh\necho post $* >> all\n") == 0
    assert sorted(dags.said()[:6]) == [f"A {proc}" for proc in range(6)]
    assert dags.said()[6:] == ["post 6 0:6", "B 0"]
    present = most = 0
    for kind, _, proc in log_of(dags):
        present += (kind == "000") - (kind in ("005", "009") and proc >= 0)
        most = max(most, present)
    assert most == 2
    kinds = [kind for kind, _, _ in log_of(dags)]
    assert (kinds.count("035"), kinds.count("036")) == (1, 1)
    assert "Event: ULOG_CLUSTER_REMOVE for HTCondor Node A" in dags.out()


def test_dagman_is_killed_while_jobs_are_made(dags: Workflows) -> None:
    many = SIX.replace("queue 6", "queue 40")
    dags.begin('JOB A many.sub\nJOB B say.sub\nPARENT A CHILD B\nVARS A then="sleep 0.4"\n', many_sub=many)
    dags.submit()
    assert dags.kill(5, 3) >= 2
    assert dags.wait() == 0
    assert Counter(dags.said()) == Counter({**{f"A {proc}": 1 for proc in range(40)}, "B 0": 1})


def test_a_cluster_is_held_and_released(dags: Workflows) -> None:
    dags.begin("JOB A six.sub\n", six_sub=WAITS)
    dags.submit()
    cluster = cluster_of(dags)
    until(lambda: len(dags.said()) == 2, dags.out)
    dags.pool.run("condor_hold", str(cluster))
    until(lambda: "It makes no more jobs until it is released" in dags.out(), dags.out)
    (dags.folder / "go").touch()
    dags.pool.run("condor_release", str(cluster))
    assert dags.wait() == 0
    assert set(dags.said()) == {f"A {proc}" for proc in range(6)}


def test_a_cluster_that_is_removed_has_failed(dags: Workflows) -> None:
    dags.begin("JOB A six.sub\n", six_sub=WAITS)
    dags.submit()
    cluster = cluster_of(dags)
    until(lambda: len(dags.said()) == 2, dags.out)
    dags.pool.run("condor_rm", str(cluster))
    assert dags.wait() == 1
    events = [(kind, proc) for kind, _, proc in log_of(dags)]
    for proc in (0, 1):
        assert events.index(("004", proc)) < events.index(("009", proc)), "a run that is ended is evicted"
    assert len(dags.said()) == 2


@pytest.mark.parametrize("is_held", [False, True])
def test_with_the_dag_the_cluster_goes(dags: Workflows, is_held: bool) -> None:
    dags.begin("JOB A six.sub\n", six_sub=WAITS)
    job = dags.submit()
    cluster = cluster_of(dags)
    until(lambda: len(dags.said()) == 2, dags.out)
    if is_held:
        dags.pool.run("condor_hold", str(job))
        dags.pool.until_status(f"{job}.0", 5)
    dags.pool.run("condor_rm", str(job))
    until(lambda: ("036", cluster, -1) in log_of(dags), dags.out)
    until(lambda: not dags.pool.jobs(), "nothing of it is left in the queue")
    assert len(dags.said()) == 2, "no other job was made"


def test_a_run_is_made_anew_from_the_log(dags: Workflows) -> None:
    waits = SAY.replace("$(then:exit 0)", "while ! test -e go; do sleep 0.1; done")
    dags.begin("JOB A say.sub\nJOB B waits.sub\nJOB C say.sub\nPARENT A CHILD B\nPARENT B CHILD C\n", waits_sub=waits)
    job = dags.submit()
    until(lambda: dags.said() == ["A 0", "B 0"], dags.out)
    pid = dags.pid()
    dags.pool.run("condor_hold", str(job))
    until(lambda: not alive(pid), "it has gone")
    (dags.folder / "x.dag.dagman.journal").unlink()
    (dags.folder / "x.dag.dagman.log").unlink()
    dags.submit("-DoRecovery")
    until(lambda: "...done with RECOVERY mode" in dags.out(), dags.out)
    (dags.folder / "go").touch()
    assert dags.wait() == 0
    assert dags.said() == ["A 0", "B 0", "C 0"]
    dags.pool.run("condor_rm", str(job))


def test_jobs_of_a_log_that_are_in_no_queue(dags: Workflows) -> None:
    dags.begin("JOB A say.sub\nJOB B say.sub\nPARENT A CHILD B\nRETRY A 1\n")
    write_log(dags, 999, "A")
    dags.submit("-DoRecovery")
    assert dags.wait() == 0
    assert dags.said() == ["A 1", "B 0"]
    assert "cluster 999 of node A has not ended, and the schedd does not know it" in dags.out()


def test_a_log_that_does_not_fit(dags: Workflows) -> None:
    dags.begin("JOB A say.sub\n")
    dags.submit("-DoRecovery")
    assert dags.wait() == 1
    assert "there is no x.dag.dagman.journal to go on from, and nothing in " in dags.out()
    dags.begin("JOB A say.sub\nJOB B say.sub\nPARENT A CHILD B\n")
    write_log(dags, 7, "B")
    dags.submit("-DoRecovery")
    assert dags.wait() == 1
    assert "B, which was submitted before its parents had ended" in dags.out()
    assert dags.said() == []
