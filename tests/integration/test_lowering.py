"""A job has its share of the machine, then only what nobody else wants, then its share again: seen on processes."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

CONFIG = "JOB_RENICE_INCREMENT = 7\nJOB_CPU_WEIGHT = 50\nJOB_IO_WEIGHT = 40\nMAXJOBRETIREMENTTIME = 0\n"
JOB = ("executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = yes\n"
       "arguments = \"-c 'sleep 1234 & exec sleep 1234'\"\nlog = job.log\nqueue\n")
GROUPS = Path("/sys/fs/cgroup")


@pytest.fixture(params=["cgroups", "classes"])
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    """One that uses control groups where it may, and one that does not."""
    with fresh_folder() as folder:
        more = "USE_CGROUPS = False\n" if request.param == "classes" else f"BASE_CGROUP = {folder.name}\n"
        made = PersonalPool(folder, slots=1, config=CONFIG + more)
        yield made
        made.stop()
        for path in (*GROUPS.glob(f"*/{folder.name}"), *GROUPS.glob(folder.name)):
            path.rmdir()


def job_pids(pool: PersonalPool) -> list[int]:
    """Both processes of the job."""
    def both() -> list[int] | None:
        found = [pid for pid, command in pool.processes().items() if command == "sleep 1234"]
        return found if len(found) == 2 else None

    found: list[int] = until(both, "the job's processes")
    return found


def in_group(pid: int, *names: str) -> str | None:
    """What a file of the process' control group says; None where there is none."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for name in names:
            file = GROUPS / controllers / path.lstrip("/") / name
            if path != "/" and file.exists():
                return file.read_text().split()[-1]
    return None


def is_idle(pid: int) -> bool:
    """By its group and all above it, or by its class."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        levels = [GROUPS / controllers / each.lstrip("/") / "cpu.idle" for each in above(path)]
        if levels and all(level.exists() and level.read_text().strip() == "1" for level in levels):
            return True
    return os.sched_getscheduler(pid) == os.SCHED_IDLE


def above(path: str) -> list[str]:
    """``/a/b`` and ``/a``."""
    return [] if path == "/" else [path, *above(os.path.dirname(path))]


def may_leave_idle_class() -> bool:
    """Root may, others as RLIMIT_NICE allows them: what could not be raised again is not lowered."""
    return os.geteuid() == 0 or resource.getrlimit(resource.RLIMIT_NICE)[1] >= 20


def set_lower(pool: PersonalPool, value: str) -> None:
    (pool.dir / "config.d" / "20-lower").write_text(f"LOWER = {value}\n")
    pool.run("condor_reconfig", "-startd")


def test_the_share_of_a_job_and_less(pool: PersonalPool) -> None:
    cluster = pool.submit(JOB)
    pids = job_pids(pool)
    usual = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 7)
    assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids] == [usual, usual]
    assert not any(is_idle(pid) for pid in pids)
    shares = in_group(pids[0], "cpu.weight", "cpu.shares")
    disk = in_group(pids[0], "io.weight", "io.bfq.weight", "blkio.bfq.weight", "blkio.weight")
    grouped = "USE_CGROUPS" not in (pool.folder / "extra.config").read_text() and shares is not None
    if grouped:
        assert shares in ("50", "512"), "half the weight of an ordinary group"
        assert disk in (None, "40")

    set_lower(pool, "True")
    until(lambda: "gets only idle processor and disk time (" in (pool.dir / "log" / "StarterHostLog").read_text()
          or None, "they are lowered")
    if grouped or may_leave_idle_class():
        until(lambda: all(is_idle(pid) for pid in pids) or None, "both get only what nobody else wants")
    assert {psutil.Process(pid).ionice().ioclass for pid in pids} == {psutil.IOPRIO_CLASS_IDLE}
    if grouped and disk is not None:
        assert in_group(pids[0], "io.weight", "io.bfq.weight", "blkio.bfq.weight", "blkio.weight") in ("1", "10")
    assert "LOWER is true" in (pool.dir / "log" / "StartdLog").read_text()

    set_lower(pool, "False")
    until(lambda: "gets its share again (" in (pool.dir / "log" / "StarterHostLog").read_text() or None, "its share")
    assert not any(is_idle(pid) for pid in pids)
    if grouped:
        assert in_group(pids[0], "cpu.weight", "cpu.shares") == shares
        assert in_group(pids[0], "io.weight", "io.bfq.weight", "blkio.bfq.weight", "blkio.weight") == disk
    pool.run("condor_rm", str(cluster))
    until(lambda: not pool.scratch() or None, "nothing of it is left")
