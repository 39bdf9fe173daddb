"""Jobs handed to a real Slurm: submitted once, followed, held, removed, brought home.

No matter which process dies meanwhile.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.slurm import SlurmOnLoopback, slurm
from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import fresh_folder, until
from tests.security.local_users import a_shared_pool

HEAD = "universe = grid\ngrid_resource = batch slurm\nlog = job.log\n"


class Grid:
    """A pool of an ordinary user, and a Slurm beside it, whose commands it finds in ``commands``."""

    def __init__(self, pool: UserPool, batch: SlurmOnLoopback, commands: Path) -> None:
        self.pool = pool
        self.batch = batch
        self.commands = commands
        for name in ("sbatch", "squeue", "scancel", "sacct"):
            self.command(name)

    def command(self, name: str, script: str = "") -> None:
        """Let a command of Slurm's be this script instead; itself again where there is none."""
        fresh = self.commands / f"{name}.new"
        fresh.write_text("#!/bin/sh\n" + (script or f'exec {shutil.which(name)} "$@"') + "\n")
        fresh.chmod(0o755)
        fresh.rename(self.commands / name)

    def submit(self, script: str, more: str = "") -> str:
        """Submit a shell script; the job's id."""
        program = self.pool.work / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        for name in ("job.log", "out", "err"):
            (self.pool.work / name).unlink(missing_ok=True)
        cluster = self.pool.submit(f"{HEAD}executable = program\noutput = out\nerror = err\n{more}queue\n")
        return f"{cluster}.0"

    def names(self) -> list[str]:
        return [line.split()[0] for line in self.batch.jobs()]

    def states_of(self, job: str) -> list[str]:
        """Slurm's states of the jobs that it has for one of ours."""
        return [line.split()[1] for line in self.batch.jobs() if line.startswith(f"condor.{job}.")]

    def log(self) -> str:
        return (self.pool.work / "job.log").read_text()

    def ended(self, job: str) -> dict[str, object]:
        """The job's ad, from the history."""
        self.pool.wait()
        return until(lambda: self.pool.history(job), f"job {job} in the history")[0]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def grid() -> Iterator[Grid]:
    with fresh_folder() as folder, slurm(folder) as batch:
        commands = folder / "commands"
        commands.mkdir()
        config = (f"SLURM_BINPATH = {commands}\nSLURM_CONF = {batch.conf}\nGRIDMANAGER_JOB_PROBE_INTERVAL = 1\n"
                  "GRIDMANAGER_RESOURCE_PROBE_INTERVAL = 1\nGRIDMANAGER_GAHP_CALL_TIMEOUT = 5\n"
                  f"GRIDMANAGER_CONNECT_FAILURE_RETRY_COUNT = 2\nGRIDMANAGER_FOLDER = {{}}/grid\n")
        with user_pool(config.format("$(LOCAL_DIR)")) as pool:
            yield Grid(pool, batch, commands)


def folders(grid: Grid) -> list[str]:
    place = grid.pool.dir / "grid"
    return sorted(os.listdir(place)) if place.is_dir() else []


def test_a_job_runs_there_with_its_files_and_comes_home(grid: Grid) -> None:
    (grid.pool.work / "in put").write_text("brought along\n")
    job = grid.submit('cat "in put"; read word; echo "$word $1 $KIND" >&2; echo made > made; exit 7',
                      'transfer_input_files = in put\ninput = words\narguments = "\'a b\'"\n'
                      'environment = "KIND=\'of a\'"\n' if (grid.pool.work / "words").write_text("typed\n") else "")
    ad = grid.ended(job)
    assert (ad["ExitCode"], ad["ExitBySignal"], ad["JobStatus"]) == (7, False, 4)
    assert (grid.pool.work / "out").read_text() == "brought along\n"
    assert (grid.pool.work / "err").read_text() == "typed a b of a\n"
    assert (grid.pool.work / "made").read_text() == "made\n"
    log = grid.log()
    assert "Job submitted to grid resource\n    GridResource: batch slurm\n    GridJobId: batch slurm " in log
    assert [log.count(f"\n{number} (") for number in ("027", "001", "005")] == [1, 1, 1]
    assert ad["GridJobStatus"] == "COMPLETED"
    assert str(ad["GridJobId"]).startswith("batch slurm ")
    until(lambda: not folders(grid), "the folder is gone")


def test_a_signal_is_told_from_an_exit_status(grid: Grid) -> None:
    assert grid.ended(grid.submit("kill -9 $$"))["ExitSignal"] == 9
    ad = grid.ended(grid.submit("exit 137"))
    assert (ad["ExitBySignal"], ad["ExitCode"]) == (False, 137)


def test_without_transfer_it_runs_in_its_own_folder(grid: Grid) -> None:
    ad = grid.ended(grid.submit("pwd; ls program", "should_transfer_files = NO\n"))
    assert ad["ExitCode"] == 0
    assert (grid.pool.work / "out").read_text() == f"{grid.pool.work}\nprogram\n"


def test_what_slurm_refuses_is_held_with_its_words(grid: Grid) -> None:
    job = grid.submit("exit 0", "batch_queue = nosuch\n")
    grid.pool.until_status(job, 5)
    (ad,) = grid.pool.jobs(job)
    assert "nvalid partition" in str(ad["HoldReason"])
    assert grid.states_of(job) == []
    grid.pool.run("condor_rm", job)
    grid.pool.until_status(job, 0)


def test_held_released_and_removed(grid: Grid) -> None:
    job = grid.submit("echo begun > begun; sleep 600")
    grid.pool.until_status(job, 2)
    table = grid.pool.run("condor_q", "-grid")
    assert "RUNNING" in table
    assert "batch->slurm" in table
    grid.pool.run("condor_hold", job)
    until(lambda: grid.states_of(job) == ["CANCELLED"], lambda: str(grid.batch.jobs()))
    until(lambda: "GridJobId" not in grid.pool.jobs(job)[0], "its number there is forgotten")
    grid.pool.run("condor_release", job)
    grid.pool.until_status(job, 2)
    assert grid.states_of(job) == ["CANCELLED", "RUNNING"]
    grid.pool.run("condor_rm", job)
    grid.pool.until_status(job, 0)
    until(lambda: grid.states_of(job) == ["CANCELLED", "CANCELLED"], lambda: str(grid.batch.jobs()))
    until(lambda: "Job was aborted" in grid.log(), "its log to say so")
    until(lambda: not folders(grid), "the folder is gone")


def test_it_is_idle_while_it_waits_there(grid: Grid) -> None:
    job = grid.submit("exit 0", "batch_extra_submit_args = --begin=now+1hour\n")
    until(lambda: grid.pool.jobs(job)[0].get("GridJobStatus") == "IDLE", "it waits there")
    assert grid.pool.status_of(job) == 1
    assert grid.pool.tool("condor_suspend", job).returncode != 0
    grid.pool.run("condor_rm", job)
    grid.pool.until_status(job, 0)
    assert grid.states_of(job) == ["CANCELLED"]


@pytest.mark.parametrize("daemon", ["shadow-host", "schedd"])
def test_a_daemon_dies_while_it_runs(grid: Grid, daemon: str) -> None:
    job = grid.submit("while [ ! -e go ]; do sleep 0.1; done; echo done", "should_transfer_files = NO\n")
    grid.pool.until_status(job, 2)
    grid.pool.kill(daemon)
    (grid.pool.work / "go").touch()
    ad = grid.ended(job)
    (grid.pool.work / "go").unlink()
    assert ad["ExitCode"] == 0
    assert (grid.pool.work / "out").read_text() == "done\n"
    assert grid.states_of(job) == ["COMPLETED"]
    assert [grid.log().count(f"\n{number} (") for number in ("027", "001", "005")] == [1, 1, 1]


def answer_late(grid: Grid, folder: Path) -> None:
    """Have sbatch hand the next job on, and answer when it is let go."""
    (folder / "wait").touch()
    grid.command("sbatch", f'{shutil.which("sbatch")} "$@" > {folder}/answer\ntouch {folder}/asked\n'
                           f"while [ -e {folder}/wait ]; do sleep 0.1; done\ncat {folder}/answer")


def test_a_host_dies_between_the_submission_and_its_answer(grid: Grid) -> None:
    folder = grid.pool.folder / "late"
    folder.mkdir()
    folder.chmod(0o777)
    answer_late(grid, folder)
    job = grid.submit("echo once >> $TALLY", f'environment = "TALLY={grid.pool.work}/tally"\n')
    until((folder / "asked").exists, "sbatch has handed it on")
    grid.pool.kill("shadow-host")
    ad = grid.ended(job)
    (folder / "wait").unlink()
    grid.command("sbatch")
    assert ad["ExitCode"] == 0
    assert (grid.pool.work / "tally").read_text() == "once\n"
    assert len(grid.states_of(job)) == 1
    assert grid.log().count("\n027 (") == 1


def test_slurm_is_down(grid: Grid) -> None:
    running = grid.submit("while [ ! -e go2 ]; do sleep 0.1; done", "should_transfer_files = NO\n")
    grid.pool.until_status(running, 2)
    grid.batch.stop("slurmctld")
    until(lambda: "Detected Down Grid Resource\n    GridResource: batch slurm\n" in grid.log(), "it is seen to be down")
    until(lambda: grid.pool.jobs(running)[0].get("GridResourceUnavailableTime"), "its job to say so")
    assert grid.pool.status_of(running) == 2
    grid.batch.start_controller()
    until(lambda: "Grid Resource Back Up\n" in grid.log(), "it is seen to be up")
    (grid.pool.work / "go2").touch()
    assert grid.ended(running)["ExitCode"] == 0
    grid.batch.stop("slurmctld")
    job = grid.submit("exit 0")
    grid.pool.until_status(job, 5)
    (ad,) = grid.pool.jobs(job)
    assert "could not be reached 3 times in a row" in str(ad["HoldReason"])
    grid.batch.start_controller()
    grid.pool.run("condor_release", job)
    assert grid.ended(job)["ExitCode"] == 0


def test_it_is_over_without_a_word(grid: Grid) -> None:
    job = grid.submit("sleep 600", "should_transfer_files = NO\n")
    grid.pool.until_status(job, 2)
    number = str(grid.pool.jobs(job)[0]["GridJobId"]).split()[-1]
    grid.batch.said("scancel", number)
    grid.pool.until_status(job, 5)
    assert "it was cancelled there" in str(grid.pool.jobs(job)[0]["HoldReason"])
    grid.pool.run("condor_rm", job)
    grid.pool.until_status(job, 0)


def test_a_command_that_never_answers_stops_nobody(grid: Grid) -> None:
    job = grid.submit("while [ ! -e go3 ]; do sleep 0.1; done", "should_transfer_files = NO\n")
    grid.pool.until_status(job, 2)
    grid.command("squeue", "exec sleep 1000")
    until(lambda: grid.pool.jobs(job)[0].get("GridResourceUnavailableTime"), "squeue is given up")
    (grid.pool.work / "go3").touch()
    assert grid.ended(job)["ExitCode"] == 0  # by its own word
    grid.command("squeue")


def test_many_jobs_run_once_each_whoever_is_killed(grid: Grid) -> None:
    jobs = 40
    tally = grid.pool.work / "many"
    program = grid.pool.work / "program"
    program.write_text(f'#!/bin/sh\necho "$1" >> {tally}\nsleep 0.2\n')
    program.chmod(0o755)
    (grid.pool.work / "job.log").unlink(missing_ok=True)
    cluster = grid.pool.submit(f"{HEAD}executable = program\narguments = $(Process)\nqueue {jobs}\n")
    for number, daemon in enumerate(("shadow-host", "schedd", "shadow-host", "shadow-host", "schedd"), 1):
        until(lambda so_many=number * 6: tally.exists() and len(tally.read_text().splitlines()) >= so_many,
              "some have run")
        grid.pool.kill(daemon)
    grid.pool.wait()
    until(lambda: len(grid.pool.history(str(cluster))) == jobs, "all are in the history")
    assert sorted(map(int, tally.read_text().split())) == list(range(jobs))
    assert [ad["ExitCode"] for ad in grid.pool.history(str(cluster))] == [0] * jobs
    log = grid.log()
    assert [log.count(f"\n{number} (") for number in ("027", "005")] == [jobs, jobs]


@pytest.mark.root
def test_in_a_pool_of_many_users_it_is_the_owners() -> None:
    with fresh_folder() as folder, slurm(folder) as batch, a_shared_pool(
            f"SLURM_CONF = {batch.conf}\nGRIDMANAGER_JOB_PROBE_INTERVAL = 1\n", drops_root=True) as pool:
        pool.submit_as(pool.alice, f"{HEAD}executable = /usr/bin/id\narguments = -un\noutput = who\nqueue\n")
        pool.run_as(pool.alice, "condor_wait", "-wait", "90", "job.log")
        out = pool.alice.home / "who"
        assert (out.read_text().strip(), out.stat().st_uid) == (pool.alice.name, pool.alice.uid)
        assert batch.said("squeue", "--noheader", "--states=all", "--format=%u") == pool.alice.name
