"""Machines of a real Slurm as members of an ordinary user's pool, for a time (condor_annex)."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator

import attrs
import pytest

from tests.harness.slurm import SlurmOnLoopback, slurm
from tests.harness.user_pool import UserPool, lending_pools, user_pool
from tests.pool_fixture import fresh_folder, until

JOB = """executable = /bin/sh
arguments = "-c 'cat word; {then}'"
transfer_input_files = word
transfer_executable = false
should_transfer_files = yes
output = out
log = {log}
requirements = TARGET.AnnexName == "{annex}"
queue
"""


@attrs.frozen
class Rented:
    """A pool that runs nothing at home, and a Slurm."""

    pool: UserPool
    batch: SlurmOnLoopback

    def annex(self, *words: str) -> str:
        return str(self.pool.run("condor_annex", *words))

    def machines(self, name: str) -> list[str]:
        """The slots of an annex."""
        return self.pool.run("condor_status", "-af", "Machine", "-constraint", f'AnnexName == "{name}"').split()

    def states(self, name: str) -> set[str]:
        """What Slurm says of an annex's jobs."""
        return {line.split()[1] for line in self.batch.jobs() if line.startswith(f"condor-annex.{name} ")}


@pytest.fixture(scope="module")
def rented() -> Iterator[Rented]:
    with fresh_folder() as folder, slurm(folder) as batch, \
            user_pool(f"START = false\nSLURM_CONF = {batch.conf}\nNEGOTIATOR_INTERVAL = 5\n") as pool:
        (pool.work / "word").write_text("from home\n")
        if pool.user:
            shutil.chown(pool.work / "word", pool.user)
        yield Rented(pool, batch)


def test_machines_join_run_jobs_and_leave_when_told(rented: Rented) -> None:
    said = rented.annex("slurm", "--count", "2", "--lifetime", "30m", "--name", "two", "--memory", "500M")
    assert "two: 2 machines for 0.5 hours each" in said
    machines = until(lambda: found if len(found := rented.machines("two")) == 2 else None, "both machines in the pool")
    assert len(set(machines)) == 2
    assert all(re.fullmatch(r"annex-two-\d+\..+", machine) for machine in machines)
    pool = rented.pool
    job = pool.submit(JOB.format(then="id -u", log="ran.log", annex="two"))
    pool.wait("ran.log")
    words = (pool.work / "out").read_text().split()
    assert words[:2] == ["from", "home"]
    assert words[2] != "0"
    assert pool.history(f"{job}.0")[0]["ExitCode"] == 0
    listed = rented.annex("list")
    assert re.search(r"^two +Slurm job \d+ +2 running +0 not joined yet$", listed, re.MULTILINE), listed
    long = pool.submit(JOB.format(then="sleep 600", log="long.log", annex="two"))
    pool.until_status(f"{long}.0", 2)
    rented.annex("stop", "two")
    until(lambda: "004 (" in (pool.work / "long.log").read_text(), "the job to be evicted")
    until(lambda: rented.states("two") & {"RUNNING", "COMPLETING"} == set(), lambda: str(rented.batch.jobs()))
    until(lambda: not rented.machines("two"), "its machines to have left the pool")
    pool.run("condor_rm", str(long))
    assert "its folder is removed" in rented.annex("stop", "two")
    assert "two" not in rented.annex("list")


def test_a_machine_drains_before_its_time_is_over(rented: Rented) -> None:
    pool = rented.pool
    rented.annex("slurm", "--lifetime", "1m", "--name", "short")
    until(lambda: rented.machines("short"), "it to join")
    (ends,) = pool.run("condor_status", "-af", "AnnexEnds", "-constraint", 'AnnexName == "short"').split()
    job = pool.submit(JOB.format(then="trap exit TERM; sleep 600 & wait", log="short.log", annex="short"))
    pool.until_status(f"{job}.0", 2)
    until(lambda: "004 (" in (pool.work / "short.log").read_text(), "it to be vacated in time")
    until(lambda: rented.states("short") == {"COMPLETED"}, lambda: str(rented.batch.jobs()))
    assert pool.jobs(str(job))[0]["JobStatus"] == 1
    ended = rented.batch.said("scontrol", "show", "job", "--oneliner")
    assert "TIMEOUT" not in ended
    assert int(ends) > 0
    pool.run("condor_rm", str(job))
    rented.annex("stop", "short")


def test_what_cannot_be_is_said_before_slurm_is_asked(rented: Rented) -> None:
    tool = rented.pool.tool
    for words, why in (
            (("slurm", "--count", "0"), "no number from 1 to"), (("slurm", "--lifetime", "soon"), "expected 8h"),
            (("slurm", "--name", "../x"), "is no name"), (("stop", "never"), "there is no annex never"),
            (("slurm", "--count", "2", "--tokens", "word"), "oken"),
            (("slurm", "--partition", "nosuch", "--name", "nowhere"), "nvalid partition")):
        done = tool("condor_annex", *words)
        assert done.returncode != 0
        assert why in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert "nowhere" not in rented.annex("list")
    assert not [line for line in rented.batch.jobs() if line.startswith("condor-annex.nowhere")]


def test_tokens_made_elsewhere_are_good_for_one_machine_each(rented: Rented) -> None:
    pool = rented.pool
    token = pool.run("condor_pool", "token", "--roles", "master,startd", "--stay", "1h").strip()
    (pool.work / "tokens").write_text(f"{token}\n")
    os.chmod(pool.work / "tokens", 0o644)
    assert "has 1 different tokens for 2 machines" in pool.tool(
        "condor_annex", "slurm", "--count", "2", "--tokens", "tokens").stderr
    rented.annex("slurm", "--tokens", "tokens", "--name", "given", "--lifetime", "20m")
    until(lambda: rented.machines("given"), "it to join")
    rented.annex("slurm", "--tokens", "tokens", "--name", "again", "--lifetime", "20m")
    until(lambda: rented.states("again") == {"FAILED"}, lambda: str(rented.batch.jobs()))
    log = (pool.folder / ".condor-annex/again/log.1").read_text()
    assert "token" in log, log
    for name in ("given", "again"):
        rented.annex("stop", name)
    until(lambda: not rented.machines("given"), "it to leave")


def test_a_machine_of_a_cluster_runs_jobs_of_another_pool_through_gateways_until_its_time_is_over() -> None:
    """The cluster's own pool is its user's; its gateway dials out, and machines there reach nothing of home's."""
    with fresh_folder() as folder, slurm(folder) as batch, \
            lending_pools(f"SLURM_CONF = {batch.conf}\n") as (home, away):
        until(lambda: "has dialled" in home.run("condor_flock", "status"), "the gateways to meet")
        away.run("condor_annex", "slurm", "--lifetime", "2m", "--name", "glide")
        (home.work / "word").write_text("from home\n")
        if home.user:
            shutil.chown(home.work / "word", home.user)
        job = f"{home.submit(JOB.format(then='trap exit TERM; sleep 600 & wait', log='glide.log', annex='glide'))}.0"
        home.until_status(job, 2)
        host = home.jobs(job)[0]["RemoteHost"]
        assert re.fullmatch(r"slot1_1@annex-glide-\d+\..+%away", host), host
        assert home.run("condor_tail", job) == "from home\n"
        until(lambda: "004 (" in (home.work / "glide.log").read_text(), "it to be vacated in time", 150.0)
        until(lambda: all(line.endswith("COMPLETED") for line in batch.jobs()), lambda: str(batch.jobs()))
        assert "TIMEOUT" not in batch.said("scontrol", "show", "job", "--oneliner")
        assert home.jobs(job)[0]["JobStatus"] == 1
        home.run("condor_rm", job)
