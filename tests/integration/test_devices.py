"""Jobs on a machine with GPUs, as its driver's recorded files tell of them; the device files are made for the test."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.containers.probe import containers_work
from condor_actors.messages.codes import JobStatus
from tests.harness import driver_trees
from tests.harness.images import docker_archive, root_folder
from tests.pool_fixture import PersonalPool, fresh_folder, until

DEVICES = ("/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm")
A100, T4 = driver_trees.A100[:12], driver_trees.T4[:12]
LOOK = ("for f in " + " ".join(DEVICES) + "; do head -c1 $f >/dev/null 2>&1 && echo $f; done; "
        "echo C $CUDA_VISIBLE_DEVICES N $NVIDIA_VISIBLE_DEVICES A $_CONDOR_AssignedGPUs")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    if any(os.path.exists(path) for path in DEVICES):
        pytest.skip("this machine has such devices")
    try:
        for path in DEVICES:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
            os.chmod(path, 0o666)
        with fresh_folder() as folder:
            tree = driver_trees.nvidia(folder / "tree")
            made = PersonalPool(folder, slots=4, config=f"use FEATURE : GPUs(-tree {tree})\n"
                                 "use FEATURE : PartitionableSlot\n")
            yield made
            made.stop()
    finally:
        for path in DEVICES:
            Path(path).unlink(missing_ok=True)


def description(name: str, more: str, script: str = LOOK) -> str:
    return (f"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c '{script}'\"\nlog = {name}.log\n"
            f"output = {name}.out\nerror = {name}.err\nshould_transfer_files = YES\n{more}\nqueue\n")


def told(pool: PersonalPool, name: str) -> list[str]:
    pool.wait(f"{name}.log", 30)
    return (pool.work / f"{name}.out").read_text().splitlines()


def test_jobs_get_what_they_require_at_the_same_time_and_cannot_open_the_others(pool: PersonalPool) -> None:
    wait = "until test -e go; do sleep 0.1; done"
    wanted = (("large", "gpus_minimum_memory = 30 GB"), ("small", "require_gpus = Capability < 8"))
    both = [(pool.submit(description(name, f"request_gpus = 1\n{more}", f"{LOOK}; {wait}")), name)
            for name, more in wanted]
    until(lambda: all((pool.work / f"{name}.log").exists() and "001 (" in (pool.work / f"{name}.log").read_text()
                      for _, name in both), "both run")
    seen = pool.run("condor_status", "-af", "Name", "AssignedGPUs", "OfflineGPUs").split()
    assert {A100, T4} <= set(seen)
    third = pool.submit(description("third", "request_gpus = 1\nrequire_gpus = Capability >= 8"))
    assert pool.run("condor_q", str(third), "-af", "JobStatus").strip() == "1"
    assert pool.run("condor_q", str(both[1][0]), "-af", "AssignedGPUs", "GPUsProvisioned").split() == [T4, "1"]
    for folder in (pool.dir / "execute").glob("dir_*"):
        (folder / "go").touch()
    assert told(pool, "large") == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", f"C {A100} N {A100} A {A100}"]
    assert told(pool, "small") == ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", f"C {T4} N {T4} A {T4}"]
    assert told(pool, "third")[0] == "/dev/nvidia0"


def test_a_job_without_any_opens_none(pool: PersonalPool) -> None:
    pool.submit(description("none", ""))
    assert told(pool, "none") == ["C 10000 N void A"]


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
def test_in_an_image_there_are_its_own_alone(pool: PersonalPool) -> None:
    image = docker_archive(root_folder(pool.work / "source"), pool.work / "image.tar")
    script = "ls -d /dev/nvidia*; dd if=/dev/nvidia1 of=/dev/null bs=1 count=1 2>/dev/null && echo opened"
    more = f"container_image = {image}\nrequest_gpus = 1\nrequire_gpus = Capability < 8"
    pool.submit(description("image", more, script))
    assert sorted(told(pool, "image")) == ["/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl", "opened"]


@pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
def test_a_device_that_has_gone_is_no_fault_of_the_job(pool: PersonalPool) -> None:
    """It is tried again, and runs when the device is back; a broken machine may not hold a whole queue."""
    image = docker_archive(root_folder(pool.work / "gone-source"), pool.work / "gone.tar")
    Path(DEVICES[1]).unlink()
    job = pool.submit(description("gone", f"container_image = {image}\nrequest_gpus = 1\nrequire_gpus = Capability < 8",
                                  "echo ran"))
    log = pool.work / "gone.log"
    until(lambda: "/dev/nvidia1: this machine does not have it" in log.read_text(), "a failed start")
    assert pool.status_of(str(job)) != JobStatus.HELD
    os.mknod(DEVICES[1], stat.S_IFCHR | 0o666, os.makedev(1, 5))
    os.chmod(DEVICES[1], 0o666)
    assert told(pool, "gone") == ["ran"]
    assert "012 (" not in log.read_text()
