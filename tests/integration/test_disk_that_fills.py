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
