"""``-peaceful``: what runs finishes first, and nothing else begins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, open_to_jobs, until


def waiting_job(pool: PersonalPool, name: str) -> tuple[int, Path]:
    """A job that runs until someone writes into its pipe."""
    pipe = pool.work / f"{name}.pipe"
    os.mkfifo(pipe)
    open_to_jobs(pipe)
    script = pool.work / f"{name}.sh"
    script.write_text(f"#!/bin/sh\nread line < {pipe}\nexit $line\n")
    script.chmod(0o755)
    cluster = pool.submit(f"executable = {script}\ntransfer_executable = false\nlog = {name}.log\nqueue\n")
    until(lambda: "001 (" in (pool.work / f"{name}.log").read_text(), f"the start of {name}")
    return cluster, pipe


@pytest.mark.parametrize("daemon", ["startd", "schedd"])
def test_a_peaceful_off_waits_for_the_job(own_pool: PersonalPool, daemon: str) -> None:
    cluster, pipe = waiting_job(own_pool, "first")
    pid = own_pool.daemons()[daemon]
    said = own_pool.run("condor_off", "-peaceful", "-daemon", daemon)
    assert "-Peaceful" in said
    later = own_pool.submit("executable = /bin/true\nlog = later.log\nqueue\n")
    assert own_pool.status_of(f"{cluster}.0") == 2
    assert own_pool.daemons()[daemon] == pid
    assert own_pool.status_of(f"{later}.0") == 1
    pipe.write_text("3\n")
    until(lambda: own_pool.daemons().get(daemon) != pid, f"the end of the {daemon}")
    own_pool.wait("first.log")
    own_pool.run("condor_on", "-daemon", daemon)
    own_pool.wait("later.log")
    assert own_pool.history(str(cluster))[0]["ExitCode"] == 3
    assert own_pool.history(str(cluster))[0]["NumJobStarts"] == 1
    assert own_pool.history(str(later))[0]["JobStartDate"] >= own_pool.history(str(cluster))[0]["CompletionDate"]


def test_a_peaceful_restart_of_everything_waits_for_the_job(own_pool: PersonalPool) -> None:
    cluster, pipe = waiting_job(own_pool, "first")
    before = own_pool.daemons()
    own_pool.run("condor_restart", "-peaceful")
    until(lambda: own_pool.daemons().get("negotiator") != before["negotiator"], "the end of the negotiator")
    assert own_pool.daemons()["startd"] == before["startd"]
    pipe.write_text("4\n")
    until(lambda: own_pool.daemons().get("schedd") not in (None, before["schedd"]), "another schedd")
    (job,) = own_pool.history(str(cluster))
    assert (job["ExitCode"], job["NumJobStarts"]) == (4, 1)
    own_pool.submit("executable = /bin/true\nlog = later.log\nqueue\n")
    own_pool.wait("later.log")


def test_a_faster_wish_overtakes_a_peaceful_one(own_pool: PersonalPool) -> None:
    cluster, _ = waiting_job(own_pool, "first")
    pid = own_pool.daemons()["startd"]
    own_pool.run("condor_off", "-peaceful", "-daemon", "startd")
    own_pool.run("condor_off", "-fast", "-daemon", "startd")
    until(lambda: own_pool.daemons().get("startd") != pid, "the end of the startd")
    own_pool.until_status(f"{cluster}.0", 1)
