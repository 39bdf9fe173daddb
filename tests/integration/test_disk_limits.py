"""A job that writes more than its own is held soon, whatever it does to the disk; the others do not suffer for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, small_file_system, until

NO_REPORTS = "STARTER_INITIAL_UPDATE_INTERVAL = 3600\nSTARTER_UPDATE_INTERVAL = 3600\n"
"""A run's own reports, which measure it too, come too late for any of these tests."""


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A file system of 64 MB."""
    with small_file_system("64m") as made:
        yield made


@pytest.fixture(scope="module")
def small_disk(disk: Path) -> Iterator[PersonalPool]:
    """A pool of two slots whose jobs' disk that is."""
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2, config=(
            f"EXECUTE = {disk}/execute\nSTARTD_ENFORCE_DISK_LIMITS = True\n{NO_REPORTS}"))
        yield made
        made.stop()


@pytest.fixture(autouse=True)
def room(disk: Path) -> None:
    """A job is held before its files are gone, which may be all the room that the next test's job needs."""
    until(lambda: not list((disk / "execute").glob("dir_*")), "the files of the jobs before are gone")


def script(pool: PersonalPool, name: str, text: str) -> str:
    program = pool.work / f"{name}.sh"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return (f"executable = {program}\nlog = {name}.log\nshould_transfer_files = YES\nrequest_disk = 8MB\n"
            "transfer_output_files =\nqueue\n")


def marks_of(pool: PersonalPool, name: str) -> Path:
    folder = pool.work / name
    folder.mkdir()
    open_to_jobs(folder)
    return folder


def held_for_disk(pool: PersonalPool, cluster: int) -> str:
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (34, 104), job["HoldReason"]
    assert job["DiskUsage"] > 8 << 10, "it may have been looked at while it wrote: more is not certain"
    return str(job["HoldReason"])


def test_a_job_that_writes_slowly_is_held_with_the_numbers(small_disk: PersonalPool) -> None:
    cluster = small_disk.submit(script(small_disk, "slow", (
        "for name in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 3000000 /dev/zero > $name || exit 1; sleep 0.2; done\n"
        "sleep 1000")))
    reason = held_for_disk(small_disk, cluster)
    assert "MB of disk on slot" in reason
    assert "MB that were its own (RequestDisk), and was killed" in reason


def test_a_job_that_fills_the_disk_at_once_is_held_and_no_other_is(small_disk: PersonalPool) -> None:
    """Another one meets the full disk or does not: it ends well, and is never held."""
    pool, marks = small_disk, marks_of(small_disk, "marks")
    innocent = pool.submit(script(pool, "innocent", (
        f"touch {marks}/began\nwhile :; do\n  head -c 4096 /dev/zero > file || {{ touch {marks}/failed; exit 1; }}\n"
        f"  [ -e {marks}/over ] && exit 0\n  sleep 0.1\ndone")))
    until((marks / "began").exists, "the other job runs")
    guilty = pool.submit(script(pool, "guilty", "cat /dev/zero > large\nsleep 1000"))
    held_for_disk(pool, guilty)
    (marks / "over").touch()
    pool.wait("innocent.log")
    log = (pool.work / "innocent.log").read_text()
    assert "Job was held" not in log
    (job,) = pool.history(str(innocent))
    assert (job["ExitBySignal"], job["ExitCode"]) == (False, 0)
    if (marks / "failed").exists():
        assert "others have filled it" in log
        assert job["NumJobStarts"] >= 2


def test_a_job_that_fails_on_the_disk_that_it_has_filled_is_held(small_disk: PersonalPool) -> None:
    cluster = small_disk.submit(script(small_disk, "fails", "cat /dev/zero > large\nexit 1"))
    held_for_disk(small_disk, cluster)


@pytest.mark.parametrize(("name", "text"), [
    ("nameless", "exec 3> hidden\nrm hidden\nhead -c 40000000 /dev/zero >&3\nsleep 1000"),
    ("removed", "rm -f _condor_stdout\nhead -c 40000000 /dev/zero\nsleep 1000"),
])
def test_a_job_that_fills_a_deleted_file_is_held_with_the_numbers(small_disk: PersonalPool, name: str,
                                                                  text: str) -> None:
    cluster = small_disk.submit(f"output = {name}.out\n" + script(small_disk, name, text))
    assert "MB of disk on slot" in held_for_disk(small_disk, cluster)
    (job,) = small_disk.jobs(str(cluster))
    assert job["DiskUsage"] < 48 << 10, "a file counts once, however many descriptors lead to it"
