"""Control groups without a kernel: what is written to which file."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from twisted.internet.task import Clock

from condor_actors.machine.run.cgroups import DROP_AGAIN_S, DyingGroups, JobCgroup


@pytest.mark.parametrize(("version", "hierarchy", "file", "stands", "goes"), [
    (1, "freezer", "freezer.state", "FROZEN", "THAWED"), (2, "", "cgroup.freeze", "1", "0")])
def test_who_joins_a_group_after_a_kill_does_not_stand_still(tmp_path: Path, version: int, hierarchy: str, file: str,
                                                             stands: str, goes: str) -> None:
    for name in ("cgroup.procs", "cgroup.kill", file):
        (tmp_path / name).touch()
    group = JobCgroup(version, {hierarchy: str(tmp_path)}, lambda idle: "")
    group.freeze()
    assert (tmp_path / file).read_text().startswith(stands)
    assert group.kill() == 0
    assert (tmp_path / file).read_text().startswith(goes)


def test_a_share_is_written_once_and_again_after_an_idle_run(tmp_path: Path) -> None:
    for name in ("cgroup.procs", "cpu.idle", "cpu.weight"):
        (tmp_path / name).touch()
    settled: list[bool] = []
    group = JobCgroup(2, {"": str(tmp_path)}, lambda idle: str(settled.append(idle) or ""))
    group.share(100, None, False)
    (tmp_path / "cpu.idle").write_text("untouched")
    assert group.share(100, None, False) == ()
    assert (tmp_path / "cpu.idle").read_text() == "untouched"
    assert settled == [False, False], "the groups above are looked after all the same"
    group.share(100, None, True)
    group.share(100, None, False)
    assert (tmp_path / "cpu.idle").read_text().startswith("0")
    (tmp_path / "cpu.idle").write_text("untouched")
    group.limit(cpus=2, memory_mib=None)
    group.share(100, None, False)
    assert (tmp_path / "cpu.idle").read_text().startswith("0"), "a new limit writes the weight as well"


@pytest.mark.parametrize(("version", "hierarchy", "now", "peak", "prefix"), [
    (1, "memory", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "total_"),
    (2, "", "memory.current", "memory.peak", "")])
def test_the_cache_of_files_is_no_memory_of_the_jobs(tmp_path: Path, version: int, hierarchy: str, now: str, peak: str,
                                                     prefix: str) -> None:
    group = JobCgroup(version, {"freezer": "", hierarchy: str(tmp_path)}, lambda idle: "")
    assert (group.usage().memory_kib, group.peak_memory_kib()) == (None, None)
    (tmp_path / now).write_text(f"{100 << 20}\n")
    (tmp_path / peak).write_text(f"{120 << 20}\n")
    assert (group.usage().memory_kib, group.peak_memory_kib()) == (100 << 10, 120 << 10)
    (tmp_path / "memory.stat").write_text(
        f"cache 1\n{prefix}inactive_file {60 << 20}\n{prefix}active_file {10 << 20}\n{prefix}shmem {5 << 20}\n")
    assert (group.usage().memory_kib, group.peak_memory_kib()) == (30 << 10, 50 << 10)


def test_a_program_that_reads_and_writes_files_uses_little_memory(tmp_path: Path) -> None:
    place = Path(f"/sys/fs/cgroup/memory/condor-test-{os.getpid()}")
    try:
        place.mkdir()
    except OSError:
        pytest.skip("no control groups of version 1 for memory here")
    try:
        group = JobCgroup(1, {"freezer": str(tmp_path), "memory": str(place)}, lambda idle: "")
        script = f"echo $$ >{place}/cgroup.procs; exec dd if=/dev/zero of={tmp_path}/file bs=1M count=64"
        subprocess.run(["sh", "-c", script], check=True, capture_output=True)
        assert int((place / "memory.max_usage_in_bytes").read_text()) > 48 << 20
        assert (group.peak_memory_kib() or 0) < 24 << 10
    finally:
        place.rmdir()


class Group(JobCgroup):
    """A group whose processes take some looks to end."""

    def __init__(self, name: str, looks: int) -> None:
        super().__init__(2, {"": f"/none/{name}"}, lambda idle: "")
        self.looks, self.kills = looks, 0

    def kill(self, *, everywhere: bool = False) -> int:
        self.kills += everywhere
        return self.looks

    def remove(self) -> bool:
        self.looks -= 1
        return self.looks < 0


def test_a_group_is_removed_when_what_was_killed_has_ended() -> None:
    clock = Clock()
    dying = DyingGroups(clock)
    quick, slow, again = Group("quick", 0), Group("slow", 3), Group("again", 5)
    for group in (quick, slow, again):
        dying.drop(group)
    assert (quick.looks, len(clock.getDelayedCalls())) == (-1, 1)
    assert dying.spared(again) is again
    before = again.kills
    for _ in range(9):
        clock.advance(DROP_AGAIN_S)
    assert (slow.looks, again.kills, clock.getDelayedCalls()) == (-1, before, [])
    assert slow.kills >= 3, "a process that joined after the first signal is killed, too"


def test_what_is_in_one_hierarchy_only_is_killed_too(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "600"])
    for name in ("freezer", "memory"):
        (tmp_path / name).mkdir()
    (tmp_path / "freezer" / "cgroup.procs").touch()
    (tmp_path / "memory" / "cgroup.procs").write_text(f"{child.pid}\n")
    group = JobCgroup(1, {name: str(tmp_path / name) for name in ("freezer", "memory")}, lambda idle: "")
    assert group.kill() == 0
    assert group.kill(everywhere=True) == 1
    assert child.wait() == -signal.SIGKILL
