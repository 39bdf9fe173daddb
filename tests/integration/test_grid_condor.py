"""Jobs handed to another pool's schedd: run there once, followed, held, removed, brought home.

No matter which process dies.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.user_pool import UserPool, two_pools
from tests.pool_fixture import until
from tests.security.local_users import a_shared_pool

HOME = ("GRIDMANAGER_JOB_PROBE_INTERVAL = 1\nGRIDMANAGER_RESOURCE_PROBE_INTERVAL = 1\n"
        "GRIDMANAGER_CONNECT_FAILURE_RETRY_COUNT = 2\nGRIDMANAGER_FOLDER = $(LOCAL_DIR)/grid\n")
AWAY = ('SUBMIT_REQUIREMENT_NAMES = Colour\nSUBMIT_REQUIREMENT_Colour = Colour =!= "blue"\n'
        'SUBMIT_REQUIREMENT_Colour_REASON = "nothing blue is run here"\n'
        "MATCH_TIMEOUT = 5\n")
"""What a schedd was matched with when it was killed is free again after that time."""


class Pools:
    """Home, where jobs are submitted, and away, where they run."""

    def __init__(self, home: UserPool, away: UserPool) -> None:
        self.home = home
        self.away = away
        schedd = away.run("condor_status", "-schedd", "-af", "Name").strip()
        self.resource = f"condor {schedd} {away.run('condor_config_val', 'COLLECTOR_HOST').strip()}"

    def submit(self, script: str, more: str = "", count: int = 1) -> str:
        """Submit a shell script; the id of its first job."""
        program = self.home.work / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        for name in ("job.log", "out", "err"):
            (self.home.work / name).unlink(missing_ok=True)
        cluster = self.home.submit(f"universe = grid\ngrid_resource = {self.resource}\nlog = job.log\n"
                                   f"executable = program\noutput = out\nerror = err\n{more}queue {count}\n")
        return f"{cluster}.0"

    def there(self, job: str) -> str:
        """The id that a job has away, once it has one."""
        until(lambda: "GridJobId" in self.home.jobs(job)[0], lambda: str(self.home.jobs(job)))
        return str(self.home.jobs(job)[0]["GridJobId"]).split()[-1]

    def ended(self, job: str) -> dict[str, object]:
        """The job's ad, from the history at home."""
        self.home.wait()
        return until(lambda: self.home.history(job), f"job {job} in the history")[0]  # type: ignore[no-any-return]

    def log(self) -> str:
        return (self.home.work / "job.log").read_text()

    def counts(self) -> list[int]:
        """How often the log says that it was handed on, began, and ended."""
        return [self.log().count(f"\n{number} (") for number in ("027", "001", "005")]

    def nothing_is_left(self) -> None:
        """Neither in the queue away nor in the folder of runs."""
        until(lambda: not self.away.jobs(), lambda: str(self.away.jobs()))
        until(lambda: not list((self.home.dir / "grid").iterdir()), "the folders are gone")


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    with two_pools(HOME, AWAY) as (home, away):
        yield Pools(home, away)


def test_a_job_runs_there_with_its_files_and_comes_home(pools: Pools) -> None:
    work = pools.home.work
    (work / "data").write_text("brought along\n")
    (work / "words").write_text("typed\n")
    (work / "folder").mkdir()
    (work / "folder/inner").write_text("inner\n")
    job = pools.submit('cat data folder/inner; read word; echo "$word $1 $KIND" >&2; echo made > made; exit 7',
                       "transfer_input_files = data, folder\ninput = words\narguments = \"'a b'\"\n"
                       "environment = \"KIND='of a'\"\ntransfer_output_remaps = \"made = renamed\"\n"
                       'remote_Colour = "red"\n')
    ad = pools.ended(job)
    assert (ad["ExitCode"], ad["ExitBySignal"], ad["JobStatus"]) == (7, False, 4)
    assert (work / "out").read_text() == "brought along\ninner\n"
    assert (work / "err").read_text() == "typed a b of a\n"
    assert (work / "renamed").read_text() == "made\n"
    assert str(ad["GridJobId"]).startswith(f"{pools.resource} ")
    assert f"    GridResource: {pools.resource}\n    GridJobId: {ad['GridJobId']}\n" in pools.log()
    assert pools.counts() == [1, 1, 1]
    pools.nothing_is_left()
    (there,) = pools.away.history(str(ad["GridJobId"]).split()[-1])
    assert (there["JobStatus"], there["Colour"], there["SubmitterGlobalJobId"]) == (4, "red", ad["GlobalJobId"])


def test_what_is_refused_there_is_held_with_the_reason(pools: Pools) -> None:
    job = pools.submit("exit 0", 'remote_Colour = "blue"\n')
    pools.home.until_status(job, 5)
    assert "nothing blue is run here" in str(pools.home.jobs(job)[0]["HoldReason"])
    pools.home.run("condor_rm", job)
    pools.home.until_status(job, 0)
    pools.nothing_is_left()


def test_held_released_and_removed_at_either_end(pools: Pools) -> None:
    job = pools.submit("sleep 600")
    pools.home.until_status(job, 2)
    first = pools.there(job)
    assert "RUNNING" in pools.home.run("condor_q", "-grid")
    pools.home.run("condor_hold", job)
    until(lambda: not pools.away.jobs(), "it is not there any more")
    until(lambda: "GridJobId" not in pools.home.jobs(job)[0], "its number there is forgotten")
    pools.home.run("condor_release", job)
    pools.home.until_status(job, 2)
    second = pools.there(job)
    assert second != first
    pools.away.run("condor_hold", "-reason", "not today", second)
    pools.home.until_status(job, 5)
    assert "not today" in str(pools.home.jobs(job)[0]["HoldReason"])
    pools.home.run("condor_release", job)
    pools.home.until_status(job, 2)
    pools.away.run("condor_rm", pools.there(job))
    pools.home.until_status(job, 5)
    assert "was removed at the other schedd" in str(pools.home.jobs(job)[0]["HoldReason"])
    pools.home.run("condor_rm", job)
    pools.home.until_status(job, 0)
    pools.nothing_is_left()


@pytest.mark.parametrize("victim", ["shadow-host", "schedd", "the schedd away"])
def test_somebody_dies_while_it_runs(pools: Pools, victim: str) -> None:
    job = pools.submit("sleep 5; echo done")
    pools.home.until_status(job, 2)
    if victim == "the schedd away":
        pools.away.kill("schedd")
    else:
        pools.home.kill(victim)
    ad = pools.ended(job)
    assert ad["ExitCode"] == 0
    assert (pools.home.work / "out").read_text() == "done\n"
    assert pools.counts() == [1, 1, 1]
    pools.nothing_is_left()


def test_it_is_removed_while_the_other_schedd_is_down(pools: Pools) -> None:
    job = pools.submit("sleep 600")
    pools.home.until_status(job, 2)
    pools.away.run("condor_off", "-daemon", "schedd")
    told = f"Detected Down Grid Resource\n    GridResource: {pools.resource}\n"
    until(lambda: told in pools.log(), "it is seen to be down")
    until(lambda: pools.home.jobs(job)[0].get("GridResourceUnavailableTime"), "its job to say so")
    assert pools.home.status_of(job) == 2
    pools.home.run("condor_rm", job)
    pools.home.until_status(job, 3)
    unsent = pools.submit("exit 0")
    pools.home.until_status(unsent, 5)
    assert "could not be reached 3 times in a row" in str(pools.home.jobs(unsent)[0]["HoldReason"])
    pools.away.run("condor_on", "-daemon", "schedd")
    pools.home.until_status(job, 0)
    pools.home.run("condor_release", unsent)
    assert pools.ended(unsent)["ExitCode"] == 0
    pools.nothing_is_left()


def test_many_jobs_run_once_each_whoever_is_killed(pools: Pools) -> None:
    jobs = 20
    before = {ad["GlobalJobId"] for ad in pools.away.history()}
    job = pools.submit('echo "$1"', "arguments = $(Process)\noutput = out.$(Process)\n", count=jobs)
    cluster = job.partition(".")[0]

    def begun() -> int:
        return pools.log().count("\n027 (") if (pools.home.work / "job.log").exists() else 0

    victims = ((pools.home, "shadow-host"), (pools.away, "schedd"), (pools.home, "schedd"),
               (pools.home, "shadow-host"))
    for number, (pool, daemon) in enumerate(victims):
        until(lambda so_many=number * 4 + 1: begun() >= so_many, pools.log)
        pool.kill(daemon)
    pools.home.wait()
    until(lambda: len(pools.home.history(cluster)) == jobs, "all are in the history")
    for number in range(jobs):
        assert (pools.home.work / f"out.{number}").read_text() == f"{number}\n"
    # A shadow host that dies between the end of a run and its cleaning up leaves a completed job there (docs/grid.md).
    until(lambda: all(ad["JobStatus"] == 4 for ad in pools.away.jobs()), lambda: str(pools.away.jobs()))
    left = {ad["GlobalJobId"] for ad in pools.away.jobs()}
    if left:
        pools.away.run("condor_rm", "-all")
    until(lambda: left <= {ad["GlobalJobId"] for ad in pools.away.history()}, "what was left to be in the history")
    runs = [ad["SubmitterGlobalJobId"] for ad in pools.away.history()
            if ad["GlobalJobId"] not in before and ad["JobStatus"] == 4]
    assert len(runs) == len(set(runs)) == jobs
    assert pools.log().count("\n005 (") == jobs


@pytest.mark.root
def test_in_a_pool_of_many_users_it_is_the_owners() -> None:
    with a_shared_pool("GRIDMANAGER_JOB_PROBE_INTERVAL = 1\n", drops_root=True) as pool:
        schedd = pool.run("condor_status", "-schedd", "-af", "Name").strip()
        central = pool.run("condor_config_val", "COLLECTOR_HOST").strip()
        pool.submit_as(pool.alice, f"universe = grid\ngrid_resource = condor {schedd} {central}\nlog = job.log\n"
                                   "executable = /bin/echo\narguments = hello\noutput = said\nqueue\n")
        pool.run_as(pool.alice, "condor_wait", "-wait", "90", "job.log")
        out = pool.alice.home / "said"
        assert (out.read_text().strip(), out.stat().st_uid) == ("hello", pool.alice.uid)
