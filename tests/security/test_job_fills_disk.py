"""A job that fills the machine's disk, by whatever trick, in pools that say nothing of disks; honest ones beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.root_pool import RootPool, root_pool
from tests.pool_fixture import PersonalPool, fresh_folder, open_to_jobs, small_file_system, until

SIZE_MB = 64
LITTLE_MB = 4


@pytest.fixture(scope="module")
def pools() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def default(pools: ExitStack) -> RootPool:
    """A pool of two slots, which root has started, with 32 MB of disk each."""
    disk = pools.enter_context(small_file_system(f"{SIZE_MB}m"))
    return pools.enter_context(root_pool(slots=2, config=(
        f"EXECUTE = {disk}/execute\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\n"
        "SHADOW_QUEUE_UPDATE_INTERVAL = 1\n")))


@pytest.fixture(scope="module")
def disk(pools: ExitStack) -> Path:
    return pools.enter_context(small_file_system(f"{SIZE_MB}m"))


@pytest.fixture(scope="module")
def boundless(pools: ExitStack, disk: Path) -> PersonalPool:
    """One in which a job may use any amount, but for what stays free: a twentieth, which is 3.2 MB."""
    folder = pools.enter_context(fresh_folder())
    made = PersonalPool(folder, slots=2, config=(
        f"EXECUTE = {disk}/execute\nJOB_DISK_LIMIT = 0\n"
        "STARTER_INITIAL_UPDATE_INTERVAL = 3600\nSTARTER_UPDATE_INTERVAL = 3600\n"))
    pools.callback(made.stop)
    return made


def submitted(pool: PersonalPool, name: str, text: str, *, interpreter: str = "/bin/sh") -> int:
    program = pool.work / name
    program.write_text(f"#!{interpreter}\n{text}\n")
    program.chmod(0o755)
    return pool.submit(f"executable = {program}\nlog = {name}.log\nshould_transfer_files = YES\n"
                       "request_memory = 256MB\ntransfer_output_files =\nqueue\n")


def reason_of_hold(pool: PersonalPool, cluster: int) -> str:
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert (job["HoldReasonCode"], job["HoldReasonSubCode"]) == (34, 104), job["HoldReason"]
    pool.run("condor_rm", str(cluster))
    return str(job["HoldReason"])


LARGE = "open('large', 'wb').write(bytes(48 << 20))"
ATTACKS = {
    "fills it at once": ("/bin/sh", "cat /dev/zero > large\nsleep 1000"),
    "begins children that do": ("/bin/sh", "for name in 1 2 3 4; do cat /dev/zero > $name & done\nsleep 1000"),
    "makes small files": ("/usr/bin/env python3", "for number in range(60000): open(str(number), 'wb').write(b'x')\n"
                                                  "import time; time.sleep(1000)"),
    "makes empty files": ("/usr/bin/env python3", "for number in range(60000): open(str(number), 'w').close()\n"
                                                  "import time; time.sleep(1000)"),
    "closes its folder": ("/bin/sh", "mkdir -m 300 closed\ncat /dev/zero > closed/large\nsleep 1000"),
    "shuts a folder in a shut one": ("/bin/sh", "mkdir -p a/b\ncd a/b\nhead -c 48000000 /dev/zero > large\ncd ../..\n"
                                                "chmod 0 a/b a\nsleep 1000"),
    "goes deep down": ("/usr/bin/env python3", "import os, time\nfor _ in range(1200):\n    os.mkdir('d')\n"
                                               f"    os.chdir('d')\n{LARGE}\ntime.sleep(1000)"),
    "deletes what it keeps open": ("/bin/sh", "exec 3> hidden\nrm hidden\nhead -c 48000000 /dev/zero >&3\nsleep 1000"),
    "writes to a temporary folder": ("/bin/sh", "head -c 48000000 /dev/zero > /var/tmp/large\nsleep 1000"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_job_that_takes_the_disk_is_held_with_the_numbers(default: RootPool, name: str) -> None:
    interpreter, text = ATTACKS[name]
    reason = reason_of_hold(default, submitted(default, name.replace(" ", "_"), text, interpreter=interpreter))
    assert "MB (JOB_DISK_LIMIT), and was killed" in reason
    assert "request_disk" in reason


@pytest.mark.parametrize("files", [
    "transfer_input_files = own://x/name\n", 'transfer_output_files = name\ntransfer_output_remaps = "name = own://x"\n',
])
def test_a_transfer_plugin_of_its_own_takes_no_more(default: RootPool, files: str) -> None:
    """Before the job begins, and after it has ended."""
    plugin = default.work / "plugin"
    plugin.write_text("#!/bin/sh\nmkdir -m 300 closed\ncat /dev/zero > closed/large\nsleep 1000\n")
    plugin.chmod(0o755)
    cluster = default.submit(
        "executable = /usr/bin/touch\ntransfer_executable = false\narguments = name\nlog = plugin.log\n"
        f"should_transfer_files = YES\ntransfer_plugins = own = {plugin}\n{files}queue\n")
    default.until_status(f"{cluster}.0", 5)
    (job,) = default.jobs(str(cluster))
    assert "MB (JOB_DISK_LIMIT), and was killed" in str(job["HoldReason"])
    default.run("condor_rm", str(cluster))


def test_holes_and_second_names_are_no_disk(default: RootPool) -> None:
    """A file of a TB with nothing in it, and one of 4 MB with twenty names."""
    cluster = submitted(default, "honest", (
        f"truncate -s 1T holes\nhead -c {LITTLE_MB << 20} /dev/zero > file\n"
        "for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do ln file name$number; done\n"
        "sleep 1000"))
    used = f"DiskUsage >= {LITTLE_MB << 10} && JobStatus == 2"
    until(lambda: str(cluster) in default.tool("condor_q", "-constraint", used, "-af", "ClusterId").stdout,
          "its files were looked at")
    (job,) = default.jobs(str(cluster))
    assert job["DiskUsage"] < (LITTLE_MB + 1) << 10
    default.run("condor_rm", str(cluster))


def test_the_log_says_what_bounds_the_disk(default: RootPool, boundless: PersonalPool) -> None:
    for pool, said in ((default, " MB (JOB_DISK_LIMIT, looked at), 1,024 MB stay free"),
                       (boundless, "disk any amount, 1,024 MB stay free")):
        pool.submit("executable = /bin/true\ntransfer_executable = false\nlog = said.log\nqueue\n")
        pool.wait("said.log")
        assert said in (pool.dir / "log" / "StarterHostLog").read_text()


def test_the_last_room_is_nobodys(boundless: PersonalPool, disk: Path) -> None:
    """Who has taken it is held, however much it may use, and who has taken little goes on."""
    pool, marks = boundless, boundless.work / "marks"
    marks.mkdir()
    open_to_jobs(marks)
    innocent = submitted(pool, "innocent", (
        f"echo text > file\ntouch {marks}/began\nwhile ! [ -e {marks}/over ]; do sleep 0.1; done"))
    until((marks / "began").exists, "the other job runs")
    reason = reason_of_hold(pool, submitted(pool, "guilty", (
        "while :; do head -c 1000000 /dev/zero >> large || sleep 1000; sleep 0.05; done")))
    assert "MB were left there (JOB_DISK_LEAVES), and was killed" in reason
    (marks / "over").touch()
    pool.wait("innocent.log")
    (job,) = pool.history(str(innocent))
    assert (job["ExitBySignal"], job["ExitCode"], job["NumJobStarts"]) == (False, 0, 1)


def test_a_job_within_its_own_makes_room_for_the_owner_and_runs_again(boundless: PersonalPool, disk: Path) -> None:
    pool, over, began = boundless, boundless.work / "over", boundless.work / "marks2"
    began.mkdir()
    open_to_jobs(began)
    cluster = submitted(pool, "within", (
        f"head -c 20000000 /dev/zero > large\ntouch {began}/began\nwhile ! [ -e {over} ]; do sleep 0.1; done"))
    until((began / "began").exists, "it has written its file")
    owners = disk / "owners"
    owners.write_bytes(bytes(44 << 20))
    until(lambda: "makes room and is tried again" in (pool.work / "within.log").read_text(), "it makes room")
    owners.unlink()
    over.touch()
    pool.wait("within.log")
    assert "Job was held" not in (pool.work / "within.log").read_text()
    (job,) = pool.history(str(cluster))
    assert (job["ExitBySignal"], job["ExitCode"]) == (False, 0)
    assert job["NumJobStarts"] >= 2
