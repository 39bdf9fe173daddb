"""Answers in plain words, on a real pool: why a job waits or is held, and why a machine runs nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

JOB = "executable = /bin/sleep\narguments = {seconds}\ntransfer_executable = false\n{more}\nqueue {count}\n"


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        yield made
        made.stop()


def answer(pool: PersonalPool, job: str) -> str:
    """The first paragraph about a job, as one line."""
    out = pool.run("condor_q", job, "-better-analyze")
    return " ".join(out.partition(":  ")[2].partition("\n\n")[0].split())


def submitted(pool: PersonalPool, seconds: float = 1000, more: str = "", count: int = 1) -> int:
    """A cluster of jobs."""
    return pool.submit(JOB.format(seconds=seconds, more=more, count=count))


def test_a_machine_that_nobody_needs(pool: PersonalPool) -> None:
    name = pool.run("condor_status", "-af", "Machine").split()[0]
    assert "nobody in the pool has an idle job" in pool.run("condor_status", "-why", name)
    refused = pool.tool("condor_status", "-why", "nosuchmachine")
    assert refused.returncode == 1
    assert "knows no machine nosuchmachine" in refused.stderr
    assert "needs the name of a machine" in pool.tool("condor_status", "-why").stderr


def test_a_job_that_asks_for_too_much(pool: PersonalPool) -> None:
    job = f"{submitted(pool, more='request_memory = 9000000')}.0"
    until(lambda: "LastRejMatchTime" in pool.run("condor_q", job, "-long"), "the negotiator to have looked")
    assert "It asks for 9000000 MB of memory" in answer(pool, job)
    name = pool.run("condor_status", "-af", "Machine").split()[0]
    why = " ".join(pool.run("condor_status", "-why", name).split())
    assert "1 job waits in the pool; none fits" in why
    assert "RequestMemory" in why
    pool.run("condor_rm", job)


def test_all_machines_are_taken_and_when_one_comes_free(pool: PersonalPool) -> None:
    quick = submitted(pool, seconds=0.5, more="log = quick.log", count=60)
    pool.run("condor_wait", "-wait", "120", str(pool.work / "quick.log"))
    until(lambda: not pool.jobs(str(quick)), "the quick ones to be in the history")
    cluster = submitted(pool, count=3)
    until(lambda: [ad["JobStatus"] for ad in pool.jobs(str(cluster))].count(2) == 2, "two to run")
    (waits,) = [f"{cluster}.{ad['ProcId']}" for ad in pool.jobs(str(cluster)) if ad["JobStatus"] == 1]
    said = answer(pool, waits)
    assert "2 slots would suit it, and every one runs another job: 2 of yours." in said
    assert "It is to begin in" in said
    pool.run("condor_rm", str(cluster))


def test_a_held_job(pool: PersonalPool) -> None:
    job = f"{submitted(pool, more='hold = true')}.0"
    said = answer(pool, job)
    assert said.startswith("It has been on hold")
    assert f"condor_release {job} lets it go on" in said
    pool.run("condor_rm", job)


def test_a_job_that_is_moved_again_and_again(pool: PersonalPool) -> None:
    job = f"{submitted(pool)}.0"
    for number in range(1, 4):
        until(lambda number=number: pool.status_of(job) == 2 and pool.jobs(job)[0]["NumShadowStarts"] == number,
              "it to run")
        pool.run("condor_vacate_job", job)
    until(lambda: pool.jobs(job)[0].get("NumVacates") == 3, "it to have left")
    until(lambda: "It has run 3 times" in answer(pool, job), "the answer to say so")
    pool.run("condor_rm", job)
