"""A real process gets only what nobody else wants, and its share again."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
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


def may_come_back(child: int) -> bool:
    """Whether this machine lets a process of ours out of SCHED_IDLE: tried on one."""
    os.sched_setscheduler(child, os.SCHED_IDLE, os.sched_param(0))
    try:
        os.sched_setscheduler(child, os.SCHED_OTHER, os.sched_param(0))
    except PermissionError:
        return False
    return True


def test_what_could_not_be_raised_again_is_not_lowered(child: int) -> None:
    with subprocess.Popen(["sleep", "1000"]) as tried:
        allowed = may_come_back(tried.pid)
        tried.kill()
    done = apply_share(Share(idle=True), None, [child])
    assert ("SCHED_IDLE" in done) is allowed
    assert any(word.startswith("not SCHED_IDLE") for word in done) is not allowed
    apply_share(Share(), None, [child])
    assert os.sched_getscheduler(child) == os.SCHED_OTHER


@pytest.mark.parametrize(("limit", "lowered"), [(20, True), (19, False)])
def test_somebody_without_rights_lowers_within_the_limit_of_nice_values(limit: int, lowered: bool) -> None:
    try:
        if os.geteuid() != 0:
            raise PermissionError
        most = max(limit, resource.getrlimit(resource.RLIMIT_NICE)[1])
        resource.prlimit(os.getpid(), resource.RLIMIT_NICE, (0, most))
    except (PermissionError, ValueError):
        pytest.skip("this user may not set the limit that is tried")
    script = ("import os, resource, subprocess\n"
              f"resource.setrlimit(resource.RLIMIT_NICE, (0, {limit}))\n"
              "from condor_actors.machine.run.cpu_io_priority import Share, apply_share\n"
              "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
              "child = subprocess.Popen(['sleep', '1000'])\n"
              "apply_share(Share(idle=True), None, [child.pid])\n"
              "low = os.sched_getscheduler(child.pid)\n"
              "apply_share(Share(), None, [child.pid])\n"
              "print(low == os.SCHED_IDLE, os.sched_getscheduler(child.pid) == os.SCHED_OTHER)\n"
              "child.kill(); child.wait()\n")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, 0))
    assert said.stdout.split() == [str(lowered), "True"]


def test_without_a_group_by_scheduling_classes(child: int) -> None:
    if not may_come_back(child):
        pytest.skip("this machine lets no process of this user out of SCHED_IDLE")
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
