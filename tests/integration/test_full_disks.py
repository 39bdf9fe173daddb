"""Disks that fill while files travel: at home, and on the machine that a job goes to."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, small_file_system, until


def fill(path: Path) -> None:
    """Take all the room there is."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)


def test_outputs_wait_for_room_at_home_and_the_program_runs_once(pool: PersonalPool) -> None:
    with small_file_system("8m") as home:
        open_to_jobs(home)
        filler = home / "filler"
        fill(filler)
        marks = pool.work / "marks"
        marks.mkdir()
        open_to_jobs(marks)
        program = pool.work / "large.sh"
        program.write_text(f"#!/bin/sh\nmktemp {marks}/XXXXXX\nhead -c 3000000 /dev/zero > large.bin\n")
        program.chmod(0o755)
        cluster = pool.submit(f"executable = {program}\nshould_transfer_files = YES\nlog = {pool.work}/large.log\n"
                              f"transfer_output_files = large.bin\ninitialdir = {home}\nqueue\n")
        until(lambda: "wait for room" in pool.logs(1000), "the shadow says that it waits")
        (job,) = pool.jobs(str(cluster))
        assert job["JobStatus"] in (2, 6)
        filler.unlink()
        pool.wait("large.log")
        assert (home / "large.bin").read_bytes() == bytes(3_000_000)
        assert len(os.listdir(marks)) == 1


def test_a_job_that_waits_for_room_can_be_removed(pool: PersonalPool) -> None:
    with small_file_system("8m") as home:
        open_to_jobs(home)
        fill(home / "filler")
        cluster = pool.submit("executable = /bin/sh\narguments = \"-c 'head -c 3000000 /dev/zero > large.bin'\"\n"
                              "transfer_executable = false\nshould_transfer_files = YES\n"
                              f"transfer_output_files = large.bin\ninitialdir = {home}\nqueue\n")
        until(lambda: f"{cluster}.0: its outputs wait for room" in pool.logs(1000), "the shadow says that it waits")
        pool.run("condor_rm", str(cluster))
        until(lambda: pool.jobs(str(cluster)) == [], "it is gone")
        assert sorted(os.listdir(home)) == ["filler"]


def test_a_full_execute_machine_does_not_hold_the_job() -> None:
    """It is tried again; the log says which machine had no room where."""
    with fresh_folder() as folder, small_file_system("8m") as cache:
        pool = PersonalPool(folder, config=f"STARTER_HOST.SPOOL = {cache}\n")
        try:
            filler = cache / "filler"
            fill(filler)
            (pool.work / "input.bin").write_bytes(os.urandom(3_000_000))
            cluster = pool.submit("executable = /usr/bin/wc\narguments = -c input.bin\ntransfer_executable = false\n"
                                  "should_transfer_files = YES\ntransfer_input_files = input.bin\noutput = wc.out\n"
                                  "log = wc.log\nqueue\n")
            log = pool.work / "wc.log"
            until(lambda: "do not fit on the disk" in log.read_text(), "the log tells why it did not start")
            assert f"{cache}/starter_blobs" in log.read_text()
            assert "slot1" in log.read_text()
            assert pool.status_of(f"{cluster}.0") != 5
            filler.unlink()
            pool.wait("wc.log")
            assert (pool.work / "wc.out").read_text() == "3000000 input.bin\n"
        finally:
            pool.stop()
