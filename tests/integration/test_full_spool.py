"""A SPOOL that is full, on a real small file system."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, small_file_system, until


@pytest.fixture
def spool() -> Iterator[Path]:
    with small_file_system("12m") as folder:
        yield folder


@pytest.fixture
def pool(spool: Path) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, config=f"SPOOL = {spool}\n")
        yield made
        made.stop()
        assert "Traceback" not in made.logs(10_000)


@pytest.fixture
def negotiators_pool(spool: Path) -> Iterator[PersonalPool]:
    """Of which the negotiator alone has the small SPOOL."""
    with fresh_folder() as folder:
        made = PersonalPool(folder, config=f"NEGOTIATOR.SPOOL = {spool}\n")
        yield made
        made.stop()
        assert "Traceback" not in made.logs(10_000)


class Full:
    """The file system without room."""

    def __init__(self, spool: Path) -> None:
        self._file = spool / "filler"

    def __enter__(self) -> None:
        with self._file.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)

    def __exit__(self, *_: object) -> None:
        self._file.unlink()


def shadow_hosts(pool: PersonalPool) -> set[int]:
    return {pid for pid, command in pool.processes().items() if " shadow-host " in command}


def test_a_full_spool_refuses_submits_and_is_waited_for(pool: PersonalPool, spool: Path) -> None:
    go = pool.work / "go"
    os.mkfifo(go)
    open_to_jobs(go)
    script = pool.work / "job.sh"
    script.write_text(f"#!/bin/sh\nread line < {go}\necho $line\n")
    script.chmod(0o755)
    description = (f"executable = {script}\ntransfer_executable = false\nshould_transfer_files = YES\n"
                   "output = out\nlog = job.log\nqueue\n")
    cluster = pool.submit(description)
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: "Job executing" in (pool.work / "job.log").read_text(), "the job's start in its log")
    before, schedd = shadow_hosts(pool), pool.daemons()["schedd"]
    with Full(spool):
        for _ in range(8):
            done = pool.tool("condor_submit", stdin="executable = /bin/true\nqueue\n")
            assert done.returncode == 1, done.stdout
            assert f"{spool} cannot be written" in done.stderr, done.stderr
            assert pool.status_of(f"{cluster}.0") == 2
        held = pool.tool("condor_hold", str(cluster))
        assert held.returncode == 1
        assert "cannot be written" in held.stderr + held.stdout
        # The job ends while nobody can write that down.
        with open(go, "w", encoding="utf-8") as pipe:
            pipe.write("done\n")
        until(lambda: (pool.work / "out").exists() and (pool.work / "out").read_text() == "done\n", "the job's output")
        assert pool.status_of(f"{cluster}.0") == 2
        assert shadow_hosts(pool) <= before
        assert pool.daemons()["schedd"] == schedd
    pool.wait()
    (job,) = pool.history(str(cluster))
    assert (job["ExitCode"], job["NumJobStarts"]) == (0, 1)
    assert (pool.work / "job.log").read_text().count("005 (") == 1
    pool.submit("executable = /bin/true\nlog = next.log\nqueue\n")
    pool.wait("next.log")
    assert pool.daemons()["schedd"] == schedd


def test_no_daemon_ends_for_want_of_room(pool: PersonalPool, spool: Path) -> None:
    daemons = pool.daemons()
    with Full(spool):
        done = pool.tool("condor_submit", stdin="executable = /bin/true\nqueue\n")
        assert done.returncode == 1
        pool.run("condor_status")
    job = "executable = /bin/true\nlog = job.log\nqueue\n"
    cluster = until(lambda: pool.tool("condor_submit", "-terse", stdin=job).stdout.split(".")[0], "a submit taken")
    pool.wait()
    assert len(pool.history(cluster)) == 1
    assert {name: pid for name, pid in pool.daemons().items() if name != "shadow-host"} == {
        name: pid for name, pid in daemons.items() if name != "shadow-host"}


def test_a_schedd_that_starts_on_a_full_spool_waits_for_room(pool: PersonalPool, spool: Path) -> None:
    cluster = pool.submit("executable = /bin/true\nrequirements = false\nlog = job.log\nqueue\n")
    pool.run("condor_off", "-daemon", "schedd")
    until(lambda: "schedd" not in pool.daemons(), "the schedd's end")
    with Full(spool):
        pool.run("condor_on", "-daemon", "schedd")
        until(lambda: "cannot be written" in pool.tool("condor_q").stderr, "the reason from the schedd")
        schedd = pool.daemons()["schedd"]
        assert pool.tool("condor_submit", stdin="executable = /bin/true\nqueue\n").returncode == 1
    until(lambda: pool.tool("condor_q", str(cluster), "-af", "JobStatus").stdout.strip() == "1", "the queue as it was")
    assert pool.daemons()["schedd"] == schedd
    pool.run("condor_rm", str(cluster))


def test_a_negotiator_without_room_matches_on_and_refuses_what_it_could_not_keep(
        negotiators_pool: PersonalPool, spool: Path) -> None:
    pool, set_factor = negotiators_pool, ("condor_userprio", "-setfactor", "bob@x", "5")
    negotiator = pool.daemons()["negotiator"]
    with Full(spool):
        refused = pool.tool(*set_factor)
        assert refused.returncode == 1
        assert f"{spool}/accountant" in refused.stderr
        assert "nothing was changed" in refused.stderr
        pool.submit("executable = /bin/true\nlog = job.log\nqueue\n")
        pool.wait()
    pool.run(*set_factor)
    assert pool.daemons()["negotiator"] == negotiator


def test_a_negotiator_that_starts_without_room_waits_for_it(negotiators_pool: PersonalPool, spool: Path) -> None:
    pool = negotiators_pool
    pool.run("condor_userprio", "-setfactor", "bob@x", "5")
    pool.run("condor_off", "-daemon", "negotiator")
    until(lambda: "negotiator" not in pool.daemons(), "the negotiator's end")
    with Full(spool):
        pool.run("condor_on", "-daemon", "negotiator")
        until(lambda: "cannot be opened" in pool.tool("condor_userprio", "-allusers").stderr, "the reason")
        negotiator = pool.daemons()["negotiator"]
    until(lambda: "bob@x" in pool.tool("condor_userprio", "-allusers").stdout, "the records as they were")
    assert pool.daemons()["negotiator"] == negotiator
    pool.submit("executable = /bin/true\nlog = job.log\nqueue\n")
    pool.wait()
