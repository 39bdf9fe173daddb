"""A SPOOL on a disk that is read-only, or that fails: a real ext4 file system in a file, on a loop device."""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, until

SHUTDOWN = 0x8004587D
"""The ioctl by which a file system fails: from then on every access ends with EIO (see linux/fs.h, FS_IOC_SHUTDOWN)."""
NO_LOGFLUSH = 2
WAITING = "executable = /bin/sleep\narguments = 600\ntransfer_executable = false\nrequirements = false\nqueue\n"


class Disk:
    """The file system."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.folder = folder
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("this machine has no mkfs.ext4")
        with image.open("wb") as file:
            file.truncate(24 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        done = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            pytest.skip(f"this machine does not let us mount a file: {done.stderr.strip()}")

    def remount(self, how: str) -> None:
        """``ro`` or ``rw``, as soon as nobody has a file open for writing."""
        until(lambda: subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], capture_output=True,
                                     check=False).returncode == 0, f"the disk remounted {how}")  # fmt: skip

    def fail(self) -> None:
        """From now on nothing can be read from the disk or written to it."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOGFLUSH))
        except OSError as error:
            pytest.skip(f"this kernel does not let a file system fail on demand: {error}")
        finally:
            os.close(descriptor)

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with fresh_folder() as folder:
        (folder / "spool").mkdir()
        made = Disk(folder / "image", folder / "spool")
        yield made
        made.unmount()


@pytest.fixture
def pool(disk: Disk) -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2, config=f"SCHEDD.SPOOL = {disk.folder}\n")
        yield made
        made.stop()


def test_a_schedd_that_starts_on_a_read_only_disk_waits_and_says_so(pool: PersonalPool, disk: Disk) -> None:
    cluster = pool.submit(WAITING)
    pool.run("condor_off", "-daemon", "schedd")
    until(lambda: "schedd" not in pool.daemons(), "the schedd's end")
    disk.remount("ro")
    pool.run("condor_on", "-daemon", "schedd")
    said = until(lambda: done.stderr if "cannot be written" in (done := pool.tool("condor_q")).stderr else "",
                 "an answer from the schedd")  # fmt: skip
    assert str(disk.folder) in said
    schedd = pool.daemons()["schedd"]
    refused = pool.tool("condor_submit", stdin=WAITING)
    assert refused.returncode == 1
    assert "Read-only file system" in refused.stderr
    disk.remount("rw")
    until(lambda: pool.tool("condor_q", str(cluster), "-af", "JobStatus").stdout.strip() == "1", "the queue as it was")
    assert pool.daemons()["schedd"] == schedd
    pool.submit("executable = /bin/true\nlog = job.log\nqueue\n")
    pool.wait()


def test_a_disk_that_fails_stops_neither_the_schedd_nor_what_runs(pool: PersonalPool, disk: Disk) -> None:
    go = pool.work / "go"
    os.mkfifo(go)
    open_to_jobs(go)
    script = pool.work / "job.sh"
    script.write_text(f"#!/bin/sh\nread line < {go}\necho $line\n")
    script.chmod(0o755)
    pool.submit(f"executable = {script}\ntransfer_executable = false\nshould_transfer_files = YES\n"
                "output = out\nlog = job.log\nqueue\n")
    until(lambda: (pool.work / "job.log").exists() and "Job executing" in (pool.work / "job.log").read_text(),
          "the job's start in its log")  # fmt: skip
    schedd = pool.daemons()["schedd"]
    disk.fail()
    refused = pool.tool("condor_submit", stdin=WAITING)
    assert refused.returncode == 1
    assert "cannot be written" in refused.stderr
    # What cannot be read is not pretended to be empty.
    said = until(lambda: done.stderr if "cannot be written" in (done := pool.tool("condor_q")).stderr else "",
                 "the reason from the schedd")  # fmt: skip
    assert str(disk.folder) in said
    with open(go, "w", encoding="utf-8") as pipe:
        pipe.write("done\n")
    until(lambda: (pool.work / "out").exists() and (pool.work / "out").read_text() == "done\n", "the job's output")
    assert pool.daemons()["schedd"] == schedd
    pool.kill("schedd")
    pool.until_restarted("schedd", schedd)
    until(lambda: "cannot be written" in pool.tool("condor_q").stderr, "the reason from the next schedd")
    assert pool.tool("condor_q").returncode == 1
