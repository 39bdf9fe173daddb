"""A real process gets only what nobody else wants, and its share again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from condor_actors.machine.run.cgroups import Cgroups, JobCgroup
from condor_actors.machine.run.cpu_io_priority import Share, apply_share


@pytest.fixture
def child() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process.pid
    process.kill()
    process.wait()


def test_without_a_group_by_scheduling_classes(child: int) -> None:
    assert set(apply_share(Share(idle=True), None, [child])) >= {"SCHED_IDLE", "idle i/o"}
    assert os.sched_getscheduler(child) == os.SCHED_IDLE
    assert psutil.Process(child).ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
    apply_share(Share(), None, [child])
    assert os.sched_getscheduler(child) == os.SCHED_OTHER
    assert psutil.Process(child).ionice().ioclass != psutil.IOPRIO_CLASS_IDLE


@pytest.fixture
def group() -> Iterator[JobCgroup]:
    groups = Cgroups.find(f"condor-test-{os.getpid()}")
    if groups is None:
        pytest.skip("this user may make no control groups")
    made = groups.group("lowered")
    yield made
    made.remove()
    groups.leave()


def test_a_group_as_a_whole(group: JobCgroup) -> None:
    done = apply_share(Share(idle=True), group, [])
    if not done:
        pytest.skip("the kernel has no weights here")
    assert done[0] in ("cpu.idle", "cpu.weight")
    if done[0] == "cpu.idle":
        assert levels(group) == ["1", "1"], "also the group that holds it: an idle one yields to its neighbours only"
    assert "cpu.idle" not in apply_share(Share(cpu_weight=200), group, [])
    if done[0] == "cpu.idle":
        assert levels(group) == ["0", "0"]
    folder = next(path for path in group.directories if os.path.exists(f"{path}/cpu.shares")
                  or os.path.exists(f"{path}/cpu.weight"))
    name, expected = ("cpu.weight", 200) if group.version == 2 else ("cpu.shares", 2048)
    with open(f"{folder}/{name}", encoding="ascii") as file:
        assert int(file.read()) == expected


def levels(group: JobCgroup) -> list[str]:
    """Whether the group is idle, and the one above it."""
    folder = next(path for path in group.directories if os.path.exists(f"{path}/cpu.idle"))
    return [Path(each, "cpu.idle").read_text().strip() for each in (folder, os.path.dirname(folder))]


def test_a_group_beside_a_run_with_its_share_is_idle_within_theirs_only() -> None:
    groups = Cgroups.find(f"condor-test-{os.getpid()}")
    if groups is None:
        pytest.skip("this user may make no control groups")
    lowered, ordinary = groups.group("lowered"), groups.group("ordinary")
    child = subprocess.Popen(["sleep", "1000"])
    try:
        if apply_share(Share(idle=True), lowered, [])[0] != "cpu.idle":
            pytest.skip("the kernel has no idle groups here")
        for path in ordinary.directories:
            Path(path, "cgroup.procs").write_text(str(child.pid))
        apply_share(Share(), ordinary, [])
        assert levels(lowered) == ["1", "0"]
        (said, *_) = apply_share(Share(idle=True), lowered, [])
        assert said.startswith("cpu.idle within /sys/fs/cgroup")
        child.kill()
        child.wait()
        assert apply_share(Share(idle=True), lowered, [])[0] == "cpu.idle"
    finally:
        child.kill()
        child.wait()
        lowered.remove()
        ordinary.remove()
        groups.leave()


def test_a_process_that_is_gone_is_no_error() -> None:
    assert apply_share(Share(idle=True), None, [2**22 - 1]) == ()
