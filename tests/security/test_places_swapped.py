"""A folder that a job names is swapped for a link after the pool has looked at it, and before the job is launched.

A hook of the site, which runs in between, stands for a user with a shell on the machine who is as quick as can be.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.containers.probe import containers_work
from condor_actors.machine.run.confinement import PARTS, confinement_here
from tests.harness.images import root_folder
from tests.harness.root_pool import RootPool, root_pool, scratch_of_a_victim
from tests.pool_fixture import open_to_jobs

HERE = confinement_here(frozenset(PARTS))
pytestmark = pytest.mark.skipif(os.geteuid() != 0 or set(HERE) != set(PARTS), reason="of pools of root's")
imaging = pytest.mark.skipif(not containers_work(), reason="this kernel gives no namespaces or no overlays")

SWAP = """#!/bin/sh
place=$(sed -n 's/^SwappedPlace = "\\(.*\\)"$/\\1/p')
mv $place $place.before && ln -s {execute} $place && touch $place.swapped
"""
CONFIG = "MEMORY = 512\nSWAP_HOOK_PREPARE_JOB = {dir}/swap\n"
LOOKS = "cat /dir_*/secret {iwd}/dir_*/secret 2>/dev/null; echo looked"
LOOKS_ROUND = """#!./busybox sh
./busybox cat /dir_*/secret
echo looked
"""
CHANGED = "it is no more what it was when it was looked at"
AGAIN = """#!/bin/sh
if test -e begun; then
    cat /tmp/dir_*/secret /var/tmp/dir_*/secret 2>/dev/null
    echo looked
    exit 0
fi
touch begun
for place in .condor_private_*; do
    mv $place before_$place
    ln -s {execute} $place
done
exit 85
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[RootPool]:
    with root_pool(slots=2, config=CONFIG.format(dir="$(RUN)/..")) as made:
        hook = made.dir / "swap"
        hook.write_text(SWAP.format(execute=made.dir / "execute"))
        hook.chmod(0o755)
        yield made


@pytest.fixture(scope="module")
def victim(pool: RootPool) -> Path:
    """The scratch directory of a job of the same account."""
    return scratch_of_a_victim(pool)


def place_of(pool: RootPool, name: str) -> Path:
    """A folder in one where all may write."""
    folder = pool.work / name
    folder.mkdir()
    folder.chmod(0o777)
    return folder / "place"


def own_folder(path: Path) -> Path:
    path.mkdir()
    path.chmod(0o777)
    return path


def told(pool: RootPool, name: str, program: Path | str, more: str) -> tuple[str, str]:
    """What a job in an image has seen, and why it is held."""
    open_to_jobs(pool.work)
    out = pool.work / f"{name}.out"
    cluster = pool.submit(f"universe = container\nexecutable = {program}\nrequest_memory = 100MB\n"
                          f"output = {out}\nlog = {pool.work / name}.log\ntransfer_container = false\n{more}\nqueue\n")
    pool.until_status(f"{cluster}.0", 0, 4, 5)
    reason = "".join(str(job.get("HoldReason", "")) for job in pool.jobs(str(cluster)))
    pool.tool("condor_rm", str(cluster))
    return out.read_text() if out.exists() else "", reason


def nothing_was_seen(place: Path, victim: Path, seen: str, why: str) -> None:
    """The swap took place, the job is held for it, and the victim's file is what it was."""
    assert Path(f"{place}.swapped").exists()
    assert "mine" not in seen
    assert f"{place}: {CHANGED}" in why
    assert (victim / "secret").read_text() == "mine\n"


@imaging
def test_an_image_that_is_a_folder(pool: RootPool, victim: Path) -> None:
    place = place_of(pool, "images")
    root_folder(place)
    script = pool.work / "look.sh"
    script.write_text(LOOKS_ROUND)
    script.chmod(0o755)
    shutil.copy(place / "bin/busybox", pool.work / "busybox")
    seen, why = told(pool, "image", script, (
        f"container_image = {place}\nshould_transfer_files = YES\ntransfer_input_files = {pool.work}/busybox\n"
        f"+HookKeyword = \"SWAP\"\n+SwappedPlace = \"{place}\""))
    nothing_was_seen(place, victim, seen, why)


@imaging
def test_the_directory_of_a_job_in_an_image(pool: RootPool, victim: Path) -> None:
    place = own_folder(place_of(pool, "directories"))
    image = root_folder(pool.work / "image")
    seen, why = told(pool, "directory", "/bin/busybox", (
        f"container_image = {image}\nshould_transfer_files = NO\n"
        f"transfer_executable = false\ninitialdir = {place}\n"
        f"arguments = \"sh -c '{LOOKS.format(iwd=place)}'\"\n"
        f"+HookKeyword = \"SWAP\"\n+SwappedPlace = \"{place}\""))
    nothing_was_seen(place, victim, seen, why)


@imaging
def test_a_directory_behind_a_door_that_only_the_jobs_account_enters(pool: RootPool, victim: Path) -> None:
    """The pool cannot look at the link behind it: it is looked at with the rights of the job's account."""
    door = own_folder(pool.work / "door")
    (door / "link").symlink_to(pool.dir / "execute")
    image = root_folder(pool.work / "another")
    open_to_jobs(pool.work)
    shutil.chown(door, "nobody")
    door.chmod(0o700)
    seen, why = told(pool, "door", "/bin/busybox", (
        f"container_image = {image}\nshould_transfer_files = NO\n"
        f"transfer_executable = false\ninitialdir = {door}/link\n"
        f"arguments = \"sh -c '{LOOKS.format(iwd=door / 'link')}'\""))
    assert "mine" not in seen
    assert "its job's directory is the pool's own" in why


def test_folders_of_its_own_become_links_before_it_runs_again(pool: RootPool, victim: Path) -> None:
    """A job that goes on from its checkpoint has put links to all scratch directories where its /tmp was."""
    script = pool.work / "again.sh"
    script.write_text(AGAIN.format(execute=pool.dir / "execute"))
    script.chmod(0o755)
    open_to_jobs(pool.work)
    cluster = pool.submit(f"executable = {script}\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = begun\n"
                          "should_transfer_files = YES\nrequest_memory = 100MB\noutput = again.out\nlog = again.log\n"
                          "queue\n")
    pool.until_status(f"{cluster}.0", 0, 4, 5)
    reason = "".join(str(job.get("HoldReason", "")) for job in pool.jobs(str(cluster)))
    out = pool.work / "again.out"
    assert "mine" not in (out.read_text() if out.exists() else "")
    assert CHANGED in reason
    pool.tool("condor_rm", str(cluster))
    assert (victim / "secret").read_text() == "mine\n"
