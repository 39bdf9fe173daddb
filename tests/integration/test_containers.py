"""Jobs in images, by the pool's own launcher: in a pool of root's and in an ordinary user's."""

from __future__ import annotations

import contextlib
import os
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from condor_actors.machine.containers.probe import containers_work
from tests.harness.forwarded_ports import forwarded
from tests.harness.images import docker_archive, root_folder, rootfs_tar
from tests.harness.proc_files import command_lines
from tests.harness.sif import sif, squashfs
from tests.harness.user_pool import UserPool, user_pool
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")
CONFIG = ("STARTER_INITIAL_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\nDOCKER_VOLUMES = NOTES\n"
          "DOCKER_MOUNT_VOLUMES = NOTES\nDOCKER_VOLUME_DIR_NOTES = /usr/share/doc:/notes:ro\n")


@pytest.fixture(scope="module", params=["root's", "a user's"])
def pool(request: pytest.FixtureRequest) -> Iterator[PersonalPool]:
    if request.param == "a user's":
        with user_pool(CONFIG) as made:
            yield made
        return
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with fresh_folder() as folder:
        own = PersonalPool(folder, slots=2, config=CONFIG)
        yield own
        own.stop()


def description(name: str, image: Path | str, script: str, more: str = "") -> str:
    return (f"universe = container\ncontainer_image = {image}\nexecutable = /bin/sh\ntransfer_executable = false\n"
            f"arguments = \"-c '{script}'\"\nlog = {name}.log\noutput = {name}.out\nerror = {name}.err\n"
            f"should_transfer_files = YES\n{more}\nqueue\n")


def ran(pool: PersonalPool, name: str, image: Path | str, script: str, more: str = "") -> str:
    pool.submit(description(name, image, script, more))
    pool.wait(f"{name}.log", 25)
    return (pool.work / f"{name}.out").read_text()


@pytest.fixture(scope="module")
def image(pool: PersonalPool) -> Path:
    return docker_archive(root_folder(pool.work / "source"), pool.work / "image.tar")


def test_an_image_that_is_compressed_with_zstd(pool: PersonalPool, image: Path) -> None:
    packed = pool.work / "image.tar.zst"
    packed.write_bytes(zstandard.compress(image.read_bytes()))
    assert ran(pool, "zstd", packed, "cat /etc/image /etc/second") == "made in a test\nlayer\n"


def test_the_job_sees_the_image_and_nothing_of_the_machine(pool: PersonalPool, image: Path) -> None:
    text = ran(pool, "sees", image, "cat /etc/image /etc/second; echo $FROM_IMAGE $PATH; ls /usr /root 2>/dev/null; "
               "pwd; ls /notes >/dev/null && echo notes; touch /notes/x 2>/dev/null || echo shut; ps | grep -c -v PID; "
               "echo new >/new && cat /new; echo result >result; echo t >/tmp/x && cat /tmp/x")
    lines = text.splitlines()
    assert lines[:3] == ["made in a test", "layer", "yes /bin"]
    assert lines[4:6] == ["notes", "shut"]
    assert int(lines[6]) <= 6
    assert (pool.work / "result").read_text() == "result\n"
    assert lines[-1] == "t"
    if isinstance(pool, UserPool):
        assert lines[-2] == "new"


def test_an_image_is_unpacked_once_and_the_next_job_does_not_see_what_this_one_wrote(
        pool: PersonalPool, image: Path) -> None:
    ran(pool, "first", image, "echo evil >>/etc/image; echo more >/etc/more; true")
    folder = next(Path(pool.folder).rglob(".images"))
    before = {entry.name for entry in folder.iterdir()}
    assert ran(pool, "second", image, "cat /etc/image; ls /etc/more 2>/dev/null; true") == "made in a test\n"
    assert {entry.name for entry in folder.iterdir()} == before


def test_the_target_folder_and_no_network(pool: PersonalPool, image: Path) -> None:
    text = ran(pool, "target", image, "pwd; echo $_CONDOR_SCRATCH_DIR; cat /proc/net/dev | grep -c :; echo o >o",
               "container_target_dir = /data/here\ndocker_network_type = none")
    assert text.split() == ["/data/here", "/data/here", "1"]
    assert (pool.work / "o").read_text() == "o\n"


def test_an_image_of_apptainer_sets_its_variables_by_its_own_scripts(pool: PersonalPool) -> None:
    source = root_folder(pool.work / "apptainer")
    scripts = source / ".singularity.d/env"
    scripts.mkdir(parents=True)
    (scripts / "10-docker.sh").write_text('export FROM_IMAGE="${FROM_IMAGE:-"by script"}"\n')
    image = pool.work / "image.sif"
    image.write_bytes(sif(b"Bootstrap: scratch", squashfs(source, pool.work / "image.squashfs")))
    assert ran(pool, "sif", image, "cat /etc/image; echo $FROM_IMAGE; exit 0") == "made in a test\nby script\n"
    own = "environment = FROM_IMAGE=mine"
    assert ran(pool, "again", image, "echo $FROM_IMAGE", own) == "mine\n"


def served(port: int, path: str) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
        return str(answer.read().decode())
    return ""


def test_jobs_that_serve_at_the_same_port_are_each_reached_by_one_of_the_machine(
        pool: PersonalPool, image: Path) -> None:
    """The port is in the job's ad and in the copy that the job has, and leads nowhere when the job is over."""
    script = "echo here >who; httpd -p 8001 -h .; httpd -f -p 8000 -h ."
    cluster = pool.submit(description("serves", image, script, (
        "container_service_names = web, other\nweb_container_port = 8000\nother_container_port = 8001\nqueue")))

    def ports() -> dict[str, int]:
        return {str(job["ProcId"]): job["web_HostPort"] for job in pool.jobs(str(cluster))
                if isinstance(job.get("web_HostPort"), int)}

    until(lambda: len(ports()) == 2, "both ports")
    found = ports()
    for process, port in found.items():
        until(lambda port=port: served(port, "who") != "", "an answer of the job")
        assert f"web_HostPort = {port}\n" in served(port, ".job.ad")
        (other,) = [job["other_HostPort"] for job in pool.jobs(f"{cluster}.{process}")]
        until(lambda other=other: served(other, "who") != "", "an answer at its other port")
    with forwarded(pool, "-L", "8000", f"{cluster}.0") as (_, (near,)):
        assert served(near, "who") == "here\n"
    pool.run("condor_rm", str(cluster))
    until(lambda: not pool.jobs(str(cluster)), "the end of both")
    for port in found.values():
        until(lambda port=port: refused(port), "a port that leads nowhere")
    assert all(not isinstance(job.get("web_HostPort"), int) for job in pool.history(str(cluster)))


def refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_vanilla_job_with_a_folder_of_the_machine(pool: PersonalPool) -> None:
    """A starter that keeps root's rights (no account to drop to) opens nothing that a job names."""
    folder = root_folder(pool.work / "unpacked")
    pool.submit(description("folder", folder, "cat /etc/image", "transfer_container = false").replace(
        "universe = container\n", ""))
    if not isinstance(pool, UserPool):
        until(lambda: any("keeps root's rights" in job.get("HoldReason", "") for job in pool.jobs()), "the job held")
        pool.run("condor_rm", "-all")
        return
    pool.wait("folder.log", 25)
    assert (pool.work / "folder.out").read_text() == "made in a test\n"


def test_a_program_that_travels_exit_codes_and_signals(pool: PersonalPool) -> None:
    tar = rootfs_tar(root_folder(pool.work / "plain"), pool.work / "plain.tar")
    program = pool.work / "own.sh"
    program.write_text("#!/bin/sh\necho mine $1\nexit 7\n")
    program.chmod(0o755)
    cluster = pool.submit(f"container_image = {tar}\nexecutable = {program}\narguments = word\noutput = own.out\n"
                          "log = own.log\nshould_transfer_files = YES\nqueue\n")
    pool.wait("own.log", 25)
    assert (pool.work / "own.out").read_text() == "mine word\n"
    (job,) = pool.history(str(cluster))
    assert job["ExitCode"] == 7
    cluster = pool.submit(description("sig", tar, "kill -11 $$"))
    pool.wait("sig.log", 25)
    (job,) = pool.history(str(cluster))
    assert job["ExitSignal"] == 11


def test_what_is_no_image_holds_the_job_with_the_reason(pool: PersonalPool) -> None:
    (pool.work / "bad.tar").write_text("no tar")
    cluster = pool.submit(description("bad", "bad.tar", "true"))
    pool.until_status(f"{cluster}.0", 5)
    (job,) = pool.jobs(str(cluster))
    assert job["HoldReasonCode"] == 35
    assert "Cannot use container image bad.tar: it is no tar file" in job["HoldReason"]
    pool.run("condor_rm", str(cluster))


def test_a_look_inside_suspension_and_removal_leave_nothing(pool: PersonalPool, image: Path) -> None:
    cluster = pool.submit(description("long", image, "echo begun; sleep 1000"))
    pool.until_status(f"{cluster}.0", 2)
    until(lambda: "begun" in pool.run("condor_tail", f"{cluster}.0"), "the job's first line")
    for _ in range(5):  # a shell's last words arrive, however short it is
        said = pool.run("condor_ssh_to_job", f"{cluster}.0", "cat /etc/image; : </dev/tty && echo its terminal")
        assert said.split("\n") == ["made in a test", "its terminal", ""]
    pool.run("condor_suspend", f"{cluster}.0")
    pool.until_status(f"{cluster}.0", 7)
    pool.run("condor_continue", f"{cluster}.0")
    pool.until_status(f"{cluster}.0", 2)
    pool.run("condor_rm", f"{cluster}.0")
    until(lambda: not pool.scratch(), "an empty EXECUTE")
    assert "/.condor_root" not in Path("/proc/self/mountinfo").read_text()


def test_a_starter_host_that_is_killed_leaves_nothing(pool: PersonalPool, image: Path) -> None:
    cluster = pool.submit(description("killed", image, "echo again; sleep 1234"))
    pool.until_status(f"{cluster}.0", 2)
    pool.kill("starter-host")

    def sleepers() -> int:
        return sum(b"sleep 1234" in line.replace(b"\0", b" ") for _, line in command_lines())

    until(lambda: pool.status_of(f"{cluster}.0") != 2 or sleepers() <= 4, "the end of the first run")
    pool.run("condor_rm", f"{cluster}.0")
    until(lambda: sleepers() == 0, "no process of the job")
    until(lambda: not pool.scratch(), "an empty EXECUTE")


def test_the_machines_say_that_they_can(pool: PersonalPool) -> None:
    assert set(pool.run("condor_status", "-af", "HasContainer").split()) == {"true"}
    assert set(pool.run("condor_status", "-af", "HasSingularity").split()) == {"undefined"}
    assert set(pool.run("condor_status", "-af", "HasSIF").split()) == {"true"}
