"""A pool all of whose files are on one disk, which fills while it works: nothing is lost, and all goes on with room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, small_file_system, until

JOBS = 6


@pytest.fixture
def disk() -> Iterator[Path]:
    with small_file_system("48m") as folder:
        yield folder


@pytest.fixture
def pool(disk: Path) -> Iterator[PersonalPool]:
    """Everything of it is on the small disk but what its user writes."""
    with fresh_folder() as elsewhere:
        open_to_jobs(elsewhere)
        made = PersonalPool(disk, config="DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CREDD WEB\n")
        made.work = elsewhere
        try:
            yield made
        finally:
            (disk / "ballast").unlink(missing_ok=True)
            made.stop()


def fill(disk: Path) -> None:
    """Take all the room there is, also what has been freed since."""
    with (disk / "ballast").open("ab", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def no_traceback(pool: PersonalPool) -> None:
    for path in (pool.dir / "log").iterdir():
        said = path.read_text(errors="replace")
        assert "Traceback" not in said, f"{path.name}:\n{said}"


def test_no_job_is_lost_and_none_ends_twice(pool: PersonalPool, disk: Path) -> None:
    marks = pool.work / "marks"
    marks.mkdir()
    open_to_jobs(marks)
    (pool.work / "job.sh").write_text(
        f"#!/bin/sh\ntouch {marks}/began.$1\nuntil [ -e {marks}/go ]; do sleep 0.1; done\n"
        f"echo done $1 || {{ touch {marks}/failed.$1; exit 1; }}\n")
    (pool.work / "job.sh").chmod(0o755)
    cluster = pool.submit("executable = job.sh\narguments = $(Process)\noutput = $(Process).out\nlog = job.log\n"
                          f"should_transfer_files = YES\nqueue {JOBS}\n")
    until(lambda: len(list(marks.glob("began.*"))) == 4, "a job on each slot")
    daemons = pool.daemons()
    fill(disk)
    (marks / "go").touch()

    def failed() -> bool:
        fill(disk)
        return any(marks.glob("failed.*"))

    until(failed, "a program has found no room for its output")
    refused = pool.tool("condor_submit", stdin="executable = /bin/true\nqueue\n")
    assert refused.returncode == 1
    assert f"{pool.dir}/spool cannot be written" in refused.stderr
    assert "make room" in refused.stderr
    pool.run("condor_q")
    (disk / "ballast").unlink()
    pool.wait("job.log")
    ended = {job["ProcId"]: job["ExitCode"] for job in pool.history(str(cluster))}
    assert ended == dict.fromkeys(range(JOBS), 0)
    for process in range(JOBS):
        assert (pool.work / f"{process}.out").read_text() == f"done {process}\n"
    log = (pool.work / "job.log").read_text()
    assert log.count("\n005 (") == JOBS
    assert "others have filled it" in log
    assert {name: pid for name, pid in pool.daemons().items() if "-host" not in name} == {
        name: pid for name, pid in daemons.items() if "-host" not in name}
    no_traceback(pool)


@pytest.fixture
def home() -> Iterator[Path]:
    with small_file_system("4m") as folder:
        open_to_jobs(folder)
        yield folder


@pytest.fixture
def roomy_pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder)
        try:
            yield made
        finally:
            made.stop()
        no_traceback(made)


def waits_for_a_file(pool: PersonalPool) -> tuple[str, Path]:
    """A description's first lines, of a job that ends as soon as there is a certain file."""
    program = pool.work / "waits.sh"
    program.write_text(f"#!/bin/sh\nuntil [ -e {pool.work}/go ]; do sleep 0.1; done\n")
    program.chmod(0o755)
    return f"executable = {program}\n", pool.work / "go"


def test_the_last_event_of_a_job_waits_for_room_in_its_log(roomy_pool: PersonalPool, home: Path) -> None:
    """Also when the shadow host that knows of it has died meanwhile: nothing else would ever have it written."""
    pool = roomy_pool
    description, go = waits_for_a_file(pool)
    cluster = pool.submit(f"{description}log = {home}/job.log\nqueue\n")
    log = home / "job.log"
    until(lambda: "\n001 (" in log.read_text(), "the job's start in its log")
    with log.open("a") as file:  # the room that is left in the last block of the log
        file.write("\n" * (-log.stat().st_size % 4096))
    fill(home)
    go.touch()
    pool.until_status(f"{cluster}.0", 0)
    until(lambda: "cannot be written: No space left" in pool.logs(1000), "the shadow host says which log has no room")
    pool.kill("shadow-host")
    assert "005 (" not in log.read_text()
    (home / "ballast").unlink()
    pool.wait(str(log))
    assert log.read_text().count("\n005 (") == 1


def test_a_workflow_whose_folder_is_full_goes_on_with_room(roomy_pool: PersonalPool, home: Path) -> None:
    pool = roomy_pool
    description, go = waits_for_a_file(pool)
    (home / "node.sub").write_text(f"{description}queue\n")
    (home / "a.dag").write_text("JOB A node.sub\nJOB B node.sub\nJOB C node.sub\nPARENT A CHILD B\nPARENT B CHILD C\n"
                                "NODE_STATUS_FILE status 1\nJOBSTATE_LOG states\n")
    (home / "b.dag").write_text("JOB A node.sub\n")
    pool.run("condor_submit_dag", "a.dag", cwd=home)
    until(lambda: (home / "a.dag.nodes.log").exists() and "\n001 (" in (home / "a.dag.nodes.log").read_text(),
          "the first node runs")
    fill(home)
    refused = pool.tool("condor_submit_dag", "b.dag", cwd=home)
    assert refused.returncode == 1
    assert "b.dag.condor.sub: No space left on device" in refused.stderr
    go.touch()
    until(lambda: len(pool.jobs()) == 1, "the first node's job has ended, and the workflow has not")
    fill(home)
    (home / "ballast").unlink()
    until(lambda: not pool.jobs(), "the workflow has ended")
    out = (home / "a.dag.dagman.out").read_text()
    assert "EXITING WITH STATUS 0" in out, out
    assert not list(home.glob(".*.part"))
    assert (home / "a.dag.nodes.log").read_text().count("\n005 (") == 3


def test_a_workflow_whose_journal_has_no_room_is_begun_anew_when_it_has(home: Path) -> None:
    """Its events come from a log elsewhere: so it learns of them, and cannot keep them."""
    with fresh_folder() as folder:
        logs = folder / "logs"
        logs.mkdir()
        open_to_jobs(logs)
        pool = PersonalPool(folder, config=f"DAGMAN_DEFAULT_NODE_LOG = {logs}/nodes\n")
        try:
            (home / "node.sub").write_text("executable = /bin/true\ntransfer_executable = false\nqueue\n")
            (home / "a.dag").write_text("".join(f"JOB N{number} node.sub\n" for number in range(160)))
            said = pool.run("condor_submit_dag", "-maxjobs", "8", "a.dag", cwd=home)
            cluster = int(said.rsplit("cluster ", 1)[1].split(".")[0])
            until(lambda: (logs / "nodes").exists() and "\n005 (" in (logs / "nodes").read_text(), "a node has ended")

            def stands() -> bool:
                fill(home)
                return [job["ClusterId"] for job in pool.jobs()] == [cluster]

            until(stands, "nothing more is submitted")
            (home / "ballast").unlink()
            until(lambda: not pool.jobs(), "the workflow has ended")
            (job,) = pool.history(str(cluster))
            assert job["ExitCode"] == 0
            assert job["NumJobStarts"] <= 3
            assert (logs / "nodes").read_text().count("\n005 (") == 160
        finally:
            (home / "ballast").unlink(missing_ok=True)
            pool.stop()


def test_a_startd_that_began_on_a_full_disk_has_room_when_there_is_some(disk: Path) -> None:
    """Its slots were made of nothing."""
    with fresh_folder() as folder:
        pool = PersonalPool(folder, config=f"EXECUTE = {disk}\n")
        try:
            fill(disk)
            pool.until_restarted("startd", pool.kill("startd"))
            until(lambda: pool.tool("condor_status", "-af", "TotalDisk").stdout.split() == ["1"] * 4,
                  "slots without room")
            pool.submit("executable = /bin/true\nlog = job.log\nqueue 4\n")
            (disk / "ballast").unlink()
            pool.wait("job.log")
            shares = pool.run("condor_status", "-af", "TotalSlotDisk").split()
            assert len(shares) == 4
            assert sum(map(int, shares)) > 40 << 10
        finally:
            (disk / "ballast").unlink(missing_ok=True)
            pool.stop()
