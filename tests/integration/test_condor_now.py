"""condor_now on a real pool: the job runs in the place of the other one, which runs again afterwards."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config="MACHINEMAXVACATETIME = 5\nNEGOTIATOR_INTERVAL = 2\n")
        yield made
        made.stop()


def submit(pool: PersonalPool, name: str, more: str = "") -> int:
    script = f"echo {name}; until test -e {pool.work}/{name}.go; do sleep 0.1; done"
    return pool.submit(
        f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '{script}'\"\n"
        f"should_transfer_files = YES\noutput = {name}.out\nstream_output = true\nlog = {name}.log\n{more}\nqueue\n")


def runs(pool: PersonalPool, name: str) -> None:
    until(lambda: (pool.work / f"{name}.out").exists() and (pool.work / f"{name}.out").read_text(), f"{name} runs")


def test_the_job_runs_in_the_place_of_the_other_and_that_one_again_later(pool: PersonalPool) -> None:
    first = submit(pool, "first")
    runs(pool, "first")
    waits = submit(pool, "waits", "priority = 10")
    now = submit(pool, "now", "priority = -10")
    said = pool.run("condor_now", f"{now}.0", f"{first}.0")
    assert said == f"Job {now}.0 runs as soon as job {first}.0 has left its slot\n"
    runs(pool, "now")
    assert pool.status_of(f"{waits}.0") == 1
    assert f"via condor_now, for job {now}.0" in (pool.work / "first.log").read_text()
    for name in ("first", "waits", "now"):
        (pool.work / f"{name}.go").touch()
    for name in ("now", "waits", "first"):
        pool.wait(f"{name}.log")
    assert (pool.work / "first.log").read_text().count("\n001 (") == 2


def test_the_slots_of_several_jobs_become_one() -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=2, config=(
            "MACHINEMAXVACATETIME = 5\nNEGOTIATOR_INTERVAL = 2\nNUM_CPUS = 2\nSLOT_TYPE_1_PARTITIONABLE = true\n"
            "SLOT_TYPE_1 = 100%\nNUM_SLOTS_TYPE_1 = 1\n"))
        try:
            one, two = submit(pool, "one"), submit(pool, "two")
            runs(pool, "one")
            runs(pool, "two")
            submit(pool, "other", "priority = 10")
            wide = submit(pool, "wide", "request_cpus = 2\npriority = -10")
            pool.run("condor_now", f"{wide}.0", f"{one}.0", f"{two}.0")
            runs(pool, "wide")
            ad = pool.run("condor_q", f"{wide}.0", "-af", "CpusProvisioned")
            assert ad.split() == ["2"]
            for name in ("one", "two", "other", "wide"):
                (pool.work / f"{name}.go").touch()
            for name in ("wide", "other", "one", "two"):
                pool.wait(f"{name}.log")
        finally:
            pool.stop()


def test_what_cannot_be_done_is_said(pool: PersonalPool) -> None:
    held = submit(pool, "held", "hold = true")
    for words, said in ((("1.0",), "name the job to run"), (("1", "2.0"), "1 is no job"),
                        ((f"{held}.0", "999.0"), "there is no job 999.0"),
                        ((f"{held}.0", f"{held}.0"), "is not idle"),
                        ((f"{held}.0", "1.0", "1.0"), "is named twice")):
        done = pool.tool("condor_now", *words)
        assert done.returncode == 1, words
        assert said in done.stderr
    pool.run("condor_rm", str(held))
